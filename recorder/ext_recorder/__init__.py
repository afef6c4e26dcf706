"""ext-recorder: record a session of any child process on stdio, and play it again without the child.

commands, options, cli      the command line: one table, read the quick way or by click
record, tap, outlets, …     the wire between host and child
notes, scribe, transcript   from the wire to the cassette, in a process of its own
cassette/                   the file format: header, events, reader, writer
matching, bindings, replay  what a live message is compared with, and what is answered
provenance, naming          the command a cassette was recorded from; names of cassettes that depend on the session
targets, report             files that are written: none but files is replaced; the lines of --report
show                        a cassette for people
shim, cassette.recovery     an executable in the place of a child; what a crash has left
"""
