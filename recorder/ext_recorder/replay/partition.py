"""Partition of a recording into call threads, for order `any`, and the calls that are open at a position."""

from __future__ import annotations

from itertools import islice

from ext_recorder.cassette.events import Data, Mark, omitted
from ext_recorder.messages.open_calls import OpenCalls
from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_recorder.protocols.fast_id import scan_id

from .request_matcher import recorded_requests
from .threads import CallChain, ChildRequest, Dependency

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator, Sequence

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.protocols.dialect import ClassifiedMessage, Pointers
    from ext_sdk.core.wire.framing import Framing

    from .request_matcher import RecordedRequest, RequestMatcher

# Maximum open calls, the latest ones, to which a request of the child may belong if it does not name its call.
_CANDIDATES = 64


class RecordingPartitioner:
    """Partitioner of a recording into call threads, as it is read. Threads that are complete are not kept.

    Attributes:
        first: what the child did at the start.
        count: number of threads that begin with a message.
        marks: those that begin with the end of the input, a signal, or an omitted message, by name.
        place: the number of host messages, host marks and child events read.
        asked: the ids of the child's requests, as far as the recording was read.
    """

    def __init__(self, requests: RequestMatcher, framing: Framing) -> None:
        dialect = requests.dialect
        self._dialect = dialect
        self._framing = framing
        self._scans_ids = dialect.id_only and dialect.by_id
        self._keepalives = tuple(method.encode() for method in dialect.keepalives)
        self.first = CallChain(None, 0.0)
        self.count = 0
        self.marks: dict[str, list[CallChain]] = {}
        self.place = 0
        self.asked: set[bytes] = set()
        self._last = self.first
        self._changed: list[tuple[int, Event]] = []  # patches of files, which belong to the next event of the child
        self._host_calls: OpenCalls[bytes, CallChain] = OpenCalls()
        self._child_calls: OpenCalls[bytes, ChildRequest] = OpenCalls()
        self._named: dict[bytes, CallChain] = {}  # by a lasting name: the thread whose messages have it
        self._doubts: dict[CallChain, list[ChildRequest]] = {}  # requests that several threads may have sent
        self._cancels: dict[CallChain, list[CallChain]] = {}  # calls, with the messages that cancel them

    def take(self, event: Event, line: int) -> Iterator[CallChain]:
        """Add the next event of the recording. Yield the threads that it begins."""
        if isinstance(event, Data) and event.kind == "in":
            self._take_changes([self._last])
            for item in recorded_requests(event, line, self._framing):
                self.place += 1
                thread = self._take_request(item, event.time)
                if thread is not None:
                    yield thread
            return
        self.place += 1
        if isinstance(event, Mark):
            if event.kind == "files":
                self._changed.append((self.place, event))
                return
            is_omitted = event.kind == "omitted" and omitted(event)[1] == "in"
            if is_omitted or event.kind == "signal" or (event.kind == "eof" and event.value == "in"):
                self._last = CallChain(None, event.time)
                self.marks.setdefault("omitted" if is_omitted else str(event.value), []).append(self._last)
                return
        self._take_output(event)

    # The host

    def _take_request(self, item: RecordedRequest, time: float) -> CallChain | None:
        """Return the thread that a message of the host begins; None if it continues one."""
        kind, key, last, message = self._look(item.payload) if item.is_message else ("other", b"", True, None)
        if kind == "response" and (question := self._child_calls.first(key)):
            # All threads that may have sent the request wait for the response.
            answer = Dependency(item, time)
            question.answers.append(answer)
            for thread in question.threads:
                thread.steps.append((self.place, answer))
                thread.open -= last
            self._last = question.threads[-1]
            if last:
                self._child_calls.end(key)
            return None
        thread = CallChain(item, time, self.count)
        self.count += 1
        # What the child does after a message that has no effect but its response belongs to the message before it.
        is_keepalive = self._keepalives and any(method in item.payload for method in self._keepalives)
        if not is_keepalive or self._dialect.classify(item.payload).method not in self._dialect.keepalives:
            self._last = thread
        if kind == "request":
            self._host_calls.begin(key, thread)
            thread.open += 1
        if message is not None:
            self._relate(thread, message)
        return thread

    def _relate(self, thread: CallChain, message: ClassifiedMessage) -> None:
        """Make the calls that this message controls wait for it; later messages of its session belong to its thread."""
        dialect, method = self._dialect, message.method
        for key in _keys(message, dialect.references):
            if call := self._host_calls.first(key):
                call.steps.append((self.place, thread))
                self._cancels.setdefault(call, []).append(thread)
        held = dialect.unblocks.get(method, ())
        for call in self._busy() if held else ():
            if call.origin is not None and call.origin.message(dialect).method in held:
                call.steps.append((self.place, thread))
        for key in _keys(message, dialect.controls):
            controlled = self._named.get(key)
            if controlled is not None:
                controlled.steps.append((self.place, thread))
        for key in _keys(message, dialect.session_scoped):
            known = self._named.get(key)
            if known is None or not known.open:
                self._named[key] = thread

    # The child

    def is_complete(self, thread: CallChain) -> bool:
        """Return True if all that belongs to this thread is read. In streams with names, only the end is proof."""
        return self._dialect.by_id and not thread.open and thread is not self._last

    def _take_output(self, event: Event) -> None:
        """Add an event of the child to the threads that it may belong to."""
        owner, keys = None, []
        for payload in event.payloads(self._framing) if isinstance(event, Data) and event.kind == "out" else ():
            kind, key, named = self._owner(payload)
            owner = owner or named
            if kind == "request":
                keys.append(key)
        if not keys:
            self._take_changes([owner or self._last])
            (owner or self._last).steps.append((self.place, event))
            return
        threads = [owner] if owner else self._busy() or [self._last]
        self._take_changes(threads)
        question = ChildRequest(event, keys, threads)
        self.asked.update(keys)
        for key in keys:
            self._child_calls.begin(key, question)
        for thread in threads:
            thread.steps.append((self.place, question))
            thread.open += len(keys)
            if len(threads) > 1:
                self._doubts.setdefault(thread, []).append(question)

    def _take_changes(self, threads: Sequence[CallChain]) -> None:
        """Add the changes of files to each thread that what follows them may belong to; they are made once."""
        for thread in threads if self._changed else ():
            thread.steps += self._changed
        self._changed.clear()

    def _busy(self) -> list[CallChain]:
        """Return the threads whose calls are open."""
        latest = islice(reversed(self._host_calls.values()), _CANDIDATES)
        threads = [thread for calls in latest for thread in calls]
        return sorted(threads, key=lambda thread: thread.number)[-_CANDIDATES:]

    def _owner(self, payload: bytes) -> tuple[str, bytes, CallChain | None]:
        """Return the kind of a message of the child, its id, and the thread that it belongs to, if it names that."""
        kind, key, last, message = self._look(payload)
        owner = None
        if kind == "response":
            if not key and message is not None and message.method and self._host_calls:
                key = next(iter(self._host_calls))  # it ends a call but does not name it
            owner = self._host_calls.end(key) if last else self._host_calls.first(key)
            if owner is not None and last:
                owner.open -= 1
                self._end(owner, payload)
        if message is None or self._dialect.by_id:
            return kind, key, owner
        # A stream names its call, a progress notification its run.
        calls = (self._host_calls.first(name) for name in _keys(message, self._dialect.mentions))
        owner = owner or next(filter(None, calls), None)
        names = list(_keys(message, self._dialect.names))
        owner = owner or next((self._named[name] for name in names if name in self._named), None)
        if owner is None and names and kind != "request":
            owner = (self._busy() or [self._last])[-1]  # the child has generated the name
        if owner is not None:
            for name in names:
                self._named.setdefault(name, owner)
        return kind, key, owner

    def _end(self, owner: CallChain, payload: bytes) -> None:
        """Remove what a call that has its response did not wait for: unanswered requests, cancellations."""
        for question in self._doubts.pop(owner, ()):
            if not question.answers and len(question.threads) > 1:
                question.threads.remove(owner)
                owner.open -= 1
        cancels = self._cancels.pop(owner, ())
        if cancels and not self._dialect.is_failure(self._dialect.classify(payload)):
            owner.steps = [step for step in owner.steps if step[1] not in cancels]  # they came too late

    def _look(self, payload: bytes) -> tuple[str, bytes, bool, ClassifiedMessage | None]:
        """Return the kind of a message, its id, whether it ends its call, and the message if it had to be parsed."""
        seen = scan_id(payload) if self._scans_ids else None
        if seen is not None:
            return seen[0], payload[seen[1] : seen[2]], True, None
        message = self._dialect.classify(payload)
        return message.kind, message.key or b"", self._dialect.is_last(message), message


def _keys(message: ClassifiedMessage, table: Pointers) -> Iterator[bytes]:
    """Yield the ids and names at the pointers of a table."""
    for pointer in pointers_of(table, message.method) if table else ():
        value = message.at(pointer)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            yield id_key(value, "")


_PRUNED = 1_000  # threads; if there are more, complete ones are removed


class OpenCallThreads:
    """The open calls of the host and the open requests of the child.

    Args:
        apart: lines of events that are left out of the threads, since they are played elsewhere.

    Attributes:
        threads: the threads that they belong to, in the order of the recording.
        upto: the place in the recording up to which it has been played.
        asked: the ids of the requests of the child.
        lines: the lines of what is left of the threads, except messages that are not responses.
        responses: the messages of the host in it: (line, payload).
    """

    def __init__(self, requests: RequestMatcher, framing: Framing, apart: Container[int]) -> None:
        self._partition = RecordingPartitioner(requests, framing)
        self._apart = apart
        self._lines: dict[int, int] = {}  # by place, from `upto` on
        self.threads: list[CallChain] = []
        self.upto = 0
        self.asked = self._partition.asked
        self.lines: set[int] = set()
        self.responses: set[tuple[int, bytes]] = set()

    def read(
        self,
        reader: Reader,
        line: int,
        left: int,
        is_open: Callable[[RecordedRequest | None], bool],
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
        partition = self._partition
        begun: list[tuple[int, CallChain]] = [(0, partition.first)]
        reached, most = False, _PRUNED
        for event in reader:
            if reader.line < since:
                continue
            before = partition.place
            begun_here = [(partition.place, thread) for thread in partition.take(event, reader.line)]
            if not reached and reader.line >= line:
                reached = True
                self.upto = partition.place - left if left and reader.line == line else before
            begun += [item for item in begun_here if not reached or item[0] <= self.upto]
            if reached:
                self._lines.update(dict.fromkeys(range(before + 1, partition.place + 1), reader.line))
                if reader.line > line and all(partition.is_complete(thread) for _, thread in begun if thread.open):
                    break
            elif len(begun) > most:
                begun = [item for item in begun if not partition.is_complete(item[1])]
                most = 2 * len(begun) + _PRUNED
        if not reached:
            self.upto = partition.place
        self.threads = [thread for _, thread in begun if is_open(thread.origin) or self._asks(thread)]
        for thread in self.threads:
            self._collect(thread, shared=shared)

    def _asks(self, thread: CallChain) -> bool:
        """Return whether a request of the child in it has been played, and has no response yet."""
        asked = [step for place, step in thread.steps if place <= self.upto and isinstance(step, ChildRequest)]
        left = [step for place, step in thread.steps if place > self.upto]
        answers = (answer for question in asked for answer in question.answers if answer in left)
        return any(answer.origin is not None and answer.origin.line not in self._apart for answer in answers)

    def _collect(self, thread: CallChain, *, shared: bool) -> None:
        others: list[Dependency] = []
        for place, step in list(thread.steps):
            if isinstance(step, ChildRequest) and (
                thread not in step.threads or not (shared or all(other in self.threads for other in step.threads))
            ):
                others += [step, *step.answers]  # it is not played with this thread
            if place <= self.upto or isinstance(step, CallChain) or step in others:
                continue
            if self._lines[place] in self._apart:
                thread.steps.remove((place, step))
            self.lines.add(self._lines[place])
            if isinstance(step, Dependency) and step.origin is not None:
                self.responses.add((step.origin.line, step.origin.payload))
