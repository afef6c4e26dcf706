"""A client of the recording proxy: proxied.py WHAT URL COUNT. Writes what it has measured, as JSON.

`trips` takes turns between the server and HTTP_PROXY: the same request, and the first server-sent event, on connections
that are kept. `flood` sends from 16 connections at once; `different` sends COUNT different requests, one after the
other. `get` and `post` transfer one body of COUNT bytes.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import sys
from time import monotonic, perf_counter
from urllib.parse import urlsplit

CONNECTIONS = 16
PIECE = 1024 * 1024  # bytes
END = b"0\r\n\r\n"  # of a body in chunks
HEADERS = "User-Agent: bench/1\r\nAccept: */*\r\nAuthorization: Bearer abcdefgh12345678\r\n"


def connected(port: int) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def request(target: str, host: str, *, method: str = "GET", more: str = "") -> bytes:
    return f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{HEADERS}{more}\r\n".encode()


def read(connection: socket.socket) -> bytes:
    """Return a response with a length, at its end, up to the part that fits into memory."""
    data = connection.recv(65_536)
    head, _, body = data.partition(b"\r\n\r\n")
    left = int(head.lower().partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]) - len(body)
    while left > 0:
        left -= len(connection.recv(min(left, PIECE)))
    return head


def trips(origin: str, host: str, direct: int, proxy: int, count: int) -> dict[str, float]:
    sides = {"direct": (connected(direct), ""), "proxied": (connected(proxy), origin)}
    found: dict[str, list[float]] = {f"{side}{kind}": [] for side in sides for kind in ("", " first event")}
    for number in range(count):
        for side, (connection, prefix) in sides.items():
            begin = perf_counter()
            connection.sendall(request(f"{prefix}/medium", host))
            read(connection)
            found[side].append(perf_counter() - begin)
        if number % 20:
            continue
        for side, (connection, prefix) in sides.items():
            begin, data = perf_counter(), b""
            connection.sendall(request(f"{prefix}/events", host))
            while b"data" not in data:
                data += connection.recv(65_536)
            found[f"{side} first event"].append(perf_counter() - begin)
            while not data.endswith(END):
                data += connection.recv(65_536)
    return {f"{name} µs": statistics.median(times) * 1e6 for name, times in found.items()}


def flood(origin: str, host: str, proxy: int, count: int) -> dict[str, float]:
    connections = [connected(proxy) for _ in range(CONNECTIONS)]
    sent = request(f"{origin}/medium", host)
    begin = monotonic()
    for _ in range(count // CONNECTIONS):
        for connection in connections:
            connection.sendall(sent)
        for connection in connections:
            read(connection)
    return {"begin": begin}  # the end is that of the recorder


def different(origin: str, host: str, proxy: int, count: int) -> dict[str, float]:
    connection, first = connected(proxy), 0.0
    begin = perf_counter()
    for number in range(count):
        connection.sendall(request(f"{origin}/medium?{number}", host))
        read(connection)
        first = first or perf_counter() - begin
    return {"first ms": first * 1e3, "s": perf_counter() - begin}


def transfer(what: str, origin: str, host: str, proxy: int, size: int) -> dict[str, float]:
    connection = connected(proxy)
    begin = perf_counter()
    if what == "get":
        connection.sendall(request(f"{origin}/big", host))
    else:
        connection.sendall(request(f"{origin}/small", host, method="POST", more=f"Content-Length: {size}\r\n"))
        for at in range(0, size, PIECE):
            connection.sendall(b"y" * min(PIECE, size - at))
    read(connection)
    return {"s": perf_counter() - begin}


def main() -> None:
    what, origin, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    host, direct = urlsplit(origin).netloc, urlsplit(origin).port or 80
    proxy = urlsplit(os.environ["HTTP_PROXY"]).port or 80
    if what == "trips":
        found = trips(origin, host, direct, proxy, count)
    elif what == "flood":
        found = flood(origin, host, proxy, count)
    elif what == "different":
        found = different(origin, host, proxy, count)
    else:
        found = transfer(what, origin, host, proxy, count)
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
