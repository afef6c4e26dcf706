"""What the child said, said here: recorded bytes with live ids, live paths and live names in them.

Only what differs is touched. The live id's spelling is put in the place of the recorded one, bindings are
replaced as text, and every other byte, number spelling, key order and escapes included, is as it was
recorded.
"""

from __future__ import annotations

from ext_sdk.protocols.dialect import id_key
from ext_sdk.protocols.glance import glance
from ext_sdk.wire.framing import Frame

from .cassette.events import pieces
from .pointers import spans

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_sdk.protocols.dialect import Dialect
    from ext_sdk.wire.framing import Framing

    from .bindings import Playing
    from .calls import Calls
    from .cassette.events import Data


class Voice:
    """Recorded messages of the child to live bytes.

    Args:
        dialect: what a message is.
        framing: what goes around it.
        bindings: neutral spellings to live values.
        calls: the host's calls; an answer closes its call.

    Attributes:
        minted: names made up by the host, recorded key to live spelling.
    """

    def __init__(self, dialect: Dialect, framing: Framing, bindings: Playing, calls: Calls) -> None:
        self._dialect = dialect
        self._framing = framing
        self._lines = framing.name == "ndjson"
        self._bindings = bindings
        self._calls = calls
        self.minted: dict[bytes, bytes] = {}

    @property
    def owes(self) -> bool:
        """Is any call of the host without its answer?"""
        return bool(self._calls)

    def out(self, event: Data) -> bytes:
        """The bytes for something on the child's stdout."""
        if event.raw:
            return self._raw(event.payload)
        payload = self._message(event.payload)
        if self._lines:
            return payload + b"\n"
        return self._framing.encode(payload, event.head)

    def err(self, event: Data) -> bytes:
        """The bytes for something on the child's stderr."""
        data = event.payload if event.raw else event.payload + b"\n"
        return self._bindings.to_live(data, json=False)

    def _raw(self, wire: bytes) -> bytes:
        """Exact bytes, whose messages may still name an id or a path."""
        parts = []
        for item in pieces(wire, self._framing):
            if not isinstance(item, Frame):
                parts.append(self._bindings.to_live(item.wire, json=False))
                continue
            payload = self._message(item.payload)
            parts.append(item.wire if payload == item.payload else self._framing.encode(payload, item.head))
        return b"".join(parts)

    def _message(self, payload: bytes) -> bytes:
        if not self._dialect.calls:
            return self._bindings.to_live(payload, json=False)
        seen = glance(payload)
        if seen is None:
            if b'"id"' not in payload and payload[:1] == b"{" and not self.minted:
                return self._bound(payload)  # a notification, most often; no answer in any case
            return self._read(payload)
        kind, start, end = seen
        if kind == "response":
            recorded = payload[start:end]
            live = self._calls.end(recorded)
            if live is not None and live != recorded:
                return self._bound(payload[:start]) + live + self._bound(payload[end:])
        return self._bound(payload)

    def _read(self, payload: bytes) -> bytes:
        """The same for a message whose envelope has to be read."""
        message = self._dialect.classify(payload)
        if message.kind == "other":
            return self._bindings.to_live(payload, json=False)
        if message.kind == "response" and message.key is not None:
            live = self._calls.end(message.key)
            if live is not None and live != message.key:
                start, end = message.span
                before, after = (_bytes(part) for part in (message.text[:start], message.text[end:]))
                return self._bound(before) + live + self._bound(after)
        if self.minted and (pointers := self._dialect.echoed.get(message.method)):
            return self._bound(self._echoed(message.text, pointers))
        return self._bound(payload)

    def _echoed(self, text: str, pointers: tuple[str, ...]) -> bytes:
        """A message with the host's live names where it repeats recorded ones."""
        for start, end, value in sorted(spans(text, pointers), reverse=True):
            live = self.minted.get(id_key(value, text[start:end]))
            if live is not None:
                text = text[:start] + live.decode("utf-8", "surrogateescape") + text[end:]
        return _bytes(text)

    def _bound(self, data: bytes) -> bytes:
        return self._bindings.to_live(data, json=True) if self._bindings else data


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
