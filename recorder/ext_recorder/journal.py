"""Journal: notes of the tap in memory that it shares with the scribe, until they are handed over through the pipe.

Handing over wakes the scribe, so the tap does it while the wire is idle. A tap that is killed before (SIGKILL) leaves
its notes here, and the scribe reads them when the pipe has ended. A note is written before its bytes are forwarded, so
whatever a host or a child has received is in the pipe or here, unless the journal was full.
"""

from __future__ import annotations

import marshal
import mmap
import os
from struct import Struct

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .notes import Note

# Some 6,000 messages of 300 bytes. Pages that were never used take no memory.
JOURNAL_BYTES = 2_097_152

# Generation; how many notes were handed over before the first one here.
_START = Struct("<IQ")
# Generation, seconds, whether the content is marshal's form of a value, bytes of the content, name. It is written after
# the content, so a note that a kill has cut in two has the head of an older generation, or none.
_HEAD = Struct("<Id?I16s")
_HEAD_BYTES = _HEAD.size


class Journal:
    """The latest notes. One process writes; another reads after the first one has ended, or handed over everything.

    Attributes:
        full: later notes are not in it.
    """

    __slots__ = ("_at", "_closed", "_generation", "_memory", "_names", "_pack", "full")

    def __init__(self, size: int = JOURNAL_BYTES) -> None:
        self._memory = mmap.mmap(-1, size)  # shared with processes that are forked later
        self._pack = _HEAD.pack
        self._names: dict[str, bytes] = {}
        self._generation = int.from_bytes(os.urandom(4), "little")  # not a number that messages have in them
        self._closed = False
        self.begin(0)

    def begin(self, count: int) -> None:
        """Begin again, empty: so many notes have been handed over."""
        if self._closed:
            return
        self._generation = (self._generation + 1) & 0xFFFF_FFFF
        _START.pack_into(self._memory, 0, self._generation, count)
        self._at = _START.size
        self.full = False

    def close(self) -> None:
        """Write no more: nothing is recorded, or another process writes."""
        self._closed = self.full = True

    def add(self, time: float, name: str, content: bytes, *, is_value: bool = False) -> None:
        """Write a note, unless the journal is full. Every chunk on the wire passes through here.

        Args:
            time: seconds since the start.
            name: the stream, or what happened.
            content: its bytes.
            is_value: they are marshal's form of a value.
        """
        if self.full:
            return
        memory, at = self._memory, self._at
        start = at + _HEAD_BYTES
        end = start + len(content)
        label = self._names.get(name) or self._names.setdefault(name, name.encode())
        try:
            memory[start:end] = content
            memory[at:start] = self._pack(self._generation, time, is_value, len(content), label)
            self._at = end
        except IndexError:  # beyond the end
            self.full = True

    def add_value(self, time: float, name: str, value: str | int) -> None:
        """Write a note of what is not bytes, unless the journal is full."""
        self.add(time, name, marshal.dumps(value), is_value=True)

    def after(self, count: int) -> Iterator[Note]:
        """Read the notes after the first `count` notes of the session."""
        memory = self._memory
        generation, number = _START.unpack_from(memory)
        start = _START.size + _HEAD_BYTES
        while start <= len(memory):
            found, time, is_value, size, name = _HEAD.unpack_from(memory, start - _HEAD_BYTES)
            if found != generation:
                return
            if number >= count:
                content = memory[start : start + size]
                value = marshal.loads(content) if is_value else content  # noqa: S302 - written by our own parent process
                yield time, name.rstrip(b"\0").decode(), value
            number += 1
            start += size + _HEAD_BYTES
