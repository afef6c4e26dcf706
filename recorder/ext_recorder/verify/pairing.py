"""Pairs of recorded and live messages of the child, and their order.

A response is paired with that of the same call, whatever its content. A request or a notification is paired with an
equal recorded one of the same method, and if there is none, with the first unpaired one of that method.

The recorded messages up to the next turn of the host are expected. A message that comes after its turn, or before it,
is still paired; only its order is reported as a difference. Messages of two overlapping calls have no order, nor have
messages that name two runs, two sessions or the like.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING

from ext_recorder.messages.differences import SHOWN_PLACES
from ext_recorder.messages.format import describe, json_value
from ext_recorder.messages.json_values import places

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.messages.matcher import MessageComparison
    from ext_recorder.messages.name_map import NameMap

    from .differences import LiveDifferences
    from .paired_messages import Expected, Received


# Maximum number of messages without a counterpart, so that memory does not grow with a session.
MOST_WAITING = 1_000
_REMEMBERED = 256  # pairs that a late message is compared with


class MessagePairing:
    """Pairs live messages with recorded ones.

    Args:
        comparison: compares two messages.
        counterparts: names in both sessions; new ones are added.
        findings: collects the differences.
        on_pair: called for each pair: (recorded, live).
        in_order: whether the order of messages is compared.
    """

    def __init__(
        self,
        comparison: MessageComparison,
        counterparts: NameMap,
        findings: LiveDifferences,
        on_pair: Callable[[Expected, Received], None],
        *,
        in_order: bool = True,
    ) -> None:
        self._comparison = comparison
        self._counterparts = counterparts
        self._findings = findings
        self._on_pair = on_pair
        self._in_order = in_order
        self._expected: list[Expected] = []
        self._heard: list[Received] = []  # without a counterpart
        self._pairs: deque[tuple[Expected, Received]] = deque(maxlen=_REMEMBERED)
        self._latest = (0, 0)  # indices of the last pair, in the recorded and in the live order

    @property
    def full(self) -> bool:
        """Return True if so many messages are expected that the cassette should not be read further."""
        return len(self._expected) >= MOST_WAITING

    def expect(self, expected: Expected) -> None:
        """Add the next recorded message of the child."""
        self._expected.append(expected)
        if self._heard:
            self._look_back(expected)

    def hear(self, heard: Received) -> bool:
        """Add the next live message. Return True if an expected message may be its counterpart."""
        known = False
        for at, expected in enumerate(self._expected):
            if expected.identity != heard.identity:
                continue
            if heard.identity[0] == "response" or self._same(expected, heard):
                self._take(at, heard)
                return True
            known = known or not expected.carried
        self._heard.append(heard)
        if known:
            self._pass_before(heard)
        if len(self._heard) > MOST_WAITING:
            self._findings.unexpected(self._heard.pop(0))
        return known

    def drop(self, heard: Received) -> None:
        """Report a live message that cannot have a counterpart."""
        self._heard.remove(heard)
        self._findings.unexpected(heard)

    def awaited(self) -> list[Expected]:
        """Return the messages that the next turn of the host waits for."""
        come = Counter(heard.identity for heard in self._heard)
        waiting = []
        for expected in self._expected:
            if expected.carried:
                continue
            if come[expected.identity]:
                come[expected.identity] -= 1
            elif not expected.passed:
                waiting.append(expected)
        return waiting

    def settle(self) -> None:
        """Begin a turn of the host: pair the remaining live messages with the first ones of their identity."""
        if not self._expected:
            return
        for expected in [each for each in self._expected if not each.carried]:
            heard = next((each for each in self._heard if each.identity == expected.identity), None)
            if heard is None:
                expected.carried = True
            else:
                self._heard.remove(heard)
                self._take(self._expected.index(expected), heard)
        while len(self._expected) > MOST_WAITING // 2:
            self._findings.missing(self._expected.pop(0))

    def give_up(self, expected: Expected) -> None:
        """Stop waiting for a message; it may still come late."""
        expected.passed = True

    def finish(self, *, missing: bool = True) -> None:
        """Report all messages without counterparts.

        Args:
            missing: whether to report recorded messages, unless the reason was already reported.
        """
        self.settle()
        for expected in self._expected if missing else ():
            self._findings.missing(expected)
        for heard in self._heard:
            self._findings.unexpected(heard)
        self._expected.clear()
        self._heard.clear()

    def _look_back(self, expected: Expected) -> None:
        """Pair a recorded message with a live one that came early."""
        for heard in self._heard:
            if heard.identity == expected.identity and (
                expected.identity[0] == "response" or self._same(expected, heard)
            ):
                self._heard.remove(heard)
                self._take(len(self._expected) - 1, heard)
                return

    def _same(self, expected: Expected, heard: Received) -> bool:
        found = self._comparison.differences(
            expected.message, heard.message, self._counterparts, answered=expected.answered, about=expected.about
        )
        return not found

    def _take(self, at: int, heard: Received) -> None:
        """Pair two messages, and compare them."""
        expected = self._expected.pop(at)
        for before in self._expected[:at]:
            before.passed = before.passed or before.identity[0] != "response"
        found = self._comparison.differences(
            expected.message,
            heard.message,
            self._counterparts,
            answered=expected.answered,
            about=expected.about,
            most=SHOWN_PLACES,
        )
        if found:
            subject = describe(expected.message, expected.answered)
            values = json_value(expected.message), json_value(heard.message)
            self._findings.differs(expected.line, subject, found, *values)
        self._counterparts.learn(expected.message, heard.message, self._comparison.names(expected.message))
        self._hand_out(expected, heard)
        if self._in_order:
            self._check_order(expected, heard)
        self._pairs.append((expected, heard))
        self._on_pair(expected, heard)

    def _hand_out(self, expected: Expected, heard: Received) -> None:
        """Learn the values that the child generates in this message."""
        pointers = self._comparison.handed(expected.message, expected.answered, expected.about)
        handed = list(places(expected.message.members, pointers))
        if handed:
            self._counterparts.learn(expected.message, heard.message, handed)
            secret = self._comparison.dialect.classify(heard.payload)
            self._counterparts.hand_out(expected.message, heard.message, secret, handed)

    def _pass_before(self, heard: Received) -> None:
        """Stop waiting for the messages that are recorded before an unequal message."""
        index = next(at for at, each in enumerate(self._expected) if each.identity == heard.identity)
        for before in self._expected[:index]:
            before.passed = before.passed or before.identity[0] != "response"

    def _check_order(self, expected: Expected, heard: Received) -> None:
        if expected.index > self._latest[0] and heard.index > self._latest[1]:
            self._latest = (expected.index, heard.index)
            return  # the latest in both orders
        self._latest = (max(expected.index, self._latest[0]), max(heard.index, self._latest[1]))
        for other, came in reversed(self._pairs):
            earlier = other.index < expected.index
            if earlier == (came.index < heard.index) or self._are_apart(expected, other):
                continue
            self._findings.out_of_order(expected, other)
            return

    def _are_apart(self, one: Expected, other: Expected) -> bool:
        """Return True if two messages have no order: they belong to overlapping calls, two runs or two sessions."""
        subjects = zip(*(self._comparison.subjects(each.message) for each in (one, other)), strict=True)
        return any(its and others and not its & others for its, others in subjects)
