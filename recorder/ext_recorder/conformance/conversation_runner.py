"""A small host that holds a session with a child, step by step."""

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
    """One session.

    Args:
        place: where the child is.
        protocol: of its messages.
        known: what "$name" stands for.
        session: what to say.
        patience: seconds to wait for what must come.

    Attributes:
        exchange: what was said.
        left_out: messages that could not be said.
        asked: {clause that a step asks for: what is wrong}; nothing: it is met.
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
        self._waited_for: set[int] = set()  # numbers of messages that a step has waited for already
        self._replied_to = 0  # so many messages the host has answered, where there was something to answer

    def hold(self) -> None:
        """Do every step, let the child end, and hear what it still says.

        Raises:
            RecorderError: another connection to a server can't be made.
        """
        self.exchange.client(1)
        for step in self._session.steps:
            self._do(step)
        while self._session.lingers and self.exchange.hear(QUIET_SECONDS):
            pass
        self._reply()
        self.exchange.end_input()
        self._hear_all()

    def _do(self, step: Step) -> None:
        match step:
            case Say():
                self._say(step)
            case SayBytes():
                self.exchange.send(self.exchange.client(1), step.payload, self._patience)
                self._judge(step.wants, self._await(self._is_stray))
            case AwaitAnswer():
                if call := self.exchange.said.get(step.id):
                    self._judge(step.wants, self._await_answer(call))
            case Await():
                self._await_message(step)
            case Unanswered():
                stray = next(filter(self._is_stray, self.exchange.heard), None)
                self._find(step.clause, f"an answer to nothing: {_shown(stray)}" if stray else "")
            case EndInput():
                self.exchange.end_input()
            case Ends():
                left = self._hear_all()
                ended = not self.exchange.is_open and self._place.ended(left)
                self._find(step.clause, "" if ended else "it does not end")

    # --- Saying -------------------------------------------------------------------------------------------------------

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
        """A message with what its placeholders stand for; MISSING where one of them means nothing."""
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
            found = (resolve(each.value, slash + rest) for each in reversed(self.exchange.heard))
            return next((each for each in found if each is not MISSING), MISSING)
        value = self._known.get(name, MISSING)
        return f"{value}/{rest}" if slash and isinstance(value, str) else resolve(value, slash + rest)

    def _reply(self) -> None:
        """Answer what the child has asked for meanwhile."""
        asked, self._replied_to = self.exchange.heard[self._replied_to :], len(self.exchange.heard)
        for each in asked:
            reply = self._session.replies.get(each.message.method)
            if reply and isinstance(each.value, dict) and each.call is None:
                for message in reply(each.value, self._known):
                    self.exchange.say(self.exchange.client(each.client), message, self._patience)

    # --- Waiting ------------------------------------------------------------------------------------------------------

    def _await_message(self, step: Await) -> None:
        call = self.exchange.said.get(step.after)
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
            meant: which.
            unless: a request; when it is answered first, nothing has to come.
            holds: the host answers nothing meanwhile.
        """
        until = monotonic() + self._patience
        while True:
            for number, each in enumerate(self.exchange.heard):
                if number not in self._waited_for and meant(each):
                    self._waited_for.add(number)
                    return each
            if unless and unless not in self.exchange.open:
                return None
            if not holds:
                self._reply()
            if not self.exchange.hear(until - monotonic()):
                # The rest need not wait as long for a child that owes.
                self._patience = min(self._patience, QUIET_SECONDS)
                return None

    def _hear_all(self) -> float:
        """Hear what comes until the child has no more to say. Returns the seconds that are left of the patience."""
        until = monotonic() + self._patience
        while self.exchange.hear(until - monotonic()):
            pass
        return max(0.0, until - monotonic())

    # --- Judging ------------------------------------------------------------------------------------------------------

    def _is_stray(self, heard: ReceivedMessage) -> bool:
        """Is it an answer to nothing that was asked?"""
        return heard.call is not None and heard.call not in self.exchange.said.values()

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
        """Something that a clause is about was asked for; "": nothing is wrong with it."""
        found = self.asked.setdefault(clause, [])
        if wrong:
            found.append(wrong)


def _shown(heard: ReceivedMessage | None) -> str:
    text = heard.message.text if heard else "no answer"
    return text if len(text) <= _SHOWN_CHARS else text[:_SHOWN_CHARS] + "…"
