"""The cassette, read ahead: what comes next, and what comes soon."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.reader import Reader

AHEAD_EVENTS = 1_000  # that are looked at before it is their turn


class Ahead:
    """Events with the lines on which they stand.

    Args:
        reader: the cassette, at its start.

    Attributes:
        path: the cassette, for messages.
    """

    def __init__(self, reader: Reader) -> None:
        self.path = reader.path
        self._reader = reader
        self._events = iter(reader)
        self._read: deque[tuple[Event, int]] = deque()  # and not yet come to

    def next(self) -> tuple[Event, int] | None:
        """The next event and its line; None at the end."""
        if self._read:
            return self._read.popleft()
        event = next(self._events, None)
        return None if event is None else (event, self._reader.line)

    def put_back(self, following: tuple[Event, int]) -> None:
        """It is not its turn yet."""
        self._read.appendleft(following)

    def next_line(self) -> int | None:
        """The line of the next event; None at the end."""
        following = self.next()
        if following is None:
            return None
        self.put_back(following)
        return following[1]

    def rest(self) -> Iterator[tuple[Event, int]]:
        """All that is left. They are come to by this."""
        while (following := self.next()) is not None:
            yield following

    def soon(self) -> Iterator[tuple[Event, int]]:
        """The next events, which stay to be come to."""
        while len(self._read) < AHEAD_EVENTS and (event := next(self._events, None)) is not None:
            self._read.append((event, self._reader.line))
        yield from self._read
