"""JSON parsed strictly, without importing `re`, and JSON encoded.

CPython's `json` package imports `re`, which takes longer than everything else that an extension does before its first
response. The C scanner below `json` does not need it, so it is used directly; `json` itself is the fallback.

`scan` keeps the text of every top-level member of an object, so that an id can be replaced, or a message compared,
without changing the rest: the form of numbers, the order of keys, escapes and duplicate names stay.
"""

from __future__ import annotations

import sys

from .errors import INVALID_REQUEST, PARSE_ERROR, MessageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeVar

    T = TypeVar("T")
    Reader = Callable[[str, int], tuple[T, int]]
    quote: Callable[[str], str]
    scanstring: Reader[str]
    make_scanner: Callable[[object], Reader[object]]
else:
    try:
        from _json import encode_basestring as quote
        from _json import make_scanner, scanstring
    except ImportError:  # another interpreter than CPython
        from json.decoder import scanstring
        from json.scanner import make_scanner

__all__ = [
    "DEPTH_LIMIT",
    "DuplicateKey",
    "Envelope",
    "Member",
    "dumps",
    "elements",
    "is_too_deep",
    "loads",
    "quote",
    "scan",
    "scan_string",
    "scan_value",
    "skip_whitespace",
]

# Levels of arrays and objects. Every supported interpreter reads and writes this many, and has room for Python code
# that recurses over such a value.
DEPTH_LIMIT = 300
WHITESPACE = " \t\n\r"  # RFC 8259, section 2
_INFINITY = float("inf")


class DuplicateKey(ValueError):
    """Object with a name twice; which value counts is not defined (RFC 8259, section 4)."""


class _NotJson(ValueError):
    """Number that does not exist in JSON, or in Go."""


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        raise DuplicateKey(next(name for at, name in enumerate(names) if name in names[:at]))
    return members


class _Settings:
    """Attributes of a decoder that the scanner reads."""

    strict = True
    object_hook = None
    parse_int: Callable[[str], int | None] = int

    @staticmethod
    def parse_float(digits: str) -> float:
        """Return a float, or refuse infinity, such as 1e999: it could not be encoded again; Go refuses it as well."""
        number = float(digits)
        if number in (_INFINITY, -_INFINITY):
            raise _NotJson(f"the number {digits[:40]} is out of range")
        return number

    @staticmethod
    def parse_constant(name: str) -> object:
        """Refuse NaN and Infinity."""
        raise _NotJson(f"{name} is not a JSON value")

    def __init__(self, pairs_hook: Callable[[list[tuple[str, object]]], object] | None) -> None:
        self.object_pairs_hook = pairs_hook
        self.parse_string = scanstring  # this and the next are read by the scanner written in Python only
        self.memo: dict[str, str] = {}


class _LenientSettings(_Settings):
    """Settings that read integers that are too long as null."""

    @staticmethod
    def parse_int(digits: str) -> int | None:
        """Return an integer, or None for one that `int` may refuse."""
        return int(digits) if len(digits) < _SAFE_DIGITS else None


_SAFE_DIGITS = 640  # int() reads so many, however it is configured
_scan_value = make_scanner(_Settings(None))
_scan_any_value = make_scanner(_LenientSettings(None))
_scan_unique_value = make_scanner(_Settings(_unique))


def scan_value(text: str, start: int, *, unique: bool = False, lenient: bool = False) -> tuple[object, int]:
    """Parse one value.

    Args:
        start: position of the first character of the value; not white space.
        unique: raise DuplicateKey if an object in the value has a name twice.
        lenient: accept values over the limits of depth and digits; the value of a long integer is None.

    Returns:
        The value and the position after it.

    Raises:
        MessageError: PARSE_ERROR, with the position; INVALID_REQUEST for JSON that is over a limit.
        DuplicateKey: see `unique`.
    """
    scanner = _scan_any_value if lenient else _scan_unique_value if unique else _scan_value
    try:
        value, end = _told(scanner, text, start)
    except StopIteration as stop:
        raise MessageError(PARSE_ERROR, f"not JSON: expected a value at character {stop.value}") from None
    except DuplicateKey:
        raise
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        if type(error) is ValueError:  # raised by int(); all others are subclasses
            most = f"{sys.get_int_max_str_digits():,}"
            raise MessageError(INVALID_REQUEST, f"the JSON has an integer of more than {most} digits") from None
        raise MessageError(PARSE_ERROR, f"not JSON: {error}") from None
    # Brackets are counted first because that is fast: JSON deeper than the limit has more of them than the limit.
    if not lenient and text.count("[", start, end) + text.count("{", start, end) > DEPTH_LIMIT and is_too_deep(value):
        raise _too_deep()
    return value, end


def _too_deep() -> MessageError:
    return MessageError(INVALID_REQUEST, f"the JSON is nested too deeply: more than {DEPTH_LIMIT} levels")


def _told(read: Reader[T], text: str, start: int) -> tuple[T, int]:
    """Call a C reader so that its errors have a message.

    The reader takes the class of its errors from `json.decoder`, which it does not import (CPython 3.11 to 3.14), and
    ends in a SystemError instead.
    """
    try:
        return read(text, start)
    except SystemError:
        import json.decoder  # noqa: F401  (imported for the reader)

        return read(text, start)


def is_too_deep(value: object) -> bool:
    """Return True if arrays and objects are nested deeper than DEPTH_LIMIT, as those of a cycle are."""
    level = [value]
    for _ in range(DEPTH_LIMIT):
        containers = (value for value in level if isinstance(value, (dict, list)))
        level = [
            item
            for container in containers
            for item in (container.values() if isinstance(container, dict) else container)
        ]
        if not level:
            return False
    return any(isinstance(item, (dict, list)) for item in level)


def skip_whitespace(text: str, at: int) -> int:
    """Return the first position from `at` on that is not white space."""
    while at < len(text) and text[at] in WHITESPACE:
        at += 1
    return at


def scan_string(text: str, start: int) -> tuple[str, int]:
    """Parse the string that begins at `start`, and return it with the position after it. Raises MessageError."""
    try:
        return _told(scanstring, text, start + 1)
    except ValueError as error:
        raise MessageError(PARSE_ERROR, f"not JSON: {error}") from None


def elements(text: str, start: int) -> Iterator[tuple[int, int, object]]:
    """Yield start, end and value of each element of the valid array that begins at `start`."""
    at = skip_whitespace(text, start + 1)
    while text[at] != "]":
        value, end = scan_value(text, at)
        yield at, end, value
        at = skip_whitespace(text, end)
        if text[at] == ",":
            at = skip_whitespace(text, at + 1)


def loads(text: str) -> object:
    """Parse a JSON text; the last of duplicate names counts. Raises MessageError and nothing else."""
    value, end = scan_value(text, skip_whitespace(text, 0))
    end = skip_whitespace(text, end)
    if end != len(text):
        raise MessageError(PARSE_ERROR, f"not JSON: more text after the value, at character {end}")
    return value


def dumps(value: object) -> str:
    """Return compact JSON with characters unescaped.

    Raises:
        TypeError: the value is not JSON.
        ValueError: NaN, infinity, or a cycle.
    """
    if not _encoders:
        from json import JSONEncoder

        _encoders.append(JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode)
    return _encoders[0](value)


# Filled at the first use: `json` imports `re`, and nothing is encoded before the manifest is sent.
_encoders: list[Callable[[object], str]] = []


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
