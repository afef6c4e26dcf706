"""ext-recorder: record a session of any child process on stdio, and play it again without the child.

cassette/   the file format: header, events, reader, writer
matching, bindings, replay     what a live message is compared with, and what is answered
show        a cassette for people
"""
