"""Call threads of a recording, for order `any`: steps, dependencies, and the scheduler of threads that have begun."""

from __future__ import annotations

from ext_recorder.cassette.events import Data, Mark
from ext_recorder.protocols.dialect import pointers_of

from .mismatch import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator
    from typing import TypeAlias

    from ext_recorder.cassette.events import Event
    from ext_recorder.messages.matcher import Difference
    from ext_recorder.protocols.dialect import ClassifiedMessage

    from .actions import ActionBuffer
    from .request_matcher import RecordedRequest, RequestMatcher

    # What follows in a thread: something that the child did, or something to wait for.
    Step: TypeAlias = "Event | Dependency"


class Dependency:
    """Something that a thread waits for, most often of the host.

    Attributes:
        origin: the message; None for the start, the end of the input, a signal.
        time: when it was done, in the recording.
        taken: it has been done here.
    """

    __slots__ = ("origin", "taken", "time")

    def __init__(self, origin: RecordedRequest | None, time: float) -> None:
        self.origin = origin
        self.time = time
        self.taken = False

    def holds(self, thread: CallChain) -> Dependency | None:
        """Return the dependency that blocks this thread; None if it is fulfilled."""
        return None if self.taken else self

    def missing(self) -> CallChain | None:
        """Return the thread of the host that has not begun and blocks this; None if this waits for a response."""
        return None


class CallChain(Dependency):
    """One thing that the host did on its own account, and what follows from it.

    Attributes:
        number: which of those with a message it is, from 0.
        steps: what follows, in its order, each with its place in the recording.
        position: how many of the steps are done.
        open: how many of its calls have no answer yet, as far as the recording was read.
    """

    __slots__ = ("number", "open", "position", "steps")

    def __init__(self, origin: RecordedRequest | None, time: float, number: int = -1) -> None:
        super().__init__(origin, time)
        self.number = number
        self.steps: list[tuple[int, Step]] = []
        self.position = 0
        self.open = 0

    def missing(self) -> CallChain | None:
        """See Dependency."""
        return None if self.taken else self


class ChildRequest(Dependency):
    """A request of the child. It is done when the child has asked it.

    Attributes:
        event: what the child says.
        keys: the ids of the requests in it.
        threads: in which it may have been asked, in the order of their beginning; the last one asks.
        answers: the host's answer, in its pieces, as far as the recording was read.
    """

    __slots__ = ("answers", "event", "keys", "threads")

    def __init__(self, event: Event, keys: list[bytes], threads: list[CallChain]) -> None:
        super().__init__(None, event.time)
        self.event = event
        self.keys = keys
        self.threads = threads
        self.answers: list[Dependency] = []

    def holds(self, thread: CallChain) -> Dependency | None:
        """Nothing is asked before all that may have asked it have begun, and these wait for the question."""
        if self.taken or thread not in self.threads:
            return None
        if thread is not self.threads[-1]:
            return self
        return next((other for other in self.threads if other is not thread and not other.taken), None)

    def missing(self) -> CallChain | None:
        """See Turn."""
        return next((thread for thread in self.threads if not thread.taken), None)

    def asks(self, thread: CallChain) -> bool:
        """Is it for this thread to ask it, and not asked yet?"""
        return not self.taken and bool(self.threads) and thread is self.threads[-1]


_COMPARED = 50  # differences between two messages


class Spoiled:
    """Calls that wait for a recorded message of the host which can no longer come.

    Attributes:
        recorded: the message.
        requests: the request of the child that it answers, for people; "" for a message of the host's own accord.
        calls: the requests of the host.
    """

    __slots__ = ("calls", "recorded", "requests")

    def __init__(self, recorded: RecordedRequest, requests: str, calls: list[RecordedRequest]) -> None:
        self.recorded = recorded
        self.requests = requests
        self.calls = calls


class Scheduler:
    """Scheduler of the threads that have begun.

    Args:
        requests: says whether the host has answered a question.
        actions: told when it is that something is said; knows when all is over.
        settle: reads all that belongs to a thread.
        play: says or does what the child said or did.
    """

    def __init__(
        self,
        requests: RequestMatcher,
        actions: ActionBuffer,
        settle: Callable[[CallChain], None],
        play: Callable[[Event], None],
    ) -> None:
        self._requests = requests
        self._actions = actions
        self._settle = settle
        self._play = play
        self._asked: list[ChildRequest] = []  # and not answered to the end
        self._held: dict[Dependency, list[CallChain]] = {}  # by what they wait for

    def begin(self, thread: CallChain) -> None:
        """The host has begun it, and whatever waited for that goes on."""
        thread.taken = True
        self.run([thread, *self._held.pop(thread, ())], thread.time)

    def answered(self, payload: bytes) -> bool:
        """Take the host's answer to a request of the child."""
        for question in self._asked:
            due = next((turn for turn in question.answers if not turn.taken), None)
            if due is None or due.origin is None or not self._requests.accepts(due.origin, payload):
                continue
            due.taken = True
            if due is question.answers[-1]:
                self._asked.remove(question)
            self.run(self._held.pop(due, []), due.time)
            return True
        return False

    def resume(self, threads: Iterable[CallChain], upto: int, since: float) -> None:
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
                    if isinstance(step, Dependency):
                        step.taken = True
                    if isinstance(step, ChildRequest) and step not in self._asked:
                        self._asked.append(step)
        self._asked = [each for each in self._asked if any(not turn.taken for turn in each.answers)]
        self.run(list(threads), since)

    def arrived(self, line: int) -> None:
        """Continue what waits for the recorded message of the host on this line, which has been played."""
        for turn in [each for each in self._held if each.origin is not None and each.origin.line == line]:
            turn.taken = True
            self.run(self._held.pop(turn), turn.time)

    # What can no longer come

    def spoiled(self, live: ClassifiedMessage, asked: Container[bytes]) -> Spoiled | None:
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
            if not waiting or not isinstance(turn, CallChain) or turn.origin is None:
                continue
            found = self._differences(turn.origin, live)
            if found:
                return Spoiled(turn.origin, "", self.drop(waiting))
            if found is not None:  # the message itself, out of turn
                self.arrived(turn.origin.line)
                return None
        return None

    def passed(self, line: int) -> list[RecordedRequest]:
        """End the threads that wait for the message of the host on this line. Return the calls among them."""
        turns = [turn for turn in self._held if turn.origin is not None and turn.origin.line == line]
        return [call for turn in turns for call in self.drop(self._held[turn])]

    def unanswered(self) -> Iterator[Spoiled]:
        """End the threads that wait for a response of the host. Yield the responses that some calls wait for."""
        while self._asked:
            spoiled = self._without_response(self._asked[0])
            if spoiled is not None and spoiled.calls:
                yield spoiled

    def _without_response(self, question: ChildRequest) -> Spoiled | None:
        self._asked.remove(question)
        due = next((turn for turn in question.answers if not turn.taken), None)
        if due is None or due.origin is None:
            return None
        event = question.event
        message = self._requests.dialect.classify(event.payload) if isinstance(event, Data) and not event.raw else None
        requests = describe(message) if message is not None else "a request"
        return Spoiled(due.origin, requests, self.drop(question.threads))

    def _differences(self, recorded: RecordedRequest, live: ClassifiedMessage) -> list[Difference] | None:
        """Return the differences between two messages of one method that concern the same; None for any others."""
        dialect = self._requests.dialect
        message = recorded.message(dialect)
        if message.kind != live.kind or message.method != live.method:
            return None
        tables = (dialect.references, dialect.controls)
        named = {pointer for table in tables for pointer in pointers_of(table, live.method)}
        found = self._requests.matcher.differences(message, live, most=_COMPARED)
        return None if any(each.pointer in named for each in found) else found

    def drop(self, threads: Iterable[CallChain]) -> list[RecordedRequest]:
        """End threads: nothing more of them is played. Return the messages that began them."""
        dropped = list(threads)
        ready: list[CallChain] = []
        for thread in dropped:
            rest = thread.steps[thread.position :]
            thread.position = len(thread.steps)
            for turn in [turn for turn, held in self._held.items() if thread in held]:
                self._held[turn].remove(thread)
                if not self._held[turn]:
                    del self._held[turn]
            for _, step in rest:
                if isinstance(step, ChildRequest) and not step.taken:
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
                if isinstance(step, ChildRequest):
                    for other in [each for each in step.threads if not each.taken]:
                        step.threads.remove(other)
                        other.steps = [each for each in other.steps if each[1] not in step.answers]
            if isinstance(thread.steps[thread.position][1], ChildRequest):
                asking.append(thread)
        if asking:
            left = {turn: [each for each in threads if each not in asking] for turn, threads in self._held.items()}
            self._held = {turn: threads for turn, threads in left.items() if threads}
            self.run(asking, 0.0)

    def run(self, threads: list[CallChain], since: float) -> None:
        """Play threads up to what each waits for next.

        Args:
            threads: those that something of the host sets going.
            since: when it was done, in the recording.
        """
        ready = [thread for thread in threads if self._is_ready(thread)]
        while ready and not self._actions.over:
            thread = min(ready, key=_next_place) if len(ready) > 1 else ready[0]
            step = thread.steps[thread.position][1]
            event = step.event if isinstance(step, ChildRequest) else step
            assert isinstance(event, (Data, Mark))
            self._actions.after = max(0.0, event.time - since)
            self._play(event)
            thread.position += 1
            if isinstance(step, ChildRequest):
                step.taken = True
                if step.answers:
                    self._asked.append(step)
                ready += [other for other in self._held.pop(step, ()) if self._is_ready(other)]
            if not self._is_ready(thread):
                ready.remove(thread)

    def _is_ready(self, thread: CallChain) -> bool:
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
            if isinstance(step, ChildRequest) and step.asks(thread):
                return True
            thread.position += 1
        return False

    def waiting(self) -> Iterator[tuple[RecordedRequest, RecordedRequest]]:
        """Yield the messages that began the held threads, each with the message of the host that it waits for."""
        for turn, threads in self._held.items():
            cause = turn.missing() or turn
            yield from ((each.origin, cause.origin) for each in threads if each.origin and cause.origin)

    def in_vain(self) -> Iterator[tuple[RecordedRequest, RecordedRequest]]:
        """Yield threads that are blocked, with the message of the host that each waits for."""
        for turn, threads in self._held.items():
            cause = turn.missing()
            for thread in threads:
                if cause is not None and cause is not thread and cause.origin and thread.origin:
                    yield thread.origin, cause.origin


def _next_place(thread: CallChain) -> int:
    """Return the recorded position of the next step."""
    return thread.steps[thread.position][0]
