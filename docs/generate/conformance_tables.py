"""The tables of docs/conformance.md: the clauses, and the entries of a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.conformance.clauses import HOST, SPEC
from ext_recorder.conformance.target import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ext_recorder.conformance.clauses import Clause


def tables() -> dict[str, str]:
    """The tables by the names that the page gives them."""
    entries = "".join(f"| `{name}` | {text} |\n" for name, text in ENTRIES.items())
    return {
        "clauses: spec": clause_table(SPEC),
        "clauses: host": clause_table(HOST),
        "profile: entries": f"| entry | what it names |\n|---|---|\n{entries}",
    }


def clause_table(clauses: Iterable[Clause]) -> str:
    """Clauses with their sections."""
    rows = "".join(f"| `{clause.id}` | {clause.section} | {clause.text} |\n" for clause in clauses)
    return f"| clause | where | what |\n|---|---|---|\n{rows}"
