"""Live messages of the child in the form that a cassette would have, and the lines of its standard error."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.cassette.events import STDERR_FRAMING, Data
from ext_recorder.messages.differences import shortened
from ext_recorder.messages.open_calls import CallTracker
from ext_recorder.protocols.dialect import OTHER, ClassifiedMessage
from ext_sdk.core.wire.frames import Frame

from .pairing import Expected, MessagePairing, Received, identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ext_recorder.cassette.events import Event
    from ext_recorder.messages.matcher import MessageComparison
    from ext_recorder.messages.name_map import NameMap
    from ext_recorder.messages.open_calls import IdMap
    from ext_recorder.messages.path_bindings import ReplayBindings
    from ext_sdk.core.wire.frames import Junk
    from ext_sdk.core.wire.framing import Framing

    from .pairing import LiveDifferences

    # The next events of the cassette, with their lines.
    Soon = Callable[[], Iterable[tuple[Event, int]]]


class StderrLines:
    """Comparison of the lines of standard error, in their order.

    Args:
        clean: returns live text as the recorder would have written it.
        canonical: returns recorded text with the placeholders of `clean`.
    """

    def __init__(
        self, findings: LiveDifferences, clean: Callable[[bytes], bytes], canonical: Callable[[bytes], bytes]
    ) -> None:
        self._findings = findings
        self._clean = clean
        self._canonical = canonical
        self._decoder = STDERR_FRAMING.decoder()
        self._expected: deque[tuple[bytes, int]] = deque()
        self._received: deque[bytes] = deque()

    def expect(self, items: Iterable[Frame | Junk], number: int) -> None:
        """Add recorded output, with its line in the cassette."""
        self._expected += ((self._canonical(_line_of(item)), number) for item in items)
        self._compare()

    def receive_data(self, data: bytes) -> None:
        """Add live bytes; b"" at the end."""
        if data:
            self._decoder.receive_data(data)
        else:
            self._decoder.receive_eof()
        while (item := self._decoder.next_event()) is not None:
            self._received.append(self._clean(_line_of(item)))
        self._compare()

    def finish(self) -> None:
        """Report the differences of the remaining lines."""
        for line, number in self._expected:
            self._findings.line(number, _text(line), None)
        for line in self._received:
            self._findings.line(0, None, _text(line))

    def _compare(self) -> None:
        while self._expected and self._received:
            (expected, number), received = self._expected.popleft(), self._received.popleft()
            if expected != received:
                self._findings.line(number, _text(expected), _text(received))


def _line_of(item: Frame | Junk) -> bytes:
    return item.payload if isinstance(item, Frame) else item.wire.removesuffix(b"\n")


def _text(line: bytes) -> str:
    return shortened(line.decode("utf-8", "surrogateescape"))


_REFUSED = "ext-recorder verify: the recorded child did not send this request here, so no response is recorded"


class LiveMessage(NamedTuple):
    """Consequences of a live message for the host.

    Attributes:
        known: True if an expected message may be its counterpart, so the session continues.
        refusal: error response to a request that was never recorded, as bytes; b"" for none.
    """

    known: bool
    refusal: bytes


class ChildMessages:
    """Reader of the messages of the child.

    Args:
        clean: returns live text as the recorder would have written it.
        child_calls: requests of the child by their recorded ids.
        soon: yields the next events of the cassette without consuming them.
        in_order: whether the order of its messages is compared.
        stderr: whether its stderr is compared.
        junk: whether lines that are not messages are compared.

    Attributes:
        reached: time in the recording that the session has reached, in seconds.
        lines: compares stderr; None if it is not compared.
    """

    def __init__(
        self,
        framing: Framing,
        *,
        clean: Callable[[bytes], bytes],
        bindings: ReplayBindings,
        comparison: MessageComparison,
        counterparts: NameMap,
        child_calls: IdMap,
        findings: LiveDifferences,
        soon: Soon,
        in_order: bool,
        stderr: bool,
        junk: bool,
    ) -> None:
        self._framing = framing
        self._clean = clean
        self._bindings = bindings
        self._dialect = comparison.dialect
        self._child_calls = child_calls
        self._soon = soon
        self._junk = junk
        self._decoder = framing.decoder()
        self._calls: CallTracker[tuple[str, str]] = CallTracker(self._dialect)  # of the host: method and subject
        self._expected = self._received = 0
        self.lines = StderrLines(findings, clean, lambda line: bindings.canonical(line, json=False)) if stderr else None
        self.window = MessagePairing(comparison, counterparts, findings, self._paired, in_order=in_order)
        self.reached = 0.0

    # --- The recording ------------------------------------------------------------------------------------------------

    def items(self, event: Data) -> list[Frame | Junk]:
        """Return the messages of a recorded event, and the bytes between them."""
        return event.items(self._framing)

    def expect(self, event: Data, line: int) -> None:
        """Add a recorded event of the child."""
        if event.kind == "err":
            if self.lines:
                self.lines.expect(self.items(event), line)
            return
        for item in self.items(event):
            message = self._recorded(item)
            if not self._counts(message):
                continue
            call = self._calls.response(event, message) or ("", "")
            self._expected += 1
            last = self._dialect.is_last(message)
            self.window.expect(Expected(self._expected, line, event.time, message, call, last=last))

    def _recorded(self, item: Frame | Junk) -> ClassifiedMessage:
        if isinstance(item, Frame):
            return self._dialect.classify(self._bindings.canonical(item.payload))
        return _no_message(self._bindings.canonical(item.wire, json=False))

    def add_sent(self, event: Data, message: ClassifiedMessage) -> None:
        """Add a message of the host, which may be a call."""
        if self._framing.name == "http" and message.method:
            self._decoder.methods.append(message.method.partition(" ")[0])  # type: ignore[attr-defined]
        self._calls.request(event, message, (message.method, self._dialect.about(message)))

    # --- The live child -----------------------------------------------------------------------------------------------

    def receive_data(self, data: bytes) -> None:
        """Add bytes of its stdout."""
        self._decoder.receive_data(data)

    def receive_eof(self) -> None:
        """Add the end of its stdout."""
        self._decoder.receive_eof()

    def next_event(self) -> LiveMessage | None:
        """Return the next live message to compare; None if there is no more."""
        while (item := self._decoder.next_event()) is not None:
            if isinstance(item, Frame):
                message = self._dialect.classify(self._clean(item.payload))
            elif item.wire.isspace():
                continue
            else:
                message = _no_message(self._clean(item.wire))
            if not self._counts(message):
                continue
            self._received += 1
            payload = item.payload if isinstance(item, Frame) else item.wire
            received = Received(self._received, message, payload, last=self._dialect.is_last(message))
            known = self.window.receive(received)
            refusal = None
            if not known and message.kind == "request":
                coming = (
                    identity(self._recorded(item), last=True)
                    for event, _ in self._soon()
                    if isinstance(event, Data) and event.kind == "out"
                    for item in self.items(event)
                    if isinstance(item, Frame)
                )
                if received.identity not in coming:
                    self.window.drop(received)
                    live = self._dialect.classify(payload)
                    refusal = self._dialect.refusal(live, _REFUSED, {"reason": "never-recorded"})
            return LiveMessage(known, b"" if refusal is None else self._framing.encode(refusal))
        return None

    def _counts(self, message: ClassifiedMessage) -> bool:
        return message.kind != "other" or not self._dialect.calls or self._junk

    def _paired(self, expected: Expected, received: Received) -> None:
        """Handle a pair of messages."""
        self.reached = max(self.reached, expected.time)
        if received.message.kind == "request" and expected.message.key is not None:
            self._child_calls.begin(expected.message.key, received.message.id.encode("utf-8", "surrogateescape"))


def _no_message(data: bytes) -> ClassifiedMessage:
    return ClassifiedMessage(OTHER, data.decode("utf-8", "surrogateescape"))
