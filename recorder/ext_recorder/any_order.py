"""Order `any`: the host may do what it did in another order, and need not do all of it.

Threads
-------
The recording is cut into threads. Each thing that the host did on its own account begins one: a request, a
notification, bytes that are no message, the end of its input, a signal. To a thread belong, in their recorded order,

- the answer to its request, wherever that stands in the recording: it depends on its own request, not on what other
  calls happen to stand between;
- what names that call, or the run or session that it is about;
- whatever else the child did after the thread's last event of the host and before the next event of the host in the
  recording: notifications, stderr, its exit. No field tells whose they are, and what came last, pings aside, is the
  likeliest cause;
- requests of the child, and the host's answers. What follows an answer goes on in the thread, so the answer of a call
  still waits for what the child waited for.

Whose is a request of the child that names nothing? A call that was answered before the child got what it had asked for
has not waited for it: so it is asked in the one call that was open then and was not answered so soon. Where that leaves
several, it is asked once all of them have begun, and all of them wait for its answer: from the question to the answer
they play as one, in recorded order.

A thread also waits for what the host said about it later on: that it takes the call back, ends the run, approves of
what it was asked (the dialect names the places). Only an answer that came although it was no longer wanted does not
wait for that.

What the child said before the host said anything begins at the start. Within a thread the rule of `player` holds: an
event of the child is released once the events of the host before it, in the thread, have arrived. What one message of
the host releases in several threads comes in recorded order.

A live message takes the first thread, in recorded order, that it matches and that was not taken before; when all of
them were, it is used up. Threads are looked up by the message without its id, then by a spelling that is the same for
all messages that match, so a play costs the same however long the cassette is.

The cassette is read as far as it takes to find a message, and what was played is let go: a host that keeps to the
recorded order more or less needs no more memory than in order `strict`. One that begins at the end needs all of it.
"""

from __future__ import annotations

from itertools import islice

from ext_sdk.protocols.glance import glance

from .cassette.events import MESSAGE_LIMIT_BYTES
from .cutter import Cutter
from .errors import UsageError
from .free import FreeThreads
from .misses import describe
from .player import LISTED, NEAR, SECOND_CONNECTION, Player
from .running import Running
from .unanswered import unanswered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_sdk.core.wire.framing import Framing

    from .cassette.events import Event
    from .cassette.reader import Reader
    from .hearing import Ear, Recorded
    from .running import Spoiled
    from .stage import Stage
    from .threads import Thread
    from .voice import Voice

READ_AHEAD = 64  # threads
# So many threads are looked at closely before the rest of the cassette is read; it takes some 50 ms.
KEYED_EARLY = 2_000


class AnyOrderPlayer(Player):
    """Plays the threads of a cassette in the order in which the host begins them.

    Args:
        reader: the cassette, at its start.
        ear, voice, stage, framing: see Player.
    """

    def __init__(self, reader: Reader, ear: Ear, voice: Voice, stage: Stage, framing: Framing) -> None:
        super().__init__(ear, voice, stage, framing, str(reader.path))
        self._reader = reader
        self._events: Iterator[Event] = iter(reader)
        self._all_read = False
        self._cut = Cutter(ear, framing)
        self._free = FreeThreads(ear, ear.accepts)
        self._played = bytearray()  # by number: those that were taken
        self._running = Running(ear, stage, self._settle, self._play)
        self._left: list[Recorded] | None = None  # once nothing will be looked up any more: the first that never came
        self._left_count = 0
        self._cut_off: list[Thread] = []  # begun, and without an answer in the recording
        self._unanswered: frozenset[int] | None = None  # lines of such requests, once they were looked for

    # Reading

    def _read(self) -> bool:
        """Read one more event. Returns whether there was one."""
        event = next(self._events, None)
        if event is None:
            self._all_read = True
            return False
        if event.conn != 1:
            raise UsageError(f"{self._name}:{self._reader.line}: {SECOND_CONNECTION}")
        for thread in self._cut_up(self._cut, event, self._reader.line):
            if self._left is not None:
                self._leave(thread)
                continue
            self._free.add(thread)
        return True

    def _settle(self, thread: Thread) -> None:
        """Read all that belongs to this thread."""
        while not self._cut.is_settled(thread) and self._read():
            pass

    def _leave(self, thread: Thread) -> None:
        self._left_count += 1
        if self._left is not None and len(self._left) < LISTED and thread.origin is not None:
            self._left.append(thread.origin)

    def start(self) -> None:
        self._running.begin(self._cut.first)

    def _hear(self, payload: bytes) -> None:
        if self._kind(payload) == "response" and self._running.answered(payload):
            self._refuse_cut_off()
            return
        thread = self._find(payload)
        if thread is None and len(payload) > MESSAGE_LIMIT_BYTES and self._cut.marks.get("omitted"):
            self._running.begin(self._cut.marks["omitted"].pop(0))
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
        if not self._stage.over and self._ends_session(payload):
            self._mark("in")

    def _kind(self, payload: bytes) -> str:
        seen = glance(payload) if self._ear.dialect.plain else None
        return seen[0] if seen else self._ear.dialect.classify(payload).kind

    def _hear_junk(self, wire: bytes) -> None:
        thread = self._free.by_text(wire)
        while thread is None and not self._all_read:
            self._read_on()
            thread = self._free.by_text(wire)
        if thread is not None:
            self._begin(thread)
        elif not wire.isspace():
            self._miss(wire, is_message=False)

    def _spoiled(self, payload: bytes) -> Spoiled | None:
        return self._running.spoiled(self._ear.dialect.classify(payload), self._cut.asked)

    def _in_any_order(self) -> Running:
        return self._running

    def _untie(self) -> None:
        self._running.untie()

    def _was_played(self, thread: Thread) -> bool:
        return thread.number < len(self._played) and bool(self._played[thread.number])

    def _running_again(self, *, withdraw: bool) -> Running:
        return self._running

    def _hear_eof(self) -> None:
        self._refuse_waiting(self._running)
        self._mark("in")
        if not self._stage.over:
            self._end(0)

    def _hear_signal(self, name: str) -> None:
        self._mark(name)
        if not self._stage.over:
            self._end(name)

    def _mark(self, name: str) -> None:
        """The end of the input, or a signal: the session is as good as over, and nothing is looked up any more."""
        if self._left is None:
            self._left = []
            for thread in self._free:
                self._leave(thread)
            self._free.clear()
        while not self._cut.marks.get(name) and self._read():
            pass
        threads = self._cut.marks.get(name)
        if threads:
            self._running.begin(threads.pop(0))

    def _begin(self, thread: Thread) -> None:
        """A live message has begun this thread: it is no longer free."""
        self._free.take(thread)
        self._played.extend(bytes(max(0, thread.number + 1 - len(self._played))))
        self._played[thread.number] = 1
        self._running.begin(thread)
        if (
            thread.open
            and self._all_read
            and thread.origin is not None
            and thread.origin.line in self._unanswered_lines()
        ):
            self._cut_off.append(thread)
        self._refuse_cut_off()

    def _unanswered_lines(self) -> frozenset[int]:
        if self._unanswered is None:
            with self._reader.again() as reader:
                found = unanswered(reader, self._ear.dialect, self._framing)
            self._unanswered = frozenset(item.line for item in found)
        return self._unanswered

    def _refuse_cut_off(self) -> None:
        """Refuse the calls whose recorded events have all been played, without an answer among them."""
        for thread in [each for each in self._cut_off if each.position >= len(each.steps)]:
            self._cut_off.remove(thread)
            if thread.origin is not None and not self._stage.over:
                self._refuse_unanswered(thread.origin)

    # Which thread

    def _find(self, payload: bytes) -> Thread | None:
        """The first free thread that this message begins."""
        while True:
            thread = self._free.by_text(payload)
            # Keys are dear: they are asked early while there are few, else when there is nothing more to read.
            if thread is None and (self._all_read or self._cut.count <= KEYED_EARLY):
                thread = self._free.by_meaning(payload)
            if thread is not None or self._all_read:
                return thread
            self._read_on()

    def _read_on(self) -> None:
        """Read as much again as was read, so that looking for something costs no more than reading."""
        upto = self._cut.count * 2 + READ_AHEAD
        while self._cut.count < upto and self._read():
            pass

    def _end(self, status: int | str) -> None:
        """Also what some call waited for in vain."""
        for thread, cause in islice(self._running.in_vain(), LISTED):
            self._tell(f"{self._spelled(thread)}: what follows waits for {self._spelled(cause)}")
        # A part of the recording is enough, but a session that sent none of it tested nothing.
        self._all_is_due = not any(self._played)
        super()._end(status)

    def _spelled(self, item: Recorded) -> str:
        return f"{self._name}:{item.line}: {describe(item.message(self._ear.dialect))}"

    def _never_played(self) -> tuple[list[Recorded], int]:
        if self._left is None:
            self._left = []
            for thread in self._free:
                self._leave(thread)
        while self._read():
            pass
        return self._left, self._left_count

    def _history(self) -> Iterator[tuple[Recorded, bool, bool]]:
        with self._reader.again() as reader:
            cut = Cutter(self._ear, self._framing)
            for event in reader:
                for thread in self._cut_up(cut, event, reader.line):
                    if thread.origin is not None:
                        yield thread.origin, self._was_played(thread), thread.number < NEAR
