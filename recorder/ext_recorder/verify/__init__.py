"""`verify`: replay the recorded requests to a real child, and compare its messages with the recorded ones.

    verify             one cassette, from its options to its result
    session            options, and the state that all connections share: names, folders, secrets, results
    host_script        the host's part, sans-IO: what is sent when, and when to give up
    request_writer     recorded requests with live ids, names and paths
    child_messages     live messages in the form that a cassette would have
    pairing            pairs of recorded and live messages, their order, and the differences as text
    paired_messages    recorded and live messages, and the key by which they are paired
    child_process      the child: a supervised process, its files, its exit
    clients            clients of a socket server, each with a script of its own
    update             the new session as a cassette, for --update

A recorded request is sent when the recorded messages of the child before it have arrived.
"""
