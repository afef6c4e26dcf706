"""A server of raw bytes on loopback: what it sends need not be HTTP."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    Talk = Callable[[socket.socket, bytes], None]


class RawServer:
    """Calls a function for the head of each request, on each connection. Use it as a context manager.

    Args:
        talk: writes to the connection; is given it and the head of a request.
        context: of TLS; None for none.

    Attributes:
        connections: how many were accepted.
        heads: of the requests, in their order.
    """

    def __init__(self, talk: Talk, context: ssl.SSLContext | None = None) -> None:
        self._talk = talk
        self._context = context
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._scheme = "https" if context else "http"
        self.connections = 0
        self.heads: list[bytes] = []

    @property
    def url(self) -> str:
        return f"{self._scheme}://127.0.0.1:{self._listener.getsockname()[1]}/"

    def __enter__(self) -> Self:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *exc: object) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._listener.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, plain: socket.socket) -> None:
        with (
            suppress(OSError),
            self._context.wrap_socket(plain, server_side=True) if self._context else plain as connection,
        ):
            data = b""
            while piece := connection.recv(65536):
                data += piece
                while b"\r\n\r\n" in data:
                    head, _, data = data.partition(b"\r\n\r\n")
                    self.heads.append(head)
                    self._talk(connection, head)


def sends(*pieces: bytes) -> Talk:
    """Write these pieces, each at once, in answer to any request."""

    def talk(connection: socket.socket, head: bytes) -> None:
        for piece in pieces:
            connection.sendall(piece)

    return talk
