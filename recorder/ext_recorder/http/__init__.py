"""The second layer: the HTTP traffic of a Python child, kept beside its stdio cassette, and answered from there.

    layer       what `record`, `replay` and `verify` use: it starts, it says what the child needs, it ends
    running     `record --http` and `replay --http`
    station     the process that the layer forks, and
    work        what it does: record, or replay
    inject/     what is loaded into the child (see there)
    service     the process at the other end: it listens to children, and records or answers

    recording   what children tell, as exchanges: with `observer`, which finds requests and answers in the bytes
    body        bytes of any length, in little memory
    attribution which call it was, where the child does not tell
    cleaning    no secret and no path of the machine
    interaction one exchange as data
    writer      the file: YAML that vcrpy loads as well, written as it happens
    reader      the same file, or one of vcrpy's own, as data
    recovery    the file of a recorder that was killed
    scrubbing   the file without secrets that were not known when it was recorded
    kubeconfig  what a child finds in the place of a kubeconfig

    answering   what children ask, and what they are told
    lines       a connection of theirs, from which requests are read
    responses   recorded answers as bytes
    library     the interactions of a file, found by their request
    keys        which requests are the same, and where two differ

NAME.http.yaml is a cassette of vcrpy's format, written by its serializer and read by its safe loader. Its patches of
client libraries are not used: they lose requests when there are several threads, read bodies to the end whoever wants
that, and know no errors. What is patched here is the one thing below them all, the socket.
"""
