"""Small host that runs the steps of a session with a child."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.conformance.conversations.steps import Await, AwaitAnswer, EndInput, Ends, Say, SayBytes, Unanswered
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.core.wire.json_pointer import MISSING, resolve

from .peer import Exchange
from .raw_host import QUIET_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ext_recorder.conformance.conversations.steps import Session, Step, Want

    from .peer import Call, ReceivedMessage, SessionEndpoint

_SHOWN_CHARS = 200


class ConversationRunner:
    """Run of one session.

    Args:
        place: endpoint of the session.
        protocol: name of the protocol.
        known: values of the placeholders "$name".
        session: its steps.
        patience: seconds to wait for expected output.

    Attributes:
        exchange: its messages.
        left_out: number of messages that could not be sent.
        asked: {clause that a step checks: its violations}; an empty list: it is met.
    """

    def __init__(
        self, place: SessionEndpoint, protocol: str, known: Mapping[str, object], session: Session, patience: float
    ) -> None:
        self.exchange = Exchange(place, protocol)
        self.left_out = 0
        self.asked: dict[str, list[str]] = {}
        self._place = place
        self._known = dict(known)
        self._session = session
        self._patience = patience
        self._waited_for: set[int] = set()  # numbers of messages that a step has waited for
        self._replied_to = 0  # number of messages that the host has handled

    def hold(self) -> None:
        """Run every step, let the child exit, and read the rest of its output.

        Raises:
            RecorderError: another connection to the server fails.
        """
        self.exchange.client(1)
        for step in self._session.steps:
            self._do(step)
        while self._session.lingers and self.exchange.receive(QUIET_SECONDS):
            pass
        self._reply()
        self.exchange.end_input()
        self._receive_all()

    def _do(self, step: Step) -> None:
        match step:
            case Say():
                self._say(step)
            case SayBytes():
                self.exchange.send(self.exchange.client(1), step.payload, self._patience)
                self._judge(step.wants, self._await(self._is_stray))
            case AwaitAnswer():
                if call := self.exchange.sent.get(step.id):
                    self._judge(step.wants, self._await_answer(call))
            case Await():
                self._await_message(step)
            case Unanswered():
                stray = next(filter(self._is_stray, self.exchange.received), None)
                self._find(step.clause, f"an answer to nothing: {_shown(stray)}" if stray else "")
            case EndInput():
                self.exchange.end_input()
            case Ends():
                left = self._receive_all()
                ended = not self.exchange.is_open and self._place.ended(left)
                self._find(step.clause, "" if ended else "it does not end")

    # --- Sending ------------------------------------------------------------------------------------------------------

    def _say(self, step: Say) -> None:
        said = self._filled(step.message)
        if said is MISSING:
            self.left_out += 1
            return
        call = self.exchange.say(self.exchange.client(step.client), said, self._patience)
        if not call or not step.waits:
            return
        heard = self._await_answer(call, holds=step.holds)
        self._judge(step.wants, heard)
        if step.clause:
            is_result = heard and heard.message.at("/error") is MISSING
            self._find(step.clause, "" if is_result else f"expected a result, found {_shown(heard)}")

    def _filled(self, value: object) -> object:
        """Return a message with the values of its placeholders; MISSING if one of them has no value."""
        if isinstance(value, str) and value.startswith("$"):
            return self._meant(value)
        if isinstance(value, dict):
            members = {key: self._filled(each) for key, each in value.items()}
            return MISSING if MISSING in members.values() else members
        if isinstance(value, list):
            items = [self._filled(each) for each in value]
            return MISSING if MISSING in items else items
        return value

    def _meant(self, placeholder: str) -> object:
        name, slash, rest = placeholder[1:].partition("/")
        if not name:
            found = (resolve(each.value, slash + rest) for each in reversed(self.exchange.received))
            return next((each for each in found if each is not MISSING), MISSING)
        value = self._known.get(name, MISSING)
        return f"{value}/{rest}" if slash and isinstance(value, str) else resolve(value, slash + rest)

    def _reply(self) -> None:
        """Respond to the requests of the child."""
        asked, self._replied_to = self.exchange.received[self._replied_to :], len(self.exchange.received)
        for each in asked:
            reply = self._session.replies.get(each.message.method)
            if reply and isinstance(each.value, dict) and each.call is None:
                for message in reply(each.value, self._known):
                    self.exchange.say(self.exchange.client(each.client), message, self._patience)

    # --- Waiting ------------------------------------------------------------------------------------------------------

    def _await_message(self, step: Await) -> None:
        call = self.exchange.sent.get(step.after)
        if step.after and (call is None or call in self.exchange.failed):
            return
        unless = None if step.clause else call
        heard = self._await(lambda heard: heard.message.method == step.method, unless=unless)
        if step.clause:
            self._find(step.clause, "" if heard else f"{step.method} does not come")
        if heard and step.name:
            self._known[step.name] = heard.value

    def _await_answer(self, call: Call, *, holds: bool = False) -> ReceivedMessage | None:
        is_last = self.exchange.dialect.is_last
        return self._await(lambda heard: heard.call == call and is_last(heard.message), holds=holds)

    def _await(
        self, meant: Callable[[ReceivedMessage], bool], *, unless: Call | None = None, holds: bool = False
    ) -> ReceivedMessage | None:
        """Wait for a message.

        Args:
            meant: returns True for the message.
            unless: a request; its last response ends the wait.
            holds: the host sends no responses in the meantime.
        """
        until = monotonic() + self._patience
        while True:
            for number, each in enumerate(self.exchange.received):
                if number not in self._waited_for and meant(each):
                    self._waited_for.add(number)
                    return each
            if unless and unless not in self.exchange.open:
                return None
            if not holds:
                self._reply()
            if not self.exchange.receive(until - monotonic()):
                # A child that is late once does not delay all further steps.
                self._patience = min(self._patience, QUIET_SECONDS)
                return None

    def _receive_all(self) -> float:
        """Read output until the child sends no more. Return the seconds that are left of the patience."""
        until = monotonic() + self._patience
        while self.exchange.receive(until - monotonic()):
            pass
        return max(0.0, until - monotonic())

    # --- Checking -----------------------------------------------------------------------------------------------------

    def _is_stray(self, heard: ReceivedMessage) -> bool:
        """Return True for a response without a request."""
        return heard.call is not None and heard.call not in self.exchange.sent.values()

    def _judge(self, wants: Sequence[Want], heard: ReceivedMessage | None) -> None:
        for want in wants:
            expected = self._filled(want.value)
            if expected is MISSING:
                continue
            found = (resolve(heard.value, place) for place in want.places) if heard else ()
            value = next((each for each in found if each is not MISSING), MISSING)
            if value == expected and type(value) is type(expected):
                self._find(want.clause, "")
            else:
                wanted = f"{dumps(expected)} at {' or '.join(want.places)}"
                self._find(want.clause, f"expected {wanted}, found {_shown(heard)}")

    def _find(self, clause: str, wrong: str) -> None:
        """Record that a clause was checked, and how it was violated; "": it is met."""
        found = self.asked.setdefault(clause, [])
        if wrong:
            found.append(wrong)


def _shown(heard: ReceivedMessage | None) -> str:
    text = heard.message.text if heard else "no response"
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
