"""`verify`: the host, without the host. The recorded requests are played to a real child, and what it says is compared.

    script    the host's part, sans-IO: what is sent when, and when the child is given up
    window    what the child said beside what it is expected to say: who belongs to whom, and in which order
    sending   recorded messages of the host as the live child has to get them
    hearing   live messages of the child as they would stand in the cassette
    findings  what differs, in words
    clients   all clients of a socket server, a script for each
    running   the child itself: a contained process, its files, its end
    updating  the new session as a cassette, for --update

The rule is that of replay, seen from the other side: a recorded message of the host goes out when the recorded messages
of the child before it have come.
"""
