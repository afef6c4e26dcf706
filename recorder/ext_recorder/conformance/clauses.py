"""Clauses of the extension protocol of gevals 0.0.1: the registry that the checks add themselves to.

`spec` clauses follow from the text of the specification, or of JSON-RPC 2.0, which it is based on. `host` clauses are
the behaviour of real hosts beyond it: an extension that violates one conforms, and fails for its users.

A sentence that binds the host alone has no clause, nor has one that cannot be checked from outside ("Extension crash:
process exits non-zero").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.conformance.target import Target


@dataclass(frozen=True)
class CheckedClause:
    """Requirement of the specification, or of a host.

    Args:
        id: short and stable; the name of its test.
        section: of the specification, or the host behaviour.
        text: the requirement in one sentence.
        check: raises Violation if the clause is violated, NotApplicable if it cannot be checked.
    """

    id: str
    section: str
    text: str
    check: Callable[[Target], None]

    @property
    def level(self) -> str:
        """`spec` or `host`."""
        return self.id.partition(":")[0]


REGISTERED: list[CheckedClause] = []  # `checks.CLAUSES` has them in the order of the specification


def clauses_of_section(level: str, section: str) -> Callable[[str, str], Callable[..., Callable[[Target], None]]]:
    """Return a decorator that registers a check as a clause of a section: `@clause(id, text)`."""

    def clause(id: str, text: str) -> Callable[..., Callable[[Target], None]]:
        def register(check: Callable[[Target], None]) -> Callable[[Target], None]:
            REGISTERED.append(CheckedClause(f"{level}:{id}", section, text, check))
            return check

        return register

    return clause
