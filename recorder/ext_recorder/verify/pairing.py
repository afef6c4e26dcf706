"""Pairs of recorded and live messages of the child, their order, and the differences between the two sessions.

A response is paired with that of the same call, whatever its content. A request or a notification is paired with an
equal recorded one of the same method, and if there is none, with the first unpaired one of that method.

The recorded messages up to the next turn of the host are expected. A message that comes after its turn, or before it,
is still paired; only its order is reported as a difference. Messages of two overlapping calls have no order, nor have
messages that name two runs, two sessions or the like.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import TYPE_CHECKING, TypeAlias

from ext_recorder.messages.differences import SHOWN_PLACES, Differences, describe, excerpt, json_value
from ext_recorder.messages.json_values import places

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.messages.matcher import Difference, MessageComparison
    from ext_recorder.messages.name_map import NameMap
    from ext_recorder.protocols.dialect import ClassifiedMessage


# Maximum number of messages without a counterpart, so that memory does not grow with a session.
MOST_WAITING = 1_000
_REMEMBERED = 256  # pairs that a late message is compared with


class MessagePairing:
    """Pairing of live messages with recorded ones.

    Args:
        counterparts: names in both sessions; new ones are added.
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
        self._received: list[Received] = []  # without a counterpart
        self._pairs: deque[tuple[Expected, Received]] = deque(maxlen=_REMEMBERED)
        self._latest = (0, 0)  # indices of the last pair, in the recorded and in the live order

    @property
    def full(self) -> bool:
        """Return True if so many messages are expected that the cassette should not be read further."""
        return len(self._expected) >= MOST_WAITING

    def expect(self, expected: Expected) -> None:
        """Add the next recorded message of the child."""
        self._expected.append(expected)
        for received in self._received:  # without a counterpart yet: it came early
            is_response = expected.identity[0] == "response"
            if received.identity == expected.identity and (is_response or self._same(expected, received)):
                self._received.remove(received)
                self._take(len(self._expected) - 1, received)
                return

    def receive(self, received: Received) -> bool:
        """Add the next live message. Return True if an expected message may be its counterpart."""
        known = False
        for at, expected in enumerate(self._expected):
            if expected.identity != received.identity:
                continue
            if received.identity[0] == "response" or self._same(expected, received):
                self._take(at, received)
                return True
            known = known or not expected.carried
        self._received.append(received)
        if known:  # it differs from its likely counterpart: the host does not wait for the messages before that
            index = next(at for at, expected in enumerate(self._expected) if expected.identity == received.identity)
            self._pass(index)
        if len(self._received) > MOST_WAITING:
            self._findings.unexpected(self._received.pop(0))
        return known

    def drop(self, received: Received) -> None:
        """Report a live message that cannot have a counterpart."""
        self._received.remove(received)
        self._findings.unexpected(received)

    def awaited(self) -> list[Expected]:
        """Return the messages that the next turn of the host waits for."""
        come = Counter(received.identity for received in self._received)
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
        for expected in [message for message in self._expected if not message.carried]:
            same = (message for message in self._received if message.identity == expected.identity)
            if (received := next(same, None)) is None:
                expected.carried = True
            else:
                self._received.remove(received)
                self._take(self._expected.index(expected), received)
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
        for received in self._received:
            self._findings.unexpected(received)
        self._expected.clear()
        self._received.clear()

    def _same(self, expected: Expected, received: Received) -> bool:
        return not self._differences(expected, received, 1)

    def _differences(self, expected: Expected, received: Received, most: int) -> list[Difference]:
        call = {"answered": expected.answered, "about": expected.about}
        recorded, live = expected.message, received.message
        return self._comparison.differences(recorded, live, self._counterparts, most=most, **call)

    def _take(self, at: int, received: Received) -> None:
        """Pair two messages, and compare them."""
        expected = self._expected.pop(at)
        self._pass(at)
        recorded, live, counterparts = expected.message, received.message, self._counterparts
        differences = self._differences(expected, received, SHOWN_PLACES)
        if differences:
            subject = describe(recorded, expected.answered)
            self._findings.differs(expected.line, subject, differences, json_value(recorded), json_value(live))
        counterparts.learn(recorded, live, self._comparison.names(recorded))
        # Values that the child generates here, and the host sends back later.
        handed = list(places(recorded.members, self._comparison.handed(recorded, expected.answered, expected.about)))
        if handed:
            counterparts.learn(recorded, live, handed)
            secret = self._comparison.dialect.classify(received.payload)
            counterparts.hand_out(recorded, live, secret, handed)
        if self._in_order:
            self._check_order(expected, received)
        self._pairs.append((expected, received))
        self._on_pair(expected, received)

    def _pass(self, index: int) -> None:
        """Stop waiting for the messages that are recorded before this one, except responses.

        In any order, the host also waits for requests: they may come later, and its responses are recorded.
        """
        kinds = ("response",) if self._in_order else ("response", "request")
        for before in self._expected[:index]:
            before.passed = before.passed or before.identity[0] not in kinds

    def _check_order(self, expected: Expected, received: Received) -> None:
        if expected.index > self._latest[0] and received.index > self._latest[1]:
            self._latest = (expected.index, received.index)
            return  # the latest in both orders
        self._latest = (max(expected.index, self._latest[0]), max(received.index, self._latest[1]))
        subjects = self._comparison.subjects(expected.message)
        for other, counterpart in reversed(self._pairs):
            # Messages of two overlapping calls, two runs or two sessions have no order.
            pairs = zip(subjects, self._comparison.subjects(other.message), strict=True)
            are_apart = any(its and others and not its & others for its, others in pairs)
            if (other.index < expected.index) != (counterpart.index < received.index) and not are_apart:
                self._findings.out_of_order(expected, other)
                return


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
