"""Clauses of the other specifications: those that `lint` knows, and those that a conversation asks for.

A clause is met when the child has said what it is about, and nothing was wrong with that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.events import Data
from ext_recorder.cassette.header import Header
from ext_recorder.errors import RecorderError
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.protocols.rules import RULES
from ext_recorder.tools.lint.linter import Linter

from .clauses import Clause
from .conversation_runner import ConversationRunner
from .conversations import CONVERSATIONS
from .raw_host import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from ext_recorder.cassette.events import Event
    from ext_recorder.conformance.conversations.steps import Session
    from ext_recorder.protocols.rules import Rules
    from ext_recorder.tools.lint.events import ClassifiedEvent

    from .peer import ChildUnderTest
    from .target import Target

_OWING = "answer-each"
_ANY = ("answer-known", _OWING, "message")  # of everything that is said
_UTF_8 = "utf-8"


def clauses_of(protocol: str) -> tuple[Clause, ...]:
    """The clauses of a protocol that a child can break: those of its rules in their order, then the others."""
    rules = _rules(protocol)
    said = {*rules.messages, *(event for each in rules.machines for event in each.events)}
    said |= {event for each in rules.during for event in each.events} | {"< !"}
    said |= {f"< = {method}" for method in (*rules.limits, *rules.echoes)}
    cited = set(_touched(protocol, {event for event in said if event.startswith("<")}))
    conversation = CONVERSATIONS[protocol]
    cited.update(*(session.clauses() for session in conversation.sessions))
    return tuple(
        Clause(f"{protocol}:{id}", clause.section, clause.text, _in_conversation)
        for id, clause in {**rules.clauses, **conversation.clauses}.items()
        if id in cited or id in conversation.clauses
    )


def ask(
    peer: ChildUnderTest,
    protocol: str,
    known: Mapping[str, object],
    only: Collection[str] = (),
    patience: float = PATIENCE_SECONDS,
) -> dict[str, tuple[str, str]]:
    """Hold the conversation, and look at it. The verdict on each clause by its id: (word, reason).

    Args:
        peer: the child.
        protocol: what it speaks.
        known: its profile, and what every session has: "workdir" and "session".
        only: ids of clauses; where sessions ask for all of these by themselves, the others are left out. (): all.
        patience: seconds to wait for what must come.

    Raises:
        RecorderError: it can't be started, or there is no server.
    """
    findings = _Findings(protocol)
    chosen = {id.partition(":")[2] for id in only}
    for number, session in enumerate(_sessions(protocol, chosen)):
        if chosen and findings.are_violated(chosen):
            break
        try:
            with peer.session() as place:
                talk = ConversationRunner(place, protocol, known, session, patience)
                talk.hold()
        except RecorderError as error:
            if not number:
                raise
            # It was there before: what was said to it then has ended it.
            findings.add({id: [str(error)] for id in session.clauses()})
        else:
            findings.look_at(talk)
    if findings.are_violated([_OWING]) and (words := peer.last_words()):
        findings.add({_OWING: [f"its last words on stderr:\n{words}"]})
    return findings.verdicts()


class _Findings:
    """What all sessions have shown."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._rules = _rules(protocol)
        self._wrong: dict[str, list[str]] = {}  # by clause; of those that were seen, [] where nothing is
        self._left_out = False

    def look_at(self, talk: ConversationRunner) -> None:
        """A session that was held."""
        judge = _Judge(self._protocol, self._rules)
        for number, event in enumerate(talk.exchange.events, 1):
            judge.take(event, number)
        judge.end()
        self.add({id: [] for id in _touched(self._protocol, judge.seen)})
        for problem in judge.problems:
            self.add({problem.kind: [problem.text.splitlines()[0].partition(": ")[2]]})
        self.add(talk.asked)
        if _UTF_8 in CONVERSATIONS[self._protocol].clauses:
            self.add(_encoding(talk.exchange.events))
        for head in talk.exchange.unframed:
            self.add({self._rules.junk: [f"expected header lines that end by \\r\\n, found {head!r}"]})
        self._left_out = self._left_out or bool(talk.left_out)

    def are_violated(self, clauses: Iterable[str]) -> bool:
        """Is something wrong with each of these already?"""
        return all(self._wrong.get(id) for id in clauses)

    def add(self, found: Mapping[str, Iterable[str]]) -> None:
        """What is wrong with clauses; nothing: they are met."""
        for id, wrong in found.items():
            self._wrong.setdefault(id, []).extend(wrong)

    def verdicts(self) -> dict[str, tuple[str, str]]:
        """See `ask`."""
        more = "; the profile may say more" if self._left_out else ""
        found = {}
        for clause in clauses_of(self._protocol):
            wrong = self._wrong.get(clause.id.partition(":")[2])
            if wrong is None:
                found[clause.id] = ("skipped", f"the child has said nothing that it is about{more}")
            else:
                found[clause.id] = ("violated", "\n".join(dict.fromkeys(wrong))) if wrong else ("met", "")
        return found


class _Judge(Linter):
    """A linter that knows what the child has said."""

    def __init__(self, protocol: str, rules: Rules) -> None:
        super().__init__(Header(protocol, DIALECTS[protocol].framing), rules, "message")
        self.seen: set[str] = set()
        self._of_child = True

    def take(self, event: Event, line: int) -> None:
        """Look at one event; what the host says is ours."""
        self._of_child = event.kind != "in"
        super().take(event, line)

    def end(self) -> None:
        """What was not answered by now never is: it was waited for."""
        self._of_child = self._is_complete = True
        super().end()

    def _find(self, id: str, text: str, pointer: str = "") -> None:
        if self._of_child:
            super()._find(id, text, pointer)

    def _check_content(self, event: Data, classified: ClassifiedEvent) -> None:
        self.seen.update(name for name in classified.names if name.startswith("<"))
        super()._check_content(event, classified)


def _touched(protocol: str, seen: set[str]) -> Iterator[str]:
    """The ids of the clauses that are about what was said."""
    if not seen:
        return
    rules, by_members = _rules(protocol), DIALECTS[protocol].tag == "method"
    yield from (*_ANY, rules.envelope_clause, *filter(None, (rules.closed, rules.junk)))
    yield from (clause for event, (clause, _) in rules.messages.items() if event in seen)
    yield from (each.clause for each in rules.machines if each.events & seen)
    yield from (each.clause for each in rules.during if seen.intersection(each.events))
    yield from (clause for method, clause in rules.notifications.items() if f"< {method}" in seen)
    yield from (clause for method, clause in {**rules.limits, **rules.echoes}.items() if f"< = {method}" in seen)
    if by_members:
        yield "either"
    if by_members and any(name.startswith("< !") for name in seen):
        yield "error-object"


def _encoding(events: Iterable[Event]) -> dict[str, list[str]]:
    """Is everything that the child says UTF-8? Nothing where it says nothing that would show it."""
    found: dict[str, list[str]] = {}
    for event in events:
        if isinstance(event, Data) and event.kind == "out" and not event.payload.isascii() and not event.raw:
            try:
                event.payload.decode()
                found.setdefault(_UTF_8, [])
            except UnicodeDecodeError as error:
                found.setdefault(_UTF_8, []).append(f"{event.payload[: error.end]!r} is no UTF-8")
    return found


def _sessions(protocol: str, only: set[str]) -> list[Session]:
    """The sessions to hold. The first shows clauses of the rules; the others show them as well."""
    conversation = CONVERSATIONS[protocol]
    by_steps_alone = bool(only) and only <= conversation.clauses.keys()
    return [each for each in conversation.sessions if not by_steps_alone or only & each.clauses() or only <= {_UTF_8}]


def _rules(protocol: str) -> Rules:
    rules = RULES.get(protocol)
    assert rules is not None, protocol
    return rules


def _in_conversation(_target: Target) -> None:
    raise NotImplementedError("asked in one conversation with the others")
