"""HTTP client: one exchange at a time, with a deadline and limits for headers and body."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import httpx2
import msgspec

from ext_sdk.core.version import __version__
from ext_sdk.net.client_cache import KeptClients

from .decoding import CODINGS, Undecodable, decoded
from .errors import ADVICE, ExchangeFailed
from .network import current, exchange_deadline
from .response import Response
from .settings import Settings
from .tls import expiry_of
from .transport import LIMIT, LIMITED, Limited, Transport

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Self

    from .errors import Kind
    from .network import ExchangeDeadline


RATIO = 200  # a body that grows by more than this when it is decoded is a bomb: deflate reaches 1,032
RATIO_FROM = 1024 * 1024  # bytes, decoded, from which on the ratio counts: short bodies of one letter are none
REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})  # safe methods, RFC 9110, 9.2.1
IDENTITY = frozenset({"", "identity"})  # content codings that are none
ACCEPTED = "gzip, deflate"
AS_IT_IS = "the header `Accept-Encoding: identity` asks for it as it is"
BROKEN_OFF = "the server, or a proxy before it, closed the connection in the middle of the answer"
ONLY_HTTP2 = "does the server have HTTP/2? `httpVersion: auto` falls back to HTTP/1.1"
USER_AGENT = f"ext-http/{__version__} gevals-extensions"


class Outgoing(NamedTuple):
    """A request.

    Attributes:
        method: in capitals.
        url: absolute.
        headers: all of them but Host and Content-Length.
        content: the body; None for none.
        digest: user and password to answer a Digest challenge with.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    content: bytes | None = None
    digest: tuple[str, str] | None = None


class Client:
    """Sends requests that have their settings in common; safe in several threads."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._transport = Transport(settings)

    def close(self) -> None:
        """End all connections."""
        self._transport.close()

    def send(
        self, outgoing: Outgoing, budget: ExchangeDeadline, *, limit: int, sink: Callable[[bytes], object] | None = None
    ) -> Response:
        """Send one request and read its answer; redirects are not followed.

        Args:
            outgoing: what to send.
            budget: how long it may take.
            limit: bytes of the body, decoded, that are kept.
            sink: takes the body, piece by piece, of an answer with a status from 200 to 299; the answer has none then.

        Raises:
            ExchangeFailed: there was no answer, or not all of it, in time.
        """
        begun = time.monotonic()
        try:
            with exchange_deadline(budget):
                return self._exchange(outgoing, limit, sink, begun)
        except _Broken as broken:
            raise self._failure(broken.error, outgoing, budget, begun, broken.answer) from broken.error
        except httpx2.HTTPError as error:
            raise self._failure(error, outgoing, budget, begun) from error

    def _failure(
        self,
        error: httpx2.HTTPError,
        outgoing: Outgoing,
        budget: ExchangeDeadline,
        begun: float,
        answer: Response | None = None,
    ) -> ExchangeFailed:
        advice = ONLY_HTTP2 if self._settings.http_version == "2" else ""
        where = f"{outgoing.method} {outgoing.url}"
        failure = _failure(error, where, budget, time.monotonic() - begun, advice, whole=answer is None)
        failure.answer = answer
        return failure

    def _exchange(
        self, outgoing: Outgoing, limit: int, sink: Callable[[bytes], object] | None, begun: float
    ) -> Response:
        headers = [
            (name.encode(), value.encode()) for name, value in outgoing.headers
        ]  # UTF-8, as most servers read it
        request = httpx2.Request(outgoing.method, outgoing.url, headers=headers, content=outgoing.content)
        request.extensions = {LIMIT: limit}
        if self._settings.tls.server_name:
            request.extensions["sni_hostname"] = self._settings.tls.server_name
        response = self._answered(request, outgoing.digest)
        try:
            expires = expiry_of(response.extensions.get("network_stream"))
            taking = sink if sink and response.status_code // 100 == 2 else None
            body = _Body(limit, taking)
            try:
                truncated = body.read(response)
            except httpx2.HTTPError as error:
                raise _Broken(error, self._answer(response, outgoing, body.value, begun)) from error
        finally:
            response.close()
        limited = response.extensions.get(LIMITED)  # a recorder's response has none
        answer = self._answer(response, outgoing, body.value, begun)
        excess = limited.excess if isinstance(limited, Limited) else b""
        return msgspec.structs.replace(answer, truncated=truncated, peer_certificate_expires=expires, excess=excess)

    def _answer(self, response: httpx2.Response, outgoing: Outgoing, body: bytes, begun: float) -> Response:
        """Return the answer as far as it was received."""
        return Response(
            status=response.status_code,
            reason=response.reason_phrase if response.http_version != "HTTP/2" else "",
            http_version=response.http_version,
            headers=tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw),
            body=body,
            encoded_size=response.num_bytes_downloaded,
            elapsed=time.monotonic() - begun,
            url=outgoing.url,
        )

    def _answered(self, request: httpx2.Request, digest: tuple[str, str] | None) -> httpx2.Response:
        """The answer, its body unread; a Digest challenge is answered first (RFC 7616)."""
        if digest is None:
            return self._sent(request)
        flow: Generator[httpx2.Request, httpx2.Response, None] = httpx2.DigestAuth(*digest).sync_auth_flow(request)
        with _Closing(flow):
            response = self._sent(next(flow))
            while True:
                try:
                    again = flow.send(response)
                except StopIteration:
                    return response
                except (NotImplementedError, ValueError, LookupError) as error:  # as the library has it
                    response.close()
                    reason = f"the challenge can't be answered: {error}"
                    raise httpx2.RemoteProtocolError(f"Digest authentication: {reason}") from error
                response.close()
                response = self._sent(again)

    def _sent(self, request: httpx2.Request) -> httpx2.Response:
        budget = current()
        while True:
            begun = budget.connections
            try:
                response = self._transport.handle_request(request)
            except (httpx2.ReadError, httpx2.WriteError, httpx2.RemoteProtocolError):
                # The server has let go of a connection that was kept, while the request was on its way (RFC 9112, 9.5).
                if budget.connections > begun or request.method not in REPEATABLE or request.content:
                    raise
                continue
            response.request = request
            return response


class _Broken(Exception):
    """An answer that began and did not come to its end."""

    def __init__(self, error: httpx2.HTTPError, answer: Response) -> None:
        super().__init__(str(error))
        self.error = error
        self.answer = answer


class _Closing:
    def __init__(self, flow: Generator[httpx2.Request, httpx2.Response, None]) -> None:
        self._flow = flow

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._flow.close()


class _Body:
    """The decoded body, as far as it is kept."""

    def __init__(self, limit: int, sink: Callable[[bytes], object] | None) -> None:
        from io import BytesIO

        self._limit = limit
        self._sink = sink
        self._kept = BytesIO()
        self._size = 0

    @property
    def value(self) -> bytes:
        """What was kept; without a copy."""
        return self._kept.getvalue()

    def read(self, response: httpx2.Response) -> bool:
        """Read to the end, or to a limit. Returns whether there is more."""
        named = [each.strip().lower() for each in response.headers.get("content-encoding", "").split(",")]
        codings = [each for each in named if each not in IDENTITY]
        if unknown := set(codings) - CODINGS.keys():
            return self._read_as_it_is(response, ", ".join(sorted(unknown)))
        try:
            for piece in decoded(response.iter_raw(), codings):
                if self._take(piece) or self._is_bomb(response.num_bytes_downloaded):
                    return True
        except Undecodable as error:
            raise httpx2.DecodingError(str(error)) from error
        return response.num_bytes_downloaded > self._limit

    def _read_as_it_is(self, response: httpx2.Response, coding: str) -> bool:
        """A body whose coding can't be undone. An empty one has none."""
        for piece in response.iter_raw():
            raise httpx2.DecodingError(f"its Content-Encoding, {coding}, can't be undone ({len(piece)} bytes)")
        return False

    def _take(self, piece: bytes) -> bool:
        room = self._limit - self._size
        self._size += len(piece)
        (self._sink or self._kept.write)(piece[: max(0, room)])
        return len(piece) > room

    def _is_bomb(self, encoded: int) -> bool:
        return self._size > RATIO_FROM and self._size > RATIO * encoded


def _failure(
    error: httpx2.HTTPError, where: str, budget: ExchangeDeadline, seconds: float, advice: str, *, whole: bool
) -> ExchangeFailed:
    """Return the failure that an exception of the library means; one that our sockets raised begins with its kind.

    Args:
        error: the exception.
        where: method and URL.
        budget: of the exchange.
        seconds: that it took.
        advice: for data that is not HTTP; "" for the usual one.
        whole: the answer did not begin.
    """
    if budget.deadline.stopped.is_set():
        return ExchangeFailed("stopped", "the extension was told to end", where)
    text = str(error)
    if isinstance(error, httpx2.TimeoutException):
        reason = _in_time(error, text) if whole else "the answer began, but did not end in time"
        return ExchangeFailed("timeout", reason, where, after=f"{seconds:.1f} s")
    kind, found, reason = text.partition(": ")
    if found and kind == "address":
        return ExchangeFailed("address", reason, where)
    if found and kind in ADVICE:
        return ExchangeFailed(
            _kind(kind), reason, where, advice=_of_certificate(reason) if kind == "certificate" else ""
        )
    if isinstance(error, httpx2.NetworkError):
        return ExchangeFailed("connection", text or type(error).__name__, where, advice="" if whole else BROKEN_OFF)
    if isinstance(error, httpx2.RemoteProtocolError) and "without sending a response" in text:
        return ExchangeFailed("connection", "the server closed the connection without an answer", where, advice=advice)
    if isinstance(error, httpx2.RemoteProtocolError) and "complete message body" in text:
        return ExchangeFailed("connection", f"the answer ended too soon: {text}", where, advice=BROKEN_OFF)
    if isinstance(error, httpx2.DecodingError):
        return ExchangeFailed("protocol", f"the body can't be decoded: {text}", where, advice=AS_IT_IS)
    return ExchangeFailed("protocol", _NO_HTTP.get(text, text) or type(error).__name__, where, advice=advice)


def _of_certificate(reason: str) -> str:
    """Return the remedy for a certificate that is not accepted; "" if its authority may be unknown."""
    if "not valid for" in reason or "mismatch" in reason:
        return "use a name of the certificate in the URL, or name it with `tls.serverName`"
    if "expired" in reason or "not yet valid" in reason:
        return "renew the certificate, or accept it with `tls.insecure: true`"
    return ""


def _in_time(error: httpx2.TimeoutException, text: str) -> str:
    if isinstance(error, httpx2.ConnectTimeout):
        return text
    if isinstance(error, httpx2.WriteTimeout):
        return "the server did not take the request in time"
    return "connected, but no whole answer in time"


def _kind(text: str) -> Kind:
    return next(kind for kind in _KINDS if kind == text)


_NO_HTTP = {"Receive buffer too long": "the head of the answer is too long"}  # as the library says it
_KINDS: tuple[Kind, ...] = ("unknown-host", "connection", "certificate", "tls", "protocol")


class Clients(KeptClients[Settings, Client]):
    """Keeps them."""

    most = 50

    def make(self, settings: Settings) -> Client:
        return Client(settings)
