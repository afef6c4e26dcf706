"""The cassette: a recorded session as a YAML file, one event a line.

    scalars    what YAML can hold between quotation marks, and how it is written there
    header     the lines above the events
    events     one event as an object, as a line, and back
    writer     NAME.partial, its claim, and the rename at the end
    reader     the events of a file, one after another, without holding them
    rewrapped  the same for a file that a person or a formatter has written, by PyYAML
    recovery   a cassette out of a partial one

A cassette is valid YAML for any YAML library. Our own reader takes the lines apart by hand, which is some
fifty times faster, and leaves to PyYAML what it does not know at sight; both give the same events for every
file.
"""
