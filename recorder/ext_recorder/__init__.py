"""ext-recorder: record a session of any child process on stdio or a socket, and replay it without the child.

The layers, each of which imports only those below it:

    plugin/        pytest plugin
    cli/           command line: parsers, options, project file, one module for each command
    verify/        replay the host against a real child, and compare
    conformance/   check a live extension against the clauses of its specification
    tools/         commands on cassettes: show, view, stats, diff, lint, scrub, trim, merge, convert, shim
    http/          HTTP traffic of a Python child: record and replay, with an agent inside the child
    sockets/       sessions over TCP and Unix sockets: recording relay, replaying server
    record/        proxy between host and child, note queue, writer process
    replay/        players, request matching, responses, faults, event loop
    batch/         many cassettes: selection, worker processes, reports
    messages/      recorded and live messages: matching, ids, names, paths, redaction
    cassette/      file format: events, header, reader, writer, recovery
    protocols/     dialects and rules of protocols, as data
    posix/         child processes, signals, non-blocking output
"""
