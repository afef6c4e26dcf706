"""Response writer: recorded messages of the child with live ids, paths and names.

Only these parts are replaced, as text. All other bytes are those of the recording, including the form of numbers, the
order of keys and escapes.
"""

from __future__ import annotations

from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_recorder.protocols.fast_id import FIRST_BYTES, scan_id
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.json_pointer import locate

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_recorder.cassette.events import Data
    from ext_recorder.messages.open_calls import IdMap
    from ext_recorder.messages.path_bindings import ReplayBindings
    from ext_recorder.protocols.dialect import ClassifiedMessage, Dialect
    from ext_sdk.core.wire.framing import Framing


class ResponseWriter:
    """Writer of live bytes for recorded messages of the child.

    Args:
        calls: the host's calls; a response closes its call.

    Attributes:
        client_generated: names that the host generated for one call, by their recorded keys, as live JSON text.
        names: persistent names of either side, in the same form.
        answers: the message written last is a response.
    """

    def __init__(self, dialect: Dialect, framing: Framing, bindings: ReplayBindings, calls: IdMap) -> None:
        self._dialect = dialect
        self._framing = framing
        self._lines = framing.name == "ndjson"
        self._bindings = bindings
        self._calls = calls
        self.client_generated: dict[bytes, bytes] = {}
        self.names: dict[bytes, bytes] = {}
        self.answers = False

    @property
    def has_open_calls(self) -> bool:
        """Return True if a call of the host has no response yet."""
        return bool(self._calls)

    @property
    def open_calls(self) -> int:
        """Number of calls of the host without their response."""
        return len(self._calls)

    def owes_answer(self, recorded: ClassifiedMessage) -> bool:
        """Return True if this recorded message of the host is a call without a response so far."""
        return recorded.kind == "request" and recorded.key is not None and self._calls.is_open(recorded.key)

    def live_id(self, recorded: bytes) -> bytes | None:
        """Return the live id of an open call; None if no call of this recorded id is open."""
        return self._calls.live(recorded) if self._calls.is_open(recorded) else None

    def answered(self, calls: list[tuple[bytes, bytes]]) -> None:
        """Store the recorded and live ids of calls that got their response elsewhere."""
        self._calls.ended(calls)

    def give_up(self, recorded: ClassifiedMessage) -> ClassifiedMessage | None:
        """End an open call without a recorded response. Return the request with its live id; None if it is not open."""
        if recorded.key is None or not self._calls.is_open(recorded.key):
            return None
        live = self._calls.end(recorded.key) or recorded.key
        text, edits = recorded.text, [(*recorded.span, live)]
        for start, end, value in locate(text, pointers_of(self._dialect.client_generated, recorded.method)):
            if (start, end) != recorded.span:
                live_text = self.client_generated.get(id_key(value, text[start:end]), _bytes(text[start:end]))
                edits.append((start, end, live_text))
        for start, end, live_text in sorted(edits, reverse=True):
            text = text[:start] + live_text.decode("utf-8", "surrogateescape") + text[end:]
        return self._dialect.classify(_bytes(text))

    def out(self, event: Data) -> bytes:
        """Return the bytes for an event of stdout."""
        if not event.raw:
            payload = self._message(event.payload)
            return payload + b"\n" if self._lines else self._framing.encode(payload, event.head)
        self.answers = False
        parts = []
        for item in event.items(self._framing):
            if not isinstance(item, Frame):
                parts.append(self._bindings.to_live(item.wire, json=False))
                continue
            payload = self._message(item.payload)
            parts.append(item.wire if payload == item.payload else self._framing.encode(payload, item.head))
        return b"".join(parts)

    def err(self, event: Data) -> bytes:
        """Return the bytes for an event of stderr."""
        data = event.payload if event.raw else event.payload + b"\n"
        return self._bindings.to_live(data, json=False)

    def note_requests(self, asked: dict[bytes, tuple[str, str]]) -> None:
        """Store the method and subject of each following request of the child, by its id.

        This wraps the method of this object, so that other sessions need no time for it.
        """
        render = self._message

        def noted(payload: bytes) -> bytes:
            message = self._dialect.classify(payload)
            if message.kind == "request" and message.key is not None:
                asked[message.key] = (message.method, self._dialect.about(message))
            return render(payload)

        self._message = noted  # type: ignore[method-assign]

    def _message(self, payload: bytes) -> bytes:
        if not self._dialect.id_only:
            return self._read(payload)
        if not self._dialect.calls:
            return self._bindings.to_live(payload, json=False)
        seen = scan_id(payload)
        if seen is None:
            if b'"id"' not in payload and payload[:1] == b"{" and not self.client_generated:
                self.answers = False
                return self._bindings.here(payload)  # in most cases a notification, and never a response
            return self._read(payload)
        kind, start, end = seen
        self.answers = kind == "response"
        if self.answers:
            recorded = payload[start:end]
            if recorded in self.client_generated:
                return self._read(payload)  # it may repeat the id as a name
            live = self._calls.end(recorded)
            if live is not None and live != recorded:
                here = self._bindings.here
                before = payload[:start] if start <= FIRST_BYTES else here(payload[:start])
                return before + live + here(payload[end:])
        return self._bindings.here(payload)

    def _read(self, payload: bytes) -> bytes:
        """Return a message that has to be parsed for its live form."""
        message = self._dialect.classify(payload)
        self.answers = message.kind == "response"
        if message.kind == "other":
            return self._bindings.to_live(payload, json=False)
        parts, position = [], 0
        for start, end, live_text in sorted(self._edits(message)):
            parts += [self._bindings.here(_bytes(message.text[position:start])), live_text]
            position = end
        if not parts:
            return self._bindings.here(payload)
        return b"".join([*parts, self._bindings.here(_bytes(message.text[position:]))])

    def _edits(self, message: ClassifiedMessage) -> Iterator[tuple[int, int, bytes]]:
        """Yield the parts that differ in the live session, each one once: (start, end, live text)."""
        dialect, text, method = self._dialect, message.text, message.method
        if message.kind == "response":
            yield from self._answer(message)
        for start, end, value in locate(text, pointers_of(dialect.mentions, method)):
            yield start, end, self._calls.live(id_key(value, text[start:end]))
        if self.client_generated:
            for start, end, value in locate(text, pointers_of(dialect.echoed_names, method)):
                live = self.client_generated.get(id_key(value, text[start:end]))
                if live is not None and (start, end) != message.span:
                    yield start, end, live
        for start, end, value in locate(text, pointers_of(dialect.names, method)):
            if isinstance(value, (str, int)):
                yield start, end, self.names.setdefault(id_key(value, text[start:end]), _bytes(text[start:end]))

    def _answer(self, message: ClassifiedMessage) -> Iterator[tuple[int, int, bytes]]:
        """Yield the parts of a response that repeat the id and values of its request; end the call."""
        key, text = message.key, message.text
        for pointer, (recorded, live_text) in self._calls.echoes(key).items():
            for start, end, value in locate(text, [pointer]):
                if id_key(value, text[start:end]) == recorded:
                    yield start, end, live_text
        if key is None:
            if message.method:  # otherwise it is an error response to a message that could not be parsed
                self._calls.end_oldest()
            return
        live = self._calls.end(key) if self._dialect.is_last(message) else None
        if live is None:
            live = self._calls.live(key)
        if live != key:
            yield *message.span, live


class LenientResponseWriter(ResponseWriter):
    """Response writer for dialects with messages whose id is optional."""

    def out(self, event: Data) -> bytes:
        """Return the bytes for an event of stdout: none for a response that the host does not expect."""
        if self._calls.spared and not event.raw:
            message = self._dialect.classify(event.payload)
            if message.kind == "response" and message.key in self._calls.spared:
                self._calls.spared.discard(message.key)
                return b""
        return super().out(event)


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
