"""Timeline of a cassette: each event with its meaning, its call and its duration.

`show` prints it and `view` draws it; neither parses messages itself.
"""

from __future__ import annotations

import re

from ext_recorder.cassette.events import Data, omitted
from ext_recorder.messages.open_calls import CallTracker
from ext_recorder.protocols.detection import redirected_address
from ext_recorder.protocols.dialect import DIALECTS
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.header import Header
    from ext_recorder.protocols.dialect import ClassifiedMessage


class Entry:
    """One message, stderr line or mark of a session.

    Attributes:
        time: seconds since the start.
        kind: request, response, error, failure, notification, stderr, junk, other, or that of a mark.
        stream: in, out or err; "" if the entry belongs to none.
        label: short description: method, subject and id.
        text: the content: JSON, or text without colors.
        payload: the complete message.
        took: for responses: seconds since the request.
        conn: the connection.
        message: the classified message; None for stderr lines, marks and bytes that are not a message.
        call: number of the call that this entry begins or answers, counted from 0; None if it does neither.
        last: False for a response that further responses to the same request follow.
    """

    __slots__ = ("call", "conn", "kind", "label", "last", "message", "payload", "stream", "text", "time", "took")

    def __init__(self, event: Event, kind: str, label: str, text: str = "", payload: str = "") -> None:
        self.time = event.time
        self.conn = event.conn
        if isinstance(event, Data):
            self.stream: str = event.kind
        elif event.kind == "omitted":
            self.stream = omitted(event)[1]
        else:
            self.stream = str(event.value) if event.kind == "eof" else ""
        self.kind = kind
        self.label = label
        self.text = text
        self.payload = payload
        self.took: float | None = None
        self.message: ClassifiedMessage | None = None
        self.call: int | None = None
        self.last = True


class Timeline:
    """Converter of events to entries; pairs responses with the open requests of both sides."""

    def __init__(self, header: Header, redact: Callable[[bytes], bytes]) -> None:
        self.dialect = DIALECTS[header.protocol if header.protocol in DIALECTS else "jsonrpc"]
        self._framing = FRAMINGS[header.framing]
        self._redact = redact
        self._calls: CallTracker[tuple[int, float, str]] = CallTracker(self.dialect)  # number, time and method
        self._count = 0

    def open_call(self, stream: str, conn: int, key: bytes) -> int | None:
        """Return the number of the open call that this side made with this id; None if no such call is open."""
        call = self._calls.first((stream, conn, key))
        return call[0] if call else None

    def entries(self, event: Event) -> Iterator[Entry]:
        """Yield the entries of an event: usually one; raw bytes may hold several messages."""
        if isinstance(event, Data):
            for item in event.items(self._framing):
                if isinstance(item, Frame):
                    yield self._entry(event, item.payload)
                else:
                    text = self._text(item.wire)
                    yield Entry(event, "junk", f"{len(item.wire)} bytes, {item.reason}", without_colors(text), text)
            return
        kind, value = event.kind, event.value
        label = f"{kind} {value}"
        if kind == "eof":
            label = {"in": "end of input", "out": "end of output"}.get(str(value), "end of stderr")
        elif kind == "files":
            label = f"changed files, patch {value}"
        elif kind == "open":
            label = "connected"
        elif kind == "omitted":
            label = f"a message of {value.split()[0]} bytes, left out" if isinstance(value, str) else kind
        elif kind == "http":
            label = f"HTTP {value}"
        yield Entry(event, kind, label)

    def _entry(self, event: Data, payload: bytes) -> Entry:
        text = self._text(payload)
        if event.kind == "err":
            return Entry(event, "stderr", "", without_colors(text), text)
        message = self.dialect.classify(text.encode("utf-8", "surrogateescape"))
        if message.kind == "other" and (place := redirected_address(payload)):
            return Entry(event, "junk", f"the rest of the session goes by {place}, which is not recorded", text, text)
        if message.kind == "other":
            calls = self.dialect.calls and self.dialect.name != "http"  # its streams have parts
            kind, label = ("junk", "not a message") if calls else ("other", "")
            return Entry(event, kind, label, without_colors(text), text)
        if message.kind == "response":
            return self._response(event, message)
        words = [message.method, self.dialect.about(message), f"#{message.id}" if message.id else ""]
        entry = Entry(event, message.kind, " ".join(filter(None, words)), _content(message), text)
        entry.message = message
        if message.kind == "request":
            entry.call = self._count
            self._count += 1
            self._calls.request(event, message, (entry.call, event.time, message.method))
        return entry

    def _response(self, event: Data, message: ClassifiedMessage) -> Entry:
        call = self._calls.response(event, message)
        error, kind, text = message.at("/error"), "response", _content(message)
        if isinstance(error, dict):
            kind, text = "error", f"error {error.get('code')}: {error.get('message')}"
        elif self.dialect.has_failed(message):
            content = message.at(f"/{message.form.content[0]}")
            members = message.members | (content if isinstance(content, dict) else {})
            reasons = [reason for key in ("message", "error") if isinstance(reason := members.get(key), str) and reason]
            kind, text = "failure", f"failed: {'; '.join(reasons) or text}"
        last = self.dialect.is_last(message)
        id = "" if message.envelope is None else f" #{message.id or 'null'}"
        method = (call[2] if call else "") or message.method or "an answer to nothing"
        entry = Entry(event, kind, f"{method}{id}{'' if last else ' …'}", text, message.text)
        entry.message = message
        entry.last = last
        if call:
            entry.call = call[0]
            entry.took = event.time - call[1]
        return entry

    def _text(self, data: bytes) -> str:
        return self._redact(data).decode("utf-8", "surrogateescape")


def content_of(message: ClassifiedMessage) -> tuple[str, int, int]:
    """Return the member with the content of a message, and its `text[start:end]`; ("", 0, 0) if it has none."""
    members = message.envelope.members if message.envelope else {}
    name = next((name for name in message.form.content if name in members), "")
    return (name, members[name].start, members[name].end) if name else ("", 0, 0)


def _content(message: ClassifiedMessage) -> str:
    if message.envelope is None:
        return message.text.removeprefix(message.method).strip()
    _, start, end = content_of(message)
    return message.text[start:end]


_COLORS = re.compile(r"\x1b\[[0-9;:]*[mK]")


def without_colors(line: str) -> str:
    """Return a line of text without the control sequences of colors, and without a carriage return at its end."""
    return _COLORS.sub("", line).removesuffix("\r") if "\x1b" in line or "\r" in line else line
