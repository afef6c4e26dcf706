"""Sessions over sockets: a relay that records, a server that replays.

In a cassette, `conn` is the number of a connection, in the order of connecting. Events with the number 0 belong to no
connection: the server's own standard output and error, its signals, its exit.

::

    - {t: 0.100000, open: in}                     a client connects: connection 1
    - {t: 0.100100, in: '…'}                      data of connection 1
    - {t: 0.200000, conn: 2, open: in}            a second client connects
    - {t: 0.300000, conn: 0, err: 'a log line'}   standard error of the server
"""
