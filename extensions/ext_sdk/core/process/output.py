"""What a command wrote on one stream, in bounded memory."""

from __future__ import annotations

TAIL_BYTES = 64 * 1024


class Output:
    """Keeps the beginning of a stream up to a cap, and the last 64 KiB of what came after it.

    It stays in memory, because a file could hold secrets that only become known when the command has ended.

    Args:
        cap: bytes to keep of the beginning.

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
        """Take what came next."""
        self.size += len(data)
        room = self._cap - len(self._head)
        if room > 0:
            self._head += data[:room]
        if room < len(data):
            self._tail += data[max(0, room) :]
            del self._tail[:-TAIL_BYTES]

    def copy(self) -> Output:
        """Return the same as it is now, for somebody who looks at it while it grows."""
        copied = Output(self._cap)
        copied._head, copied._tail, copied.size = self._head[:], self._tail[:], self.size
        return copied

    def since(self, offset: int) -> tuple[bytes, int]:
        """What was written from an offset on, as far as it was kept, and the offset of what comes next."""
        tail_begins = self.size - len(self._tail)
        tail = self._tail[max(0, offset - tail_begins) :] if offset < self.size else b""
        return bytes(self._head[offset:]) + bytes(tail), self.size

    @property
    def lost(self) -> int:
        """How many bytes were not kept."""
        return self.size - len(self._head) - len(self._tail)

    @property
    def data(self) -> bytes:
        """All that was kept; a note stands where bytes are missing."""
        if not self._tail:
            return bytes(self._head)
        note = f"\n[... {self.lost} of {self.size} bytes were not kept ...]\n".encode() if self.lost else b""
        return bytes(self._head) + note + bytes(self._tail)

    @property
    def text(self) -> str:
        """The same as text; bytes that are no UTF-8 are replaced by U+FFFD."""
        return self.data.decode("utf-8", "replace")

    @property
    def exact(self) -> bool:
        """True if `text` says all: every byte was kept, and is UTF-8."""
        if self.lost:
            return False
        try:
            self.data.decode()
        except UnicodeDecodeError:
            return False
        return True


class LineSplitter:
    """Cuts a stream into lines for somebody who reads along.

    Args:
        limit: bytes of a line that are handed over; what is longer is cut there.
    """

    __slots__ = ("_limit", "_pending", "_skipping")

    def __init__(self, limit: int = 64 * 1024) -> None:
        self._limit = limit
        self._pending = b""
        self._skipping = False  # inside of a line whose beginning has been handed over

    def feed(self, data: bytes) -> list[str]:
        """Take what came next; return the lines that are complete now, without their ends."""
        *ends, rest = data.split(b"\n")
        lines = [line for end in ends if (line := self._ended(end)) is not None]
        if not self._skipping:
            self._pending += rest
            if len(self._pending) > self._limit:
                lines += self.finish()
                self._skipping = True
        return lines

    def skip(self, data: bytes) -> int:
        """Take what came next, and return how many lines `feed` would give; they are not split, which is quick."""
        ends = data.count(b"\n")
        if not ends:
            return len(self.feed(data))
        ended = ends - self._skipping
        self._pending, self._skipping = b"", False
        return ended + len(self.feed(data[data.rfind(b"\n") + 1 :]))

    def finish(self) -> list[str]:
        """Return the last line, where it had no end."""
        line, self._pending = self._pending[: self._limit], b""
        return [_text(line)] if line else []

    def _ended(self, end: bytes) -> str | None:
        line, self._pending = self._pending + end, b""
        if self._skipping:
            self._skipping = False
            return None
        return _text(line[: self._limit])


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")
