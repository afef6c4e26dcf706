"""`verify`: the host, without the host. The recorded requests are played to a real child, and what it says is compared.

    script    the host's part, sans-IO: what is sent when, and when the child is given up
    ahead     the cassette as the script reads it: what comes next, and soon
    sending   recorded messages of the host as the live child has to get them
    hearing   live messages of the child as they would stand in the cassette, beside the recorded ones
    window    what the child said beside what it is expected to say: who belongs to whom, and in which order
    lines     standard error, line by line
    findings  what differs, in words

    running   the child itself: a contained process, its files, its end
    links     a connection to a socket server, and the script of what is said on it
    clients   all clients of a socket server, each on a link of its own
    session   what all connections share: names, folders, secrets, and what became of them
    verifying one cassette, from its options to its result
    updating  the new session as a cassette, for --update

The rule is that of replay, seen from the other side: a recorded message of the host goes out when the recorded messages
of the child before it have come.
"""
