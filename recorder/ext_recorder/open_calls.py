"""The calls that are open at one place of a recording, as threads: see `any_order` for what belongs to which.

Order `strict` reads them when its host has left the recorded order, since what they wait for may never come.
"""

from __future__ import annotations

from .cutter import Cutter
from .threads import Question, Thread, Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from ext_sdk.core.wire.framing import Framing

    from .cassette.events import Event
    from .cassette.reader import Reader
    from .hearing import Ear, Recorded

    CutUp = Callable[[Cutter, Event, int], Iterator[Thread]]

_PRUNED = 1_000  # threads; when there are more, those that are over are removed


class OpenCalls:
    """The open calls of the host and the open requests of the child.

    Args:
        ear, framing: see Player.
        cut_up: cuts an event into the threads that it begins.
        apart: lines of events that are left out of the threads, since they are played elsewhere.

    Attributes:
        threads: the threads that they belong to, in the order of the recording.
        upto: the place in the recording up to which it has been played.
        asked: the ids of the requests of the child.
        lines: the lines of what is left of the threads, but for messages of the host's own accord.
        responses: the messages of the host in it: (line, payload).
    """

    def __init__(self, ear: Ear, framing: Framing, cut_up: CutUp, apart: Container[int]) -> None:
        self._cut = Cutter(ear, framing)
        self._cut_up = cut_up
        self._apart = apart
        self._lines: dict[int, int] = {}  # by place, from `upto` on
        self.threads: list[Thread] = []
        self.upto = 0
        self.asked = self._cut.asked
        self.lines: set[int] = set()
        self.responses: set[tuple[int, bytes]] = set()

    def read(
        self,
        reader: Reader,
        line: int,
        left: int,
        is_open: Callable[[Recorded | None], bool],
        *,
        shared: bool,
        since: int = 0,
    ) -> None:
        """Find the open calls.

        Args:
            reader: the cassette, at its start.
            line: the first line that has not been played to its end.
            left: the number of messages of the host on this line that have not been played; 0 if none has.
            is_open: returns whether this message of the host is a call that has no answer yet.
            shared: also take the requests of the child that may belong to other calls.
            since: the events above this line belong to calls that are not open.
        """
        cut = self._cut
        begun: list[tuple[int, Thread]] = [(0, cut.first)]
        reached, most = False, _PRUNED
        for event in reader:
            if reader.line < since:
                continue
            before = cut.place
            found = [(cut.place, thread) for thread in self._cut_up(cut, event, reader.line)]
            if not reached and reader.line >= line:
                reached = True
                self.upto = cut.place - left if left and reader.line == line else before
            begun += [each for each in found if not reached or each[0] <= self.upto]
            if reached:
                self._lines.update(dict.fromkeys(range(before + 1, cut.place + 1), reader.line))
                if reader.line > line and self._is_all_read([thread for _, thread in begun]):
                    break
            elif len(begun) > most:
                begun = [each for each in begun if not cut.is_settled(each[1])]
                most = 2 * len(begun) + _PRUNED
        if not reached:
            self.upto = cut.place
        self.threads = [thread for _, thread in begun if is_open(thread.origin) or self._asks(thread)]
        for thread in self.threads:
            self._collect(thread, shared=shared)

    def _is_all_read(self, begun: list[Thread]) -> bool:
        return all(self._cut.is_settled(thread) for thread in begun if thread.open)

    def _asks(self, thread: Thread) -> bool:
        """Return whether a request of the child in it has been played, and has no response yet."""
        asked = [step for place, step in thread.steps if place <= self.upto and isinstance(step, Question)]
        left = [step for place, step in thread.steps if place > self.upto]
        answers = (answer for question in asked for answer in question.answers if answer in left)
        return any(answer.origin is not None and answer.origin.line not in self._apart for answer in answers)

    def _collect(self, thread: Thread, *, shared: bool) -> None:
        others: list[Turn] = []
        for place, step in list(thread.steps):
            if isinstance(step, Question) and not self._is_of(step, thread, shared=shared):
                others += [step, *step.answers]
            if place <= self.upto or isinstance(step, Thread) or step in others:
                continue
            if self._lines[place] in self._apart:
                thread.steps.remove((place, step))
            self.lines.add(self._lines[place])
            if isinstance(step, Turn) and step.origin is not None:
                self.responses.add((step.origin.line, step.origin.payload))

    def _is_of(self, question: Question, thread: Thread, *, shared: bool) -> bool:
        """Return whether a request of the child is played with this thread."""
        return thread in question.threads and (shared or all(each in self.threads for each in question.threads))
