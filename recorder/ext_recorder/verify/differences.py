"""What differs between a recorded session and a live one: all that can be said of it beside two unequal messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.messages.differences import Differences
from ext_recorder.messages.format import describe, excerpt

if TYPE_CHECKING:
    from .paired_messages import Expected, Received


class LiveDifferences(Differences):
    """What was found in one session with a real child."""

    def missing(self, expected: Expected) -> None:
        """A recorded message did not come."""
        text = f"it did not come\n  expected  {excerpt(expected.message)}"
        self._say("missing", expected.line, _name(expected), text, expected=excerpt(expected.message))

    def unexpected(self, heard: Received) -> None:
        """A live message has no counterpart."""
        text = f"nothing like it is recorded\n  found     {excerpt(heard.message)}"
        self._say("unexpected", 0, describe(heard.message), text, found=excerpt(heard.message))

    def out_of_order(self, expected: Expected, other: Expected) -> None:
        """Two messages came in another order.

        Args:
            expected: the one that came last.
            other: the one that it should have come after, or before.
        """
        before = other.index < expected.index
        lines = [other.line, expected.line] if before else [expected.line, other.line]
        text = (
            f"came {'before' if before else 'after'} {_name(other)}, recorded in the other order "
            f"(lines {lines[0]} and {lines[1]}; --order any accepts any order)"
        )
        self._say("order", expected.line, _name(expected), text, lines=lines)

    def late(self, owed: Expected, took: float, patience: float) -> None:
        """An answer has not come in time.

        Args:
            owed: the recorded one.
            took: seconds that it took in the recording.
            patience: seconds beyond that.
        """
        text = f"it did not come within {took + patience:g} s (recorded after {took:.3f} s; --timeout gives more)"
        self._say("timeout", owed.line, _name(owed), text, seconds=round(took + patience, 3))

    def ended(self, line: int, awaited: Expected | None) -> None:
        """The child says nothing more, though the recorded one did.

        Args:
            line: where.
            awaited: what was awaited, where that is known.
        """
        what = _name(awaited) if awaited else "another message"
        self._say("ended", line, what, "the child has ended its output before")

    def given_up(self, messages: int) -> None:
        """So many messages of the host were never sent."""
        what = "one message" if messages == 1 else f"{messages} messages"
        self.add("given-up", f"{self.at(0)}: {what} of the host could not be sent any more")

    def line(self, number: int, expected: str | None, found: str | None) -> None:
        """A line of standard error is another one, or only in one of the sessions.

        Args:
            number: where it stands; 0 where it is not recorded.
            expected: the recorded one.
            found: the live one.
        """
        one, other = ("nothing" if each is None else each or "an empty line" for each in (expected, found))
        text = f"{self.at(number)}: a line of stderr\n  expected  {one}\n  found     {other}"
        self.add("stderr", text, number, {"expected": one, "found": other})

    def http(self, text: str) -> None:
        """What the child asked of servers is not what was recorded."""
        self.add("http", f"{self.at(0)}: {text}", 0, {"text": text})

    def _say(self, kind: str, line: int, subject: str, text: str, **data: object) -> None:
        self.add(kind, f"{self.at(line)}: {subject}: {text}", line, {"message": subject, **data})


def _name(expected: Expected) -> str:
    return describe(expected.message, expected.answered)
