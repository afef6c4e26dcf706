"""Responses on replay: the bytes of a recorded response, and the response to a request that was not recorded."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import chain
from typing import NamedTuple

import h11

from .http1_observer import request_of
from .inject.ext_recorder_agent.channel import HELLO
from .interaction import HEAD_LIMIT, Body, Interaction
from .sanitizer import resized

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .interaction import Call, Headers
    from .sanitizer import Sanitizer

PIECE = 65_536

MISS_STATUS, MISS_REASON = 499, "Not Recorded"  # no server uses this status, and every client treats it as a failure

NO_BODY = frozenset({204, 304})


class PlayedResponse(NamedTuple):
    """Response to send.

    Attributes:
        pieces: its bytes.
        end: close the connection afterwards.
        piecewise: send a piece only when the previous one has been read.
        error: the connection was ended by this error, not by the server.
        tunnel: a proxy has opened a tunnel.
        recorded: interaction that opens a WebSocket; there are no pieces.
        missing: explains what is not recorded because the client did not wait for it, or did not read it; else "".
        elapsed: recorded time from the request until that.
    """

    pieces: Iterator[bytes]
    end: bool
    piecewise: bool = False
    error: dict[str, object] | None = None
    tunnel: bool = False
    recorded: Interaction | None = None
    missing: str = ""
    elapsed: float = 0.0


def response(recorded: Interaction, method: str, live: Sanitizer, *, failed: bool) -> PlayedResponse:
    """Return a recorded response in the form to send.

    Args:
        live: replaces placeholders in recorded paths by paths of this machine.
        failed: the response was not ended by the server.
    """
    headers = [(name, live.text(value)) for name, value in recorded.headers]
    body = recorded.body or Body()
    changed: Body | None = body
    if body.size <= HEAD_LIMIT:
        with suppress(ValueError):  # in an encoding that is not known
            changed = live.body(body, headers)
    chunks = recorded.chunks
    if changed is not None and changed is not body:
        chunks = resized(chunks, body, changed)
        body = changed
        headers = [(n, str(body.size) if n.lower() == "content-length" else v) for n, v in headers]
    framing = {name.lower(): value.lower() for name, value in headers}
    has_body = method != "HEAD" and recorded.status not in NO_BODY
    open_ended = has_body and "content-length" not in framing and "chunked" not in framing.get("transfer-encoding", "")
    end = failed or (open_ended and not is_tunnel(recorded, method)) or asks_to_close(headers)
    end = end or (recorded.http_version == "1.0" and "keep-alive" not in framing.get("connection", ""))
    sent = body if has_body else None
    pieces = _bytes(recorded, headers, sent, chunks, whole=not failed)
    if recorded.reads:
        head = next(pieces)
        length = len(head) + _framed_length(chunks, headers, sent, whole=not failed)
        return PlayedResponse(_pieces(chain([head], pieces), recorded.reads, length), end, piecewise=True)
    if body.size <= PIECE:  # it was read at once
        return PlayedResponse(iter([b"".join(pieces)]), end)
    return PlayedResponse(pieces, end)


def is_tunnel(recorded: Interaction, method: str) -> bool:
    """Return True if a proxy has opened a tunnel."""
    return method == "CONNECT" and 200 <= recorded.status < 300


def asks_to_close(headers: Headers) -> bool:
    """Return True if the headers of a message announce that it is the last one of its connection."""
    return any(name.lower() == "connection" and "close" in value.lower() for name, value in headers)


def _bytes(
    recorded: Interaction, headers: Headers, body: Body | None, chunks: list[int], *, whole: bool
) -> Iterator[bytes]:
    lines = [
        f"HTTP/{recorded.http_version} {recorded.status} {recorded.reason}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    yield ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
    if body is None:
        return
    if not _is_chunked(headers):
        yield from body.pieces()
        return
    for chunk in _chunks(body, chunks):
        yield b"%x\r\n%b\r\n" % (len(chunk), chunk)
    if whole:
        yield b"0\r\n\r\n"


def _chunks(body: Body, sizes: list[int]) -> Iterator[bytes]:
    """Yield the recorded chunks of a body; chunks of PIECE bytes if the file does not contain their sizes."""
    if sum(sizes) != body.size:
        yield from body.pieces()
        return
    held = b""
    pieces = body.pieces()
    for size in sizes:
        while len(held) < size:
            held += next(pieces)
        yield held[:size]
        held = held[size:]


def _is_chunked(headers: Headers) -> bool:
    return any(name.lower() == "transfer-encoding" and "chunked" in value.lower() for name, value in headers)


def _framed_length(chunks: list[int], headers: Headers, body: Body | None, *, whole: bool) -> int:
    """Return the length of a body as `_bytes` sends it. Its content is not read if the lengths of chunks are known."""
    if body is None or not _is_chunked(headers):
        return 0 if body is None else body.size
    known = sum(chunks) == body.size
    sizes: Iterable[int] = chunks if known else map(len, body.pieces())
    return sum(len(f"{size:x}") + size + 4 for size in sizes) + (5 if whole else 0)


def _pieces(response: Iterator[bytes], sizes: list[int], length: int) -> Iterator[bytes]:
    """Yield a response in the pieces in which it was read. The first piece absorbs a changed length."""
    held = bytearray()
    for size in (max(0, sizes[0] + length - sum(sizes)), *sizes[1:]):
        while len(held) < size and (piece := next(response, None)) is not None:
            held += piece
        yield bytes(held[:size])
        del held[:size]


def refusal(text: str, method: str) -> bytes:
    """Return the response to a request that was not recorded, for people, programs and Kubernetes clients."""
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotRecorded", "code": MISS_STATUS}
    body = json.dumps(status | {"message": f"ext-recorder: {text}"}).encode()
    head = (
        f"HTTP/1.1 {MISS_STATUS} {MISS_REASON}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + (b"" if method == "HEAD" else body)


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class RequestReader:
    """Reader of the requests on one connection."""

    def __init__(self) -> None:
        self._begin(b"")

    @property
    def rest(self) -> bytes:
        """Return the bytes after the request: those of the next protocol."""
        return self._parser.trailing_data[0]

    @property
    def waits(self) -> bool:
        """Return True if the client sends the body only after a response 100."""
        return self._parser.they_are_waiting_for_100_continue

    def receive(self, data: bytes) -> None:
        """Take bytes. Raises h11.RemoteProtocolError."""
        self._parser.receive_data(data)

    def next_event(self) -> h11.Request | h11.Data | h11.EndOfMessage | None:
        """Return the next part of a request; None if more bytes are required, or the client has disconnected.

        Raises:
            h11.RemoteProtocolError: the bytes are not HTTP/1.1.
        """
        event = self._parser.next_event()
        return event if isinstance(event, (h11.Request, h11.Data, h11.EndOfMessage)) else None

    def begin_next(self) -> None:
        """Continue with the next request, when the previous one is complete and has its response."""
        self._begin(self._parser.trailing_data[0])

    def _begin(self, rest: bytes) -> None:
        self._parser = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_LIMIT)
        if rest:
            self._parser.receive_data(rest)


class PlayedConnection:
    """Server end of a connection on replay.

    Args:
        address: host and port, or the path of a Unix socket.
        local: the connection is a Unix socket.

    Attributes:
        address, call: as given; the call may change.
        tls: the recorded connection used TLS.
        tunnel: address behind a proxy.
        why: reason why it was closed, unless the server closed it.
        silent: the recorded server did not complete the handshake before the child gave up; repeat that.
    """

    def __init__(self, address: str, call: Call, *, local: bool) -> None:
        self.address = address
        self.call = call
        self.tls = False
        self.tunnel = ""
        self.why: dict[str, object] | None = None
        self.silent = False
        self._local = local
        self._request: Interaction | None = None  # that has begun
        self._reader = RequestReader()

    def receive_data(self, data: bytes) -> bytes:
        """Process bytes of requests. Returns bytes to send at once. Raises h11.RemoteProtocolError."""
        hello = b"" if self._request else data[: len(data) - len(data.lstrip(HELLO))]
        if len(data) > len(hello):
            self._reader.receive(data[len(hello) :])
        return b"" if self.silent else hello

    def next_event(self) -> Interaction | bytes | None:
        """Return the next complete request, or bytes to send at once; None if more bytes are required.

        Raises:
            h11.RemoteProtocolError: the bytes are not HTTP/1.1.
        """
        while (event := self._reader.next_event()) is not None:
            if isinstance(event, h11.Request):
                self._request = request_of(event, self.address, tunnel=self.tunnel, tls=self.tls)
                self._request.call = self.call
                self._request.socket = self.address if self._local else ""
                if self._reader.waits:
                    return CONTINUE
            elif isinstance(event, h11.Data):
                if self._request is not None and self._request.request_body is not None:
                    self._request.request_body.write(event.data)
            elif self._request is not None:
                request, self._request = self._request, None
                self._reader.begin_next()
                return request
        return None
