"""The nearest known name: what to say where a user wrote one that is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST = 80  # characters of a name that are looked at and repeated; a host may send megabytes
MOST = 20  # names that are listed


def hint(name: str, known: Iterable[str]) -> str:
    """What the user may have meant, or what there is to choose from."""
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name[:LONGEST], names, 1)
    if near:
        return f"did you mean {near[0]!r}?"
    if not names:
        return "none is known"
    return "known are " + ", ".join(names[:MOST]) + (", …" if len(names) > MOST else "")
