"""Clauses of the other specifications: those of the rules of `lint`, and those that a conversation checks.

A clause is met if the child has sent messages that it applies to, and none of them violates it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.events import Data
from ext_recorder.cassette.header import Header
from ext_recorder.conformance.conversations import CONVERSATIONS
from ext_recorder.conformance.target import CheckedClause
from ext_recorder.errors import RecorderError
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.protocols.rules import rules_of
from ext_recorder.tools.lint import Linter

from .conversation_runner import ConversationRunner
from .raw_host import TIMEOUT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from ext_recorder.cassette.events import Event
    from ext_recorder.protocols.rules import Rules
    from ext_recorder.tools.lint import ClassifiedEvent

    from .peer import ChildUnderTest
    from .target import Target

_EACH_ANSWERED = "answer-each"
_ANY = ("answer-known", _EACH_ANSWERED, "message")  # apply to every message
_UTF_8 = "utf-8"


def clauses_of(protocol: str) -> tuple[CheckedClause, ...]:
    """Return the clauses of a protocol that a child can violate: those of its rules in their order, then the others."""
    rules = _rules(protocol)
    events = {*rules.messages, *(event for machine in rules.machines for event in machine.events), "< !"}
    events |= {event for rule in rules.during for event in rule.events}
    events |= {f"< = {method}" for method in (*rules.limits, *rules.echoes)}
    cited = set(_touched(protocol, {event for event in events if event.startswith("<")}))
    conversation = CONVERSATIONS[protocol]
    cited.update(*(session.clauses() for session in conversation.sessions))
    return tuple(
        CheckedClause(f"{protocol}:{id}", clause.section, clause.text, _in_conversation)
        for id, clause in {**rules.clauses, **conversation.clauses}.items()
        if id in cited or id in conversation.clauses
    )


def run_conversation(
    peer: ChildUnderTest,
    protocol: str,
    known: Mapping[str, object],
    only: Collection[str] = (),
    timeout: float = TIMEOUT_SECONDS,
) -> dict[str, tuple[str, str]]:
    """Run the conversation of a protocol, and return the verdict on each clause by its id: (word, reason).

    Args:
        known: its profile, and the values of every session: "workdir" and "session".
        only: ids of clauses; sessions that are not needed for them are skipped. (): all.
        timeout: seconds to wait for expected output.

    Raises:
        RecorderError: the child cannot be started, or no server listens at the address.
    """
    findings = _Findings(protocol)
    chosen = {id.partition(":")[2] for id in only}
    conversation = CONVERSATIONS[protocol]
    # The first session covers the clauses of the rules; it is not needed if only steps check the chosen clauses.
    by_steps_alone = bool(chosen) and chosen <= conversation.clauses.keys()
    sessions = [
        session
        for session in conversation.sessions
        if not by_steps_alone or chosen & session.clauses() or chosen <= {_UTF_8}
    ]
    for number, session in enumerate(sessions):
        if chosen and findings.are_violated(chosen):
            break
        try:
            with peer.session() as endpoint:
                runner = ConversationRunner(endpoint, protocol, known, session, timeout)
                runner.run()
        except RecorderError as error:
            if not number:
                raise
            # It was running before: messages of the previous session made it exit.
            findings.add({id: [str(error)] for id in session.clauses()})
        else:
            findings.check(runner)
    if findings.are_violated([_EACH_ANSWERED]) and (words := peer.last_words()):
        findings.add({_EACH_ANSWERED: [f"the end of its output on stderr:\n{words}"]})
    return findings.verdicts()


class _Findings:
    """Violations that were found in all sessions."""

    def __init__(self, protocol: str) -> None:
        self._protocol = protocol
        self._rules = _rules(protocol)
        self._wrong: dict[str, list[str]] = {}  # by clause; an empty list if a clause was checked and is met
        self._left_out = False

    def check(self, runner: ConversationRunner) -> None:
        """Check the messages of a session."""
        linter = _ChildLinter(self._protocol, self._rules)
        checks_encoding = _UTF_8 in CONVERSATIONS[self._protocol].clauses
        for number, event in enumerate(runner.exchange.events, 1):
            linter.take(event, number)
            if checks_encoding and isinstance(event, Data) and event.kind == "out" and not event.raw:
                if event.payload.isascii():
                    continue
                try:
                    event.payload.decode()
                    self.add({_UTF_8: []})
                except UnicodeDecodeError as error:
                    self.add({_UTF_8: [f"{event.payload[: error.end]!r} is not UTF-8"]})
        linter.end()
        self.add({id: [] for id in _touched(self._protocol, linter.seen)})
        for problem in linter.problems:
            self.add({problem.kind: [problem.text.splitlines()[0].partition(": ")[2]]})
        self.add(runner.violations)
        for head in runner.exchange.unframed:
            self.add({self._rules.junk: [f"expected header lines that end by \\r\\n, found {head!r}"]})
        self._left_out = self._left_out or bool(runner.left_out)

    def are_violated(self, clauses: Iterable[str]) -> bool:
        """Return True if each of these clauses is violated."""
        return all(self._wrong.get(id) for id in clauses)

    def add(self, violations: Mapping[str, Iterable[str]]) -> None:
        """Add violations by clause; an empty list: the clause is met."""
        for id, wrong in violations.items():
            self._wrong.setdefault(id, []).extend(wrong)

    def verdicts(self) -> dict[str, tuple[str, str]]:
        """Return the verdicts, see `run_conversation`."""
        more = "; add entries to the profile" if self._left_out else ""
        verdicts = {}
        for clause in clauses_of(self._protocol):
            wrong = self._wrong.get(clause.id.partition(":")[2])
            if wrong is None:
                verdicts[clause.id] = ("skipped", f"the child has sent no message that it applies to{more}")
            else:
                verdicts[clause.id] = ("violated", "\n".join(dict.fromkeys(wrong))) if wrong else ("met", "")
        return verdicts


class _ChildLinter(Linter):
    """Linter that reports only on messages of the child, and records which of them it has seen."""

    def __init__(self, protocol: str, rules: Rules) -> None:
        super().__init__(Header(protocol, DIALECTS[protocol].framing), rules, "message")
        self.seen: set[str] = set()
        self._of_child = True

    def take(self, event: Event, line: int) -> None:
        """Check one event; messages of the host are our own."""
        self._of_child = event.kind != "in"
        super().take(event, line)

    def end(self) -> None:
        """Report open requests, whose responses were waited for."""
        self._of_child = self._is_complete = True
        super().end()

    def add_finding(self, id: str, text: str, pointer: str = "") -> None:
        if self._of_child:
            super().add_finding(id, text, pointer)

    def check_content(self, event: Data, classified: ClassifiedEvent) -> None:
        self.seen.update(name for name in classified.names if name.startswith("<"))
        super().check_content(event, classified)


def _touched(protocol: str, seen: set[str]) -> Iterator[str]:
    """Yield the ids of the clauses that apply to the given messages."""
    if not seen:
        return
    rules, by_members = _rules(protocol), DIALECTS[protocol].tag == "method"
    yield from (*_ANY, rules.envelope_clause, *filter(None, (rules.closed, rules.junk)))
    yield from (clause for event, (clause, _) in rules.messages.items() if event in seen)
    yield from (machine.clause for machine in rules.machines if machine.events & seen)
    yield from (rule.clause for rule in rules.during if seen.intersection(rule.events))
    yield from (clause for method, clause in rules.notifications.items() if f"< {method}" in seen)
    yield from (clause for method, clause in {**rules.limits, **rules.echoes}.items() if f"< = {method}" in seen)
    if by_members:
        yield "either"
    if by_members and any(name.startswith("< !") for name in seen):
        yield "error-object"


def _rules(protocol: str) -> Rules:
    rules = rules_of(protocol)
    assert rules is not None, protocol
    return rules


def _in_conversation(_target: Target) -> None:
    raise NotImplementedError("checked in one conversation with the others")
