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

    # What follows in a thread: an event of the child, or a dependency.
    Step: TypeAlias = "Event | Dependency"


class Dependency:
    """Event that a thread waits for, in most cases a message of the host.

    Attributes:
        origin: the message; None for the start, the end of the input, a signal.
        time: of the event in the recording.
        taken: the event has occurred in the live session.
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
    """Message that the host sent by itself, or the start, end or a signal; and the events that follow from it.

    Attributes:
        number: of the thread, from 0; threads without a message are not counted.
        steps: what follows, in recorded order, each with its position in the recording.
        position: number of steps that are done.
        open: number of its calls without a response, as far as the recording was read.
    """

    __slots__ = ("number", "open", "position", "steps")

    def __init__(self, origin: RecordedRequest | None, time: float, number: int = -1) -> None:
        super().__init__(origin, time)
        self.number = number
        self.steps: list[tuple[int, Step]] = []
        self.position = 0
        self.open = 0

    def missing(self) -> CallChain | None:
        """Return this thread unless it has begun."""
        return None if self.taken else self


class ChildRequest(Dependency):
    """Request of the child. It is done when the child has sent it.

    Attributes:
        event: the event that contains it.
        keys: the ids of the requests in the event.
        threads: the threads that may have sent it, in the order in which they began; the last one sends it.
        answers: the response of the host, in its parts, as far as the recording was read.
    """

    __slots__ = ("answers", "event", "keys", "threads")

    def __init__(self, event: Event, keys: list[bytes], threads: list[CallChain]) -> None:
        super().__init__(None, event.time)
        self.event = event
        self.keys = keys
        self.threads = threads
        self.answers: list[Dependency] = []

    def holds(self, thread: CallChain) -> Dependency | None:
        """Return what blocks this thread: it is not sent before all threads that may have sent it have begun."""
        if self.taken or thread not in self.threads:
            return None
        if thread is not self.threads[-1]:
            return self
        return next((other for other in self.threads if other is not thread and not other.taken), None)

    def missing(self) -> CallChain | None:
        """Return the first thread that may have sent it and has not begun."""
        return next((thread for thread in self.threads if not thread.taken), None)

    def asks(self, thread: CallChain) -> bool:
        """Return True if this thread has to send it now."""
        return not self.taken and bool(self.threads) and thread is self.threads[-1]


_COMPARED = 50  # differences between two messages


class Spoiled:
    """Calls that wait for a recorded message of the host that can no longer come.

    Attributes:
        recorded: the message.
        requests: description of the child's request that it answers; "" for a message that is not a response.
        calls: the requests of the host that wait.
    """

    __slots__ = ("calls", "recorded", "requests")

    def __init__(self, recorded: RecordedRequest, requests: str, calls: list[RecordedRequest]) -> None:
        self.recorded = recorded
        self.requests = requests
        self.calls = calls


class Scheduler:
    """Scheduler of the threads that have begun.

    Args:
        requests: compares responses of the host with the recorded ones.
        actions: receives the recorded time of each event.
        settle: reads all events that belong to a thread; None if all are read.
    """

    def __init__(
        self,
        requests: RequestMatcher,
        actions: ActionBuffer,
        play: Callable[[Event], None],
        settle: Callable[[CallChain], None] | None = None,
    ) -> None:
        self._requests = requests
        self._actions = actions
        self._settle = settle
        self._play = play
        self._asked: list[ChildRequest] = []  # sent, without a complete response
        self._held: dict[Dependency, list[CallChain]] = {}  # threads by what they wait for

    def begin(self, thread: CallChain) -> None:
        """Play a thread that the host has begun, and continue the threads that waited for it."""
        thread.taken = True
        self.run([thread, *self._held.pop(thread, ())], thread.time)

    def answered(self, payload: bytes) -> bool:
        """Accept a response of the host to a request of the child. Return True if it is a recorded one."""
        for question in self._asked:
            due = next((answer for answer in question.answers if not answer.taken), None)
            if due is None or due.origin is None or not self._requests.accepts(due.origin, payload):
                continue
            due.taken = True
            if due is question.answers[-1]:
                self._asked.remove(question)
            self.run(self._held.pop(due, []), due.time)
            return True
        return False

    def resume(self, threads: Iterable[CallChain], upto: int, since: float) -> None:
        """Continue threads that were played up to a position in the recording.

        Args:
            threads: the threads, with all of their steps.
            upto: the position.
            since: recorded time of the host's event that they follow.
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
        self._asked = [item for item in self._asked if any(not answer.taken for answer in item.answers)]
        self.run(list(threads), since)

    def arrived(self, line: int) -> None:
        """Continue the threads that wait for the recorded message of the host on this line, which has been played."""
        for cause in [cause for cause in self._held if cause.origin is not None and cause.origin.line == line]:
            cause.taken = True
            self.run(self._held.pop(cause), cause.time)

    # Messages of the host that can no longer come

    def spoiled(self, live: ClassifiedMessage, asked: Container[bytes]) -> Spoiled | None:
        """End the threads that wait for the recorded message that a live one replaces.

        A response replaces the recorded response to the same request of the child; a response to an unknown request
        replaces the one that threads wait for longest. Any other message replaces one of the same method about the same
        call, run or session.

        Args:
            live: the message, which does not match the recorded one.
            asked: the ids of the requests of the recorded child.

        Returns:
            The recorded message, and the calls that waited for it; None if no thread waits for it.
        """
        if live.kind == "response":
            question = next((question for question in self._asked if live.key in question.keys), None)
            if question is None and (live.key is None or live.key not in asked):
                question = next(iter(self._asked), None)
            return None if question is None else self._without_response(question)
        for cause, threads in self._held.items():
            waiting = [thread for thread in threads if thread.steps[thread.position][1] is cause]
            if not waiting or not isinstance(cause, CallChain) or cause.origin is None:
                continue
            differences = self._differences(cause.origin, live)
            if differences:
                return Spoiled(cause.origin, "", self.drop(waiting))
            if differences is not None:  # the message itself, out of turn
                self.arrived(cause.origin.line)
                return None
        return None

    def passed(self, line: int) -> list[RecordedRequest]:
        """End the threads that wait for the message of the host on this line. Return the calls among them."""
        causes = [cause for cause in self._held if cause.origin is not None and cause.origin.line == line]
        return [call for cause in causes for call in self.drop(self._held[cause])]

    def unanswered(self) -> Iterator[Spoiled]:
        """End the threads that wait for a response of the host. Yield the responses that calls wait for."""
        while self._asked:
            spoiled = self._without_response(self._asked[0])
            if spoiled is not None and spoiled.calls:
                yield spoiled

    def _without_response(self, question: ChildRequest) -> Spoiled | None:
        self._asked.remove(question)
        due = next((answer for answer in question.answers if not answer.taken), None)
        if due is None or due.origin is None:
            return None
        event = question.event
        message = self._requests.dialect.classify(event.payload) if isinstance(event, Data) and not event.raw else None
        requests = describe(message) if message is not None else "a request"
        return Spoiled(due.origin, requests, self.drop(question.threads))

    def _differences(self, recorded: RecordedRequest, live: ClassifiedMessage) -> list[Difference] | None:
        """Return the differences of two messages of one method about the same object; None for any others."""
        dialect = self._requests.dialect
        message = recorded.message(dialect)
        if message.kind != live.kind or message.method != live.method:
            return None
        tables = (dialect.references, dialect.controls)
        named = {pointer for table in tables for pointer in pointers_of(table, live.method)}
        differences = self._requests.matcher.differences(message, live, most=_COMPARED)
        return None if any(difference.pointer in named for difference in differences) else differences

    def drop(self, threads: Iterable[CallChain]) -> list[RecordedRequest]:
        """End threads: play none of their remaining steps. Return the messages that began them."""
        dropped = list(threads)
        ready: list[CallChain] = []
        for thread in dropped:
            rest = thread.steps[thread.position :]
            thread.position = len(thread.steps)
            for cause in [cause for cause, held in self._held.items() if thread in held]:
                self._held[cause].remove(thread)
                if not self._held[cause]:
                    del self._held[cause]
            for _, step in rest:
                if isinstance(step, ChildRequest) and not step.taken:
                    step.threads = [other for other in step.threads if other not in dropped]
                    ready += self._held.pop(step, [])
        self.run(ready, 0.0)
        return [thread.origin for thread in dropped if thread.origin is not None]

    def withdraw(self, line: int) -> bool:
        """End the threads that the message of the host on this line began. Return True if there are any."""
        held = [thread for threads in self._held.values() for thread in threads]
        ended = [thread for thread in held if thread.origin is not None and thread.origin.line == line]
        self.drop(ended)
        self._asked = [item for item in self._asked if any(thread not in ended for thread in item.threads)]
        return bool(ended)

    def untie(self) -> None:
        """Send the requests of the child that wait for calls which have not begun: those did not send them."""
        asking = []
        for thread in [thread for threads in self._held.values() for thread in threads]:
            for _, step in thread.steps[thread.position :]:
                if isinstance(step, ChildRequest):
                    for other in [other for other in step.threads if not other.taken]:
                        step.threads.remove(other)
                        other.steps = [item for item in other.steps if item[1] not in step.answers]
            if isinstance(thread.steps[thread.position][1], ChildRequest):
                asking.append(thread)
        if asking:
            left = {cause: [item for item in threads if item not in asking] for cause, threads in self._held.items()}
            self._held = {cause: threads for cause, threads in left.items() if threads}
            self.run(asking, 0.0)

    def run(self, threads: list[CallChain], since: float) -> None:
        """Play threads up to what each of them waits for next.

        Args:
            threads: those that follow an event of the host.
            since: its time in the recording.
        """
        ready = [thread for thread in threads if self._is_ready(thread)]
        while ready and not self._actions.over:
            thread = min(ready, key=lambda thread: thread.steps[thread.position][0]) if len(ready) > 1 else ready[0]
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
        """Return True if its next step is an event of the child. Otherwise it is complete, or held by a dependency."""
        if self._settle is not None:
            self._settle(thread)
        while thread.position < len(thread.steps):
            step = thread.steps[thread.position][1]
            if isinstance(step, (Data, Mark)):
                return True
            cause = step.holds(thread)
            if cause is not None:
                self._held.setdefault(cause, []).append(thread)
                return False
            if isinstance(step, ChildRequest) and step.asks(thread):
                return True
            thread.position += 1
        return False

    def waiting(self) -> Iterator[tuple[RecordedRequest, RecordedRequest]]:
        """Yield the messages that began the held threads, each with the message of the host that it waits for."""
        for dependency, threads in self._held.items():
            cause = dependency.missing() or dependency
            yield from ((thread.origin, cause.origin) for thread in threads if thread.origin and cause.origin)

    def blocked(self) -> Iterator[tuple[RecordedRequest, RecordedRequest]]:
        """Yield the messages that began threads which wait for another thread, with the message that begins that."""
        for dependency, threads in self._held.items():
            cause = dependency.missing()
            for thread in threads:
                if cause is not None and cause is not thread and cause.origin and thread.origin:
                    yield thread.origin, cause.origin
