"""Recorded and live messages, and differences between two sessions apart from those within a message."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from ext_recorder.messages.differences import Differences, describe, excerpt

if TYPE_CHECKING:
    from ext_recorder.protocols.dialect import ClassifiedMessage


class LiveDifferences(Differences):
    """Differences in one session with a real child."""

    def missing(self, expected: Expected) -> None:
        """Report a recorded message that did not come."""
        text = f"it did not come\n  expected  {excerpt(expected.message)}"
        self._report("missing", expected.line, _name(expected), text, expected=excerpt(expected.message))

    def unexpected(self, received: Received) -> None:
        """Report a live message without a counterpart."""
        text = f"nothing like it is recorded\n  found     {excerpt(received.message)}"
        self._report("unexpected", 0, describe(received.message), text, found=excerpt(received.message))

    def out_of_order(self, expected: Expected, other: Expected) -> None:
        """Report two messages in another order.

        Args:
            expected: the later live message.
            other: the message that it should have preceded or followed.
        """
        before = other.index < expected.index
        lines = [other.line, expected.line] if before else [expected.line, other.line]
        text = (
            f"came {'before' if before else 'after'} {_name(other)}, recorded in the other order "
            f"(lines {lines[0]} and {lines[1]}; --order any accepts any order)"
        )
        self._report("order", expected.line, _name(expected), text, lines=lines)

    def late(self, owed: Expected, took: float, timeout: float) -> None:
        """Report a response that did not come before its deadline.

        Args:
            took: seconds that it took in the recording.
            timeout: further seconds that were allowed.
        """
        text = f"it did not come within {took + timeout:g} s (recorded after {took:.3f} s; --timeout gives more)"
        self._report("timeout", owed.line, _name(owed), text, seconds=round(took + timeout, 3))

    def ended(self, line: int, awaited: Expected | None) -> None:
        """Report that the child ended its output early.

        Args:
            awaited: message that was expected next, if that is known.
        """
        what = _name(awaited) if awaited else "another message"
        self._report("ended", line, what, "the child has ended its output before")

    def given_up(self, messages: int) -> None:
        """Report the number of messages of the host that were never sent."""
        what = "one message" if messages == 1 else f"{messages} messages"
        self.add("given-up", f"{self.at(0)}: {what} of the host could not be sent any more")

    def line(self, number: int, expected: str | None, found: str | None) -> None:
        """Report a line of standard error that differs, or is missing in one session.

        Args:
            number: line of the cassette; 0 if it is not recorded.
            expected: the recorded line, or None.
            found: the live line, or None.
        """
        left, right = ("nothing" if line is None else line or "an empty line" for line in (expected, found))
        text = f"{self.at(number)}: a line of stderr\n  expected  {left}\n  found     {right}"
        self.add("stderr", text, number, {"expected": left, "found": right})

    def http(self, text: str) -> None:
        """Report HTTP requests of the child that differ from the recorded ones."""
        self.add("http", f"{self.at(0)}: {text}", 0, {"text": text})

    def _report(self, kind: str, line: int, subject: str, text: str, **data: object) -> None:
        self.add(kind, f"{self.at(line)}: {subject}: {text}", line, {"message": subject, **data})


def _name(expected: Expected) -> str:
    return describe(expected.message, expected.answered)


Identity: TypeAlias = tuple[str, str, bytes | None, bool]


class Expected:
    """A recorded message of the child.

    Attributes:
        index: its position in the recorded order.
        line: of the cassette.
        time: seconds from the start of the recording.
        answered: of a response: the method of its request.
        about: of a response: the subject of its request.
        identity: must be equal in its counterpart.
        passed: True if a later message has come, so the host does not wait for this one.
        carried: True after its turn of the host.
    """

    __slots__ = ("about", "answered", "carried", "identity", "index", "line", "message", "passed", "time")

    def __init__(
        self, index: int, line: int, time: float, message: ClassifiedMessage, call: tuple[str, str], *, last: bool
    ) -> None:
        self.index = index
        self.line = line
        self.time = time
        self.message = message
        self.answered, self.about = call
        self.identity = identity(message, last=last)
        self.passed = False
        self.carried = False


class Received:
    """A live message of the child.

    Attributes:
        index: its position in the live order.
        message: the classified message, in the form that a cassette would have.
        identity: see Expected.
        payload: the message as the child sent it.
    """

    __slots__ = ("identity", "index", "message", "payload")

    def __init__(self, index: int, message: ClassifiedMessage, payload: bytes, *, last: bool) -> None:
        self.index = index
        self.payload = payload
        self.message = message
        self.identity = identity(message, last=last)


def identity(message: ClassifiedMessage, *, last: bool) -> Identity:
    """Return the key of the messages that may be counterparts: the call of a response, else the method."""
    if message.kind == "response":
        return "response", "", message.key, last
    return message.kind, message.method, None, True
