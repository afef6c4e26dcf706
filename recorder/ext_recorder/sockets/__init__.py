"""Sessions over sockets: a relay that records, a server that replays.

In a cassette, `conn` is the number of a connection in the order of their coming. What has the number 0 belongs to none:
the server's own standard output and error, its signals, its exit.

::

    - {t: 0.100000, open: in}                     a client connects: connection 1
    - {t: 0.100100, in: '…'}                      what it says, and so on
    - {t: 0.200000, conn: 2, open: in}            another one
    - {t: 0.300000, conn: 0, err: 'a log line'}   the server says this to nobody in particular

address    where to listen and connect
relay      `record --listen`
recorded   the connections of a cassette, at a glance
server     `replay --listen`
arrivals   clients that come, until it is known which recorded connection each of them makes
players    a player for each connection, and one for what belongs to none
positions  how far each of them has come: some have to wait for others
"""
