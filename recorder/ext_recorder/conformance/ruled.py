"""Clauses of the other specifications: those that `lint` knows, asked of a child in one conversation.

A clause is met when the child has said what it is about, and nothing was wrong with that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.header import Header
from ext_recorder.lint.linting import Linter
from ext_sdk.protocols.dialect import DIALECTS
from ext_sdk.protocols.rules.rule import RULES

from .clauses import Clause
from .conversations import CONVERSATIONS
from .conversing import Talk
from .host import PATIENCE_SECONDS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from ext_recorder.cassette.events import Data, Event
    from ext_recorder.lint.naming import Named
    from ext_sdk.protocols.rules.rule import Rules

    from .target import Target

_ANY = ("answer-known", "answer-each", "message")  # of everything that is said


def clauses_of(protocol: str) -> tuple[Clause, ...]:
    """The clauses of a protocol that are about what a child says, in the order of its rules."""
    rules = _rules(protocol)
    said = {*rules.messages, *(event for each in rules.machines for event in each.events)}
    said |= {event for each in rules.during for event in each.events} | {"< !"}
    said |= {f"< = {method}" for method in (*rules.limits, *rules.echoes)}
    cited = set(_touched(rules, {event for event in said if event.startswith("<")}))
    return tuple(
        Clause(f"{protocol}:{id}", clause.section, clause.text, _in_conversation)
        for id, clause in rules.clauses.items()
        if id in cited
    )


def ask(
    command: Sequence[str],
    protocol: str,
    known: Mapping[str, object],
    folder: Path,
    patience: float = PATIENCE_SECONDS,
) -> dict[str, tuple[str, str]]:
    """Hold the conversation, and look at it. The verdict on each clause by its id: (word, reason).

    Args:
        command: the child.
        protocol: what it speaks.
        known: its profile.
        folder: an empty directory.
        patience: seconds to wait for what must come.

    Raises:
        Violation: it can't be started.
    """
    rules = _rules(protocol)
    with Talk(command, folder, protocol, known, patience) as talk:
        talk.hold(CONVERSATIONS[protocol].steps)
    judge = _Judge(protocol, rules)
    for number, event in enumerate(talk.events, 1):
        judge.take(event, number)
    judge.end()
    wrong: dict[str, list[str]] = {}
    for problem in judge.problems:
        wrong.setdefault(problem.kind, []).append(problem.text.splitlines()[0].partition(": ")[2])
    touched = set(_touched(rules, judge.seen))
    more = "; the profile may say more" if talk.left_out else ""
    skipped = ("skipped", f"the child has said nothing that it is about{more}")
    verdicts = {}
    for clause in clauses_of(protocol):
        id = clause.id.partition(":")[2]
        if id in wrong:
            verdicts[clause.id] = ("violated", "\n".join(wrong[id]))
        else:
            verdicts[clause.id] = ("met", "") if id in touched else skipped
    return verdicts


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
        self._of_child = self._whole = True
        super().end()

    def _find(self, id: str, text: str, pointer: str = "") -> None:
        if self._of_child:
            super()._find(id, text, pointer)

    def _content(self, event: Data, named: Named) -> None:
        self.seen.update(name for name in named.names if name.startswith("<"))
        super()._content(event, named)


def _touched(rules: Rules, seen: set[str]) -> Iterator[str]:
    """The ids of the clauses that are about what was said."""
    if not seen:
        return
    yield from (*_ANY, rules.envelope_clause, rules.closed, rules.junk)
    yield from (clause for event, (clause, _) in rules.messages.items() if event in seen)
    yield from (each.clause for each in rules.machines if each.events & seen)
    yield from (each.clause for each in rules.during if seen.intersection(each.events))
    yield from (clause for method, clause in {**rules.limits, **rules.echoes}.items() if f"< = {method}" in seen)
    if any(name.startswith("< !") for name in seen):
        yield "error-object"


def _rules(protocol: str) -> Rules:
    rules = RULES.get(protocol)
    assert rules is not None, protocol
    return rules


def _in_conversation(_target: Target) -> None:
    raise NotImplementedError("asked in one conversation with the others")
