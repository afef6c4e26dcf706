"""Player: the child's side of a session, from a cassette. Sans-IO: bytes of the host in, actions out.

The rule
--------
A recording is one sequence of what the host did (messages, end of input, signals) and what the child did
(messages, lines on stderr, ends of its streams, its exit). Between the two there are no other causes that a
recorder can see: whatever the child did, it did after all that stands before it. So

    what the child did is released once everything of the host that stands before it has arrived,

in the recorded order and at once. That one rule puts notifications before, between and after answers,
requests of the child and what it says after the host answered them, answers in another order than their
calls, lines that are no messages, and a crash in mid-call each in its place, without a word about any of
them.

The end of the host's input is no cause of an answer: an answer has its request, and a host that this time waits for
it before it closes anything would wait for good. So that end holds back only what follows the last answer that is
still owed. And a child that ends by itself after its answer to `shutdown` (the dialect says so) does not wait for
that end either.

`StrictPlayer` is the rule itself: the host must repeat what it did, in its order. `AnyOrderPlayer` cuts the
sequence into threads, one for each thing that the host did on its own account, and keeps the rule within
each.

What differs from the recording stops nothing that does not depend on it. A request that has no answer is told
so, by an error answer of its own; the recorded message that was due stays due. Nothing else is ever played in
the place of what was asked for.
"""

from __future__ import annotations

from ext_recorder.cassette.events import Data, Mark, omission, omitted
from ext_recorder.errors import CassetteError
from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_sdk.core.wire.errors import FrameTooLong
from ext_sdk.core.wire.frames import Frame

from .mismatch import cut_off, describe, explain_mismatch, not_sent, response_differs, unexplained
from .request_matcher import RecordedRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.messages.path_bindings import ReplayBindings
    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_sdk.core.wire.framing import Framing

    from .actions import ActionBuffer
    from .faults import FaultInjector
    from .mismatch import Mismatch
    from .partition import RecordingPartitioner
    from .repeats import Repeats
    from .request_matcher import RequestMatcher
    from .response_writer import ResponseWriter
    from .threads import CallChain, Scheduler, Spoiled

EXIT_DIFFERS = 3  # the session was not the recorded one
# So many misses are explained in full; a host that goes on after them has lost its way, and each costs a pass
# through the file.
_EXPLAINED = 10
_KEPT = 100  # lines of messages that were reported
LISTED = 5  # messages never played, reported one by one
MUCH_BYTES = 1_048_576  # is said at once at most; memory is not to grow with what a child once had to say
NEAR = 5_000  # so many events around the one that is due are compared closely, so that no miss takes seconds
SECOND_CONNECTION = "a session over sockets, which can't be played on stdio: replay takes --listen, verify --connect"
_UNTERMINATED = "unterminated line"


class Divergence(Exception):
    """The host has said what the cassette has no answer for, and the player was to tell."""


class Player:
    """Base class of the players for both orders.

    Args:
        requests: tells whether a live message is a recorded one.
        responses: makes live bytes of recorded ones.
        actions: where actions go.
        framing: the host's.
        name: the cassette's, for messages.

    Attributes:
        more: the child has more to say before it listens again; `proceed`, once what was said is on its way.
        held: the child has more to say, once something has happened on another connection: `resume`.
        overhear: is given what the host says, before it is taken in; None: nobody asks.
        diverges: a message without a match is a Divergence, and no miss.
        told: what was said of the difference between this session and the recorded one, the first lines of it.
        repeats: the recorded messages that may be played again; None: none may.
        early: the number of times that a silent host got responses out of the recorded order.
    """

    _reader: Reader
    _all_is_due = True  # a recorded message that the host never repeated is a fault

    def __init__(
        self, requests: RequestMatcher, responses: ResponseWriter, actions: ActionBuffer, framing: Framing, name: str
    ) -> None:
        self._requests = requests
        self._responses = responses
        self._actions = actions
        self._framing = framing
        self._name = name
        self._decoder = framing.decoder()
        self._misses = 0
        self._at_eof = False
        self._signals: list[str] = []
        self.more = False
        self.held = False
        self.on_host_data: Callable[[bytes], None] | None = None
        self.diverges = False
        self._hearing = b""  # the wire of what is being taken in
        self.told: list[str] = []
        self.repeats: Repeats | None = None
        self.early = 0
        self._reported: set[int] = set()  # lines of the calls whose missing response was reported
        self._faulty: FaultInjector | None = None
        self._omits = False  # a message of the child was left out of the cassette

    def start(self) -> None:
        """Release what the child said before the host said anything."""
        raise NotImplementedError

    def receive_data(self, data: bytes) -> None:
        """Take bytes of the host."""
        if self.on_host_data:
            self.on_host_data(data)
        self._receive(data)

    def _receive(self, data: bytes) -> None:
        payload = None if self.more or self.held or self._actions.over else self._decoder.lone(data)
        if payload is not None:
            self._hearing = data
            self._hear(payload)
        else:
            self._decoder.receive_data(data)
            self._hear_all()

    def receive_eof(self) -> None:
        """The host has closed its end."""
        self._decoder.receive_eof()
        self._at_eof = True
        self._hear_all()

    def receive_signal(self, name: str) -> None:
        """The host has sent a signal."""
        self._signals.append(name)
        self._hear_all()

    def receive_silence(self) -> None:
        """Play responses out of the recorded order, or report what they wait for: the host sends nothing.

        Nothing is done if the host has no open call, or is in the middle of a message.
        """
        responses = self._responses
        if not responses.has_open_calls or self._actions.over or self.waits or len(self._decoder):
            return
        awaited, count = self._awaited(), responses.open_calls
        running = self._in_any_order()
        if responses.open_calls < count:
            self.early += 1
            if self.early == 1:
                text = f"played a response early: the host waits, but the recorded host sent {awaited} before it"
                self._tell(f"{text}; --order any plays it at once")
            return
        for call, cause in running.waiting() if running is not None else ():
            if call.line not in self._reported:
                self._reported.add(call.line)
                text = f"{describe(call.message(self._requests.dialect))} has no response yet"
                self._tell(f"{text}: the recorded host sent {self._cited(cause)} before the response; send that")

    def _cited(self, item: RecordedRequest) -> str:
        """Return a recorded message with its line, as text."""
        return f"{describe(item.message(self._requests.dialect))} ({self._name}:{item.line})"

    def _awaited(self) -> str:
        """Return what the host has to do next, as text; "" in order `any`."""
        return ""

    def _in_any_order(self) -> Scheduler | None:
        """Continue the open calls outside the recorded order. Return what plays them; None if there are none."""
        raise NotImplementedError

    @property
    def waits(self) -> bool:
        """Is the child not listening for now?"""
        return self.more or self.held

    def resume(self) -> None:
        """Say what was held back, if that may be said by now."""
        if self.held:
            self.held = False
            self.proceed()

    def proceed(self) -> None:
        """Go on where `more` was left."""
        self.more = False
        self._go_on()
        self._hear_all()

    def _hear_all(self) -> None:
        next_event, hear, actions = self._decoder.next_event, self._hear, self._actions
        while not actions.over and not self.waits and (item := next_event()) is not None:
            self._hearing = item.wire
            if isinstance(item, Frame):
                hear(item.payload)
            elif item.reason == _UNTERMINATED:
                hear(item.wire)  # a last line without its line feed is a message to most children
            else:
                self._hear_junk(item.wire)
        while self._signals and not actions.over and not self.more:
            self._hear_signal(self._signals.pop(0))
        if self._at_eof and not actions.over and not self.waits:
            self._at_eof = False
            self._hear_eof()

    @property
    def bindings(self) -> ReplayBindings:
        """Paths, and their placeholders in the cassette."""
        return self._requests.bindings

    def unconsumed_input(self) -> bytes:
        """Return input of the host that is not played yet: the message that diverges, and everything after it."""
        wires = [self._hearing]
        self._decoder.receive_eof()
        while (item := self._decoder.next_event()) is not None:
            wires.append(item.wire)
        return b"".join(wires)

    def _go_on(self) -> None:
        """Say the rest of what was too much for once; nothing where all is said at once."""

    def _hear(self, payload: bytes) -> None:
        raise NotImplementedError

    def _hear_junk(self, wire: bytes) -> None:
        raise NotImplementedError

    def _hear_eof(self) -> None:
        raise NotImplementedError

    def _hear_signal(self, name: str) -> None:
        raise NotImplementedError

    def _history(self) -> Iterator[tuple[RecordedRequest, bool, bool]]:
        """Every recorded message of the host: has it been played, is it near enough for a close look."""
        raise NotImplementedError

    # What the child did

    def _play(self, event: Event) -> None:
        """Say or do what the child said or did."""
        if isinstance(event, Data):
            if event.kind == "err":
                self._actions.err(self._responses.err(event))
                return
            try:
                said = self._responses.out(event)
            except (ValueError, FrameTooLong) as error:  # a file that was edited
                raise CassetteError(self._name, 0, f"a message at {event.time:.6f} s can't be said: {error}") from None
            self._actions.out(said, answers=self._responses.answers)
        else:
            self._do(event)

    def _do(self, mark: Mark) -> None:
        if mark.kind == "exit":
            self._end(mark.value)
        elif mark.kind == "eof" and mark.value != "in":  # the host's is no act of the child
            self._actions.close("out" if mark.value == "out" else "err")
        elif mark.kind == "omitted" and omitted(mark)[1] == "out":
            self._misses += 1
            self._omits = True
            self._tell(f"{self._name}: {omission(mark)} and cannot be replayed")

    def _end(self, status: int | str) -> None:
        """The end, as recorded or as it came, unless the session was another one."""
        never, count = self._never_played()
        if self._misses:
            what = "one message" if self._misses == 1 else f"{self._misses} messages"
            self._tell(f"{what} of the host had no match in {self._name}")
        for line in _listed(never, count, self._requests, self._name):
            self._tell(line)
        self._actions.exit(EXIT_DIFFERS if self._misses or (count and self._all_is_due) else status)

    def _never_played(self) -> tuple[list[RecordedRequest], int]:
        """The first few recorded messages of the host that it did not repeat, and how many there are."""
        raise NotImplementedError

    def left_out(self, what: str) -> str:
        """Return lines about the recorded messages of the host that were not played; "" if all were.

        Args:
            what: the end of the first line, as in `never played`.
        """
        never, count = self._never_played()
        return "\n".join(_listed(never, count, self._requests, self._name, what))

    def _ends_session(self, payload: bytes) -> bool:
        """Return whether the child exits by itself after this message of the host."""
        dialect = self._requests.dialect
        return any(method.encode() in payload for method in dialect.final) and (
            dialect.classify(payload).method in dialect.final
        )

    # What the host did and the child never heard of

    def _miss(self, payload: bytes, *, turn: str = "", is_message: bool = True) -> None:
        """Send an error response to the host, and report on stderr that the cassette has no response."""
        if self.diverges:
            miss = explain_mismatch(
                self._requests, self._requests.neutral(payload), self._history, where=self._name, turn=turn
            )
            raise Divergence(miss.text)
        if self._faulty is not None and is_message and self._is_cancel(self._faulty, payload):
            return
        message = self._requests.neutral(payload)
        if is_message and self._answers_probe(payload, message, turn):
            return
        self._misses += 1
        if self._misses <= _EXPLAINED:
            miss = explain_mismatch(self._requests, message, self._history, where=self._name, turn=turn)
        else:
            miss = unexplained(message)
        spoiled = self._spoiled(payload) if is_message else None
        if spoiled is not None:
            miss = response_differs(self._requests, message, spoiled.recorded, spoiled.requests, self._name)
        self._tell(miss.text)
        live = self._requests.dialect.classify(payload)
        if is_message and live.kind == "request":
            self._refuse(live, miss)
        if spoiled is not None:
            self._give_up(spoiled.calls, miss)
        if is_message:
            self._untie()

    def _answers_probe(self, payload: bytes, message: ClassifiedMessage, turn: str) -> bool:
        """Answer a request by which a newer client finds out the revision, as the recorded child would have done.

        Return False if it is not such a request, or if the recorded child knew its method.
        """
        answer = self._requests.dialect.probe_answer(self._requests.dialect.classify(payload))
        if answer is None:
            return False
        if (
            explain_mismatch(self._requests, message, self._history, where=self._name, turn=turn).reason
            != "never-recorded"
        ):
            return False
        self._actions.out(self._framing.encode(answer), answers=True)
        return True

    # What is played again

    @property
    def repeated(self) -> int:
        """The number of messages that were played again, on request."""
        return self.repeats.count if self.repeats is not None else 0

    def after_faults(self, actions: FaultInjector) -> None:
        """Take what a host does after an injected fault: it sends a request again, or cancels it."""
        self._faulty = actions
        actions.key = self._live_key

    def _live_key(self, payload: bytes) -> int:
        return hash(self._requests.matcher.key(self._requests.neutral(payload)))

    def _is_cancel(self, actions: FaultInjector, payload: bytes) -> bool:
        """Return whether this takes back a call that a fault applied to; answer it, if it is a request."""
        dialect = self._requests.dialect
        live = dialect.classify(payload)
        for pointer in pointers_of(dialect.references, live.method):
            value = live.at(pointer)
            if isinstance(value, (str, int)) and id_key(value, "") in actions.faulted_ids:
                answer = dialect.cancellation(live)
                if answer is not None:
                    self._actions.out(self._framing.encode(answer), answers=True)
                return True
        return False

    def _repeats(self, payload: bytes) -> bool:
        """Play a recorded message again, if it may be sent again. Return whether it was."""
        if self.repeats is None:
            return False
        allowed = self.repeats.allows(self._requests, self._requests.dialect.classify(payload))
        faulted = self._faulty is not None and self._live_key(payload) in self._faulty.faulted
        if not allowed and not faulted:
            return False
        if not self.repeats.are_read:
            with self._reader.again() as reader:
                self.repeats.read(reader, self._requests, self._framing, self._cut_up)
        running = self._running_again(withdraw=faulted)
        thread = self.repeats.find(self._requests, payload, self._was_played)
        if thread is None:
            return False
        if faulted and thread.origin is not None and running.withdraw(thread.origin.line):
            self._responses.give_up(thread.origin.message(self._requests.dialect))
        self.repeats.count += allowed
        running.begin(thread)
        return True

    def _was_played(self, thread: CallChain) -> bool:
        """Return whether the recorded message that begins this thread has been played."""
        raise NotImplementedError

    def _running_again(self, *, withdraw: bool) -> Scheduler:
        """Return what plays messages again, with the open calls in it if one of them may be withdrawn."""
        raise NotImplementedError

    # Open calls after a miss

    def _spoiled(self, payload: bytes) -> Spoiled | None:
        """Return the calls that wait for a recorded message whose place this live one takes; None if there are none."""
        raise NotImplementedError

    def _untie(self) -> None:
        """Continue the open calls that wait for the recorded order alone."""
        raise NotImplementedError

    def _give_up(self, calls: list[RecordedRequest], miss: Mismatch) -> None:
        """Answer calls by an error: what they wait for can no longer come."""
        for item in calls:
            request = self._responses.give_up(item.message(self._requests.dialect))
            if request is not None:
                self._refuse(request, miss)

    def _refuse_waiting(self, running: Scheduler) -> None:
        """Answer the calls by an error that wait for a response of the host, which has closed its input."""
        for spoiled in running.unanswered():
            if not any(self._responses.owes_answer(item.message(self._requests.dialect)) for item in spoiled.calls):
                continue
            self._misses += 1
            what = f"the response to the child's {spoiled.requests}"
            miss = not_sent(spoiled.recorded, what, self._name, "the host closed its input")
            self._tell(miss.text)
            self._give_up(spoiled.calls, miss)

    def _refuse_unanswered(self, item: RecordedRequest) -> None:
        """Answer an open call by an error: the recording was cut off before its answer."""
        request = self._responses.give_up(item.message(self._requests.dialect))
        if request is None:
            return
        self._misses += 1
        miss = cut_off(request, item, self._name, omitted=self._omits)
        self._tell(miss.text)
        self._refuse(request, miss)

    def _refuse(self, request: ClassifiedMessage, miss: Mismatch) -> None:
        data = {**miss.data, "cassette": self._name}
        refusal = self._requests.dialect.refusal(request, f"ext-recorder: {miss.text}", data)
        if refusal is not None:
            self._actions.out(self._framing.encode(refusal), answers=True)

    def _tell(self, text: str) -> None:
        if len(self.told) < _KEPT:
            self.told.append(text)
        self._actions.err(f"ext-recorder: {text}\n".encode("utf-8", "backslashreplace"))

    def _cut_up(self, partition: RecordingPartitioner, event: Event, line: int) -> Iterator[CallChain]:
        """Yield the threads that an event begins."""
        if isinstance(event, Data) and event.kind == "in":
            for item in self._items(event, line):
                thread = partition.heard(item, event.time)
                if thread is not None:
                    yield thread
        elif isinstance(event, Mark) and (event.kind == "signal" or (event.kind == "eof" and event.value == "in")):
            partition.marked(str(event.value), event.time)
        elif isinstance(event, Mark) and event.kind == "omitted" and omitted(event)[1] == "in":
            partition.marked("omitted", event.time)
        else:
            partition.said(event)

    def _items(self, event: Data, line: int) -> list[RecordedRequest]:
        """The messages in something that the host wrote."""
        if not event.raw:
            return [RecordedRequest(event.payload, line)]
        return [
            RecordedRequest(item.payload, line)
            if isinstance(item, Frame)
            else RecordedRequest(item.wire, line, is_message=item.reason == _UNTERMINATED)
            for item in event.items(self._framing)
        ]


def _listed(
    never: list[RecordedRequest], count: int, requests: RequestMatcher, name: str, what: str = "never played"
) -> list[str]:
    """Return lines about messages of the host: the first few one by one, the rest as a number."""
    if not count:
        return []
    subject = "one recorded message of the host was" if count == 1 else f"{count} recorded messages of the host were"
    lines = [f"{subject} {what}:"]
    lines += [f"  {name}:{each.line}: {describe(each.message(requests.dialect))}" for each in never[:LISTED]]
    if count > LISTED:
        lines.append(f"  and {count - LISTED} more")
    return lines
