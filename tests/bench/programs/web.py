"""A web server that costs its clients next to nothing: web.py SIZE. Prints its port; ends with its stdin.

/small is 48 bytes, /medium 2 KB of JSON, /big SIZE bytes, and /bomb becomes twice as many when it is decoded. /events
are three server-sent events. A body that is sent is read to its end. Connections are kept.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
import zlib
from contextlib import suppress

PIECE = 1024 * 1024  # bytes
PAUSE_S = 0.002  # before an event
MEDIUM = json.dumps([{"name": f"pod-{number}", "ready": True, "labels": {"app": "web"}} for number in range(30)])[:2048]


def bomb(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return b"".join(packer.compress(bytes(PIECE)) for _ in range(2 * size // PIECE)) + packer.flush()


def answer(body: bytes, more: str = "") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def events(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for end in (b"", b"", b"0\r\n\r\n"):
        time.sleep(PAUSE_S)
        connection.sendall(b'18\r\ndata: {"delta": "a b"}\n\n\r\n' + end)


def read_body(connection: socket.socket, data: bytes) -> None:
    head, _, body = data.partition(b"\r\n\r\n")
    length = head.lower().partition(b"\r\ncontent-length:")[2].partition(b"\r\n")[0]
    left = int(length or b"0") - len(body)
    while left > 0:
        left -= len(connection.recv(min(left, PIECE)))


def serve(connection: socket.socket, small: bytes, bomb: bytes, size: int) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    medium = answer(MEDIUM.encode())
    with connection, suppress(OSError):
        while data := connection.recv(65_536):
            path = data.split(b" ", 2)[1]
            if data.startswith(b"POST"):
                read_body(connection, data)
            if path.startswith(b"/medium"):
                connection.sendall(medium)
            elif path == b"/events":
                events(connection)
            elif path == b"/big":
                connection.sendall(answer(b"").replace(b": 0\r\n", b": %d\r\n" % size))
                for _ in range(size // PIECE):
                    connection.sendall(b"x" * PIECE)
                connection.sendall(b"x" * (size % PIECE))
            else:
                connection.sendall(bomb if path == b"/bomb" else small)


def main() -> None:
    size = int(sys.argv[1])
    small, big = answer(b"x" * 48), answer(bomb(size), "Content-Encoding: gzip\r\n")
    server = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        while True:
            connection, _ = server.accept()
            threading.Thread(target=serve, args=(connection, small, big, size), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdout.write(f"{server.getsockname()[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    main()
