"""Agent inside the recorded child: patches of sockets, TLS, clocks and random values.

It runs in any Python, next to any packages that the child has. So it imports nothing but the standard library, and
most of that only after the child has imported it: patches are applied when `socket` and `ssl` are imported.

Modules of the standard library are patched from within, so they are `Any` here, and their private names are used.

    start                         runs when the interpreter starts; import hook, report of programs that the child runs
    call_context                  the host's call that a thread works for
    clock, determinism            time and random values: recorded and replayed
    channel                       frames to and from the recorder
    connections                   connections of the process by file descriptor
    traffic                       record: reports all bytes on connections as plain text
    record_sockets, record_tls    patches for that
    redirect                      replay: connections lead to the recorder, and to nothing else
    replay_sockets, replay_tls    patches for that
    errors                        exceptions as data
"""
