"""Tables of docs/conformance.md: the clauses, and the entries of a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.conformance.checks import CLAUSES
from ext_recorder.conformance.conversations import CONVERSATIONS
from ext_recorder.conformance.protocol_clauses import clauses_of
from ext_recorder.conformance.target import ENTRIES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ext_recorder.conformance.target import CheckedClause


def tables() -> dict[str, str]:
    """Return the tables by their names in the page."""
    entries = "".join(f"| `{name}` | {text} |\n" for name, text in ENTRIES.items())
    return {
        "clauses: spec": clause_table(clause for clause in CLAUSES if clause.level == "spec"),
        "clauses: host": clause_table(clause for clause in CLAUSES if clause.level == "host"),
        "profile: entries": f"| entry | meaning |\n|---|---|\n{entries}",
        "profile: others": other_profiles(),
        **{f"clauses: {protocol}": clause_table(clauses_of(protocol)) for protocol in CONVERSATIONS},
    }


def other_profiles() -> str:
    """Return the table of the entries in profiles of other protocols."""
    rows = "".join(
        f"| {protocol} | `{name}` | {text} |\n"
        for protocol, conversation in CONVERSATIONS.items()
        for name, text in conversation.profile.items()
    )
    return f"| protocol | entry | meaning |\n|---|---|---|\n{rows}"


def clause_table(clauses: Iterable[CheckedClause]) -> str:
    """Return a table of clauses with their sections."""
    rows = "".join(f"| `{clause.id}` | {clause.section} | {clause.text} |\n" for clause in clauses)
    return f"| clause | section | requirement |\n|---|---|---|\n{rows}"
