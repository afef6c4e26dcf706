"""Differences between a recorded session and a live one, apart from those within a message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.messages.differences import Differences, describe, excerpt

if TYPE_CHECKING:
    from .paired_messages import Expected, Received


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
