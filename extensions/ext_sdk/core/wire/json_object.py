"""JSON object with the position of each of its members in the text.

`scan` keeps the text of every top-level member, so that an id can be replaced, or a message compared, without changing
the rest: the form of numbers, the order of keys, escapes and duplicate names stay.
"""

from __future__ import annotations

from .errors import INVALID_REQUEST, PARSE_ERROR, MessageError
from .json_codec import DuplicateKey, loads, scan_string, scan_value, skip_whitespace


class Member:
    """Member of an object: its value, and the position of the value: `text[start:end]`."""

    __slots__ = ("end", "start", "value")

    def __init__(self, value: object, start: int, end: int) -> None:
        self.value = value
        self.start = start
        self.end = end


class Envelope:
    """JSON object with the positions of its members.

    Attributes:
        text: the complete text.
        members: name to member, in the order of the text; of a name given twice, the last.
        duplicates: the names given twice.
    """

    __slots__ = ("duplicates", "members", "text")

    def __init__(self, text: str, members: dict[str, Member], duplicates: tuple[str, ...]) -> None:
        self.text = text
        self.members = members
        self.duplicates = duplicates

    def value(self, name: str) -> object:
        """Return the value of a member, or None if it is missing."""
        member = self.members.get(name)
        return member.value if member else None

    def member_text(self, name: str) -> str | None:
        """Return the text of a member's value, or None if the member is missing."""
        member = self.members.get(name)
        return self.text[member.start : member.end] if member else None


def scan(text: str, *, unique: bool = False, lenient: bool = False) -> Envelope:
    """Parse a JSON object in one pass.

    Args:
        text: one JSON object, white space around it allowed.
        unique: refuse a name given twice in any object within.
        lenient: see `scan_value`.

    Raises:
        MessageError: PARSE_ERROR if it is not JSON; INVALID_REQUEST if it is not an object, has a name twice, or is
            over a limit of depth or digits.
    """
    at = skip_whitespace(text, 0)
    if text[at : at + 1] != "{":
        loads(text)
        raise MessageError(INVALID_REQUEST, "expected a JSON object, found another JSON value")
    members: dict[str, Member] = {}
    duplicates: tuple[str, ...] = ()
    at = skip_whitespace(text, at + 1)
    more = text[at : at + 1] != "}"
    while more:
        if text[at : at + 1] != '"':
            raise MessageError(PARSE_ERROR, f"not JSON: expected a name in quotation marks at character {at}")
        name, at = scan_string(text, at)
        start = _after(text, at, ":", "':'")
        try:
            value, end = scan_value(text, start, unique=unique, lenient=lenient)
        except DuplicateKey as error:
            raise MessageError(INVALID_REQUEST, f"the name {str(error)!r} is given twice within {name!r}") from None
        if name in members:
            duplicates += (name,)
        members[name] = Member(value, start, end)
        at = skip_whitespace(text, end)
        more = text[at : at + 1] == ","
        if more:
            at = skip_whitespace(text, at + 1)
    at = _after(text, at, "}", "',' or '}'")
    if at != len(text):
        raise MessageError(PARSE_ERROR, f"not JSON: more text after the object, at character {at}")
    if unique and duplicates:
        raise MessageError(INVALID_REQUEST, f"the name {duplicates[0]!r} is given twice")
    return Envelope(text, members, duplicates)


def _after(text: str, at: int, sign: str, expected: str) -> int:
    at = skip_whitespace(text, at)
    if text[at : at + 1] != sign:
        raise MessageError(PARSE_ERROR, f"not JSON: expected {expected} at character {at}")
    return skip_whitespace(text, at + 1)
