"""Output of a command on one stream, in bounded memory."""

from __future__ import annotations

TAIL_BYTES = 64 * 1024


class Output:
    """Beginning of a stream up to a limit, and the last 64 KiB of the rest.

    It stays in memory, because a file could hold secrets that only become known when the command has ended.

    Args:
        cap: limit of the beginning, in bytes.

    Attributes:
        size: bytes written so far, kept or not.
    """

    __slots__ = ("_cap", "_head", "_tail", "size")

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._head = bytearray()
        self._tail = bytearray()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append output."""
        self.size += len(data)
        room = self._cap - len(self._head)
        if room > 0:
            self._head += data[:room]
        if room < len(data):
            self._tail += data[max(0, room) :]
            del self._tail[:-TAIL_BYTES]

    def copy(self) -> Output:
        """Return a snapshot, for reading while the output grows."""
        copied = Output(self._cap)
        copied._head, copied._tail, copied.size = self._head[:], self._tail[:], self.size
        return copied

    def since(self, offset: int) -> tuple[bytes, int]:
        """Return the output from an offset on, as far as it was kept, and the next offset."""
        tail_begins = self.size - len(self._tail)
        tail = self._tail[max(0, offset - tail_begins) :] if offset < self.size else b""
        return bytes(self._head[offset:]) + bytes(tail), self.size

    @property
    def lost(self) -> int:
        """Number of bytes that were not kept."""
        return self.size - len(self._head) - len(self._tail)

    @property
    def data(self) -> bytes:
        """All bytes that were kept; a note replaces missing ones."""
        if not self._tail:
            return bytes(self._head)
        note = f"\n[... {self.lost} of {self.size} bytes were not kept ...]\n".encode() if self.lost else b""
        return bytes(self._head) + note + bytes(self._tail)

    @property
    def text(self) -> str:
        """`data` as text; bytes that are not UTF-8 are replaced by U+FFFD."""
        return self.data.decode("utf-8", "replace")

    @property
    def exact(self) -> bool:
        """True if `text` is complete: every byte was kept, and is UTF-8."""
        if self.lost:
            return False
        try:
            self.data.decode()
        except UnicodeDecodeError:
            return False
        return True


class LineSplitter:
    """Splits a stream into lines while it is read.

    Args:
        limit: longest line that is returned, in bytes; longer ones are cut.
    """

    __slots__ = ("_limit", "_pending", "_skipping")

    def __init__(self, limit: int = 64 * 1024) -> None:
        self._limit = limit
        self._pending = b""
        self._skipping = False  # inside a line whose beginning was returned

    def feed(self, data: bytes) -> list[str]:
        """Append output, and return the lines that it completes, without their line endings."""
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            line, self._pending = self._pending + end, b""
            if self._skipping:
                self._skipping = False
            else:
                lines.append(_text(line[: self._limit]))
        if not self._skipping:
            self._pending += rest
            if len(self._pending) > self._limit:
                lines += self.finish()
                self._skipping = True
        return lines

    def skip(self, data: bytes) -> int:
        """Append output, and return the number of lines that `feed` would return, without splitting them."""
        ends = data.count(b"\n")
        if not ends:
            return len(self.feed(data))
        ended = ends - self._skipping
        self._pending, self._skipping = b"", False
        return ended + len(self.feed(data[data.rfind(b"\n") + 1 :]))

    def finish(self) -> list[str]:
        """Return the last line if it had no line ending."""
        line, self._pending = self._pending[: self._limit], b""
        return [_text(line)] if line else []


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")
