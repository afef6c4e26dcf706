"""Small host that runs the steps of a session with a child."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from ext_sdk.core.text import cut
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.core.wire.json_pointer import MISSING, resolve

from .conversations import Await, AwaitAnswer, EndInput, Ends, Send, SendBytes, Unanswered
from .peer import Exchange
from .raw_host import QUIET_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .conversations import ExpectedValue, Session
    from .peer import Call, ReceivedMessage, SessionEndpoint

_SHOWN_CHARS = 200


class ConversationRunner:
    """Run of one session.

    Args:
        known: values of the placeholders "$name".
        timeout: seconds to wait for expected output.

    Attributes:
        left_out: number of messages that could not be sent.
        violations: {clause that a step checks: its violations}; an empty list: it is met.
    """

    def __init__(
        self, endpoint: SessionEndpoint, protocol: str, known: Mapping[str, object], session: Session, timeout: float
    ) -> None:
        self.exchange = Exchange(endpoint, protocol)
        self.left_out = 0
        self.violations: dict[str, list[str]] = {}
        self._endpoint = endpoint
        self._known = dict(known)
        self._session = session
        self._timeout = timeout
        self._waited_for: set[int] = set()  # numbers of messages that a step has waited for
        self._replied_to = 0  # number of messages that the host has handled

    def run(self) -> None:  # noqa: C901 - one case for each kind of step
        """Run every step, let the child exit, and read the rest of its output.

        Raises:
            RecorderError: another connection to the server fails.
        """
        self.exchange.client(1)
        for step in self._session.steps:
            match step:
                case Send():
                    self._send(step)
                case SendBytes():
                    self.exchange.send(self.exchange.client(1), step.payload, self._timeout)
                    self._check(step.expected, self._await(self._is_stray))
                case AwaitAnswer():
                    if call := self.exchange.sent.get(step.id):
                        self._check(step.expected, self._await_response(call))
                case Await():
                    self._await_message(step)
                case Unanswered():
                    stray = next(filter(self._is_stray, self.exchange.received), None)
                    self._add(step.clause, f"an answer to nothing: {_shown(stray)}" if stray else "")
                case EndInput():
                    self.exchange.end_input()
                case Ends():
                    left = self._receive_all()
                    ended = not self.exchange.is_open and self._endpoint.ended(left)
                    self._add(step.clause, "" if ended else "it does not end")
        while self._session.lingers and self.exchange.receive(QUIET_SECONDS):
            pass
        self._reply()
        self.exchange.end_input()
        self._receive_all()

    # --- Sending ------------------------------------------------------------------------------------------------------

    def _send(self, step: Send) -> None:
        message = self._filled(step.message)
        if message is MISSING:
            self.left_out += 1
            return
        call = self.exchange.send_json(self.exchange.client(step.client), message, self._timeout)
        if not call or not step.waits:
            return
        response = self._await_response(call, holds=step.holds)
        self._check(step.expected, response)
        if step.clause:
            is_result = response and response.message.at("/error") is MISSING
            self._add(step.clause, "" if is_result else f"expected a result, found {_shown(response)}")

    def _filled(self, value: object) -> object:
        """Return a message with the values of its placeholders; MISSING if one of them has no value."""
        if isinstance(value, dict):
            members = {key: self._filled(member) for key, member in value.items()}
            return MISSING if MISSING in members.values() else members
        if isinstance(value, list):
            items = [self._filled(item) for item in value]
            return MISSING if MISSING in items else items
        if not isinstance(value, str) or not value.startswith("$"):
            return value
        name, slash, rest = value[1:].partition("/")
        if not name:
            values = (resolve(received.value, slash + rest) for received in reversed(self.exchange.received))
            return next((value for value in values if value is not MISSING), MISSING)
        known = self._known.get(name, MISSING)
        return f"{known}/{rest}" if slash and isinstance(known, str) else resolve(known, slash + rest)

    def _reply(self) -> None:
        """Respond to the requests of the child."""
        new, self._replied_to = self.exchange.received[self._replied_to :], len(self.exchange.received)
        for received in new:
            reply = self._session.replies.get(received.message.method)
            if reply and isinstance(received.value, dict) and received.call is None:
                for message in reply(received.value, self._known):
                    self.exchange.send_json(self.exchange.client(received.client), message, self._timeout)

    # --- Waiting ------------------------------------------------------------------------------------------------------

    def _await_message(self, step: Await) -> None:
        call = self.exchange.sent.get(step.after)
        if step.after and (call is None or call in self.exchange.failed):
            return
        unless = None if step.clause else call
        message = self._await(lambda received: received.message.method == step.method, unless=unless)
        if step.clause:
            self._add(step.clause, "" if message else f"{step.method} does not come")
        if message and step.name:
            self._known[step.name] = message.value

    def _await_response(self, call: Call, *, holds: bool = False) -> ReceivedMessage | None:
        is_last = self.exchange.dialect.is_last
        return self._await(lambda received: received.call == call and is_last(received.message), holds=holds)

    def _await(
        self, meant: Callable[[ReceivedMessage], bool], *, unless: Call | None = None, holds: bool = False
    ) -> ReceivedMessage | None:
        """Wait for a message.

        Args:
            meant: returns True for the message.
            unless: a request; its last response ends the wait.
            holds: the host sends no responses before that.
        """
        until = monotonic() + self._timeout
        while True:
            for number, received in enumerate(self.exchange.received):
                if number not in self._waited_for and meant(received):
                    self._waited_for.add(number)
                    return received
            if unless and unless not in self.exchange.open:
                return None
            if not holds:
                self._reply()
            if not self.exchange.receive(until - monotonic()):
                # A child that is late once does not delay all further steps.
                self._timeout = min(self._timeout, QUIET_SECONDS)
                return None

    def _receive_all(self) -> float:
        """Read output until the child sends no more. Return the seconds that remain of the time limit."""
        until = monotonic() + self._timeout
        while self.exchange.receive(until - monotonic()):
            pass
        return max(0.0, until - monotonic())

    # --- Checking -----------------------------------------------------------------------------------------------------

    def _is_stray(self, received: ReceivedMessage) -> bool:
        """Return True for a response without a request."""
        return received.call is not None and received.call not in self.exchange.sent.values()

    def _check(self, expected: Sequence[ExpectedValue], received: ReceivedMessage | None) -> None:
        for rule in expected:
            value = self._filled(rule.value)
            if value is MISSING:
                continue
            values = (resolve(received.value, pointer) for pointer in rule.places) if received else ()
            actual = next((actual for actual in values if actual is not MISSING), MISSING)
            if actual == value and type(actual) is type(value):
                self._add(rule.clause, "")
            else:
                where = f"{dumps(value)} at {' or '.join(rule.places)}"
                self._add(rule.clause, f"expected {where}, found {_shown(received)}")

    def _add(self, clause: str, violation: str) -> None:
        """Record that a clause was checked, and how it was violated; "": it is met."""
        violations = self.violations.setdefault(clause, [])
        if violation:
            violations.append(violation)


def _shown(received: ReceivedMessage | None) -> str:
    return cut(received.message.text if received else "no response", _SHOWN_CHARS)
