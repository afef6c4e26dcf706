"""Order `strict`: the host repeats what it did, message by message.

The cassette is read while it is played, one event ahead, so neither start-up time nor memory depend on its length.

A message out of turn is a miss. After a miss, no open call waits for the recorded order: each continues by itself, as
in order `any`, since its host may send nothing else before the response. The session continues at the next live message
that is recorded further on, so that one difference does not make all following messages misses; a message that ends the
session (`Dialect.final`) continues there at once. Skipped messages count as never played, and the session as different.
"""

from __future__ import annotations

from itertools import chain

from ext_recorder.cassette.events import MESSAGE_LIMIT_BYTES, Data, Mark, omitted
from ext_recorder.cassette.fast_parser import IN, OUT
from ext_recorder.errors import UsageError
from ext_recorder.protocols.fast_id import is_simple_id, scan_id
from ext_recorder.replay.mismatch import describe, not_sent
from ext_recorder.replay.player import LISTED, MUCH_BYTES, NEAR, SECOND_CONNECTION, Divergence, Player
from ext_recorder.replay.request_matcher import RecordedRequest, RequestMatcher, recorded_requests
from ext_recorder.replay.response_writer import ResponseWriter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.fast_parser import Block
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.replay.actions import ActionBuffer
    from ext_recorder.replay.any_order import Upcoming
    from ext_recorder.replay.partition import OpenCallThreads
    from ext_recorder.replay.threads import CallChain, Scheduler, Spoiled
    from ext_sdk.core.wire.framing import Framing

    Exchange: TypeAlias = tuple[bytes, bytes, bytes, bytes, bytes, bytes]

_CONTINUED = "the host continued after it"


class StrictPlayer(Player):
    """Player for order `strict`.

    Args:
        reader: the cassette, at its start.
    """

    _is_coupled = False  # events wait for other connections, see `may_play`

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
        self._kept: Event | None = None  # was read, and comes next
        self._due: list[RecordedRequest] = []  # messages of the host that are next, the first one last
        self._mark: Mark | None = None  # or the end of the input, signal or omitted message that is next
        self._last: RecordedRequest | None = None  # the message of the host that was accepted last
        self._child_ended = False
        self.played_to = 0  # the line of the last message of either side that was played
        self._time = 0.0  # of the last event of the host, in the recording
        self._lost = False  # the last message of the host was a miss
        self._skipped: list[RecordedRequest] = []  # messages of the host that are left out
        self._apart: Scheduler | None = None  # plays the calls that no longer wait for the recorded order
        self._apart_calls: set[int] = set()  # their lines
        self._apart_at = (0, 0, False)  # the position in the recording at the last search for them
        self._apart_lines: set[int] = set()  # lines of events that belong to them
        self._apart_responses: set[tuple[int, bytes]] = set()  # messages of the host among these, (line, payload)
        self._asks: bool | None = None  # see _child_asks
        self._asked: set[bytes] = set()  # ids of the recorded child's requests, as far as they were needed
        self._upcoming: Upcoming | None = None  # set by the first miss
        self._exchanges = None if self._is_coupled else exchanges(requests, responses, actions, framing)

    def start(self) -> None:
        self._release()

    # Exchanges, which are played without events

    def _receive(self, data: bytes) -> None:
        pairs = self._exchanges
        if pairs is None:
            super()._receive(data)
            return
        at = 0
        while at < len(data):
            if pairs.at >= 0 or self._enter(pairs):
                at = pairs.play(data, at)
                if at == len(data):
                    return
                self._leave()
            end = data.find(b"\n", at) + 1 or len(data)
            try:
                super()._receive(data[at:end])
            except Divergence:
                self._decoder.receive_data(data[end:])
                raise
            at = end

    def _enter(self, pairs: PreparedExchanges) -> bool:
        """Return True if the next messages can be played as exchanges."""
        if len(self._due) != 1 or self._mark or self._lost or self._apart_lines or len(self._decoder):
            return False
        if self.waits or self._actions.over:
            return False
        return not self._responses.has_open_calls and pairs.enter(self._reader.block, self._due[0])

    def _leave(self) -> None:
        """Continue by events after the exchanges that were played."""
        pairs = self._exchanges
        if pairs is None or pairs.at < 0:
            return
        at, block = pairs.at, pairs.block
        if block is not None and at != pairs.since:
            line = block.line + at + 1
            self._last = RecordedRequest(block.payloads[at - 2], line - 2)
            self._due = [RecordedRequest(block.payloads[at], line)]
            self._time = block.time(at)
            self.played_to = line - 1
            self._reader.line = line
            block.position = at + 1
        self._responses.answered(pairs.leave())

    def _receive_all(self) -> None:
        self._leave()
        super()._receive_all()

    # The rule

    def _release(self) -> None:
        """Play all events up to the next one of the host."""
        self._mark = None
        self._continue()

    def _coming(self) -> Iterator[Event]:
        """Return the events from here on."""
        if self._kept is None:
            return self._events
        event, self._kept = self._kept, None
        return chain([event], self._events)

    def _continue(self) -> None:
        actions, base = self._actions, self._time
        for event in self._coming():
            actions.after = event.time - base
            if event.conn != 1:
                raise UsageError(f"{self._name}:{self._reader.line}: {SECOND_CONNECTION}")
            if self._is_coupled and not self.may_play(event):
                self._kept = event
                self.held = True
                return
            if self._mark is not None and (
                event.kind == "in" if isinstance(event, Data) else event.kind != "omitted" or omitted(event)[1] == "in"
            ):
                self._kept = event  # only pending responses overtake the end of the input
                break
            waits = self._pass(event)
            if actions.over or (waits and self._mark is None):
                return
            if waits:
                break
            if actions.size > MUCH_BYTES:
                self.more = True
                return
        if self._responses.has_open_calls:
            self._refuse_open()

    def proceed(self) -> None:
        self.more = False
        self._continue()
        self._receive_all()

    def _refuse_open(self) -> None:
        """Refuse the open calls without a recorded response."""
        upto = self.next_line() - bool(self._due)
        for item in self._unanswered().values():
            if item.line <= upto:
                self._refuse_unanswered(item)

    def may_play(self, event: Event) -> bool:
        """Return True if no other connection must send something before this event."""
        return True

    def next_line(self) -> int:
        """Return the line of the cassette above which all messages of the host have arrived."""
        return self._due[-1].line if self._due else self._reader.line

    def _pass(self, event: Event) -> bool:
        """Play an event of the child, or wait for one of the host. Return True if it is the host's turn."""
        responses = self._responses
        if isinstance(event, Data):
            if event.kind == "in":
                line = self._reader.line
                self._due = self._left_of(event, line)[::-1] if event.raw else [RecordedRequest(event.payload, line)]
                self._time = event.time
                return True
            self.played_to = self._reader.line
            self._play(event)
            return self._mark is not None and not responses.has_open_calls
        is_input_end = event.kind == "eof" and event.value == "in"
        if is_input_end and self._last is not None:
            # A child that exits by itself does so before its host closes its input: some hosts wait for the exit.
            dialect = self._requests.dialect
            is_input_end = self._last.message(dialect).method not in dialect.final
        if is_input_end or event.kind == "signal" or (event.kind == "omitted" and omitted(event)[1] == "in"):
            self._mark = event
            self._time = event.time
            return event.kind != "eof" or not responses.has_open_calls
        self._child_ended = event.kind == "exit"
        self._play(event)
        if event.kind == "omitted" and responses.has_open_calls:
            self._refuse_open()
        return False

    def receive_message(self, payload: bytes) -> None:
        due = self._due
        if due and self._requests.accepts(due[-1], payload):
            self._last = due.pop()
            self._lost = False
            if not due:
                self.played_to = self._last.line
                self._release()
            if self._apart is not None:
                self._apart.arrived(self._last.line)
        elif self._mark is not None and self._mark.kind == "omitted" and len(payload) > MESSAGE_LIMIT_BYTES:
            self._release()
        elif self._apart is not None and self._apart.answered(payload):
            pass
        elif line := self._line_ahead(payload):
            self._skip_to(line, payload)
            self.receive_message(payload)
        elif self._repeats(payload):
            pass
        else:
            ends = self._ends_session(payload)
            self._miss(payload, turn=self._turn())
            self._lost = True
            if ends:
                self._end(0)

    # Hosts that leave the recorded order

    def spoiled_calls(self, payload: bytes) -> Spoiled | None:
        dialect = self._requests.dialect
        live = dialect.classify(payload)
        if dialect.calls and (live.kind == "response" or self._responses.has_open_calls):
            self._take_apart()
        if self._apart is None or self._apart.answered(payload):
            return None
        return self._apart.spoiled(live, self._asked)

    def awaited_text(self) -> str:
        return self.cited(self._due[-1]) if self._due else self._turn()

    def played_early(self) -> frozenset[int]:
        """Return the lines of events that are played outside the recorded order."""
        return frozenset(self._apart_lines)

    def untie(self) -> None:
        if self._apart is not None:
            self._apart.untie()
        if self._responses.has_open_calls:
            self._refuse_open()

    def was_played(self, thread: CallChain) -> bool:
        item = thread.origin
        if item is None or any(item.line == skipped.line for skipped in self._skipped):
            return False
        return item.line < self._reader.line + (not self._due and self._kept is None)

    def scheduler_of(self, *, apart: bool) -> Scheduler:
        if apart:
            self._take_apart()
        if self._apart is None:
            from .threads import Scheduler

            self._apart = Scheduler(self._requests, self._actions, self._play)
        return self._apart

    def _take_apart(self) -> None:
        """Continue the open calls outside the recorded order."""
        here = (self._reader.line, len(self._due), self._kept is None)
        if here == self._apart_at:
            return  # nothing was played since: many misses in a row cause one pass through the file
        self._apart_at = here
        open_calls = self._set_apart(self._is_bound, shared=True)
        self._asked |= open_calls.asked
        if not open_calls.threads:
            return
        scheduler = self.scheduler_of(apart=False)
        self._apart_calls.update(thread.origin.line for thread in open_calls.threads if thread.origin is not None)
        scheduler.resume(open_calls.threads, open_calls.upto, self._time)
        if self._due:
            self._due = [item for item in self._due if (item.line, item.payload) not in open_calls.responses]
            if not self._due:
                self._release()

    def _set_apart(
        self, is_chosen: Callable[[RecordedRequest | None], bool], *, shared: bool, since: int = 0
    ) -> OpenCallThreads:
        """Remove calls from the recorded order, with all events that belong to them from here on.

        Args:
            is_chosen: returns True if this message of the host begins one of them.
            shared: with the requests of the child that may belong to other calls.
            since: the line of the first of them, if no call above it is open.
        """
        from .partition import OpenCallThreads

        left = len(self._due)
        open_calls = OpenCallThreads(self._requests, self._framing, self._apart_lines)
        with self._reader.again() as reader:
            open_calls.read(
                reader,
                self._reader.line + (not left and self._kept is None),
                left,
                is_chosen,
                shared=shared,
                since=since,
            )
        if open_calls.lines and not self._apart_lines:
            self._events = self._without_apart(self._events)
        self._apart_lines |= open_calls.lines
        self._apart_responses |= open_calls.responses
        if self._kept is not None and self._reader.line in open_calls.lines:
            self._kept = None
        return open_calls

    def _is_bound(self, item: RecordedRequest | None) -> bool:
        """Return True if a recorded message of the host is an open call that waits for the recorded order."""
        if item is None or item.line in self._apart_calls or any(item.line == other.line for other in self._skipped):
            return False
        return self._responses.owes_answer(item.message(self._requests.dialect))

    def _without_apart(self, events: Iterator[Event]) -> Iterator[Event]:
        """Yield the events that are not played outside the recorded order."""
        for event in events:
            if self._reader.line not in self._apart_lines or self._left_of(event, self._reader.line):
                yield event

    def _left_of(self, event: Event, line: int) -> list[RecordedRequest]:
        """Return the messages in an event of the host, without those played outside the recorded order."""
        return [item for item in recorded_requests(event, line, self._framing) if not self._is_apart(item)]

    def _is_apart(self, item: RecordedRequest) -> bool:
        return (item.line, item.payload) in self._apart_responses

    def _line_ahead(self, payload: bytes) -> int:
        """Return the line of the next recorded message that this one matches, to continue there; 0 for no such line.

        The session only continues there if the last message was a miss, or if this one ends the session. For the latter
        all events are searched, not only the next ones.
        """
        ends = self._ends_session(payload)
        if self.diverges or not (self._lost or ends):
            return 0
        here = self._reader.line
        if any(self._requests.matches(item, payload) for item in self._due[-2::-1]):
            return here
        since = here + (self._kept is None)
        if not ends:
            if self._upcoming is None:
                from .any_order import Upcoming

                self._upcoming = Upcoming(self._reader.beside(), self._requests, self._framing, self._is_apart, NEAR)
            return self._upcoming.line_of(payload, since)
        with self._reader.again() as reader:  # an index of all events would take long to make
            for event in reader:
                if isinstance(event, Mark) and event.kind == "exit":
                    break  # the child sent no response after it
                if reader.line >= since and any(
                    self._requests.matches(item, payload) for item in self._left_of(event, reader.line)
                ):
                    return reader.line
        return 0

    def _child_asks(self) -> bool:
        """Return True if calls may depend on requests of the child, or on messages that name no call."""
        dialect = self._requests.dialect
        if self._asks is None:
            self._asks = not dialect.by_id
            with self._reader.again() as reader:
                self._asks = self._asks or any(
                    isinstance(event, Data)
                    and event.kind == "out"
                    and (event.raw or b'"id"' in event.payload)
                    and dialect.classify(event.payload).kind != "response"
                    for event in reader
                )
        return self._asks

    def _skip_to(self, line: int, payload: bytes) -> None:
        """Make the message on this line, which the live one matches, the next one."""
        is_open = self._responses.has_open_calls or self._child_asks()
        if self._requests.dialect.calls and is_open:
            self._take_apart()
        self._mark = None
        before = len(self._skipped)
        if self._reader.line != line or self._kept is not None:
            self._skip_due()
            for event in self._coming():
                if isinstance(event, Data) and event.kind == "in":
                    self._due = self._left_of(event, self._reader.line)[::-1]
                    self._time = event.time
                    if self._reader.line == line:
                        break
                    self._skip_due()
        while self._due and not self._requests.matches(self._due[-1], payload):
            self._skipped.append(self._due.pop())
        skipped = {item.line for item in self._skipped[before:]}
        if self._requests.dialect.calls and skipped:
            since = 0 if is_open else min(skipped)
            self._set_apart(lambda item: item is not None and item.line in skipped, shared=False, since=since)
        for item in self._skipped[before:]:
            calls = self._apart.passed(item.line) if self._apart is not None else []
            self._give_up(calls, not_sent(item, describe(item.message(self._requests.dialect)), self._name, _CONTINUED))

    def _skip_due(self) -> None:
        self._skipped += reversed(self._due)
        self._due = []

    def receive_junk(self, wire: bytes) -> None:
        due = self._due
        if due and not due[-1].is_message and self._requests.accepts(due[-1], wire):
            self._last = due.pop()
            if not due:
                self._release()
        elif not wire.isspace():
            self._miss(wire, turn=self._turn(), is_message=False)

    def _turn(self) -> str:
        """Return the next message or mark of the host."""
        if self._due:
            return f"line {self._due[-1].line}"
        if self._mark is not None:
            if self._mark.kind == "omitted":
                return f"a message over {MESSAGE_LIMIT_BYTES} bytes, which was left out"
            return "the end of its input" if self._mark.kind == "eof" else f"its signal {self._mark.value}"
        return "nothing: the session is over"

    def receive_end(self) -> None:
        is_due = self._mark is not None and self._mark.kind == "eof"
        if not is_due and self._responses.has_open_calls and self._requests.dialect.calls:
            self._take_apart()
        if self._apart is not None:
            self._refuse_waiting(self._apart)
        if is_due:
            self._release()
        elif not self._actions.over:
            self._end(0)

    def handle_signal(self, name: str) -> None:
        if self._mark is not None and self._mark.kind == "signal" and self._mark.value == name:
            self._release()
        else:
            self._end(name)

    def _never_played(self) -> tuple[list[RecordedRequest], int]:
        never = [*self._skipped, *reversed(self._due)]
        count = len(never)
        if self._mark is not None and self._mark.kind != "eof":
            count += 1
        # After the exit of the child, messages of its host cannot be played.
        for event in () if self._child_ended else self._coming():
            items = recorded_requests(event, self._reader.line, self._framing)
            count += len(items)
            never += items if len(never) < LISTED else []
        return never, count

    def _history(self) -> Iterator[tuple[RecordedRequest, bool, bool]]:
        with self._reader.again() as reader:
            here = self._reader.line
            due = here if self._due else here + 1
            skipped = {item.line for item in self._skipped}
            for event in reader:
                played = reader.line < due and reader.line not in skipped
                for item in recorded_requests(event, reader.line, self._framing):
                    yield item, played, abs(reader.line - here) < NEAR


_PAIR = IN + OUT + IN  # only the response comes before the next message of the host
_ZERO = ord("0")


class PreparedExchanges:
    """Exchanges of the current block of a cassette.

    Attributes:
        at: index in the block of the recorded request that is next; -1 while `strict` plays.
        block: the block.
        since: index of the first request that was played here.
    """

    __slots__ = ("_actions", "_here", "_live", "_prepared", "_requests", "at", "block", "since")

    def __init__(self, requests: RequestMatcher, actions: ActionBuffer) -> None:
        self._requests = requests
        self._actions = actions
        self._here: Callable[[bytes], bytes] | None = None
        self._prepared: dict[int, Exchange | None] = {}
        self._live: list[tuple[bytes, bytes]] = []
        self.block: Block | None = None
        self.at = self.since = -1

    def enter(self, block: Block | None, due: RecordedRequest) -> bool:
        """Return True if the recorded message that is next begins an exchange of this block."""
        requests = self._requests
        at = block.position - 1 if block else -1
        if block is None or at < 0 or block.payloads[at] is not due.payload or requests.renames:
            return False
        here = requests.bindings.here
        if block is not self.block or here is not self._here:
            self.block, self._here = block, here
            self._prepared = prepared = {}
            text = b"\n".join(block.payloads[at:])
            if requests.id_is_echoed(text):
                return False
            lines = here(text).split(b"\n")
            pair = block.kinds.find(_PAIR, at)
            while pair >= 0:
                prepared[pair] = _exchange(lines[pair - at], lines[pair - at + 1])
                pair = block.kinds.find(_PAIR, pair + 2)
        if self._prepared.get(at) is None:
            return False
        self.at = self.since = at
        return True

    def play(self, data: bytes, position: int) -> int:
        """Respond to the lines from a position on that repeat the recorded requests. Return the position after them.

        A block is small, so the output is, too.
        """
        prepared, at, live = self._prepared, self.at, self._live
        output: list[bytes] = []
        while (exchange := prepared.get(at)) is not None:
            before, mark, after, recorded, begin, end = exchange
            start = position + len(before)
            stop = data.find(mark, start)
            if stop < 0 or not data.startswith(before, position) or not data.startswith(after, stop):
                break
            id = data[start:stop]
            if not (id.isdigit() and id[0] != _ZERO) and not is_simple_id(id):
                break
            output += (begin, id, end)
            live.append((recorded, id))
            position = stop + len(after)
            at += 2
        self.at = at
        if output:
            self._actions.out(b"".join(output), answers=True)
        return position

    def leave(self) -> list[tuple[bytes, bytes]]:
        """Stop: `strict` plays next. Return the recorded and live ids of the calls that got their response here."""
        self.at = -1
        live, self._live = self._live, []
        return live


def _exchange(request: bytes, response: bytes) -> Exchange | None:
    asked, answered = scan_id(request), scan_id(response)
    if asked is None or answered is None or asked[0] != "request" or answered[0] != "response":
        return None
    _, start, end = asked
    _, first, last = answered
    id = request[start:end]
    if response[first:last] != id:
        return None
    return request[:start], request[end : end + 1], request[end:] + b"\n", id, response[:first], response[last:] + b"\n"


def exchanges(
    requests: RequestMatcher, responses: ResponseWriter, actions: ActionBuffer, framing: Framing
) -> PreparedExchanges | None:
    """Return the exchanges of a session; None if its messages or its pace need more than comparing bytes."""
    plain = requests.dialect.id_only and requests.dialect.calls and framing.name == "ndjson"
    usual = type(requests) is RequestMatcher and type(responses) is ResponseWriter and actions.plain
    return PreparedExchanges(requests, actions) if plain and usual else None
