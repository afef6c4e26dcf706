"""HTTP proxy of a user on loopback, which leads names of public servers to servers of a test."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.support.http_stub import Stub

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.http_stub import Asked, Handler


class ParentProxy(Stub):
    """Proxy; a context manager.

    Args:
        ports: of servers on 127.0.0.1, by HOST:PORT.
        login: that Proxy-Authorization must have; "" for none.
    """

    def __init__(self, ports: Mapping[str, int], login: str = "") -> None:
        super().__init__(default=self._respond)
        self._ports = ports
        self._login = login

    def _respond(self, handler: Handler, asked: Asked) -> None:
        place = asked.path if asked.method == "CONNECT" else urlsplit(asked.path).netloc
        port = self._ports.get(place) or self._ports.get(f"{place}:80")
        if self._login and asked.header("Proxy-Authorization") != self._login:
            handler.answer(407, "log in")
        elif port is None:
            handler.answer(403, "not allowed")
        elif asked.method == "CONNECT":
            self._tunnel(handler, port)
        else:
            self._forward(handler, asked, port)

    def _tunnel(self, handler: Handler, port: int) -> None:
        handler.close_connection = True
        with socket.create_connection(("127.0.0.1", port)) as server:
            handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
            back = threading.Thread(target=_copy, args=(server, handler.connection), daemon=True)
            back.start()
            _copy(handler.connection, server)
            back.join()

    def _forward(self, handler: Handler, asked: Asked, port: int) -> None:
        connection = HTTPConnection("127.0.0.1", port)
        own = {"proxy-authorization", "connection"}
        headers = {name: value for name, value in asked.headers if name.lower() not in own}
        connection.request(asked.method, asked.path.partition(urlsplit(asked.path).netloc)[2], asked.body, headers)
        response = connection.getresponse()
        handler.answer(response.status, response.read(), {"Content-Type": response.getheader("Content-Type", "")})
        connection.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
