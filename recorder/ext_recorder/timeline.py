"""A timeline: the events of a cassette with what they mean, for `show`."""

from __future__ import annotations

import re

from ext_sdk.protocols.dialect import DIALECTS
from ext_sdk.protocols.handshake import elsewhere
from ext_sdk.wire.framing import FRAMINGS, Frame

from .cassette.events import STDERR_FRAMING, Data, pieces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_sdk.protocols.dialect import Classified, Dialect

    from .cassette.events import Event
    from .cassette.header import Header


class Entry:
    """One thing that happened, ready to be shown.

    Attributes:
        time: seconds since the start.
        kind: request, response, error, failure, notification, stderr, junk, other, or that of a mark.
        stream: in, out or err; "" for what concerns none.
        label: what it is about, in a word or two.
        text: its content: JSON, or text without colors.
        payload: all of it.
        took: for answers: seconds since the request.
        conn: the connection.
    """

    __slots__ = ("conn", "kind", "label", "payload", "stream", "text", "time", "took")

    def __init__(self, event: Event, kind: str, label: str, text: str = "", payload: str = "") -> None:
        self.time = event.time
        self.conn = event.conn
        self.stream = event.kind if isinstance(event, Data) else str(event.value) if event.kind == "eof" else ""
        self.kind = kind
        self.label = label
        self.text = text
        self.payload = payload
        self.took: float | None = None


class Timeline:
    """Events to entries; knows the open calls of both sides.

    Args:
        header: what the events are.
        redact: takes out secrets.
    """

    def __init__(self, header: Header, redact: Callable[[bytes], bytes]) -> None:
        self._dialect = DIALECTS[header.protocol if header.protocol in DIALECTS else "jsonrpc"]
        self._framing = FRAMINGS[header.framing]
        self._redact = redact
        self._calls: dict[tuple[str, int, bytes], list[tuple[float, str]]] = {}

    def entries(self, event: Event) -> Iterator[Entry]:
        """What an event is: most often one thing; raw bytes may hold several messages."""
        if not isinstance(event, Data):
            yield Entry(event, event.kind, _mark_label(event.kind, event.value))
            return
        framing = STDERR_FRAMING if event.kind == "err" else self._framing
        if not event.raw:
            yield self._entry(event, event.payload)
            return
        for item in pieces(event.payload, framing):
            if isinstance(item, Frame):
                yield self._entry(event, item.payload)
            else:
                text = self._text(item.wire)
                yield Entry(event, "junk", f"{len(item.wire)} bytes, {item.reason}", without_colors(text), text)

    def _entry(self, event: Data, payload: bytes) -> Entry:
        text = self._text(payload)
        if event.kind == "err":
            return Entry(event, "stderr", "", without_colors(text), text)
        message = self._dialect.classify(text.encode("utf-8", "surrogateescape"))
        if message.kind == "other" and (place := elsewhere(payload)):
            return Entry(event, "junk", f"the rest of the session goes by {place}, which is not recorded", text, text)
        if message.kind == "other":
            kind, label = ("junk", "not a message") if self._dialect.calls else ("other", "")
            return Entry(event, kind, label, without_colors(text), text)
        if message.kind == "response":
            return self._response(event, message)
        words = [message.method, self._dialect.about(message), f"#{message.id}" if message.id else ""]
        entry = Entry(event, message.kind, " ".join(filter(None, words)), _content(message), text)
        if message.key is not None:
            self._calls.setdefault((event.kind, event.conn, message.key), []).append((event.time, message.method))
        return entry

    def _response(self, event: Data, message: Classified) -> Entry:
        asked = "in" if event.kind == "out" else "out"
        calls = self._calls.get((asked, event.conn, message.key or b"null"), [])
        began, method = calls[0] if calls else (None, "")
        last = self._dialect.is_last(message)
        if calls and last:
            del calls[0]
        label = f"{method or message.method or 'an answer to nothing'} #{message.id or 'null'}{'' if last else ' …'}"
        kind, text = _outcome(message, self._dialect)
        entry = Entry(event, kind, label, text, message.text)
        entry.took = None if began is None else event.time - began
        return entry

    def _text(self, data: bytes) -> str:
        return self._redact(data).decode("utf-8", "surrogateescape")


def _outcome(message: Classified, dialect: Dialect) -> tuple[str, str]:
    """The kind of a response, and what it says."""
    error = message.at("/error")
    if isinstance(error, dict):
        return "error", f"error {error.get('code')}: {error.get('message')}"
    if not dialect.has_failed(message):
        return "response", _content(message)
    content = message.at(f"/{message.form.content[0]}")
    said = message.members | (content if isinstance(content, dict) else {})
    told = [text for key in ("message", "error") if isinstance(text := said.get(key), str) and text]
    return "failure", f"failed: {'; '.join(told) or _content(message)}"


def _content(message: Classified) -> str:
    """What a message says, as it is spelled."""
    spellings = (message.envelope.spelling(name) for name in message.form.content if message.envelope)
    return next((spelling for spelling in spellings if spelling), "")


_COLORS = re.compile(r"\x1b\[[0-9;:]*[mK]")


def without_colors(line: str) -> str:
    """Return a line of text without the control sequences of colors, and without a carriage return at its end."""
    return _COLORS.sub("", line).removesuffix("\r") if "\x1b" in line or "\r" in line else line


def _mark_label(kind: str, value: int | str) -> str:
    if kind == "eof":
        return {"in": "end of input", "out": "end of output"}.get(str(value), "end of stderr")
    if kind == "open":
        return "connected"
    return f"{kind} {value}"
