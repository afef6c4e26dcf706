"""Threads that have begun: the next one to play, and what the others wait for.

Order `any` plays all threads by this; order `strict` those of the calls that are open at a miss.
"""

from __future__ import annotations

from ext_sdk.protocols.dialect import pointers_of

from .cassette.events import Data, Mark
from .misses import describe
from .threads import Question, Thread, Turn

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    from ext_sdk.protocols.dialect import Classified

    from .cassette.events import Event
    from .hearing import Ear, Recorded
    from .matching import Difference
    from .stage import Stage

_COMPARED = 50  # differences between two messages


class Spoiled:
    """Calls that wait for a recorded message of the host which can no longer come.

    Attributes:
        recorded: the message.
        requests: the request of the child that it answers, for people; "" for a message of the host's own accord.
        calls: the requests of the host.
    """

    __slots__ = ("calls", "recorded", "requests")

    def __init__(self, recorded: Recorded, requests: str, calls: list[Recorded]) -> None:
        self.recorded = recorded
        self.requests = requests
        self.calls = calls


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

    def resume(self, threads: Iterable[Thread], upto: int, since: float) -> None:
        """Continue threads that were played to a place in the recording.

        Args:
            threads: the threads, with all of their steps.
            upto: the place.
            since: when the host did what sets them going, in the recording.
        """
        for thread in threads:
            thread.taken = True
            for place, step in thread.steps:
                if place <= upto:
                    thread.position += 1
                    if isinstance(step, Turn):
                        step.taken = True
                    if isinstance(step, Question) and step not in self._asked:
                        self._asked.append(step)
        self._asked = [each for each in self._asked if any(not turn.taken for turn in each.answers)]
        self.run(list(threads), since)

    def arrived(self, line: int) -> None:
        """Continue what waits for the recorded message of the host on this line, which has been played."""
        for turn in [each for each in self._held if each.origin is not None and each.origin.line == line]:
            turn.taken = True
            self.run(self._held.pop(turn), turn.time)

    # What can no longer come

    def spoiled(self, live: Classified, asked: Container[bytes]) -> Spoiled | None:
        """End the threads that wait for the recorded message whose place a live one takes.

        A response takes the place of the recorded response to the same request of the child; one to an unknown
        request takes that of the response that is waited for longest. A message of the host's own accord takes the
        place of one of its method that concerns the same call, run or session.

        Args:
            live: the message, which is not the recorded one.
            asked: the ids of the requests of the recorded child.

        Returns:
            The recorded message, and the calls that waited for it; None if no thread waits for it.
        """
        if live.kind == "response":
            question = next((each for each in self._asked if live.key in each.keys), None)
            if question is None and (live.key is None or live.key not in asked):
                question = next(iter(self._asked), None)
            return None if question is None else self._without_response(question)
        for turn, threads in self._held.items():
            waiting = [thread for thread in threads if thread.steps[thread.position][1] is turn]
            if not waiting or not isinstance(turn, Thread) or turn.origin is None:
                continue
            found = self._differences(turn.origin, live)
            if found:
                return Spoiled(turn.origin, "", self.drop(waiting))
            if found is not None:  # the message itself, out of turn
                self.arrived(turn.origin.line)
                return None
        return None

    def passed(self, line: int) -> list[Recorded]:
        """End the threads that wait for the message of the host on this line. Return the calls among them."""
        turns = [turn for turn in self._held if turn.origin is not None and turn.origin.line == line]
        return [call for turn in turns for call in self.drop(self._held[turn])]

    def unanswered(self) -> Iterator[Spoiled]:
        """End the threads that wait for a response of the host. Yield the responses that some calls wait for."""
        while self._asked:
            spoiled = self._without_response(self._asked[0])
            if spoiled is not None and spoiled.calls:
                yield spoiled

    def _without_response(self, question: Question) -> Spoiled | None:
        self._asked.remove(question)
        due = next((turn for turn in question.answers if not turn.taken), None)
        if due is None or due.origin is None:
            return None
        event = question.event
        message = self._ear.dialect.classify(event.payload) if isinstance(event, Data) and not event.raw else None
        requests = describe(message) if message is not None else "a request"
        return Spoiled(due.origin, requests, self.drop(question.threads))

    def _differences(self, recorded: Recorded, live: Classified) -> list[Difference] | None:
        """Return the differences between two messages of one method that concern the same; None for any others."""
        dialect = self._ear.dialect
        message = recorded.message(dialect)
        if message.kind != live.kind or message.method != live.method:
            return None
        tables = (dialect.references, dialect.steers)
        named = {pointer for table in tables for pointer in pointers_of(table, live.method)}
        found = self._ear.matcher.differences(message, live, most=_COMPARED)
        return None if any(each.pointer in named for each in found) else found

    def drop(self, threads: Iterable[Thread]) -> list[Recorded]:
        """End threads: nothing more of them is played. Return the messages that began them."""
        dropped = list(threads)
        ready: list[Thread] = []
        for thread in dropped:
            rest = thread.steps[thread.position :]
            thread.position = len(thread.steps)
            for turn in [turn for turn, held in self._held.items() if thread in held]:
                self._held[turn].remove(thread)
                if not self._held[turn]:
                    del self._held[turn]
            for _, step in rest:
                if isinstance(step, Question) and not step.taken:
                    step.threads = [each for each in step.threads if each not in dropped]
                    ready += self._held.pop(step, [])
        self.run(ready, 0.0)
        return [thread.origin for thread in dropped if thread.origin is not None]

    def withdraw(self, line: int) -> bool:
        """End the threads that the message of the host on this line began. Return whether there is one."""
        held = [thread for threads in self._held.values() for thread in threads]
        found = [thread for thread in held if thread.origin is not None and thread.origin.line == line]
        self.drop(found)
        self._asked = [each for each in self._asked if any(thread not in found for thread in each.threads)]
        return bool(found)

    def untie(self) -> None:
        """Send the requests of the child that wait for calls which have not begun: those did not send them."""
        asking = []
        for thread in [thread for threads in self._held.values() for thread in threads]:
            for _, step in thread.steps[thread.position :]:
                if isinstance(step, Question):
                    for other in [each for each in step.threads if not each.taken]:
                        step.threads.remove(other)
                        other.steps = [each for each in other.steps if each[1] not in step.answers]
            if isinstance(thread.steps[thread.position][1], Question):
                asking.append(thread)
        if asking:
            left = {turn: [each for each in threads if each not in asking] for turn, threads in self._held.items()}
            self._held = {turn: threads for turn, threads in left.items() if threads}
            self.run(asking, 0.0)

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

    def waiting(self) -> Iterator[tuple[Recorded, Recorded]]:
        """Yield the messages that began the held threads, each with the message of the host that it waits for."""
        for turn, threads in self._held.items():
            cause = turn.missing() or turn
            yield from ((each.origin, cause.origin) for each in threads if each.origin and cause.origin)

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
