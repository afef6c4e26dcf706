"""Order `any`: each message of the host plays its thread, in whatever order the messages come.

`Upcoming` uses the same index for order `strict`, after a host has left the recorded order.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from ext_recorder.cassette.events import MESSAGE_LIMIT_BYTES, Mark
from ext_recorder.errors import UsageError
from ext_recorder.protocols.fast_id import scan_id

from .mismatch import describe
from .partition import RecordingPartitioner
from .player import LISTED, NEAR, SECOND_CONNECTION, Player
from .request_matcher import recorded_requests
from .threads import CallChain, Scheduler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.reader import Reader
    from ext_sdk.core.wire.framing import Framing

    from .actions import ActionBuffer
    from .request_matcher import RecordedRequest, RequestMatcher
    from .response_writer import ResponseWriter
    from .threads import Spoiled


class CallIndex:
    """Index of the threads that no live message has begun yet, by the text and the value of their first message.

    Args:
        requests: returns keys that are equal for messages of equal value.
        accepts: returns True if a live message is the recorded one.
    """

    def __init__(self, requests: RequestMatcher, accepts: Callable[[RecordedRequest, bytes], bool]) -> None:
        self._requests = requests
        self._accepts = accepts
        self._threads: dict[int, CallChain] = {}  # by number, in the order of the recording
        self._by_text: dict[int, deque[CallChain]] = {}
        self._by_key: dict[str, deque[CallChain]] = {}
        self._keyed = 0  # threads from this number on are not in `_by_key`

    def __iter__(self) -> Iterator[CallChain]:
        return iter(self._threads.values())

    def add(self, thread: CallChain) -> None:
        """Add a thread that begins with a message."""
        self._threads[thread.number] = thread
        assert thread.origin is not None
        self._by_text.setdefault(_text_key(thread.origin.payload), deque()).append(thread)

    def take(self, thread: CallChain) -> None:
        """Remove a thread that a live message has begun."""
        thread.taken = True
        del self._threads[thread.number]
        assert thread.origin is not None
        key = _text_key(thread.origin.payload)
        same = self._by_text[key]
        while same and same[0].taken:
            same.popleft()
        if not same:
            del self._by_text[key]

    def clear(self) -> None:
        """Remove all threads."""
        self._threads.clear()
        self._by_text.clear()
        self._by_key.clear()

    def find_exact(self, payload: bytes) -> CallChain | None:
        """Return the first thread whose message has the same bytes except for its id."""
        for candidate in self._candidates(payload):
            thread = self._first(self._by_text.get(_text_key(candidate)), payload)
            if thread is not None:
                return thread
        return None

    def find_equivalent(self, payload: bytes) -> CallChain | None:
        """Return the first thread whose message matches. The first call parses the messages of all threads."""
        requests = self._requests
        last = next(reversed(self._threads), -1)
        for number in range(self._keyed, last + 1):
            thread = self._threads.get(number)
            if thread is not None and thread.origin is not None and thread.origin.is_message:
                canonical = requests.bindings.canonical(thread.origin.payload)
                key = requests.matcher.key(requests.dialect.classify(canonical))
                self._by_key.setdefault(key, deque()).append(thread)
        self._keyed = max(self._keyed, last + 1)
        for candidate in self._candidates(payload):
            clean, unredacted = requests.as_recorded(candidate), requests.dialect.classify(candidate)
            # A cassette that was recorded without redaction contains the secrets of the live message.
            for message in (clean,) if clean.text == unredacted.text else (clean, unredacted):
                thread = self._first(self._by_key.get(requests.matcher.key(message)), payload)
                if thread is not None:
                    return thread
        return None

    def _first(self, threads: deque[CallChain] | None, payload: bytes) -> CallChain | None:
        while threads and threads[0].taken:
            threads.popleft()
        for thread in threads or ():
            if not thread.taken and thread.origin is not None and self._accepts(thread.origin, payload):
                return thread
        return None

    def _candidates(self, payload: bytes) -> Iterator[bytes]:
        """Yield the message with each placeholder that its paths may have."""
        bindings = self._requests.bindings
        yield bindings.to_placeholders(payload)
        for name, value in self._requests.unbound(payload):
            for placeholder in bindings.placeholders_of(name):
                if bindings.live(placeholder) is not None:
                    continue
                wanted = placeholder.encode()
                if not any(thread.origin is not None and wanted in thread.origin.payload for thread in self):
                    break  # the recording has no further placeholder of this name
                yield bindings.to_placeholders_if(placeholder, value, payload)


def _text_key(payload: bytes) -> int:
    """Return the index key of a message: its bytes without its id."""
    seen = scan_id(payload)
    return hash(payload) if seen is None else hash((payload[: seen[1]], payload[seen[2] :]))


READ_AHEAD = 64  # threads

# Maximum number of threads that are compared by value before the rest of the cassette is read; that takes some 50 ms.
KEYED_EARLY = 2_000


class Upcoming:
    """Index of the next messages of the host, in a window of lines. Each line is read once, even for many misses.

    Args:
        is_apart: returns True for a recorded message that is no longer in the recorded order.
        size: lines in the window.
    """

    def __init__(
        self,
        reader: Reader,
        requests: RequestMatcher,
        framing: Framing,
        is_apart: Callable[[RecordedRequest], bool],
        size: int,
    ) -> None:
        self._reader = reader
        self._events = iter(reader)
        self._framing = framing
        self._size = size
        self._threads: deque[tuple[int, CallChain]] = deque()  # with their lines
        self._index = CallIndex(requests, lambda item, payload: not is_apart(item) and requests.matches(item, payload))
        self._count = 0

    def line_of(self, payload: bytes, since: int) -> int:
        """Return the line of the first message, from line `since` on, that a live message matches; 0 if none does."""
        threads, index = self._threads, self._index
        while self._reader.line < since + self._size and (event := next(self._events, None)) is not None:
            if isinstance(event, Mark) and event.kind == "exit":
                self._events = iter(())  # the child sent no response after it
            elif (line := self._reader.line) >= since:
                for item in recorded_requests(event, line, self._framing):
                    threads.append((line, CallChain(item, event.time, self._count)))
                    index.add(threads[-1][1])
                    self._count += 1
        while threads and threads[0][0] < since:
            index.take(threads.popleft()[1])
        thread = index.find_equivalent(payload)
        return thread.origin.line if thread is not None and thread.origin is not None else 0


class AnyOrderPlayer(Player):
    """Player for order `any`: plays the threads of a cassette in the order in which the host begins them."""

    def __init__(
        self,
        reader: Reader,
        requests: RequestMatcher,
        responses: ResponseWriter,
        actions: ActionBuffer,
        framing: Framing,
    ) -> None:
        super().__init__(requests, responses, actions, framing, str(reader.path))
        self._reader = reader
        self._events: Iterator[Event] = iter(reader)
        self._all_read = False
        self._partition = RecordingPartitioner(requests, framing)
        self._index = CallIndex(requests, requests.accepts)
        self._played = bytearray()  # 1 at the number of each thread that was played
        self._running = Scheduler(requests, actions, self._play, self._settle)
        self._left: list[RecordedRequest] | None = None  # the first that never came, once the session ends
        self._left_count = 0
        self._cut_off: list[CallChain] = []  # begun, and without a response in the recording

    # Reading

    def _read(self) -> bool:
        """Read one more event. Return False at the end of the cassette."""
        event = next(self._events, None)
        if event is None:
            self._all_read = True
            return False
        if event.conn != 1:
            raise UsageError(f"{self._name}:{self._reader.line}: {SECOND_CONNECTION}")
        for thread in self._partition.take(event, self._reader.line):
            if self._left is not None:
                self._leave(thread)
                continue
            self._index.add(thread)
        return True

    def _settle(self, thread: CallChain) -> None:
        """Read all that belongs to this thread."""
        while not self._partition.is_complete(thread) and self._read():
            pass

    def _leave(self, thread: CallChain) -> None:
        self._left_count += 1
        if self._left is not None and len(self._left) < LISTED and thread.origin is not None:
            self._left.append(thread.origin)

    def _leave_all(self) -> list[RecordedRequest]:
        """Return the list of messages that are left, with those that were read so far."""
        if self._left is None:
            self._left = []
            for thread in self._index:
                self._leave(thread)
        return self._left

    def start(self) -> None:
        self._running.begin(self._partition.first)

    def receive_message(self, payload: bytes) -> None:
        dialect = self._requests.dialect
        seen = scan_id(payload) if dialect.id_only else None
        kind = seen[0] if seen else dialect.classify(payload).kind
        if kind == "response" and self._running.answered(payload):
            self._refuse_cut_off()
            return
        thread = self._find(payload)
        if thread is None and len(payload) > MESSAGE_LIMIT_BYTES and self._partition.marks.get("omitted"):
            self._running.begin(self._partition.marks["omitted"].pop(0))
            return
        if thread is None:
            if self._repeats(payload):
                return
            ends = self._ends_session(payload)
            self._miss(payload)
            if ends:
                self._end(0)
            return
        self._begin(thread)
        if not self._actions.over and self._ends_session(payload):
            self._mark("in")

    def receive_junk(self, wire: bytes) -> None:
        thread = self._index.find_exact(wire)
        while thread is None and not self._all_read:
            self._read_on()
            thread = self._index.find_exact(wire)
        if thread is not None:
            self._begin(thread)
        elif not wire.isspace():
            self._miss(wire, is_message=False)

    def spoiled_calls(self, payload: bytes) -> Spoiled | None:
        return self._running.spoiled(self._requests.dialect.classify(payload), self._partition.asked)

    def scheduler_of(self, *, apart: bool) -> Scheduler:
        return self._running

    def untie(self) -> None:
        self._running.untie()

    def was_played(self, thread: CallChain) -> bool:
        return thread.number < len(self._played) and bool(self._played[thread.number])

    def receive_end(self) -> None:
        self._refuse_waiting(self._running)
        self._mark("in")
        if not self._actions.over:
            self._end(0)

    def handle_signal(self, name: str) -> None:
        self._mark(name)
        if not self._actions.over:
            self._end(name)

    def _mark(self, name: str) -> None:
        """Play what follows the end of the input, or a signal. After it, no more messages of the host come."""
        self._leave_all()
        self._index.clear()
        while not self._partition.marks.get(name) and self._read():
            pass
        threads = self._partition.marks.get(name)
        if threads:
            self._running.begin(threads.pop(0))

    def _begin(self, thread: CallChain) -> None:
        """Play a thread that a live message has begun."""
        self._index.take(thread)
        self._played.extend(bytes(max(0, thread.number + 1 - len(self._played))))
        self._played[thread.number] = 1
        self._running.begin(thread)
        if thread.open and self._all_read and thread.origin and thread.origin.line in self._unanswered():
            self._cut_off.append(thread)
        self._refuse_cut_off()

    def _refuse_cut_off(self) -> None:
        """Refuse the calls whose recorded events are all replayed and contain no response."""
        for thread in [thread for thread in self._cut_off if thread.position >= len(thread.steps)]:
            self._cut_off.remove(thread)
            if thread.origin is not None and not self._actions.over:
                self._refuse_unanswered(thread.origin)

    # Which thread

    def _find(self, payload: bytes) -> CallChain | None:
        """Return the first thread that this message begins; read on until there is one."""
        while True:
            thread = self._index.find_exact(payload)
            # Keys are slow to make: they are used early while there are few threads, else once all is read.
            if thread is None and (self._all_read or self._partition.count <= KEYED_EARLY):
                thread = self._index.find_equivalent(payload)
            if thread is not None or self._all_read:
                return thread
            self._read_on()

    def _read_on(self) -> None:
        """Double the number of threads that were read, so that searches take no longer than reading."""
        upto = self._partition.count * 2 + READ_AHEAD
        while self._partition.count < upto and self._read():
            pass

    def _end(self, status: int | str) -> None:
        """Report the calls without a response, too."""
        for thread, cause in islice(self._running.blocked(), LISTED):
            self._report(f"{self._located(thread)}: what follows waits for {self._located(cause)}")
        # A part of the recording is enough, but a session that played none of it tested nothing.
        self._all_is_due = not any(self._played)
        super()._end(status)

    def _located(self, item: RecordedRequest) -> str:
        return f"{self._name}:{item.line}: {describe(item.message(self._requests.dialect))}"

    def _never_played(self) -> tuple[list[RecordedRequest], int]:
        left = self._leave_all()
        while self._read():
            pass
        return left, self._left_count

    def _history(self) -> Iterator[tuple[RecordedRequest, bool, bool]]:
        with self._reader.again() as reader:
            partition = RecordingPartitioner(self._requests, self._framing)
            for event in reader:
                for thread in partition.take(event, reader.line):
                    if thread.origin is not None:
                        yield thread.origin, self.was_played(thread), thread.number < NEAR
