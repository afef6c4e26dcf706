"""HTTP traffic of a Python child: recorded to NAME.http.yaml next to the cassette, and replayed from there.

    controller        starts and stops the worker process; returns the environment that the child requires
    worker, server    the worker process: record or replay what agents inside of children report
    inject/           the agent, which is loaded into the child by PYTHONPATH
    capture           from the bytes of connections to interactions (record)
    playback          from a child's requests to recorded responses (replay)
    reader, writer    NAME.http.yaml
    interaction_*     an interaction; its parser; a file that is read one by one; a store that finds responses

NAME.http.yaml is a cassette in vcrpy's format, written by its serializer and read by its safe loader. vcrpy's patches
of client libraries are not used: they lose requests of concurrent threads, read every body to its end, and do not
record errors. The agent patches the layer below all client libraries, the socket.
"""
