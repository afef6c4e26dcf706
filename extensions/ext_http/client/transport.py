"""Transport of the HTTP library over our own sockets, with bodies that end at a limit.

HTTP recorders patch `httpx2.HTTPTransport.handle_request` and read complete bodies there, so that method is inherited
unchanged and the limit is applied below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
import httpcore2
import httpx2

from .network import Backend, Stream
from .ssrf_guard import Guard
from .tls import create_context
from .url import origin_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from .settings import Settings

BODY_LIMIT = "body_limit"  # extension of a request: bytes of the response body to read, before content decoding
LIMITED_BODY = "limited_body"  # extension of a response: its LimitedBody
MAX_CONNECTIONS = 600  # 500 concurrent requests and a reserve: one more would wait for those that hang
MAX_IDLE = 20
IDLE_SECONDS = 30.0  # that an idle connection is kept


class Transport(httpx2.HTTPTransport):
    """Sends requests over persistent connections with common settings."""

    def __init__(self, settings: Settings) -> None:
        # Not the constructor of the base class, which creates a pool with the library's own sockets.
        self._pool = _LimitingPool(settings)


class _LimitingPool(httpcore2.ConnectionPool):
    """Connection pool whose responses end at the limit of their request."""

    def __init__(self, settings: Settings) -> None:
        proxy, guard = settings.proxy, settings.guard
        if proxy:  # only the proxy is connected to; the guard has checked the host behind it by name
            origin = origin_of(proxy.url)
            guard = Guard(guard.allow, origin[1:])
        super().__init__(
            ssl_context=_LazyContext(settings),  # type: ignore[arg-type]  # has the two methods that are called
            proxy=httpcore2.Proxy(url=proxy.url, auth=proxy.auth) if proxy else None,
            max_connections=MAX_CONNECTIONS,
            max_keepalive_connections=MAX_IDLE,
            keepalive_expiry=IDLE_SECONDS,
            http1=settings.http_version != "2",
            http2=settings.http_version != "1.1",
            uds=settings.unix_socket or None,
            network_backend=Backend(guard, dict(settings.resolve)),
        )

    def handle_request(self, request: httpcore2.Request) -> httpcore2.Response:
        response = super().handle_request(request)
        limit = request.extensions.get(BODY_LIMIT)
        if isinstance(limit, int):
            response.stream = response.extensions[LIMITED_BODY] = LimitedBody(response, limit)
        return response


class _LazyContext:
    """TLS context that is created at the first handshake: reading the system's CA certificates takes 20 ms."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._context: ssl.SSLContext | None = None
        self._protocols: list[str] = []

    def set_alpn_protocols(self, protocols: list[str]) -> None:
        """Act as the method of ssl.SSLContext."""
        self._protocols = protocols

    def wrap_socket(self, connection: object, server_hostname: str | None = None) -> object:
        """Act as the method of ssl.SSLContext."""
        if self._context is None:
            self._context = create_context(self._settings.tls)
        self._context.set_alpn_protocols(self._protocols)
        return self._context.wrap_socket(connection, server_hostname=server_hostname)  # type: ignore[arg-type]


class LimitedBody(httpx2.SyncByteStream):
    """Response body before content decoding, up to one byte over the limit, which shows that the body is longer.

    A connection with bytes after the response is closed: the next request would read them as its response.

    Attributes:
        excess: bytes received after the end of the response; known once the response is read completely.
    """

    excess = b""

    def __init__(self, response: httpcore2.Response, limit: int) -> None:
        self._stream = response.stream
        self._network = response.extensions.get("network_stream")
        self._http1 = response.extensions.get("http_version", b"").startswith(b"HTTP/1")
        self._limit = limit

    def __iter__(self) -> Iterator[bytes]:
        left = self._limit + 1
        for piece in self._stream:  # type: ignore[union-attr]  # a synchronous pool returns no other
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return
        if not self._http1:
            return
        # The library leaves bytes after a response in its parser and offers no other access to them.
        parser: object = self._stream
        for name in ("_stream", "_connection", "_h11_state"):
            parser = getattr(parser, name, None)
        known = isinstance(parser, h11.Connection)
        received = parser.trailing_data[0] if isinstance(parser, h11.Connection) else b""
        if isinstance(self._network, Stream):
            received += self._network.peek()
            if received or not known:
                self._network.close()  # the pool drops a connection whose socket is closed
        self.excess = received

    def close(self) -> None:
        """Return the connection to the pool, or close it if the body was not read completely."""
        self._stream.close()  # type: ignore[union-attr]
