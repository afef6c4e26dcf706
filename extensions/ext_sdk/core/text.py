"""Texts for messages: numbers with their noun, cut and printable values, suggestions for unknown names."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_NAME = 80  # characters of a name that are compared and quoted; a host may send megabytes
MOST_SUGGESTIONS = 20  # names that are listed


def cut(text: str, limit: int) -> str:
    """Return a text of at most this many characters; an ellipsis replaces the rest of a longer one."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def readable(text: str) -> str:
    """Return a text without characters that XML cannot contain or that control a terminal."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in "\t\n\r" else "\ufffd" for char in text)


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: `1 file`, `2 files`, `2 directories`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def suggest(name: str, known: Iterable[str], *, none: str = "none is known") -> str:
    """Return the nearest known name, or a list of the known ones; `none` if there are none."""
    names = list(known)
    if near := closest(name, names):
        return f"did you mean {near!r}?"
    if not names:
        return none
    return "known are " + ", ".join(names[:MOST_SUGGESTIONS]) + (", …" if len(names) > MOST_SUGGESTIONS else "")


def closest(name: str, known: Iterable[str]) -> str:
    """Return the known name that is most similar, or "" if none is similar enough."""
    import difflib

    return next(iter(difflib.get_close_matches(name[:LONGEST_NAME], list(known), 1)), "")
