"""Threads that go on: which is next, and what holds the others. For order `any`."""

from __future__ import annotations

from .cassette.events import Data, Mark
from .threads import Question, Thread

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .cassette.events import Event
    from .hearing import Ear, Recorded
    from .stage import Stage
    from .threads import Turn


class Running:
    """The threads that have begun.

    Args:
        ear: says whether the host has answered a question.
        stage: told when it is that something is said; knows when all is over.
        settle: reads all that belongs to a thread.
        play: says or does what the child said or did.
    """

    def __init__(self, ear: Ear, stage: Stage, settle: Callable[[Thread], None], play: Callable[[Event], None]) -> None:
        self._ear = ear
        self._stage = stage
        self._settle = settle
        self._play = play
        self._asked: list[Question] = []  # and not answered to the end
        self._held: dict[Turn, list[Thread]] = {}  # by what they wait for

    def begin(self, thread: Thread) -> None:
        """The host has begun it, and whatever waited for that goes on."""
        thread.taken = True
        self.run([thread, *self._held.pop(thread, ())], thread.time)

    def answered(self, payload: bytes) -> bool:
        """Take the host's answer to a request of the child."""
        for question in self._asked:
            due = next((turn for turn in question.answers if not turn.taken), None)
            if due is None or due.origin is None or not self._ear.accepts(due.origin, payload):
                continue
            due.taken = True
            if due is question.answers[-1]:
                self._asked.remove(question)
            self.run(self._held.pop(due, []), due.time)
            return True
        return False

    def run(self, threads: list[Thread], since: float) -> None:
        """Play threads up to what each waits for next.

        Args:
            threads: those that something of the host sets going.
            since: when it was done, in the recording.
        """
        ready = [thread for thread in threads if self._is_ready(thread)]
        while ready and not self._stage.over:
            thread = min(ready, key=_next_place) if len(ready) > 1 else ready[0]
            step = thread.steps[thread.position][1]
            event = step.event if isinstance(step, Question) else step
            assert isinstance(event, (Data, Mark))
            self._stage.after = max(0.0, event.time - since)
            self._play(event)
            thread.position += 1
            if isinstance(step, Question):
                step.taken = True
                if step.answers:
                    self._asked.append(step)
                ready += [other for other in self._held.pop(step, ()) if self._is_ready(other)]
            if not self._is_ready(thread):
                ready.remove(thread)

    def _is_ready(self, thread: Thread) -> bool:
        """Is something of the child its next step? Else it is over, or is held until something has been done."""
        self._settle(thread)
        while thread.position < len(thread.steps):
            step = thread.steps[thread.position][1]
            if isinstance(step, (Data, Mark)):
                return True
            turn = step.holds(thread)
            if turn is not None:
                self._held.setdefault(turn, []).append(thread)
                return False
            if isinstance(step, Question) and step.asks(thread):
                return True
            thread.position += 1
        return False

    def in_vain(self) -> Iterator[tuple[Recorded, Recorded]]:
        """What began a thread that is held, and what the host did not do, of its own account, for it to go on."""
        for turn, threads in self._held.items():
            cause = turn.missing()
            for thread in threads:
                if cause is not None and cause is not thread and cause.origin and thread.origin:
                    yield thread.origin, cause.origin


def _next_place(thread: Thread) -> int:
    """Where its next step stands in the recording."""
    return thread.steps[thread.position][0]
