"""Index of the recorded messages that come next, for a host that has left the recorded order: for order `strict`."""

from __future__ import annotations

from collections import deque

from ext_recorder.cassette.events import Mark
from ext_recorder.replay.any_order import CallIndex
from ext_recorder.replay.threads import CallChain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.replay.request_matcher import RecordedRequest, RequestMatcher


class Upcoming:
    """Messages of the host in a window of lines, by their meaning. Each line is read once, however many messages miss.

    Args:
        reader: the cassette, at its start.
        requests: compares messages.
        items_of: returns the messages of the host in the event on a line.
        is_apart: returns True for a recorded message that is no longer in the recorded order.
        size: lines in the window.
    """

    def __init__(
        self,
        reader: Reader,
        requests: RequestMatcher,
        items_of: Callable[[Event, int], list[RecordedRequest]],
        is_apart: Callable[[RecordedRequest], bool],
        size: int,
    ) -> None:
        self._reader = reader
        self._events = iter(reader)
        self._items_of = items_of
        self._size = size
        self._threads: deque[CallChain] = deque()
        self._index = CallIndex(requests, lambda item, payload: not is_apart(item) and requests.matches(item, payload))
        self._count = 0

    def line_of(self, payload: bytes, since: int) -> int:
        """Return the line of the first message, from line `since` on, that a live message matches; 0 if none does."""
        threads, index = self._threads, self._index
        while self._reader.line < since + self._size and (event := next(self._events, None)) is not None:
            if isinstance(event, Mark) and event.kind == "exit":
                self._events = iter(())  # the child answered nothing after it
            elif self._reader.line >= since:
                for item in self._items_of(event, self._reader.line):
                    threads.append(CallChain(item, event.time, self._count))
                    index.add(threads[-1])
                    self._count += 1
        while threads and _line(threads[0]) < since:
            index.take(threads.popleft())
        thread = index.find_equivalent(payload)
        return _line(thread) if thread is not None else 0


def _line(thread: CallChain) -> int:
    return thread.origin.line if thread.origin is not None else 0
