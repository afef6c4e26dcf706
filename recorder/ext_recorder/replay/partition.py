"""Partition of a recording into call threads, for order `any`, and the calls that are open at a position."""

from __future__ import annotations

from itertools import islice

from ext_recorder.cassette.events import Data
from ext_recorder.messages.call_tracker import OpenCalls
from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_recorder.protocols.fast_id import scan_id

from .threads import CallChain, ChildRequest, Dependency

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.protocols.dialect import ClassifiedMessage, Pointers
    from ext_sdk.core.wire.framing import Framing

    from .request_matcher import RecordedRequest, RequestMatcher

    CutUp = Callable[["RecordingPartitioner", Event, int], Iterator[CallChain]]

# So many open calls, the latest, are thought of when a request of the child says nothing of where it belongs.
_THOUGHT_OF = 64


class RecordingPartitioner:
    """Cuts a recording into threads, as it is read. Keeps those that something may still come to, and no other.

    Attributes:
        first: what the child did at the start.
        count: how many threads begin with a message.
        marks: those that begin with the end of the input, or with a signal, by its name.
        place: the number of host messages, host marks and child events read.
        asked: the ids of the child's requests, as far as the recording was read.
    """

    def __init__(self, requests: RequestMatcher, framing: Framing) -> None:
        dialect = requests.dialect
        self._dialect = dialect
        self._framing = framing
        self._glances = dialect.id_only and dialect.by_id
        self.first = CallChain(None, 0.0)
        self.count = 0
        self.marks: dict[str, list[CallChain]] = {}
        self.place = 0
        self.asked: set[bytes] = set()
        self._last = self.first
        self._host_calls: OpenCalls[bytes, CallChain] = OpenCalls()
        self._child_calls: OpenCalls[bytes, ChildRequest] = OpenCalls()
        self._named: dict[bytes, CallChain] = {}  # by a lasting name: whose answer or stream speaks of it
        self._doubts: dict[CallChain, list[ChildRequest]] = {}  # of which it is not clear who asks
        self._cancels: dict[CallChain, list[CallChain]] = {}  # calls, and by what the host took them back

    # The host

    def heard(self, item: RecordedRequest, time: float) -> CallChain | None:
        """Add a message of the host. Return the thread that it begins; None if it continues one."""
        self.place += 1
        kind, key, last, message = self._look(item.payload) if item.is_message else ("other", b"", True, None)
        if kind == "response" and (asked := self._child_calls.first(key)):
            self._answer(asked, Dependency(item, time), last=last)
            if last:
                self._child_calls.end(key)
            return None
        thread = CallChain(item, time, self.count)
        self.count += 1
        if not self._is_aside(item.payload):
            self._last = thread
        if kind == "request":
            self._host_calls.begin(key, thread)
            thread.open += 1
        if message is not None:
            self._concern(thread, message)
        return thread

    def _is_aside(self, payload: bytes) -> bool:
        """Return True if the message has no effect but its response."""
        keepalives = self._dialect.keepalives
        return (
            any(method.encode() in payload for method in keepalives)
            and self._dialect.classify(payload).method in keepalives
        )

    def marked(self, name: str, time: float) -> None:
        """The end of the host's input, or a signal."""
        self.place += 1
        self._last = CallChain(None, time)
        self.marks.setdefault(name, []).append(self._last)

    def _answer(self, question: ChildRequest, answer: Dependency, *, last: bool) -> None:
        """All that may have asked wait for the answer."""
        question.answers.append(answer)
        for thread in question.threads:
            thread.steps.append((self.place, answer))
            if last:
                thread.open -= 1
        self._last = question.threads[-1]

    def _concern(self, thread: CallChain, message: ClassifiedMessage) -> None:
        """Let the calls that this message controls wait for it; later messages of its session belong to its thread."""
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
            steered = self._named.get(key)
            if steered is not None:
                steered.steps.append((self.place, thread))
        for key in _keys(message, dialect.session_scoped):
            known = self._named.get(key)
            if known is None or not known.open:
                self._named[key] = thread

    # The child

    def said(self, event: Event) -> None:
        """Something of the child."""
        self.place += 1
        owner, asked = None, []
        if isinstance(event, Data) and event.kind == "out":
            for payload in event.payloads(self._framing):
                kind, key, found = self._owner(payload)
                owner = owner or found
                if kind == "request":
                    asked.append(key)
        if asked:
            self._ask(event, asked, [owner] if owner else self._busy() or [self._last])
        else:
            (owner or self._last).steps.append((self.place, event))

    def is_complete(self, thread: CallChain) -> bool:
        """Is all that belongs to this thread read? Where streams name what they belong to, only the end tells."""
        return self._dialect.by_id and not thread.open and thread is not self._last

    def _ask(self, event: Event, keys: list[bytes], threads: list[CallChain]) -> None:
        question = ChildRequest(event, keys, threads)
        self.asked.update(keys)
        for key in keys:
            self._child_calls.begin(key, question)
        for thread in threads:
            thread.steps.append((self.place, question))
            thread.open += len(keys)
            if len(threads) > 1:
                self._doubts.setdefault(thread, []).append(question)

    def _busy(self) -> list[CallChain]:
        """The threads whose calls are open."""
        latest = islice(reversed(self._host_calls.values()), _THOUGHT_OF)
        found = [thread for threads in latest for thread in threads]
        return sorted(found, key=_number)[-_THOUGHT_OF:]

    def _owner(self, payload: bytes) -> tuple[str, bytes, CallChain | None]:
        """The kind of a message of the child, its id, and the thread that it belongs to, if that shows."""
        kind, key, last, message = self._look(payload)
        owner = None
        if kind == "response":
            owner = self._answered(key, last, message, payload)
        if message is not None and not self._dialect.by_id:
            owner = self._named_owner(message, owner)
        return kind, key, owner

    def _answered(self, key: bytes, last: bool, message: ClassifiedMessage | None, payload: bytes) -> CallChain | None:
        """The thread of the call that this answers."""
        if not key and message is not None and message.method and self._host_calls:
            key = next(iter(self._host_calls))  # it ends a call without a word about which
        if not last:
            return self._host_calls.first(key)
        owner = self._host_calls.end(key)
        if owner is not None:
            owner.open -= 1
            self._end(owner, payload)
        return owner

    def _end(self, owner: CallChain, payload: bytes) -> None:
        """Its call has got its answer: it has not waited for what is asked and not answered yet."""
        for question in self._doubts.pop(owner, ()):
            if not question.answers and len(question.threads) > 1:
                question.threads.remove(owner)
                owner.open -= 1
        cancels = self._cancels.pop(owner, ())
        if cancels and not self._dialect.is_failure(self._dialect.classify(payload)):
            owner.steps = [each for each in owner.steps if each[1] not in cancels]  # they came too late

    def _named_owner(self, message: ClassifiedMessage, owner: CallChain | None) -> CallChain | None:
        """The same where more than ids may tell: a stream names its call, a progress its run."""
        calls = (self._host_calls.first(key) for key in _keys(message, self._dialect.mentions))
        owner = owner or next(filter(None, calls), None)
        names = list(_keys(message, self._dialect.names))
        owner = owner or next((self._named[name] for name in names if name in self._named), None)
        if owner is None and names and message.kind != "request":
            owner = (self._busy() or [self._last])[-1]  # it has made up a name for what it does
        if owner is not None:
            for name in names:
                self._named.setdefault(name, owner)
        return owner

    def _look(self, payload: bytes) -> tuple[str, bytes, bool, ClassifiedMessage | None]:
        """The kind of a message, its id, whether it ends its call, and the message, where it had to be read."""
        seen = scan_id(payload) if self._glances else None
        if seen is not None:
            return seen[0], payload[seen[1] : seen[2]], True, None
        message = self._dialect.classify(payload)
        return message.kind, message.key or b"", self._dialect.is_last(message), message


def _number(thread: CallChain) -> int:
    return thread.number


def _keys(message: ClassifiedMessage, table: Pointers) -> Iterator[bytes]:
    """The ids and names that stand where a table says."""
    for pointer in pointers_of(table, message.method) if table else ():
        value = message.at(pointer)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            yield id_key(value, "")


_PRUNED = 1_000  # threads; when there are more, those that are over are removed


class OpenCallThreads:
    """The open calls of the host and the open requests of the child.

    Args:
        requests, framing: see Player.
        cut_up: cuts an event into the threads that it begins.
        apart: lines of events that are left out of the threads, since they are played elsewhere.

    Attributes:
        threads: the threads that they belong to, in the order of the recording.
        upto: the place in the recording up to which it has been played.
        asked: the ids of the requests of the child.
        lines: the lines of what is left of the threads, but for messages of the host's own accord.
        responses: the messages of the host in it: (line, payload).
    """

    def __init__(self, requests: RequestMatcher, framing: Framing, cut_up: CutUp, apart: Container[int]) -> None:
        self._partition = RecordingPartitioner(requests, framing)
        self._cut_up = cut_up
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
            found = [(partition.place, thread) for thread in self._cut_up(partition, event, reader.line)]
            if not reached and reader.line >= line:
                reached = True
                self.upto = partition.place - left if left and reader.line == line else before
            begun += [each for each in found if not reached or each[0] <= self.upto]
            if reached:
                self._lines.update(dict.fromkeys(range(before + 1, partition.place + 1), reader.line))
                if reader.line > line and self._is_all_read([thread for _, thread in begun]):
                    break
            elif len(begun) > most:
                begun = [each for each in begun if not partition.is_complete(each[1])]
                most = 2 * len(begun) + _PRUNED
        if not reached:
            self.upto = partition.place
        self.threads = [thread for _, thread in begun if is_open(thread.origin) or self._asks(thread)]
        for thread in self.threads:
            self._collect(thread, shared=shared)

    def _is_all_read(self, begun: list[CallChain]) -> bool:
        return all(self._partition.is_complete(thread) for thread in begun if thread.open)

    def _asks(self, thread: CallChain) -> bool:
        """Return whether a request of the child in it has been played, and has no response yet."""
        asked = [step for place, step in thread.steps if place <= self.upto and isinstance(step, ChildRequest)]
        left = [step for place, step in thread.steps if place > self.upto]
        answers = (answer for question in asked for answer in question.answers if answer in left)
        return any(answer.origin is not None and answer.origin.line not in self._apart for answer in answers)

    def _collect(self, thread: CallChain, *, shared: bool) -> None:
        others: list[Dependency] = []
        for place, step in list(thread.steps):
            if isinstance(step, ChildRequest) and not self._is_of(step, thread, shared=shared):
                others += [step, *step.answers]
            if place <= self.upto or isinstance(step, CallChain) or step in others:
                continue
            if self._lines[place] in self._apart:
                thread.steps.remove((place, step))
            self.lines.add(self._lines[place])
            if isinstance(step, Dependency) and step.origin is not None:
                self.responses.add((step.origin.line, step.origin.payload))

    def _is_of(self, question: ChildRequest, thread: CallChain, *, shared: bool) -> bool:
        """Return whether a request of the child is played with this thread."""
        return thread in question.threads and (shared or all(each in self.threads for each in question.threads))
