"""The host's part of a recorded session, sans-IO: live bytes of the child in, bytes for it out.

One rule: what the host did goes out when what the child had said before it has come. An answer is waited for; so is
everything else that the child said, but no longer than until something comes that is recorded after it.

The child may take as long as it took in the recording, and `patience` more, from one awaited message to the next. Then
it is said what did not come. A child that owes an answer is given up there: whatever the host said next depended on it.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ext_recorder.cassette.events import STDERR_FRAMING, Data, pieces
from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.player import SECOND_CONNECTION
from ext_sdk.protocols.classified import OTHER, Classified
from ext_sdk.wire.errors import FrameTooLong
from ext_sdk.wire.framing import Frame

from .findings import describe, excerpt
from .window import Expected, Heard, Window, identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.calls import Calls
    from ext_recorder.cassette.events import Event, Mark
    from ext_recorder.cassette.reader import Reader
    from ext_recorder.compare.comparing import Comparison
    from ext_recorder.compare.counterparts import Counterparts
    from ext_sdk.wire.framing import Framing, Junk

    from .findings import Findings
    from .sending import Sender
    from .window import Identity

LAST = 1 << 60  # a line below all of a cassette
AHEAD_EVENTS = 1_000  # in which a request is looked for that comes before its turn
OUTBOX_BYTES = 1_048_576  # what waits for the child to read it; then no more is made of the cassette
_REFUSED = "ext-recorder verify: the recorded child did not ask this here, so there is no recorded answer"


class Script:
    """Plays the host.

    Args:
        reader: the cassette, at its start.
        framing: of both directions.
        sender: makes live bytes of recorded messages.
        clean: makes recorded text of live text.
        comparison: what counts.
        counterparts: names in both sessions.
        child_calls: requests of the child by their recorded ids.
        findings: where differences go.
        patience: seconds, see the module.
        in_order: whether the order of the child's messages counts.
        stderr: whether its stderr does.
        junk: whether what is no message does.
        may: asked about other connections: has all that stands above this line been said?

    Attributes:
        outbox: what is to be done: bytes for the child, None to close its input, the name of a signal to send.
        over: nothing more is sent; the child may end.
        gave_up: the session did not get to its end.
        sent: messages of the host that went out.
        exit: the recorded exit code, or signal; None where none is recorded.
    """

    def __init__(
        self,
        reader: Reader,
        framing: Framing,
        *,
        sender: Sender,
        clean: Callable[[bytes], bytes],
        comparison: Comparison,
        counterparts: Counterparts,
        child_calls: Calls,
        findings: Findings,
        patience: float,
        in_order: bool = True,
        stderr: bool = False,
        junk: bool = True,
        may: Callable[[int], bool] | None = None,
    ) -> None:
        self._reader = reader
        self._events = iter(reader)
        self._ahead: deque[tuple[Event, int]] = deque()  # read, and not yet come to: with their lines
        self._framing = framing
        self._sender = sender
        self._clean = clean
        self._dialect = comparison.dialect
        self._child_calls = child_calls
        self._findings = findings
        self._window = Window(comparison, counterparts, findings, self._paired, in_order=in_order)
        self._patience = patience
        self._lines = Lines(findings) if stderr else None
        self._junk = junk
        self._may = may or _always
        self._decoder = framing.decoder()
        self._errors = STDERR_FRAMING.decoder()
        self._asked: dict[bytes, list[str]] = {}  # methods of the host's open calls by id, the oldest first
        self._expected = self._heard = 0
        self._progress = 0.0  # when the session last went on: here,
        self._recorded = 0.0  # and in the recording
        self._exit_time = 0.0
        self._closed = False  # the child's input
        self._silent = False  # the child's output has ended
        self.outbox: deque[bytes | str | None] = deque()
        self.over = False
        self.gave_up = False
        self.sent = 0
        self.exit: int | str | None = None

    def start(self, now: float) -> None:
        """The child is there."""
        self._progress = now
        self.advance(now)

    def hold(self, now: float) -> None:
        """It had to wait for other connections until now."""
        self._progress = now

    @property
    def position(self) -> int:
        """The line of what is waited for, or has to be done next; LAST where there is nothing more."""
        if self.over:
            return LAST
        awaited = self._window.awaited()
        if awaited:
            return awaited[0].line
        following = self._next()
        if following is None:
            return LAST
        self._ahead.appendleft(following)
        return following[1]

    def receive_data(self, data: bytes, now: float) -> None:
        """Bytes of the child's stdout."""
        self._decoder.receive_data(data)
        self._take(now)

    def receive_eof(self, now: float) -> None:
        """Its stdout has ended: nothing more comes."""
        self._decoder.receive_eof()
        self._take(now)
        self._silent = True
        if not self.over:
            self._say_what_is_owed()
            self.advance(now)

    def receive_error(self, data: bytes) -> None:
        """Bytes of its stderr; b"" at the end."""
        if self._lines:
            if data:
                self._errors.receive_data(data)
            else:
                self._errors.receive_eof()
            while (item := self._errors.next_event()) is not None:
                self._lines.hear(self._clean(_line_of(item)))

    def deadline(self) -> float:
        """When to call `timed_out`, if nothing happens until then."""
        awaited = self._window.awaited()
        gap = (awaited[0].time if awaited else self._exit_time) - self._recorded
        return self._progress + max(0.0, gap) + self._patience

    def timed_out(self, now: float) -> None:
        """Nothing that is awaited has come in time."""
        awaited = self._window.awaited()
        owed = next((each for each in awaited if each.identity[0] == "response"), None)
        if owed is None:
            for each in awaited:
                self._window.give_up(each)
            self._progress = now
            self.advance(now)
            return
        subject = describe(owed.message, owed.answered)
        took = max(0.0, owed.time - self._recorded)
        self._findings.add(
            "timeout",
            f"{self._findings.at(owed.line)}: {subject}: it did not come within {took + self._patience:g} s "
            f"(recorded after {took:.3f} s; --timeout gives more)",
            owed.line,
            {"message": subject, "seconds": round(took + self._patience, 3)},
        )
        self.give_up()

    def give_up(self) -> None:
        """The session can't go on."""
        if not self.over:
            self.over = self.gave_up = True
            left = sum(
                len(self._items(each)) for each, _ in self._rest() if isinstance(each, Data) and each.kind == "in"
            )
            if left:
                what = "one message" if left == 1 else f"{left} messages"
                self._findings.add("given-up", f"{self._findings.at(0)}: {what} of the host could not be sent any more")

    def finish(self) -> None:
        """The child has ended, and all that it said was received."""
        self._window.finish(missing=not self.gave_up)
        if self._lines:
            self._lines.finish()

    def _say_what_is_owed(self) -> None:
        """The child says nothing more; does the recorded one?"""
        awaited = self._window.awaited()
        if awaited:
            line, what = awaited[0].line, describe(awaited[0].message, awaited[0].answered)
        else:
            said = (number for event, number in self._look_ahead() if isinstance(event, Data) and event.kind == "out")
            line, what = next(said, 0), "another message"
        if line:
            text = f"{self._findings.at(line)}: {what}: the child has ended its output before"
            self._findings.add("ended", text, line, {"message": what})
            self.give_up()

    def advance(self, now: float) -> None:
        """Send all that is due. Again when the outbox is empty, or something has come."""
        while not self.over and sum(len(each) for each in self.outbox if isinstance(each, bytes)) < OUTBOX_BYTES:
            following = self._next()
            if following is None:
                self._end(now)
                return
            event, line = following
            if event.conn != 1:
                raise UsageError(f"{self._reader.path}:{line}: {SECOND_CONNECTION}")
            if isinstance(event, Data) and event.kind != "in":
                if event.kind == "out" and self._window.full and not self._silent:
                    self._ahead.appendleft(following)
                    return
                self._expect(event, line)
            elif isinstance(event, Data) or event.kind == "signal" or (event.kind, event.value) == ("eof", "in"):
                if not self._is_due(line):
                    self._ahead.appendleft(following)
                    return
                self._do(event, line, now)
            elif event.kind == "exit":
                self.exit, self._exit_time = event.value, event.time

    # --- The recording ------------------------------------------------------------------------------------------------

    def _next(self) -> tuple[Event, int] | None:
        if self._ahead:
            return self._ahead.popleft()
        event = next(self._events, None)
        return None if event is None else (event, self._reader.line)

    def _rest(self) -> Iterator[tuple[Event, int]]:
        while (following := self._next()) is not None:
            yield following

    def _look_ahead(self) -> Iterator[tuple[Event, int]]:
        """The next events, which stay to be come to."""
        while len(self._ahead) < AHEAD_EVENTS and (event := next(self._events, None)) is not None:
            self._ahead.append((event, self._reader.line))
        yield from self._ahead

    def _items(self, event: Data) -> list[Frame | Junk]:
        """The messages in an event, and what is between them."""
        if not event.raw:
            return [Frame(event.payload, b"", event.head)]
        return pieces(event.payload, STDERR_FRAMING if event.kind == "err" else self._framing)

    def _expect(self, event: Data, line: int) -> None:
        """What the child said."""
        for item in self._items(event):
            if event.kind == "err":
                if self._lines:
                    self._lines.expect(_line_of(item), line)
                continue
            message = self._dialect.classify(item.payload) if isinstance(item, Frame) else _no_message(item.wire)
            if message.kind == "other" and self._dialect.calls and not self._junk:
                continue
            last = self._dialect.is_last(message)
            answered = self._answered(message, last=last)
            self._expected += 1
            self._window.expect(Expected(self._expected, line, event.time, message, answered, last=last))

    def _answered(self, message: Classified, *, last: bool) -> str:
        """The method of the call that this answers."""
        if message.kind != "response" or message.key not in self._asked:
            return ""
        methods = self._asked[message.key]
        if not last:
            return methods[0]
        method = methods.pop(0)
        if not methods:
            del self._asked[message.key]
        return method

    # --- The host -----------------------------------------------------------------------------------------------------

    def _is_due(self, line: int) -> bool:
        if self._silent:
            return True
        if self._window.awaited() or not self._may(line):
            return False
        self._window.settle()
        return True

    def _do(self, event: Data | Mark, line: int, now: float) -> None:
        """It is the host's turn."""
        self._progress, self._recorded = now, event.time
        if isinstance(event, Data):
            try:
                self._send(event)
            except (ValueError, FrameTooLong) as error:
                raise CassetteError(self._reader.path, line, f"can't be sent: {error}") from error
        elif event.kind == "signal":
            self.outbox.append(str(event.value))
        else:
            self._close()

    def _send(self, event: Data) -> None:
        for message, wire in self._sender.wire(event):
            if message is not None and message.kind == "request" and message.key is not None:
                self._asked.setdefault(message.key, []).append(message.method)
            if wire and not self._closed:
                self.sent += 1
                self.outbox.append(wire)

    def _end(self, now: float) -> None:
        """The cassette is at its end. Without a recorded exit, the end of its input tells the child to end."""
        if self._is_due(LAST):
            self._progress = now
            if self.exit is None:
                self._close()
            self.over = True

    def _close(self) -> None:
        if not self._closed:
            self._closed = True
            self.outbox.append(None)

    # --- The child ----------------------------------------------------------------------------------------------------

    def _take(self, now: float) -> None:
        while (item := self._decoder.next_event()) is not None:
            self._hear(item, now)
            self.advance(now)

    def _hear(self, item: Frame | Junk, now: float) -> None:
        if isinstance(item, Frame):
            message = self._dialect.classify(self._clean(item.payload))
        elif item.wire.isspace():
            return
        else:
            message = _no_message(self._clean(item.wire))
        if message.kind == "other" and self._dialect.calls and not self._junk:
            return
        last = self._dialect.is_last(message)
        self._heard += 1
        heard = Heard(self._heard, message, last=last)
        if self._window.hear(heard):
            self._progress = now
        elif message.kind == "request" and not self._comes_later(heard.identity):
            self._window.drop(heard)
            self._refuse(item)

    def _paired(self, expected: Expected, heard: Heard) -> None:
        """A recorded message of the child has come."""
        self._recorded = max(self._recorded, expected.time)
        if heard.message.kind == "request" and expected.message.key is not None:
            self._child_calls.begin(expected.message.key, heard.message.id.encode("utf-8", "surrogateescape"))

    def _comes_later(self, wanted: Identity) -> bool:
        """Is such a message recorded a little further on?"""
        for event, _ in self._look_ahead():
            if isinstance(event, Data) and event.kind == "out":
                for item in self._items(event):
                    if isinstance(item, Frame) and identity(self._dialect.classify(item.payload), last=True) == wanted:
                        return True
        return False

    def _refuse(self, item: Frame | Junk) -> None:
        """A request that was never recorded must not be waited for by the child."""
        live = self._dialect.classify(item.payload) if isinstance(item, Frame) else None
        refusal = self._dialect.refusal(live, _REFUSED, {"reason": "never-recorded"}) if live else None
        if refusal is not None and not self._closed:
            self.outbox.append(self._framing.encode(refusal))


class Lines:
    """stderr, line by line: recorded ones beside live ones."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._expected: deque[tuple[bytes, int]] = deque()
        self._heard: deque[bytes] = deque()

    def expect(self, line: bytes, number: int) -> None:
        """A recorded line, and where it stands."""
        self._expected.append((line, number))
        self._compare()

    def hear(self, line: bytes) -> None:
        """A live line."""
        self._heard.append(line)
        self._compare()

    def finish(self) -> None:
        """Nothing more comes."""
        for line, number in self._expected:
            self._add(number, line, None)
        for line in self._heard:
            self._add(0, None, line)

    def _compare(self) -> None:
        while self._expected and self._heard:
            (expected, number), heard = self._expected.popleft(), self._heard.popleft()
            if expected != heard:
                self._add(number, expected, heard)

    def _add(self, number: int, expected: bytes | None, heard: bytes | None) -> None:
        one, other = (
            "nothing" if each is None else excerpt(_no_message(each)) or "an empty line" for each in (expected, heard)
        )
        text = f"{self._findings.at(number)}: a line of stderr\n  expected  {one}\n  found     {other}"
        self._findings.add("stderr", text, number, {"expected": one, "found": other})


def _always(_line: int) -> bool:
    return True


def _no_message(data: bytes) -> Classified:
    return Classified(OTHER, data.decode("utf-8", "surrogateescape"))


def _line_of(item: Frame | Junk) -> bytes:
    return item.payload if isinstance(item, Frame) else item.wire.removesuffix(b"\n")
