"""Recording proxy: HTTP of any program that uses a proxy, a base URL or a kubeconfig of ours.

    event_loop     one thread: sockets, timers, work that waits for an idle moment
    streams        a connection that reads and writes without blocking, plain or with TLS
    certificates   the authority of a run, certificates of servers, and the defects of theirs
    client         the side of the program: proxy requests, tunnels, TLS, reverse routes
    exchanges      record: forward first, then observe; replay: respond from the store
    upstream       connections to real servers

It shares capture, storage, matching and reports with the layer inside of Python children.
"""
