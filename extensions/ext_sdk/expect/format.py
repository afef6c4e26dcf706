"""Texts and values in messages: quoted, on one line, and short."""

from __future__ import annotations

import json
import re
from itertools import zip_longest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    # Redacts a text. Texts are redacted before they are shortened: half a secret is not found.
    Redact = Callable[[str], str]

HEAD = 160  # characters at the beginning of a long text that are shown
TAIL = 60  # and at its end, where programs tend to report errors
BEFORE = 20  # characters shown before the first difference of two long lines


def quoted(text: str, redact: Redact = str) -> str:
    """Return a text in double quotes with control characters escaped; the beginning, end and length of a long one.

    It is cut between words, so that an unknown secret is shown completely or not at all.
    """
    text = redact(text)
    if len(text) <= HEAD + TAIL:
        return _escaped(text)
    head = _LAST_WORD.sub("", text[: HEAD + 1])[:HEAD]
    tail = _FIRST_WORD.sub("", text[-TAIL - 1 :])[-TAIL:]
    return f"{_escaped(head)[:-1]} … {_escaped(tail)[1:]} ({len(text):,} characters)"


def shown(value: object, redact: Redact = str) -> str:
    """Return a JSON value on one line, shortened like a text."""
    if isinstance(value, str):
        return quoted(value, redact)
    text = redact(json.dumps(value, ensure_ascii=False, default=repr))
    if len(text) <= HEAD + TAIL:
        return text
    return f"{_LAST_WORD.sub('', text[: HEAD + 1])[:HEAD]} … ({len(text):,} characters)"


def redact_named(place: str, redact: Redact) -> Redact:
    """Return a redaction of values by the name next to them, which may show that a value is a secret.

    Args:
        place: path of the value, or its name: `$.user.password`, `Authorization`.
        redact: redacts a text.
    """
    name = _LAST_NAME.search(place)
    prefix = f"{name[1]}: " if name else ""
    return lambda text: redact(prefix + text).removeprefix(prefix)


def difference(expected: str, found: str, redact: Redact = str) -> tuple[str, str]:
    """Return the parts to show of two texts that should be equal: both if short, else the first line that differs.

    Returns:
        Expected and found, quoted, with number and column of the line if they are not complete.
    """
    expected, found = redact(expected), redact(found)
    if len(expected) <= HEAD and len(found) <= HEAD and expected.count("\n") + found.count("\n") <= 2:
        return quoted(expected), quoted(found)
    expected_lines, found_lines = expected.split("\n"), found.split("\n")
    at = _first_difference(expected_lines, found_lines)
    pair = [lines[at] if at < len(lines) else None for lines in (expected_lines, found_lines)]
    column = _first_difference(pair[0] or "", pair[1] or "") if None not in pair else 0
    start = 0
    if column > HEAD:
        word = _LAST_WORD.search((pair[1] or "")[: column - BEFORE])
        start = word.start() if word else column - BEFORE
    place = f"line {at + 1}" + (f", column {column + 1}" if start else "")
    first, second = ("nothing" if line is None else quoted(line[start:]) for line in pair)
    return f"{first} in {place}", f"{second} there"


# Characters of tokens, keys and encoded values.
_LAST_WORD = re.compile(r"[\w+/=.~%:@-]+\Z")
_LAST_NAME = re.compile(r"([\w-]+)(?:['\"]\])?\Z")
_FIRST_WORD = re.compile(r"\A[\w+/=.~%:@-]+")


def _escaped(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _first_difference(left: Sequence[str], right: Sequence[str]) -> int:
    for at, (one, other) in enumerate(zip_longest(left, right)):
        if one != other:
            return at
    return len(left)
