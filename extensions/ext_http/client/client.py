"""HTTP client: one exchange at a time, with a deadline and a limit for the body.

The library sends over our own sockets. HTTP recorders patch `httpx2.HTTPTransport.handle_request` and read complete
bodies there, so that method is inherited unchanged and the limit is applied below it.
"""

from __future__ import annotations

import time
from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

import h11
import httpcore2
import httpx2

from ext_sdk.context import ClientCache
from ext_sdk.core import __version__

from .errors import REMEDIES, ExchangeFailed, failure_of
from .network import Backend, Stream, Upgraded, create_context, current, expiry_of
from .response import CODINGS, Response, Undecodable, decode
from .settings import Settings
from .url import Guard, origin_of

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Generator, Iterator, Sequence

    from .errors import Kind
    from .network import ExchangeDeadline

    Sink = Callable[[bytes], object]
    Enough = Callable[[bytes], bool]
    Converse = Callable[[Upgraded, Sequence[tuple[str, str]]], None]

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


MAX_RATIO = 200  # a body that expands by more when it is decoded is a decompression bomb: deflate reaches 1,032
MIN_RATIO_BYTES = 1024 * 1024  # decoded, from which on the ratio counts: short repetitive bodies are harmless
IDEMPOTENT = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})  # safe methods, RFC 9110, 9.2.1
ACCEPT_ENCODING = "gzip, deflate"
IDENTITY_REMEDY = "send the header `Accept-Encoding: identity` to request it without coding"
STREAM_REMEDY = "`expect.events` of request and wait reads a stream up to the last event that it expects"
CLOSED_EARLY_REMEDY = "the server, or a proxy before it, closed the connection before the end of the response"
HTTP2_REMEDY = "check that the server supports HTTP/2; `httpVersion: auto` falls back to HTTP/1.1"
CERTIFICATE_REMEDIES = {  # by a part of the reason; the usual one is to trust the CA
    "not valid for": "use a name of the certificate in the URL, or set it as `tls.serverName`",
    "mismatch": "use a name of the certificate in the URL, or set it as `tls.serverName`",
    "expired": "renew the certificate, or accept it with `tls.insecure: true`",
    "not yet valid": "renew the certificate, or accept it with `tls.insecure: true`",
}
SWITCHING_PROTOCOLS = 101
USER_AGENT = f"ext-http/{__version__} gevals-extensions"


class Outgoing(NamedTuple):
    """Request to send.

    Attributes:
        method: in capitals.
        headers: all except Host and Content-Length.
        content: body; None for none.
        digest: user and password for a Digest challenge.
        raw: path and query exactly as they are sent; "" for those of `url`.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes | None = None
    digest: tuple[str, str] | None = None
    raw: str = ""

    @property
    def shown(self) -> str:
        """Return the URL as it is sent, for messages and outputs."""
        return f"{origin_of(self.url)}{self.raw}" if self.raw else self.url


class Client:
    """Sends requests with common settings over persistent connections. Thread-safe."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._transport = Transport(settings)

    def close(self) -> None:
        """Close all connections."""
        self._transport.close()

    def send(
        self,
        outgoing: Outgoing,
        deadline: ExchangeDeadline,
        *,
        limit: int,
        sink: Sink | None = None,
        enough: Enough | None = None,
        converse: Converse | None = None,
    ) -> Response:
        """Send one request and return its response; redirects are not followed.

        Args:
            limit: bytes of the body, decoded, that are kept.
            sink: receives the body of a response with status 200 to 299, piece by piece; such a response has no body.
            enough: receives the body, too; if it returns True, or time is up, the response is complete as it is.
            converse: called with the connection and the headers of a response with status 101; the connection is
                closed afterwards.

        Raises:
            ExchangeFailed: no complete response before the deadline.
        """
        begun = time.monotonic()
        try:
            with deadline:
                return self._exchange(outgoing, limit, begun, sink=sink, enough=enough, converse=converse)
        except (_Incomplete, httpx2.HTTPError) as error:
            cause = error.cause if isinstance(error, _Incomplete) else error
            timed_out = isinstance(cause, httpx2.TimeoutException) and not deadline.deadline.stopped.is_set()
            if enough and timed_out and isinstance(error, _Incomplete):
                return error.response
            failure = _failure(
                cause,
                f"{outgoing.method} {outgoing.shown}",
                deadline,
                begun=begun,
                protocol_remedy=HTTP2_REMEDY if self._settings.http_version == "2" else "",
                response=error.response if isinstance(error, _Incomplete) else None,
            )
            if self._settings.proxy is None:  # a proxy fails in these ways for other reasons
                failure.failure = failure_of(failure.kind, cause)
            raise failure from cause

    def _exchange(
        self,
        outgoing: Outgoing,
        limit: int,
        begun: float,
        *,
        sink: Sink | None,
        enough: Enough | None,
        converse: Converse | None,
    ) -> Response:
        # Header values in UTF-8, as most servers read them.
        headers = [(name.encode(), value.encode()) for name, value in outgoing.headers]
        request = httpx2.Request(outgoing.method, outgoing.url, headers=headers, content=outgoing.content)
        request.extensions = {BODY_LIMIT: limit}
        if outgoing.raw:
            request.extensions["target"] = outgoing.raw.encode("ascii")
        if self._settings.tls.server_name:
            request.extensions["sni_hostname"] = self._settings.tls.server_name
        received = self._transmit(request) if outgoing.digest is None else self._digest(request, outgoing.digest)
        truncated, problem, expires = False, None, None
        kept = BytesIO()
        network = received.extensions.get("network_stream")
        response_headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in received.headers.raw]
        try:
            if request.url.scheme == "https":
                expires = expiry_of(network)
            write = sink if sink and received.status_code // 100 == 2 else kept.write
            if converse and received.status_code == SWITCHING_PROTOCOLS:
                if network is None:
                    raise httpx2.RemoteProtocolError("a recorded response has no connection for another protocol")
                converse(Upgraded(network), response_headers)
            else:
                truncated = _read_body(received, limit, write, enough)
        except httpx2.HTTPError as error:
            problem = error
        finally:
            received.close()
        limited = received.extensions.get(LIMITED_BODY)  # missing if a recorder replays the response
        response = Response(
            status=received.status_code,
            reason=received.reason_phrase if received.http_version != "HTTP/2" else "",
            http_version=received.http_version,
            headers=tuple(response_headers),
            body=kept.getvalue(),
            truncated=truncated,
            encoded_size=received.num_bytes_downloaded,
            elapsed=time.monotonic() - begun,
            url=outgoing.shown,
            peer_certificate_expires=expires,
            excess=limited.excess if isinstance(limited, LimitedBody) else b"",
        )
        if problem is not None:
            raise _Incomplete(problem, response) from problem
        return response

    def _digest(self, request: httpx2.Request, user: tuple[str, str]) -> httpx2.Response:
        """Send a request with Digest authentication (RFC 7616); return the response with its body unread."""
        flow: Generator[httpx2.Request, httpx2.Response, None] = httpx2.DigestAuth(*user).sync_auth_flow(request)
        try:
            response = self._transmit(next(flow))
            while True:
                try:
                    authenticated = flow.send(response)
                except StopIteration:
                    return response
                except (NotImplementedError, ValueError, LookupError) as error:  # raised by the library
                    response.close()
                    reason = f"the challenge is not supported: {error}"
                    raise httpx2.RemoteProtocolError(f"Digest authentication: {reason}") from error
                response.close()
                response = self._transmit(authenticated)
        finally:
            flow.close()

    def _transmit(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return the response with its body unread."""
        deadline = current()
        while True:
            connections = deadline.connections
            try:
                response = self._transport.handle_request(request)
            except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError):
                # The server closed an idle connection while the request was on its way (RFC 9112, 9.5).
                if deadline.connections > connections or request.method not in IDEMPOTENT or request.content:
                    raise
                continue
            response.request = request
            return response


class _Incomplete(Exception):
    """A response ended before its end."""

    def __init__(self, cause: httpx2.HTTPError, response: Response) -> None:
        super().__init__(str(cause))
        self.cause = cause
        self.response = response


def _read_body(response: httpx2.Response, limit: int, write: Sink, enough: Enough | None) -> bool:
    """Write the decoded body up to the limit. Returns True if the body is longer, or a decompression bomb."""
    header = response.headers.get("content-encoding", "")
    codings = [coding for name in header.split(",") if (coding := name.strip().lower()) not in {"", "identity"}]
    unknown = ", ".join(sorted(set(codings) - CODINGS.keys()))
    if unknown:
        for piece in response.iter_raw():  # an empty body needs no decoding
            raise httpx2.DecodingError(f"its Content-Encoding, {unknown}, is not supported ({len(piece)} bytes)")
        return False
    size = 0
    try:
        for piece in decode(response.iter_raw(), codings) if codings else response.iter_raw():
            room = limit - size
            size += len(piece)
            write(piece[: max(0, room)])
            if enough and enough(piece[: max(0, room)]):
                return False
            bomb = size > MIN_RATIO_BYTES and size > MAX_RATIO * response.num_bytes_downloaded
            if len(piece) > room or bomb:
                return True
    except Undecodable as error:
        raise httpx2.DecodingError(str(error)) from error
    return response.num_bytes_downloaded > limit


def _failure(
    error: httpx2.HTTPError,
    where: str,
    deadline: ExchangeDeadline,
    *,
    begun: float,
    protocol_remedy: str,
    response: Response | None,
) -> ExchangeFailed:
    """Return the failure for an exception of the library. The text of one raised by our sockets begins with its kind.

    Args:
        where: method and URL.
        begun: when the exchange began, on the monotonic clock.
        protocol_remedy: for data that is not HTTP; "" for the usual one.
        response: the part that was received; None if the response did not begin.
    """
    text = str(error)
    prefix, separator, rest = text.partition(": ")
    kind: Kind = "connection"
    remedy = CLOSED_EARLY_REMEDY if response is not None else ""
    if deadline.deadline.stopped.is_set():
        return ExchangeFailed("stopped", "the extension is shutting down", where, response=response)
    if isinstance(error, httpx2.TimeoutException):
        after = f"{time.monotonic() - begun:.1f} s"
        stream = response is not None and "".join(response.values("content-type")).startswith("text/event-stream")
        remedy = STREAM_REMEDY if stream else ""
        reason = _timeout_reason(error, response)
        return ExchangeFailed("timeout", reason, where, after=after, remedy=remedy, response=response)
    if separator and prefix in _SOCKET_KINDS:
        kind, reason = _SOCKET_KINDS[prefix], rest
        remedies = CERTIFICATE_REMEDIES.items() if kind == "certificate" else ()
        remedy = next((text for problem, text in remedies if problem in rest), "")
    elif isinstance(error, httpx2.NetworkError):
        reason = text or type(error).__name__
    elif isinstance(error, httpx2.RemoteProtocolError) and "without sending a response" in text:
        reason, remedy = "the server closed the connection without a response", protocol_remedy
    elif isinstance(error, httpx2.RemoteProtocolError) and "complete message body" in text:
        reason, remedy = f"the response ended too soon: {text}", CLOSED_EARLY_REMEDY
    elif isinstance(error, httpx2.DecodingError):
        kind, reason, remedy = "protocol", f"the body can't be decoded: {text}", IDENTITY_REMEDY
    else:
        kind, reason, remedy = "protocol", _NOT_HTTP.get(text, text) or type(error).__name__, protocol_remedy
    if failure_of(kind, error) == "reset":  # a server that can't read HTTP/2 may reset the connection
        remedy = remedy or protocol_remedy
    return ExchangeFailed(kind, reason, where, remedy=remedy, response=response)


def _timeout_reason(error: httpx2.TimeoutException, response: Response | None) -> str:
    if response is not None:
        return "the response began, but did not end before the deadline"
    if isinstance(error, httpx2.ConnectTimeout):
        return str(error)
    if isinstance(error, httpx2.WriteTimeout):
        return "the server did not read the request before the deadline"
    return "connected, but no complete response before the deadline"


_NOT_HTTP = {"Receive buffer too long": "the headers of the response are too long"}  # the library's text
_SOCKET_KINDS: dict[str, Kind] = {kind: kind for kind in (*REMEDIES, "address")}


class Clients(ClientCache[Settings, Client]):
    """Clients of the process, by settings."""

    most = 50

    def make(self, settings: Settings) -> Client:
        return Client(settings)


class Part(NamedTuple):
    """Part of a multipart body.

    Attributes:
        filename: None for a field that is not a file.
        content_type: None to leave it out, or to guess it from the file name.
    """

    name: str
    content: bytes
    filename: str | None = None
    content_type: str | None = None


def multipart(parts: Sequence[Part]) -> tuple[str, bytes]:
    """Return the Content-Type, with a boundary that occurs in none of the parts, and the body."""
    files = [(part.name, (part.filename, part.content, part.content_type)) for part in parts]
    request = httpx2.Request("POST", "http://localhost", files=files)
    return request.headers["content-type"], request.read()
