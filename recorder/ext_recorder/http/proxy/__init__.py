"""Recording proxy: HTTP of any program that uses a proxy, a base URL or a kubeconfig of ours.

    service        listeners, routing, the process that records, and its feed to the worker
    streams        a connection that reads and writes without blocking, plain or with TLS
    certificates   the authority of a run, certificates of servers, and the defects of theirs
    client         the side of the program: proxy requests, tunnels, TLS, reverse routes
    upstream       connections to real servers
    recording      forwards requests first, then observes them
    replaying      responds from the store
    websocket      messages of WebSockets, recorded and replayed
    mcp_…          sessions of MCP servers

It shares capture, storage, matching and reports with the layer inside of Python children.
"""
