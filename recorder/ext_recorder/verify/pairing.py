"""What the child says beside what it is expected to say: which message is which, and in which order they come.

An answer belongs to its call, whatever it says. A request or a notification belongs to the recorded one of the same
method that is equal to it, and where none is, to the first of that method that nothing else came for.

Expected is what the recording has up to the host's next turn. A message that came too late for its turn is still
known when it comes, and so is one that comes too early; only their order is then told as a difference. There is no
order between what belongs to two calls that overlap, and between messages that name two runs, two sessions or the like.
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


# Messages that wait for their counterparts are at most so many, so that memory does not grow with a session.
MOST_WAITING = 1_000
_REMEMBERED = 256  # pairs that a late message is compared with


class MessagePairing:
    """Pairs live messages with recorded ones.

    Args:
        comparison: what counts.
        counterparts: names of both sessions; learnt here.
        findings: where differences go.
        on_pair: called for each pair: (recorded, live).
        in_order: whether the order of messages counts.
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
        self._heard: list[Received] = []  # without a counterpart so far
        self._pairs: deque[tuple[Expected, Received]] = deque(maxlen=_REMEMBERED)
        self._latest = (0, 0)  # of the pairs, in the recorded and in the live order

    @property
    def full(self) -> bool:
        """Is so much expected that nothing more should be read?"""
        return len(self._expected) >= MOST_WAITING

    def expect(self, expected: Expected) -> None:
        """The next recorded message of the child."""
        self._expected.append(expected)
        if self._heard:
            self._look_back(expected)

    def hear(self, heard: Received) -> bool:
        """The next live message. Returns whether it may have a counterpart among those that are expected."""
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
        """Nothing expected will ever belong to this."""
        self._heard.remove(heard)
        self._findings.unexpected(heard)

    def awaited(self) -> list[Expected]:
        """What has to come before it is the host's turn."""
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
        """It is the host's turn: what came without an equal belongs to the first of its kind."""
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
        """It did not come in time; should it come yet, it comes too late."""
        expected.passed = True

    def finish(self, *, missing: bool = True) -> None:
        """Nothing more comes.

        Args:
            missing: tell what did not come; not where it was told already that nothing could.
        """
        self.settle()
        for expected in self._expected if missing else ():
            self._findings.missing(expected)
        for heard in self._heard:
            self._findings.unexpected(heard)
        self._expected.clear()
        self._heard.clear()

    def _look_back(self, expected: Expected) -> None:
        """Did it come before it was its turn?"""
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
        """These two belong together."""
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
        """Learn the values that the child hands out here."""
        pointers = self._comparison.handed(expected.message, expected.answered, expected.about)
        handed = list(places(expected.message.members, pointers))
        if handed:
            self._counterparts.learn(expected.message, heard.message, handed)
            secret = self._comparison.dialect.classify(heard.payload)
            self._counterparts.hand_out(expected.message, heard.message, secret, handed)

    def _pass_before(self, heard: Received) -> None:
        """It has come, unequal as it is, so nobody waits for what is recorded before it."""
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
        """Do these come in any order, because they belong to two calls that overlap, to two runs, to two sessions?"""
        subjects = zip(*(self._comparison.subjects(each.message) for each in (one, other)), strict=True)
        return any(its and others and not its & others for its, others in subjects)
