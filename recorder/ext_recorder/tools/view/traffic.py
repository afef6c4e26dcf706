"""HTTP interactions as rows, in the lanes of models, clusters, MCP servers and services."""

from __future__ import annotations

import re
from base64 import b64encode
from contextlib import suppress
from typing import TYPE_CHECKING

from ext_recorder.http.interaction import ENCODINGS, decoded
from ext_recorder.http.reader import open_document
from ext_recorder.protocols.dialect import id_key
from ext_recorder.tools.endpoints import Endpoints, chat_of, outcome_of
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import dumps, loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from ext_recorder.http.interaction import Body, Headers, Interaction

    from .bodies import Bodies
    from .rows import Rows

    Text = Callable[[str], str]

# A file that cannot be read interaction by interaction is in memory: a larger one is left out.
LARGEST_BYTES = 64_000_000

_BINARY_SHOWN = 750_000  # bytes of a body that is not text, kept for images
_TEXTUAL = re.compile(rb"[^\x00-\x08\x0e-\x1a\x1c-\x1f]*")


class Traffic:
    """Interactions of a file, and the lanes in which they belong.

    Args:
        path: the file.
        redact: replaces secrets.
        own_clock: its clock begins with the process of the recorder; False for a recorded run, where all clocks agree.

    Attributes:
        left_out: the reason why the interactions are left out; "" if they are not.
        lanes: role and name of each lane, in the order of their first interactions.
        chats: number of turns of conversations with models.
        tokens: number of tokens of their requests, and of their responses.

    Raises:
        CassetteError: the file cannot be read.
    """

    def __init__(self, path: Path, redact: Text, *, own_clock: bool) -> None:
        self._document = open_document(path)
        self._redact = redact
        self._own_clock = own_clock
        self.lanes: dict[tuple[str, str], int] = {}
        self.left_out = ""
        self.chats, self.tokens = 0, [0, 0]
        size = path.stat().st_size
        if self._document.file is None and size > LARGEST_BYTES:
            self.left_out = f"{path.name} has {size / 1e6:.0f} MB, more than {LARGEST_BYTES / 1e6:.0f} MB"

    def close(self) -> None:
        """Close the file."""
        if self._document.file is not None:
            self._document.file.close()

    def _interactions(self) -> Iterator[Interaction]:
        """Yield the interactions; those of a large file are read again each time."""
        if self.left_out:
            return
        if self._document.file is None:
            yield from self._document.interactions
        else:
            for _, item in self._document.file:
                yield item

    def add_to(self, rows: Rows, bodies: Bodies, source: int) -> None:
        """Append the interactions to the rows, which have all calls of the session.

        Args:
            source: number of the first lane.
        """
        endpoints = Endpoints(self._interactions())
        spans, offset = _Spans(rows), 0.0
        if self._own_clock:
            offset = _offset(self._interactions(), spans)
        for number, item in enumerate(self._interactions(), 1):
            endpoint = endpoints.of(item)
            name = "services" if endpoint.role == "service" else endpoint.server
            lane = self.lanes.setdefault((endpoint.role, name), len(self.lanes))
            redact, error = self._redact, item.error or {}
            outcome, failed = outcome_of(item)
            request = _message(bodies, f"{item.method} {item.uri}", item.request_headers, item.request_body, redact)
            if item.status:
                first = f"HTTP/{item.http_version} {item.status} {item.reason}".rstrip()
                first += " (the child did not read all of the body)" if item.cut else ""
                response = _message(bodies, first, item.headers, item.body, redact)
            else:
                text = f"{error.get('type', 'no response')}: {error.get('message', '')}".rstrip(": ")
                response = bodies.add(redact(text))
            row = rows.append(
                "http",
                max(0.0, item.time - offset),
                item.elapsed,
                source=source + lane,
                number=number,
                parent=spans.of(item)[0],
                status="error" if failed else "ok",
                outcome=outcome,
                stream="out",
                conn=1,
                client=redact(item.client),
                method=redact(endpoint.method),
                subject=redact(endpoint.subject),
                request=request,
                response=response,
            )
            if endpoint.is_chat and (chat := chat_of(item)) is not None:
                self.chats += 1
                self.tokens[0] += chat.input or 0
                self.tokens[1] += chat.output or 0
                asked, answered, subject = map(self._redact, (chat.asked, chat.answered, chat.model))
                rows.describe(row, says=asked, answers=answered, subject=subject)
                with suppress(MessageError):
                    found = loads(self._redact(dumps(chat.as_json())))
                    rows.add_chat(row, found if isinstance(found, dict) else {})


_Span = tuple[int, float, float]  # row, start and end of a call; row -1 if an interaction names none


class _Spans:
    """Calls of the host by their ids."""

    def __init__(self, rows: Rows) -> None:
        self._calls: dict[bytes, list[_Span]] = {}
        for row, text, start, end in rows.calls():
            id: object = text
            with suppress(MessageError):
                id = loads(text)
            self._calls.setdefault(id_key(id, text), []).append((row, start, end))

    def of(self, item: Interaction) -> _Span:
        """Return the call of an interaction: of calls with one id, the last that began before it."""
        same_id = self._calls.get(id_key(item.call, dumps(item.call)), []) if item.call is not None else []
        began = [span for span in same_id if span[1] <= item.time] or same_id[:1]
        return began[-1] if began else (-1, 0.0, 0.0)


def _offset(interactions: Iterable[Interaction], spans: _Spans) -> float:
    """Return the seconds from the start of the HTTP recording to that of the session.

    The file does not name them. Every interaction lies within its call, which confines them to the time between a
    request and the first interaction for it, usually about a millisecond.
    """
    earliest, latest = 0.0, float("inf")
    for item in interactions:
        row, start, end = spans.of(item)
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
