"""The agent: the part of the HTTP layer that lives in the recorded child.

It runs in whatever Python the child has, beside whatever the child has installed. So it imports nothing but the
standard library, and of that next to nothing before the child does so itself: it waits for `socket` to be imported.

Modules of the standard library are patched from within, so they are `Any` here, and their private names are used.

    start      what is done when the interpreter starts
    imports    a word when a module has been imported
    calls      which call of the host a thread works for
    clock      the time and the chances of a call, kept and given again
    channel    frames to and from the recorder
    tapping    while recording: a copy of all bytes on connections, in plain text, by
    tapped, tapped_tls    which are the patches for that
    answering  while replaying: connections that lead to the recorder, and nowhere else, with
    answered, names    which are the patches for that
    connections    those that a process has, by file descriptor
    tls        TLS that was, and needs no encryption any more
    programs   what the child runs, and nobody sees
    errors     exceptions as data
"""
