"""A web server that costs its clients next to nothing: web.py SIZE. Prints its port; ends with its stdin.

/small is 48 bytes, /big SIZE bytes, and /bomb becomes twice as many when it is decoded. Connections are kept.
"""

from __future__ import annotations

import socket
import sys
import threading
import zlib
from contextlib import suppress

PIECE = 1024 * 1024  # bytes


def bomb(size: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return b"".join(packer.compress(bytes(PIECE)) for _ in range(2 * size // PIECE)) + packer.flush()


def answer(body: bytes, more: str = "") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def serve(connection: socket.socket, small: bytes, bomb: bytes, size: int) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with connection, suppress(OSError):
        while data := connection.recv(65_536):
            path = data.split(b" ", 2)[1]
            if path == b"/big":
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
