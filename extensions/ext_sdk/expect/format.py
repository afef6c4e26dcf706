"""Texts and values as they are shown in messages: quoted, on one line, and short."""

from __future__ import annotations

import json
import re
from itertools import zip_longest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    # Takes secrets out of a text. It has to see the text before it is cut: half a secret is not found.
    Redact = Callable[[str], str]

HEAD = 160  # characters of the beginning that are shown of a long text
TAIL = 60  # and of its end, where programs tend to write what went wrong
BEFORE = 20  # characters shown in front of the first difference of two long lines


def quoted(text: str, redact: Redact = str) -> str:
    """Return a text in double quotes with control characters escaped; of a long one beginning, end and length.

    It is cut between words, so that a secret that nobody knows yet is shown whole or not at all.
    """
    text = redact(text)
    if len(text) <= HEAD + TAIL:
        return _escaped(text)
    head = _LAST_WORD.sub("", text[: HEAD + 1])[:HEAD]
    tail = _FIRST_WORD.sub("", text[-TAIL - 1 :])[-TAIL:]
    return f"{_escaped(head)[:-1]} … {_escaped(tail)[1:]} ({len(text):,} characters)"


def shown(value: object, redact: Redact = str) -> str:
    """Return a JSON value on one line, cut like a text."""
    if isinstance(value, str):
        return quoted(value, redact)
    text = redact(json.dumps(value, ensure_ascii=False, default=repr))
    if len(text) <= HEAD + TAIL:
        return text
    return f"{_LAST_WORD.sub('', text[: HEAD + 1])[:HEAD]} … ({len(text):,} characters)"


def redact_named(place: str, redact: Redact) -> Redact:
    """Takes secrets out of a value as if it stood beside its name, which may be what tells that it is one.

    Args:
        place: the path of the value, or a name: `$.user.password`, `Authorization`.
        redact: takes secrets out of a text.
    """
    name = _LAST_NAME.search(place)
    prefix = f"{name[1]}: " if name else ""
    return lambda text: redact(prefix + text).removeprefix(prefix)


def difference(expected: str, found: str, redact: Redact = str) -> tuple[str, str]:
    """What to show of two texts that should be equal: both when short, else the first line that differs.

    Returns:
        expected and found, quoted, with number and column of the line where they are not whole.
    """
    expected, found = redact(expected), redact(found)
    if len(expected) <= HEAD and len(found) <= HEAD and expected.count("\n") + found.count("\n") <= 2:
        return quoted(expected), quoted(found)
    expected_lines, found_lines = expected.split("\n"), found.split("\n")
    at = _first_difference(expected_lines, found_lines)
    pair = [lines[at] if at < len(lines) else None for lines in (expected_lines, found_lines)]
    column = _first_difference(pair[0] or "", pair[1] or "") if None not in pair else 0
    start = _word_start(pair[1] or "", column - BEFORE) if column > HEAD else 0
    place = f"line {at + 1}" + (f", column {column + 1}" if start else "")
    first, second = ("nothing" if line is None else quoted(line[start:]) for line in pair)
    return f"{first} in {place}", f"{second} there"


# What tokens, keys and encoded values are made of.
_LAST_WORD = re.compile(r"[\w+/=.~%:@-]+\Z")
_LAST_NAME = re.compile(r"([\w-]+)(?:['\"]\])?\Z")
_FIRST_WORD = re.compile(r"\A[\w+/=.~%:@-]+")


def _word_start(text: str, at: int) -> int:
    last = _LAST_WORD.search(text[:at])
    return last.start() if last else at


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _first_difference(left: Sequence[str], right: Sequence[str]) -> int:
    for at, (one, other) in enumerate(zip_longest(left, right)):
        if one != other:
            return at
    return len(left)
