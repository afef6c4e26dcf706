"""HTTP interactions of a session, NAME.http.yaml, as rows below the calls that made them."""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ext_recorder.http.interaction import ENCODINGS, decoded
from ext_recorder.http.reader import load
from ext_recorder.protocols.dialect import id_key
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ext_recorder.http.interaction import Body, Headers, Interaction

    from .bodies import Bodies
    from .rows import Rows

    Text = Callable[[str], str]

# The entire file is read: a larger one would take too much memory.
LARGEST_BYTES = 64_000_000

_BINARY_SHOWN = 750_000  # bytes of a body that is not text, kept for images
_FAILED = 400  # the first status that is an error
_TEXTUAL = re.compile(rb"[^\x00-\x08\x0e-\x1a\x1c-\x1f]*")


def add_traffic(path: Path, rows: Rows, bodies: Bodies, redact: Text) -> str:
    """Append the interactions of a file to the rows.

    Args:
        rows: has all calls of the session.
        bodies: receives requests and responses.

    Returns:
        The reason why they are left out; "" if they are not.

    Raises:
        CassetteError: the file cannot be read.
    """
    if path.stat().st_size > LARGEST_BYTES:
        return f"{path.name} has {path.stat().st_size / 1e6:.0f} MB, more than {LARGEST_BYTES / 1e6:.0f} MB"
    interactions = load(path).interactions
    spans = list(_spans(interactions, rows))
    offset = _offset(interactions, spans)
    for number, (item, span) in enumerate(zip(interactions, spans, strict=True), 1):
        address = urlsplit(redact(item.uri))
        error = item.error or {}
        failed = item.error is not None or not item.status
        outcome = f"{item.status} {item.reason}".strip() if item.status else "no response"
        request = _message(bodies, f"{item.method} {item.uri}", item.request_headers, item.request_body, redact)
        if item.status:
            first = f"HTTP/{item.http_version} {outcome}"
            first += " (the child did not read all of the body)" if item.cut else ""
            response = _message(bodies, first, item.headers, item.body, redact)
        else:
            text = f"{error.get('type', 'no response')}: {error.get('message', '')}".rstrip(": ")
            response = bodies.add(redact(text))
        rows.append(
            "http",
            max(0.0, item.time - offset),
            item.elapsed,
            status="error" if failed or item.status >= _FAILED else "ok",
            outcome=str(error.get("type") or outcome) if failed else outcome,
            stream="out",
            conn=1,
            method=f"{item.method} {address.netloc}",
            subject=(address.path or "/") + (f"?{address.query}" if address.query else ""),
            parent=span[0],
            number=number,
            request=request,
            response=response,
        )
    return ""


_Span = tuple[int, float, float]  # row, start and end of a call; row -1 if an interaction names none


def _spans(interactions: Iterable[Interaction], rows: Rows) -> Iterable[_Span]:
    """Yield the call of each interaction: of calls with one id, the last that began before it."""
    calls: dict[bytes, list[_Span]] = {}
    for row, text, start, end in rows.calls():
        id: object = text
        with suppress(MessageError):
            id = loads(text)
        calls.setdefault(id_key(id, text), []).append((row, start, end))
    for item in interactions:
        same_id = calls.get(id_key(item.call, dumps(item.call)), []) if item.call is not None else []
        began = [span for span in same_id if span[1] <= item.time] or same_id[:1]
        yield began[-1] if began else (-1, 0.0, 0.0)


def _offset(interactions: Iterable[Interaction], spans: Iterable[_Span]) -> float:
    """Return the seconds from the start of the HTTP recording to that of the session.

    The file does not name them. Every interaction lies within its call, which confines them to the time between a
    request and the first interaction for it, usually about a millisecond.
    """
    earliest, latest = 0.0, float("inf")
    for item, (row, start, end) in zip(interactions, spans, strict=True):
        if row >= 0:
            earliest = max(earliest, item.time + item.elapsed - end)
            latest = min(latest, item.time - start)
    return 0.0 if latest == float("inf") else max(0.0, (earliest + latest) / 2 if earliest <= latest else latest)


def _message(bodies: Bodies, first: str, headers: Headers, body: Body | None, redact: Text) -> int:
    """Append a message in the form of HTTP: a line, the headers, an empty line, the body as text or base64."""
    name, content = _content(headers, body)
    head = redact("\n".join([first, *(f"{key}: {value}" for key, value in headers)])) + "\n\n"
    text = head + (redact(content) if name == "body" else content)
    return bodies.add(text, content=(name, len(head), len(text)))


def _content(headers: Headers, body: Body | None) -> tuple[str, str]:
    """Return the body without its Content-Encoding, as ("body", text), or ("base64", …) if it is not text."""
    if body is None or not body.size:
        return "body", ""
    encoding = next((value.lower() for key, value in headers if key.lower() == "content-encoding"), "")
    data = b""
    try:
        for piece in decoded(body.pieces(), encoding) if encoding in ENCODINGS else body.pieces():
            data += piece
            if len(data) > 2 * _BINARY_SHOWN:
                break
    except ValueError:
        data = body.whole()[:_BINARY_SHOWN]
    if _TEXTUAL.fullmatch(data):
        try:
            return "body", data.decode()
        except UnicodeDecodeError as error:
            if error.start > len(data) - 4:  # the end was cut within a character
                return "body", data[: error.start].decode()
    return "base64", b64encode(data[:_BINARY_SHOWN]).decode()
