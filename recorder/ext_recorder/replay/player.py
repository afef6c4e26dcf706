"""Player: the child's side of a session, from a cassette. Sans-IO: bytes of the host in, actions out.

The rule
--------
A recording is one sequence of what the host did (messages, end of input, signals) and what the child did (messages,
lines on stderr, ends of its streams, its exit). A recorder sees no other causes of what the child did. So

    each event of the child is released once all events of the host before it have arrived,

in the recorded order and at once. That one rule covers notifications before, between and after responses, requests of
the child and what follows the host's responses, responses in another order than their calls, lines that are not
messages, and a crash during a call; none of them is a special case.

The end of the host's input causes no response: a response has its request, and a host that waits for the response
before it closes its input would wait forever. So that end only holds back what follows the last pending response. A
child that exits by itself after its response to `shutdown` (see `Dialect.final`) does not wait for that end either.

`StrictPlayer` is the rule itself: the host must repeat its messages in their order. `AnyOrderPlayer` cuts the sequence
into threads, one for each message that the host sent by itself, and applies the rule within each thread.

A message that is played again (`--repeat`, or after a fault) is played with its complete thread (see `partition`): its
notifications, its response, and the child's requests in it, which need the recorded responses again. Later messages of
the host about the recorded call, such as a cancellation, are not waited for, and an exit of the child is not repeated.

A difference from the recording stops nothing that does not depend on it. A request without a recorded response gets an
error response of its own; the recorded message that was next stays next. No other recorded response is ever played
in its place.
"""

from __future__ import annotations

from ext_recorder.cassette.events import Data, omission, omitted
from ext_recorder.errors import CassetteError
from ext_recorder.protocols.dialect import id_key, pointers_of
from ext_recorder.replay.mismatch import cut_off, describe, explain_mismatch, not_sent, response_differs, unexplained
from ext_recorder.replay.partition import RecordingPartitioner
from ext_recorder.replay.request_matcher import UNTERMINATED
from ext_recorder.replay.threads import CallChain, ChildRequest, Dependency
from ext_sdk.core.wire.errors import FrameTooLong
from ext_sdk.core.wire.frames import Frame

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.cassette.events import Event
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.messages.path_bindings import ReplayBindings
    from ext_recorder.protocols.dialect import ClassifiedMessage
    from ext_recorder.replay.actions import ActionBuffer
    from ext_recorder.replay.faults import FaultInjector
    from ext_recorder.replay.mismatch import Mismatch
    from ext_recorder.replay.request_matcher import RecordedRequest, RequestMatcher
    from ext_recorder.replay.response_writer import ResponseWriter
    from ext_recorder.replay.threads import Scheduler, Spoiled
    from ext_recorder.replay.workspace import Workspaces
    from ext_sdk.core.wire.framing import Framing

EXIT_DIFFERS = 3  # the session was not the recorded one
# Number of misses that are explained in full: each explanation reads the file, and more of them do not help.
_EXPLAINED = 10
_KEPT = 100  # lines of messages that were reported
LISTED = 5  # messages never played, reported one by one
MUCH_BYTES = 1_048_576  # maximum output at once, so that memory does not grow with the recording
NEAR = 5_000  # events around the next one that are compared by value, so that no miss takes seconds
SECOND_CONNECTION = "a session over sockets, which can't be played on stdio: replay takes --listen, verify --connect"


class Divergence(Exception):
    """Message of the host without a recorded response, for a player with `diverges` or `chooses`."""


class Player:
    """Base class of the players for both orders.

    Args:
        name: of the cassette, for messages.

    Attributes:
        more: the child has more output before it reads again; call `proceed` once the output so far is written.
        held: the child has more output, which waits for another connection; call `resume` after an event there.
        on_host_data: receives all bytes of the host before the player; None for no receiver.
        diverges: a message without a match raises Divergence instead of being a miss.
        chooses: the same, but for messages that need no recorded response.
        on_output: receives each message of the child, as recorded and in its live form, before it is sent.
        differences: reported differences between this session and the recorded one, the first `_KEPT` lines.
        repeats: the recorded messages that may be played again; None if none may.
        early: the number of times that a silent host got responses out of the recorded order.
    """

    _reader: Reader
    _all_is_due = True  # a recorded message that the host did not repeat is a difference

    def __init__(
        self, requests: RequestMatcher, responses: ResponseWriter, actions: ActionBuffer, framing: Framing, name: str
    ) -> None:
        self._requests = requests
        self._responses = responses
        self._actions = actions
        self._framing = framing
        self._name = name
        self._decoder = framing.decoder()
        self._final = tuple(method.encode() for method in requests.dialect.final)
        self._misses = 0
        self._at_eof = False
        self._signals: list[str] = []
        self.more = False
        self.held = False
        self.on_host_data: Callable[[bytes], None] | None = None
        self.diverges = False
        self.chooses = False
        self.on_output: Callable[[Data, bytes], None] | None = None
        self._current = b""  # the wire of the message that is being received
        self.differences: list[str] = []
        self.repeats: Repeats | None = None
        self.early = 0
        self._reported_lines: set[int] = set()  # lines of the calls whose missing response was reported
        self._faulty: FaultInjector | None = None
        self._without_response: dict[int, RecordedRequest] | None = None
        self._omits = False  # a message of the child was left out of the cassette

    def start(self) -> None:
        """Play the output of the child before the first message of the host."""
        raise NotImplementedError

    def receive_data(self, data: bytes) -> None:
        """Receive bytes of the host."""
        if self.on_host_data:
            self.on_host_data(data)
        self._receive(data)

    def _receive(self, data: bytes) -> None:
        payload = None if self.more or self.held or self._actions.over else self._decoder.lone(data)
        if payload is not None:
            self._current = data
            self.receive_message(payload)
        else:
            self._decoder.receive_data(data)
            self._receive_all()

    def receive_eof(self) -> None:
        """Receive the end of the host's input."""
        self._decoder.receive_eof()
        self._at_eof = True
        self._receive_all()

    def receive_signal(self, name: str) -> None:
        """Receive a signal of the host."""
        self._signals.append(name)
        self._receive_all()

    def receive_silence(self) -> None:
        """Play responses out of the recorded order, or report what they wait for: the host sends nothing.

        Nothing is done if the host has no open call, or is in the middle of a message.
        """
        responses = self._responses
        if not responses.has_open_calls or self._actions.over or self.waits or len(self._decoder):
            return
        awaited, count = self.awaited_text(), responses.open_calls
        scheduler = self.scheduler_of(apart=True)
        if responses.open_calls < count:
            self.early += 1
            if self.early == 1:
                text = f"played a response early: the host waits, but the recorded host sent {awaited} before it"
                self._report(f"{text}; --order any plays it at once")
            return
        for call, cause in scheduler.waiting():
            if call.line not in self._reported_lines:
                self._reported_lines.add(call.line)
                text = f"{describe(call.message(self._requests.dialect))} has no response yet"
                self._report(f"{text}: the recorded host sent {self.cited(cause)} before the response; send that")

    def cited(self, item: RecordedRequest) -> str:
        """Return a recorded message with its line, as text."""
        return f"{describe(item.message(self._requests.dialect))} ({self._name}:{item.line})"

    def awaited_text(self) -> str:
        """Return what the host has to do next, as text; "" in order `any`."""
        return ""

    def scheduler_of(self, *, apart: bool) -> Scheduler:
        """Return the scheduler of messages that are played again, or outside the recorded order.

        Args:
            apart: continue the open calls outside the recorded order.
        """
        raise NotImplementedError

    @property
    def waits(self) -> bool:
        """Return True if the child does not read now."""
        return self.more or self.held

    def resume(self) -> None:
        """Play the output that was held, if it may be played now."""
        if self.held:
            self.held = False
            self.proceed()

    def proceed(self) -> None:
        """Continue with the output that set `more`."""
        self.more = False
        self._receive_all()

    def _receive_all(self) -> None:
        next_event, receive, actions = self._decoder.next_event, self.receive_message, self._actions
        while not actions.over and not self.waits and (item := next_event()) is not None:
            self._current = item.wire
            if isinstance(item, Frame):
                receive(item.payload)
            elif item.reason == UNTERMINATED:
                receive(item.wire)  # a last line without its line feed is a message to most children
            else:
                self.receive_junk(item.wire)
        while self._signals and not actions.over and not self.more:
            self.handle_signal(self._signals.pop(0))
        if self._at_eof and not actions.over and not self.waits:
            self._at_eof = False
            self.receive_end()

    def workspaces(self) -> Workspaces:
        """Return the workspaces of the recorded child, in which its patches are applied."""
        from .workspace import Workspaces

        return Workspaces(self._name, self._requests.bindings, self._requests.redact)

    @property
    def bindings(self) -> ReplayBindings:
        """Paths, and their placeholders in the cassette."""
        return self._requests.bindings

    def live_id(self, recorded: bytes) -> bytes | None:
        """Return the live id, as JSON text, of an open call of the host; None if none of this recorded id is open."""
        return self._responses.live_id(recorded)

    def unconsumed_input(self) -> bytes:
        """Return input of the host that is not played yet: the message that diverges, and everything after it."""
        wires = [self._current]
        self._decoder.receive_eof()
        while (item := self._decoder.next_event()) is not None:
            wires.append(item.wire)
        return b"".join(wires)

    def receive_message(self, payload: bytes) -> None:
        raise NotImplementedError

    def receive_junk(self, wire: bytes) -> None:
        raise NotImplementedError

    def receive_end(self) -> None:
        raise NotImplementedError

    def handle_signal(self, name: str) -> None:
        raise NotImplementedError

    def _history(self) -> Iterator[tuple[RecordedRequest, bool, bool]]:
        """Yield each recorded message of the host, whether it has been played, and whether it is within NEAR."""
        raise NotImplementedError

    # What the child did

    def _play(self, event: Event) -> None:
        """Play one event of the child."""
        if isinstance(event, Data):
            if event.kind == "err":
                self._actions.err(self._responses.err(event))
                return
            try:
                wire = self._responses.out(event)
            except (ValueError, FrameTooLong) as error:  # a file that was edited
                raise CassetteError(
                    self._name, 0, f"the message at {event.time:.6f} s cannot be played: {error}"
                ) from None
            if self.on_output is not None:
                self.on_output(event, wire)
            self._actions.out(wire, answers=self._responses.answers)
        elif event.kind == "exit":
            self._end(event.value)
        elif event.kind == "eof" and event.value != "in":
            self._actions.close("out" if event.value == "out" else "err")
        elif event.kind == "files":
            self._actions.change_files(int(event.value))
        elif event.kind == "omitted" and omitted(event)[1] == "out":
            self._misses += 1
            self._omits = True
            self._report(f"{self._name}: {omission(event)} and cannot be replayed")

    def _end(self, status: int | str) -> None:
        """Report the differences and exit: with this status if there are none."""
        never, count = self._never_played()
        if self._misses:
            what = "one message" if self._misses == 1 else f"{self._misses} messages"
            self._report(f"{what} of the host had no match in {self._name}")
        for line in _listed(never, count, self._requests, self._name):
            self._report(line)
        self._actions.exit(EXIT_DIFFERS if self._misses or (count and self._all_is_due) else status)

    def _never_played(self) -> tuple[list[RecordedRequest], int]:
        """Return the first recorded messages of the host that it did not repeat, and their number."""
        raise NotImplementedError

    def left_out(self, what: str) -> str:
        """Return lines about the recorded messages of the host that were not played; "" if all were.

        Args:
            what: the end of the first line, as in `never played`.
        """
        never, count = self._never_played()
        return "\n".join(_listed(never, count, self._requests, self._name, what))

    def _ends_session(self, payload: bytes) -> bool:
        """Return True if the child exits by itself after this message of the host."""
        dialect = self._requests.dialect
        for method in self._final:
            if method in payload:
                return dialect.classify(payload).method in dialect.final
        return False

    # Messages of the host without a recorded response

    def _miss(self, payload: bytes, *, turn: str = "", is_message: bool = True) -> None:
        """Send an error response to the host, and report on stderr that the cassette has no response."""
        message, live = self._requests.as_recorded(payload), self._requests.dialect.classify(payload)
        if self.diverges:
            raise Divergence(self._explain(message, turn).text)
        if is_message and self._answers_unrecorded(live, message, turn):
            return
        if self.chooses:
            raise Divergence
        self._misses += 1
        miss = self._explain(message, turn) if self._misses <= _EXPLAINED else unexplained(message)
        spoiled = self.spoiled_calls(payload) if is_message else None
        if spoiled is not None:
            miss = response_differs(self._requests, message, spoiled.recorded, spoiled.requests, self._name)
        self._report(miss.text)
        if not is_message:
            return
        if live.kind == "request":
            self._refuse(live, miss)
        if spoiled is not None:
            self._give_up(spoiled.calls, miss)
        self.untie()

    def _explain(self, message: ClassifiedMessage, turn: str) -> Mismatch:
        return explain_mismatch(self._requests, message, self._history, where=self._name, turn=turn)

    def _answers_unrecorded(self, live: ClassifiedMessage, message: ClassifiedMessage, turn: str) -> bool:
        """Respond to a message that needs no recorded response. Return False for any other message.

        Such messages are cancellations of calls that a fault applied to, and requests by which a newer client finds out
        the revision of a child, unless the recorded child knew their method.
        """
        dialect, faulty = self._requests.dialect, self._faulty
        ids = [live.at(pointer) for pointer in pointers_of(dialect.references, live.method)] if faulty else []
        if faulty and any(isinstance(value, (str, int)) and id_key(value, "") in faulty.faulted_ids for value in ids):
            response = dialect.cancellation(live)
        else:
            response = dialect.probe_answer(live)
            if response is None or self._explain(message, turn).reason != "never-recorded":
                return False
        if response is not None:
            self._actions.out(self._framing.encode(response), answers=True)
        return True

    # Messages that are played again

    @property
    def repeated(self) -> int:
        """Number of messages that were played again because of `--repeat`."""
        return self.repeats.count if self.repeats is not None else 0

    def after_faults(self, actions: FaultInjector) -> None:
        """Accept what a host does after an injected fault: it sends a request again, or cancels it."""
        self._faulty = actions
        actions.key = self._live_key

    def _live_key(self, payload: bytes) -> int:
        return hash(self._requests.matcher.key(self._requests.as_recorded(payload)))

    def _repeats(self, payload: bytes) -> bool:
        """Play a recorded message again, if it may be sent again. Return True if it was played."""
        if self.repeats is None:
            return False
        allowed = self.repeats.allows(self._requests, self._requests.dialect.classify(payload))
        faulted = self._faulty is not None and self._live_key(payload) in self._faulty.faulted
        if not allowed and not faulted:
            return False
        if not self.repeats.are_read:
            with self._reader.again() as reader:
                self.repeats.read(reader, self._requests, self._framing)
        scheduler = self.scheduler_of(apart=faulted and self._responses.has_open_calls)
        thread = self.repeats.find(self._requests, payload, self.was_played)
        if thread is None:
            return False
        if faulted and thread.origin is not None and scheduler.withdraw(thread.origin.line):
            self._responses.give_up(thread.origin.message(self._requests.dialect))
        self.repeats.count += allowed
        scheduler.begin(thread)
        return True

    def was_played(self, thread: CallChain) -> bool:
        """Return True if the recorded message that begins this thread has been played."""
        raise NotImplementedError

    # Open calls after a miss

    def spoiled_calls(self, payload: bytes) -> Spoiled | None:
        """Return the calls that wait for the recorded message that this live one replaces; None if none do."""
        raise NotImplementedError

    def untie(self) -> None:
        """Continue the open calls that only wait because of the recorded order."""
        raise NotImplementedError

    def _give_up(self, calls: list[RecordedRequest], miss: Mismatch) -> None:
        """Send error responses to calls that wait for what can no longer come."""
        for item in calls:
            request = self._responses.give_up(item.message(self._requests.dialect))
            if request is not None:
                self._refuse(request, miss)

    def _refuse_waiting(self, running: Scheduler) -> None:
        """Send error responses to calls that wait for a response of the host, which has closed its input."""
        for spoiled in running.unanswered():
            if not any(self._responses.owes_answer(item.message(self._requests.dialect)) for item in spoiled.calls):
                continue
            self._misses += 1
            what = f"the response to the child's {spoiled.requests}"
            miss = not_sent(spoiled.recorded, what, self._name, "the host closed its input")
            self._report(miss.text)
            self._give_up(spoiled.calls, miss)

    def _unanswered(self) -> dict[int, RecordedRequest]:
        """Return the requests of the host without a recorded response, by line; the first call reads the cassette."""
        if self._without_response is None:
            from .unanswered import unanswered

            with self._reader.again() as reader:
                requests = unanswered(reader, self._requests.dialect, self._framing)
            self._without_response = {request.line: request for request in requests}
        return self._without_response

    def _refuse_unanswered(self, item: RecordedRequest) -> None:
        """Send an error response to an open call: the recording was interrupted before the response."""
        request = self._responses.give_up(item.message(self._requests.dialect))
        if request is None:
            return
        self._misses += 1
        miss = cut_off(request, item, self._name, omitted=self._omits)
        self._report(miss.text)
        self._refuse(request, miss)

    def _refuse(self, request: ClassifiedMessage, miss: Mismatch) -> None:
        data = {**miss.data, "cassette": self._name}
        refusal = self._requests.dialect.refusal(request, f"ext-recorder: {miss.text}", data)
        if refusal is not None:
            self._actions.out(self._framing.encode(refusal), answers=True)

    def _report(self, text: str) -> None:
        if len(self.differences) < _KEPT:
            self.differences.append(text)
        self._actions.err(f"ext-recorder: {text}\n".encode("utf-8", "backslashreplace"))


def _listed(
    never: list[RecordedRequest], count: int, requests: RequestMatcher, name: str, what: str = "never played"
) -> list[str]:
    """Return lines about messages of the host: the first ones individually, the number of the others."""
    if not count:
        return []
    subject = "one recorded message of the host was" if count == 1 else f"{count} recorded messages of the host were"
    lines = [f"{subject} {what}:"]
    lines += [f"  {name}:{item.line}: {describe(item.message(requests.dialect))}" for item in never[:LISTED]]
    if count > LISTED:
        lines.append(f"  and {count - LISTED} more")
    return lines


ALL = "all"


class Repeats:
    """Recorded messages that may be played again.

    Args:
        what: messages that may be sent again at any time: `all`, a method, or a method with its subject.
        after_faults: any other message may be sent again if a fault applied to it.

    Attributes:
        are_read: the cassette has been read.
        count: number of messages that were played again.
    """

    def __init__(self, what: tuple[str, ...], *, after_faults: bool) -> None:
        self._what = frozenset(what)
        self._after_faults = after_faults
        self._threads: dict[str, list[CallChain]] = {}  # by meaning, in recorded order
        self.are_read = False
        self.count = 0

    def allows(self, requests: RequestMatcher, live: ClassifiedMessage) -> bool:
        """Return True if this message may be sent again at any time."""
        what = self._what
        return bool(what) and (
            ALL in what or live.method in what or f"{live.method} {requests.dialect.about(live)}" in what
        )

    def read(self, reader: Reader, requests: RequestMatcher, framing: Framing) -> None:
        """Read the messages of a cassette, which is at its start."""
        partition = RecordingPartitioner(requests, framing)
        begun = [thread for event in reader for thread in partition.take(event, reader.line)]
        self.are_read = True
        for thread in begun:
            if thread.origin is None or not thread.origin.is_message or thread.open:
                continue
            message = thread.origin.message(requests.dialect)
            if self._after_faults or self.allows(requests, message):
                self._threads.setdefault(requests.matcher.key(message), []).append(thread)

    def find(
        self, requests: RequestMatcher, payload: bytes, was_played: Callable[[CallChain], bool]
    ) -> CallChain | None:
        """Return the last recorded message that this one repeats, as a thread to begin; None if there is none.

        Args:
            requests: compares the messages, and stores the ids and names of the live one.
            payload: the live message.
            was_played: returns True if the message of a thread has been played.
        """
        repeated = requests.matcher.key(requests.as_recorded(payload))
        for thread in reversed(self._threads.get(repeated, [])):
            if thread.origin is not None and was_played(thread) and requests.accepts(thread.origin, payload):
                break
        else:
            return None
        fresh = CallChain(thread.origin, thread.time)
        answers: dict[Dependency, Dependency] = {}
        for place, step in thread.steps:
            if isinstance(step, ChildRequest):
                question = ChildRequest(step.event, step.keys, [fresh])
                answers.update((answer, Dependency(answer.origin, answer.time)) for answer in step.answers)
                question.answers = [answers[answer] for answer in step.answers]
                fresh.steps.append((place, question))
            elif isinstance(step, Data):
                fresh.steps.append((place, step))
            elif isinstance(step, Dependency) and step in answers:
                fresh.steps.append((place, answers[step]))
        return fresh
