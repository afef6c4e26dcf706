"""Secrets that are cut in two by messages: a text that the child streams piece by piece, as models write it.

Consecutive notifications that differ in one string are pieces of one text. They are held back until the text ends, or
is long enough, and what is secret in all of it is replaced in the piece in which it begins and left out of the others.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Final, TypeAlias

    from ext_sdk.core.wire.frames import Frame

    # Redactor.replacements: start, end, and what to write instead.
    Replacements: TypeAlias = Callable[[bytes], list[tuple[int, int, bytes]]]

_LONGEST: Final = 8_192  # bytes of a message that may be a piece
_TEXT_BYTES: Final = 16_384  # of one text that are held back; the last half of them is searched with what follows
_MOST: Final = 512  # messages that are held back
_DIGITS: Final = b"0123456789"


class StreamedText:
    """A notification that is held back.

    Attributes:
        time: seconds since the start of the session.
        item: the message.
        line: the line of the cassette; None until it is known.
    """

    __slots__ = ("_strings", "item", "line", "time")

    def __init__(self, time: float, item: Frame) -> None:
        self.time = time
        self.item = item
        self.line: bytes | None = None
        # Escaped quotes and backslashes are masked, so that quotes delimit strings: these have the odd positions.
        masked = item.payload.replace(b"\\\\", b"\1\1").replace(b'\\"', b"\2\2")
        self._strings = masked.split(b'"')

    def difference(self, other: StreamedText) -> int:
        """Return the position of the one string in which two messages differ; 0 if none does; -1 if they differ more.

        Numbers may differ: a sequence number, a time.
        """
        mine, others = self._strings, other._strings
        if len(mine) != len(others) or len(mine) % 2 == 0:
            return -1
        differing = [at for at in range(len(mine)) if mine[at] != others[at]]
        found = [at for at in differing if at % 2]
        if len(found) > 1 or any(
            mine[at].translate(None, _DIGITS) != others[at].translate(None, _DIGITS) for at in differing if not at % 2
        ):
            return -1
        if found and not mine[found[0] - 1].rstrip().endswith(b":"):
            return -1
        return found[0] if found else 0

    def place(self, position: int) -> tuple[int, int]:
        """Return where the string at a position is in the payload, without its quotes."""
        start = sum(map(len, self._strings[:position])) + position
        return start, start + len(self._strings[position])


class SplitSecrets:
    """The notifications of one stream that are held back.

    Args:
        replacements: finds what is secret in a text.
        write: makes the line of a message: the message, and its payload without what is secret.
    """

    __slots__ = ("_held", "_position", "_replacements", "_size", "_write")

    def __init__(self, replacements: Replacements, write: Callable[[StreamedText, bytes], bytes]) -> None:
        self._replacements = replacements
        self._write = write
        self._held: list[StreamedText] = []
        self._position = 0  # of the string in which they differ; 0: not known yet
        self._size = 0

    def take(self, delta: StreamedText) -> None:
        """Hold a notification back, and release those before it that it does not continue."""
        difference = self._held[-1].difference(delta) if self._held else -1
        if difference < 0 or (difference and self._position not in {0, difference}):
            self.release()
        else:
            self._position = self._position or difference
        self._held.append(delta)
        self._size += len(delta.item.payload)
        if self._size > _TEXT_BYTES or len(self._held) > _MOST:
            self._release(half=True)

    def release(self) -> None:
        """Make the lines of all that is held back."""
        if self._held:
            self._release(half=False)

    def _release(self, *, half: bool) -> None:
        if len(self._held) == 1 or not self._position:
            released, payloads = self._held, [delta.item.payload for delta in self._held]
        else:
            released, payloads = self._joined(half=half)
        for delta, payload in zip(released, payloads, strict=True):
            delta.line = self._write(delta, payload)
        self._held = self._held[len(released) :]
        self._size = sum(len(delta.item.payload) for delta in self._held)
        if not self._held:
            self._position = 0

    def _joined(self, *, half: bool) -> tuple[list[StreamedText], list[bytes]]:
        """Return the messages to release, with their payloads without what is secret in the text of all."""
        places = [delta.place(self._position) for delta in self._held]
        texts = [delta.item.payload[start:end] for delta, (start, end) in zip(self._held, places, strict=True)]
        found = [
            (start - 1, end - 1, new)
            for start, end, new in self._replacements(b'"%b"' % b"".join(texts))
            if end > start
        ]
        count = len(texts)
        if half:
            ends = [sum(map(len, texts[: at + 1])) for at in range(count)]
            free = [at for at, end in enumerate(ends) if not any(start < end < stop for start, stop, _ in found)]
            count = 1 + min(free or [count - 1], key=lambda at: abs(at - count // 2))
        payloads = []
        offset = 0
        for delta, (first, last), text in zip(self._held[:count], places, texts, strict=False):
            payload = delta.item.payload
            payloads.append(payload[:first] + _without(text, offset, found) + payload[last:])
            offset += len(text)
        return self._held[:count], payloads


def may_be_delta(payload: bytes) -> bool:
    """Return whether a message without an id may be a piece of a text: a JSON object."""
    return payload[:1] == b"{" and len(payload) <= _LONGEST


def _without(text: bytes, offset: int, found: list[tuple[int, int, bytes]]) -> bytes:
    """Return one piece of a text, at this offset of it, without what was found in the text."""
    parts: list[bytes] = []
    at = 0
    for start, end, new in found:
        first, last = max(0, start - offset), min(len(text), end - offset)
        if first < last:
            parts += (text[at:first], new if start >= offset else b"")
            at = last
    return b"".join((*parts, text[at:]))
