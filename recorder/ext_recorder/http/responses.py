"""A recorded answer as the bytes that a child is sent, and the answer to what was not recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from .body import Body
from .interaction import HEAD_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .interaction import Headers, Interaction

    Live = Callable[[bytes], bytes]

PIECE = 65_536
MISS_STATUS, MISS_REASON = 499, "Not Recorded"  # a status that no server gives, and that nobody takes for success
NO_BODY = frozenset({204, 304})


class Response(NamedTuple):
    """What is sent.

    Attributes:
        pieces: of it.
        end: whether the connection ends then.
        piecewise: whether each piece was read before the next one came.
    """

    pieces: Iterator[bytes]
    end: bool
    piecewise: bool = False


def response(found: Interaction, method: str, live: Live, *, failed: bool) -> Response:
    """An answer.

    Args:
        found: what was recorded.
        method: of the request.
        live: puts paths of this machine where the recording has neutral ones.
        failed: something other than the server ended it.
    """
    headers, body = _made_live(found, live)
    framing = {name.lower(): value.lower() for name, value in headers}
    has_body = method != "HEAD" and found.status not in NO_BODY
    open_ended = has_body and "content-length" not in framing and "chunked" not in framing.get("transfer-encoding", "")
    end = failed or (open_ended and not is_tunnel(found, method)) or asks_to_close(headers)
    end = end or (found.http_version == "1.0" and "keep-alive" not in framing.get("connection", ""))
    pieces = _bytes(found, headers, body if has_body else None, whole=not failed)
    if found.reads:
        return Response(_pieces(b"".join(pieces), found.reads), end, piecewise=True)
    if body.size <= PIECE:  # it was read at once
        return Response(iter([b"".join(pieces)]), end)
    return Response(pieces, end)


def is_tunnel(found: Interaction, method: str) -> bool:
    """Whether a proxy has opened the way."""
    return method == "CONNECT" and 200 <= found.status < 300


def asks_to_close(headers: Headers) -> bool:
    """Return True if the headers of a message announce that it is the last one of its connection."""
    return any(name.lower() == "connection" and "close" in value.lower() for name, value in headers)


def _made_live(found: Interaction, live: Live) -> tuple[Headers, Body]:
    """Headers and body with the paths of this machine."""
    body = found.body or Body()
    headers = [(name, live(value.encode()).decode()) for name, value in found.headers]
    if body.size > HEAD_LIMIT:
        return headers, body
    data = body.whole()
    changed = live(data)
    if changed == data:
        return headers, body
    lengths = {"content-length"}
    return [(n, str(len(changed)) if n.lower() in lengths else v) for n, v in headers], Body(changed)


def _bytes(found: Interaction, headers: Headers, body: Body | None, *, whole: bool) -> Iterator[bytes]:
    lines = [
        f"HTTP/{found.http_version} {found.status} {found.reason}",
        *(f"{name}: {value}" for name, value in headers),
    ]
    yield ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace")
    if body is None:
        return
    if not any(name.lower() == "transfer-encoding" and "chunked" in value.lower() for name, value in headers):
        yield from body.pieces()
        return
    for chunk in _chunks(body, found.chunks):
        yield b"%x\r\n%b\r\n" % (len(chunk), chunk)
    if whole:
        yield b"0\r\n\r\n"


def _chunks(body: Body, sizes: list[int]) -> Iterator[bytes]:
    """The pieces of a body as they were sent; of a file that does not tell, some."""
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


def _pieces(response: bytes, sizes: list[int]) -> Iterator[bytes]:
    """An answer in the pieces in which it was read. What it is longer or shorter by now is so in the first one."""
    at = max(0, sizes[0] + len(response) - sum(sizes))
    yield response[:at]
    for size in sizes[1:]:
        yield response[at : at + size]
        at += size


def refusal(text: str, method: str) -> bytes:
    """The answer to a request that has none: for people, for programs, and for clients of Kubernetes."""
    told = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotRecorded", "code": MISS_STATUS}
    body = json.dumps(told | {"message": f"ext-recorder: {text}"}).encode()
    head = (
        f"HTTP/1.1 {MISS_STATUS} {MISS_REASON}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + (b"" if method == "HEAD" else body)
