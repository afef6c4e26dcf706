"""Store of message texts for the page: chunks of plain text in a temporary file, addressed by position.

The texts are not JSON: the page cuts a message out of its chunk only when it shows it, and searches chunks as they are.
"""

from __future__ import annotations

from array import array
from base64 import b64encode
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# Limits of the page, in characters. What exceeds them is counted, and the page reports it.
LONGEST_BODY = 1_000_000
ALL_BODIES = 64_000_000

_CHUNK = 500_000  # characters; a longer body has a chunk of its own
_COPY_BYTES = 1_048_576
# HTML replaces or interprets these characters in a script element. Each becomes one noncharacter of Unicode, so that
# positions stay valid; `bodies.js` has the reverse.
_STAND_INS = str.maketrans(
    {"<": "\ufdd0", "\r": "\ufdd1", "\0": "\ufdd2", **dict.fromkeys("\ufdd0\ufdd1\ufdd2", "\ufffd")}
)
_CHANGED = frozenset("<\r\0\ufdd0\ufdd1\ufdd2")


class Bodies:
    """Columns about the bodies, and their texts in a temporary file.

    Attributes:
        cut: the bodies of which the page has only the beginning, or nothing.
    """

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._buffer: list[str] = []
        self._buffered = self._total = 0
        self._chunks: list[int] = []  # number of bodies before the end of each chunk
        self._names: list[str] = []
        self._name_of: dict[str, int] = {}
        self._lengths, self._sizes, self._lines = array("q"), array("q"), array("q")
        self._starts, self._ends, self._name = array("q"), array("q"), array("q")
        self.cut = array("q")

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, text: str, *, content: tuple[str, int, int] = ("", 0, 0), line: int = 0) -> int:
        """Append a body. Return its number.

        Args:
            text: the complete message.
            content: the name of its main part, and the part's position in `text`.
        """
        if not text.isascii():  # lone surrogates, which are bytes that are not UTF-8, become U+FFFD
            text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        room = max(0, min(LONGEST_BODY, ALL_BODIES - self._total))
        shown = text[:room]
        if len(shown) < len(text):
            self.cut.append(len(self))
        length = _units(shown, len(shown))
        if self._buffered + length > _CHUNK:
            self._flush()
        name, start, end = content
        if name not in self._name_of:
            self._name_of[name] = len(self._names)
            self._names.append(name)
        self._name.append(self._name_of[name])
        self._starts.append(_units(text, start) if start <= room else _units(shown, room))
        self._ends.append(_units(text, end) if end <= room else _units(shown, len(shown)))
        self._sizes.append(len(text.encode()))
        self._lines.append(line)
        self._lengths.append(length)
        self._total += length
        self._buffer.append(shown.translate(_STAND_INS) if not _CHANGED.isdisjoint(shown) else shown)
        self._buffered += length
        return len(self._lengths) - 1

    def add_raw(self, text: str, *, line: int) -> int:
        """Append text that is not a message, in base64 if it is not UTF-8. Return the number of the body."""
        if any("\udc80" <= char <= "\udcff" for char in text) if not text.isascii() else False:
            data = text.encode("utf-8", "surrogateescape")
            text = b64encode(data[: LONGEST_BODY // 4 * 3]).decode()
            return self.add(text, content=("base64", 0, len(text)), line=line)
        return self.add(text, line=line)

    def columns(self) -> dict[str, object]:
        """Return the columns about the bodies for the page, as JSON values and arrays."""
        self._flush()
        columns: dict[str, object] = {"length": self._lengths, "size": self._sizes, "line": self._lines}
        columns |= {"start": self._starts, "end": self._ends, "name": self._name, "cut": self.cut}
        return {"chunks": self._chunks, "names": self._names, **columns}

    def elements(self) -> Iterator[bytes]:
        """Yield the script elements with the texts; call `columns` first."""
        self._file.seek(0)
        while piece := self._file.read(_COPY_BYTES):
            yield piece

    def close(self) -> None:
        """Delete the temporary file."""
        self._file.close()

    def _flush(self) -> None:
        if len(self._lengths) == (self._chunks[-1] if self._chunks else 0):
            return
        number = len(self._chunks)
        self._chunks.append(len(self._lengths))
        text = "".join(self._buffer)
        self._file.write(f'<script type="text/plain" id="bodies-{number}">{text}</script>\n'.encode())
        self._buffer.clear()
        self._buffered = 0


def _units(text: str, end: int) -> int:
    """Return the length of `text[:end]` in UTF-16 code units, as JavaScript counts."""
    return end if text.isascii() else len(text[:end].encode("utf-16-le")) // 2
