"""The file format: a recorded session as a YAML file, one event on a line.

A cassette is valid YAML for any YAML library. The reader parses lines with its own parser, about fifty times as fast,
and leaves lines in other forms to PyYAML; both return the same events for every file. The writer appends to
NAME.partial and renames it to NAME at the end.
"""
