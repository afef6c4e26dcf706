"""The nearest known name: what to say where a user wrote one that is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_NAME = 80  # characters of a name that are looked at and repeated; a host may send megabytes
MOST_SUGGESTIONS = 20  # names that are listed


def suggest(name: str, known: Iterable[str], *, none: str = "none is known") -> str:
    """What the user may have meant, or what there is to choose from; `none` where there is nothing."""
    names = list(known)
    if near := closest(name, names):
        return f"did you mean {near!r}?"
    if not names:
        return none
    return "known are " + ", ".join(names[:MOST_SUGGESTIONS]) + (", …" if len(names) > MOST_SUGGESTIONS else "")


def closest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like this one, or "" where none is much like it."""
    import difflib

    return next(iter(difflib.get_close_matches(name[:LONGEST_NAME], list(known), 1)), "")
