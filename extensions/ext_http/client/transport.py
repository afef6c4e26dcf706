"""The library's transport, with connections of ours, and bodies that end at a limit.

Recorders of HTTP hook into `httpx2.HTTPTransport.handle_request` and read whole bodies there. So that stays as it is,
and the limit is below it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import h11
import httpcore2
import httpx2

from .network import Backend, Stream
from .ssrf_guard import Guard, origin_of
from .tls import context_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator

    from .settings import Settings

LIMIT = "body_limit"  # extension of a request: bytes of the answer's body that are read from the wire
LIMITED = "limited"  # extension of a response: its Limited body
MOST_CONNECTIONS = 600  # 500 requests at the same time, and room: one more would wait for those that hang
MOST_IDLE = 20
IDLE_SECONDS = 30.0  # that an idle connection is kept


class Transport(httpx2.HTTPTransport):
    """Sends requests over connections that are kept.

    Args:
        settings: what all of its connections have in common.
    """

    def __init__(self, settings: Settings) -> None:
        # Not the constructor of the base class: it makes a pool with the library's own sockets.
        self._pool = _LimitingPool(settings)


class _LimitingPool(httpcore2.ConnectionPool):
    """A pool whose answers end at the limit that their request has."""

    def __init__(self, settings: Settings) -> None:
        proxy = settings.proxy
        super().__init__(
            ssl_context=_LazyContext(settings),  # type: ignore[arg-type]  # has the two methods that are called
            proxy=httpcore2.Proxy(url=proxy.url, auth=proxy.auth, headers=list(proxy.headers)) if proxy else None,
            max_connections=MOST_CONNECTIONS,
            max_keepalive_connections=MOST_IDLE,
            keepalive_expiry=IDLE_SECONDS,
            http1=settings.http_version != "2",
            http2=settings.http_version != "1.1",
            uds=settings.unix_socket or None,
            network_backend=Backend(_guard_of(settings), dict(settings.resolve)),
        )

    def handle_request(self, request: httpcore2.Request) -> httpcore2.Response:
        response = super().handle_request(request)
        limit = request.extensions.get(LIMIT)
        if isinstance(limit, int):
            response.stream = response.extensions[LIMITED] = Limited(response, limit)
        return response


def _guard_of(settings: Settings) -> Guard:
    """What may be connected to: with a proxy, it alone; what lies behind it was checked by its name."""
    if settings.proxy is None:
        return settings.guard
    proxy = origin_of(settings.proxy.url, "proxy")
    return Guard(settings.guard.allow, (proxy.host, proxy.port))


class _LazyContext:
    """A TLS context that is made at the first handshake: reading the system's authorities takes 20 ms."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._context: ssl.SSLContext | None = None
        self._protocols: list[str] = []

    def set_alpn_protocols(self, protocols: list[str]) -> None:
        """See ssl.SSLContext."""
        self._protocols = protocols

    def wrap_socket(self, opened: object, server_hostname: str | None = None) -> object:
        """See ssl.SSLContext."""
        if self._context is None:
            self._context = context_of(self._settings.tls)
        self._context.set_alpn_protocols(self._protocols)
        return self._context.wrap_socket(opened, server_hostname=server_hostname)  # type: ignore[arg-type]


class Limited(httpx2.SyncByteStream):
    """The body of a response as sent, up to one byte beyond the limit; that byte shows that the body is longer.

    A connection on which there was more than the response is closed: the next request would get it as its response.

    Attributes:
        excess: what the server sent beyond the end of the response; known once the response is read to its end.
    """

    excess = b""

    def __init__(self, response: httpcore2.Response, limit: int) -> None:
        self._stream = response.stream
        self._network = response.extensions.get("network_stream")
        self._http1 = response.extensions.get("http_version", b"").startswith(b"HTTP/1")
        self._limit = limit

    def __iter__(self) -> Iterator[bytes]:
        left = self._limit + 1
        for piece in self._stream:  # type: ignore[union-attr]  # a pool that is not async gives no other
            yield piece[:left]
            left -= len(piece)
            if left <= 0:
                return
        if self._http1:
            self._look_beyond()

    def close(self) -> None:
        """Give the connection back, or end it where the body was not read to its end."""
        self._stream.close()  # type: ignore[union-attr]

    def _look_beyond(self) -> None:
        parsed = _parser_of(self._stream)
        received = parsed.trailing_data[0] if parsed else b""
        if isinstance(self._network, Stream):
            received += self._network.waiting()
            if received or parsed is None:
                self._network.close()  # the pool drops a connection whose socket is closed
        self.excess = received


def _parser_of(stream: object) -> h11.Connection | None:
    """Return the parser of the connection that a response came from; None if the library has it elsewhere.

    The library leaves bytes beyond a response in the parser and offers no other way to them.
    """
    for name in ("_stream", "_connection", "_h11_state"):
        stream = getattr(stream, name, None)
    return stream if isinstance(stream, h11.Connection) else None
