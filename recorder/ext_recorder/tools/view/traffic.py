"""HTTP interactions of a session, NAME.http.yaml, as rows below the calls that they served."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ext_recorder.http.interaction import ENCODINGS, decoded
from ext_recorder.http.reader import load
from ext_recorder.protocols.dialect import id_key
from ext_sdk.core.wire.json_codec import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ext_recorder.http.interaction import Body, Headers, Interaction

    from .bodies import Bodies
    from .rows import Rows

    Text = Callable[[str], str]

# The file is read as a whole: a larger one would take too much memory.
LARGEST_BYTES = 64_000_000

_BINARY_SHOWN = 750_000  # bytes of a body that is not text, kept for images
_FAILED = 400  # the first status that is an error
_TEXTUAL = re.compile(rb"[^\x00-\x08\x0e-\x1a\x1c-\x1f]*")


def add_traffic(path: Path, rows: Rows, bodies: Bodies, redact: Text) -> str:
    """Append the interactions of a file to the rows.

    Args:
        path: the file.
        rows: with all calls of the session.
        bodies: receives requests and responses.
        redact: removes secrets.

    Returns:
        Why they are left out; "" if they are not.

    Raises:
        CassetteError: the file cannot be read.
    """
    if path.stat().st_size > LARGEST_BYTES:
        return f"{path.name} has {path.stat().st_size / 1e6:.0f} MB, more than {LARGEST_BYTES / 1e6:.0f} MB"
    interactions = load(path).interactions
    spans = list(_spans(interactions, rows))
    offset = _offset(interactions, spans)
    for number, (each, span) in enumerate(zip(interactions, spans, strict=True), 1):
        address = urlsplit(redact(each.uri))
        failed = each.error is not None or not each.status
        outcome = f"{each.status} {each.reason}".strip() if each.status else "no response"
        rows.append(
            "http",
            max(0.0, each.time - offset),
            each.elapsed,
            status="error" if failed or each.status >= _FAILED else "ok",
            outcome=str((each.error or {}).get("type") or outcome) if failed else outcome,
            stream="out",
            conn=1,
            method=f"{each.method} {address.netloc}",
            subject=(address.path or "/") + (f"?{address.query}" if address.query else ""),
            parent=span[0],
            number=number,
            request=_message(bodies, f"{each.method} {each.uri}", each.request_headers, each.request_body, redact),
            response=_response(bodies, each, redact),
        )
    return ""


_Span = tuple[int, float, float]  # row, start and end of a call; row -1 if an interaction names none


def _spans(interactions: Iterable[Interaction], rows: Rows) -> Iterable[_Span]:
    """Yield the call of each interaction: of calls with one id, the last that began before it."""
    calls: dict[bytes, list[_Span]] = {}
    for row, id, start, end in rows.calls():
        calls.setdefault(id_key(_number(id), id), []).append((row, start, end))
    for each in interactions:
        of_id = calls.get(id_key(each.call, dumps(each.call)), []) if each.call is not None else []
        began = [span for span in of_id if span[1] <= each.time] or of_id[:1]
        yield began[-1] if began else (-1, 0.0, 0.0)


def _number(spelling: str) -> object:
    """Return an id as a value."""
    from ext_sdk.core.wire.errors import MessageError
    from ext_sdk.core.wire.json_codec import loads

    try:
        return loads(spelling)
    except MessageError:
        return spelling


def _offset(interactions: Iterable[Interaction], spans: Iterable[_Span]) -> float:
    """Return the seconds from the start of the HTTP recording to that of the session.

    The file does not name them. Every interaction lies within its call, which confines them to the time between a
    request and the first interaction for it, usually about a millisecond.
    """
    earliest, latest = 0.0, float("inf")
    for each, (row, start, end) in zip(interactions, spans, strict=True):
        if row >= 0:
            earliest = max(earliest, each.time + each.elapsed - end)
            latest = min(latest, each.time - start)
    return 0.0 if latest == float("inf") else max(0.0, (earliest + latest) / 2 if earliest <= latest else latest)


def _response(bodies: Bodies, each: Interaction, redact: Text) -> int:
    if not each.status:
        error = each.error or {}
        return bodies.add(redact(f"{error.get('type', 'no response')}: {error.get('message', '')}".rstrip(": ")))
    first = f"HTTP/{each.http_version} {each.status} {each.reason}".rstrip()
    if each.cut:
        first += " (the child did not read all of the body)"
    return _message(bodies, first, each.headers, each.body, redact)


def _message(bodies: Bodies, first: str, headers: Headers, body: Body | None, redact: Text) -> int:
    """Append a message as HTTP writes it: a line, the headers, an empty line, the body as text or base64."""
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
