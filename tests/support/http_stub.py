"""HTTP server on loopback, with responses that a test chooses and a list of the requests it received."""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping
    from typing import TypeAlias

    Route: TypeAlias = Callable[["Handler", "Asked"], None]


class Asked(NamedTuple):
    """A request that was received."""

    method: str
    path: str
    headers: list[tuple[str, str]]
    body: bytes
    client: int  # port of the connection
    number: int  # of the request, among those for this path

    def header(self, name: str) -> str | None:
        """Return the first value of a header; None if it is missing."""
        return next((value for known, value in self.headers if known.lower() == name.lower()), None)


class Handler(BaseHTTPRequestHandler):
    """Handler of one connection."""

    protocol_version = "HTTP/1.1"
    server: Server

    def setup(self) -> None:
        super().setup()
        if self.connection.family != socket.AF_UNIX:  # else a body waits for the ACK of its head
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __getattr__(self, name: str) -> object:
        if name.startswith("do_"):
            return self._do
        raise AttributeError(name)

    def _do(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size + 2)[:size]
            self.rfile.readline()
        stub = self.server.stub
        with stub.lock:
            stub.counts[self.path] += 1
            number = stub.counts[self.path]
            asked = Asked(self.command, self.path, self.headers.items(), body, self.client_address[1], number)
            stub.asked.append(asked)
        route = stub.routes.get(self.path) or stub.routes.get(self.path.partition("?")[0]) or stub.default
        try:
            route(self, asked)
        except OSError:  # the client has closed the connection
            self.close_connection = True

    def answer(
        self, status: int = 200, body: bytes | str = b"", headers: Mapping[str, str | list[str]] | None = None
    ) -> None:
        """Send a complete response."""
        data = body.encode() if isinstance(body, str) else body
        self.send_response(status)
        for name, values in (headers or {}).items():
            for value in values if isinstance(values, list) else [values]:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def json(self, value: object, status: int = 200, headers: Mapping[str, str | list[str]] | None = None) -> None:
        """Send JSON."""
        self.answer(status, json.dumps(value), {"Content-Type": "application/json", **(headers or {})})

    def begin(self, text: str) -> None:
        """Send raw text; the connection is closed after it."""
        self.close_connection = True
        self.wfile.write(text.encode())

    def reset(self) -> None:
        """Close the connection with RST."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()

    def close_after(self, event: threading.Event) -> None:
        """Send nothing, and close the connection after the event."""
        self.close_connection = True
        event.wait(60)

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing to stderr."""


def missing(handler: Handler, asked: Asked) -> None:
    """Respond 404: the default."""
    handler.answer(404, "nothing here", {"Content-Type": "text/plain"})


class Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128
    stub: Stub
    context: ssl.SSLContext | None = None

    def finish_request(self, request: socket.socket | tuple[bytes, socket.socket], client_address: object) -> None:
        assert isinstance(request, socket.socket)
        with (
            suppress(OSError),  # the client has closed the connection, or does not trust the certificate
            self.context.wrap_socket(request, server_side=True) if self.context else request as connection,
        ):
            Handler(connection, client_address, self)

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a broken connection: tests check what the client reports."""


class Stub:
    """HTTP server; a context manager.

    Attributes:
        routes: functions by path, with query or without.
        default: function for all other paths.
        asked: all requests.
        counts: number of requests by path.
        lock: protects them.
    """

    def __init__(
        self,
        context: ssl.SSLContext | None = None,
        *,
        port: int = 0,
        host: str = "127.0.0.1",
        default: Route = missing,
    ) -> None:
        self.routes: dict[str, Route] = {}
        self.default = default
        self.asked: list[Asked] = []
        self.counts: Counter[str] = Counter()
        self.lock = threading.Lock()
        self._scheme = "https" if context else "http"
        if ":" in host:
            Server.address_family = socket.AF_INET6
        try:
            self._server = Server((host, port), Handler)
        finally:
            Server.address_family = socket.AF_INET
        self._server.stub = self
        self._server.context = context
        self.port: int = self._server.server_address[1]
        self.host = host
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self._scheme}://{host}:{self.port}"

    @property
    def address(self) -> str:
        """Return host and port."""
        return self.origin.partition("://")[2]

    def url(self, path: str = "/") -> str:
        return self.origin + path

    def says(self, path: str, body: bytes | str = b"", status: int = 200, **headers: str) -> str:
        """Answer a path always in the same way. Return its URL."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.routes[path] = lambda handler, asked: handler.answer(status, body, named)
        return self.url(path)

    def json(self, path: str, value: object, status: int = 200) -> str:
        """Answer a path always with this JSON. Return its URL."""
        self.routes[path] = lambda handler, asked: handler.json(value, status)
        return self.url(path)

    def does(self, path: str, route: Route) -> str:
        """Answer a path by a function. Return its URL."""
        self.routes[path] = route
        return self.url(path)

    def close_listener(self) -> None:
        """Accept no more connections; those that are open stay so."""
        self._server.shutdown()
        self._server.socket.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def gzipped(size: int) -> bytes:
    """Return zeros, compressed."""
    return gzip.compress(bytes(size))


def echo(handler: Handler, asked: Asked) -> None:
    """Respond with the request, as JSON."""
    handler.json(
        {
            "method": asked.method,
            "path": asked.path,
            "headers": {name.lower(): value for name, value in asked.headers},
            "body": asked.body.decode("latin-1"),
        }
    )
