"""JSON text to values and back, strictly, and without importing `re` for the reading.

CPython's `json` package imports `re`, which takes longer than all else an extension does before its first
answer. The C scanner underneath does not need it, so it is used directly; where an interpreter has none,
`json` itself serves.
"""

from __future__ import annotations

import sys

from .errors import INVALID_REQUEST, PARSE_ERROR, MessageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeVar

    T = TypeVar("T")

if TYPE_CHECKING:
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
        from json.encoder import encode_basestring as quote
        from json.scanner import make_scanner

__all__ = [
    "DEPTH_LIMIT",
    "DuplicateKey",
    "dumps",
    "is_too_deep",
    "loads",
    "quote",
    "scan_string",
    "scan_value",
    "skip_whitespace",
]

# Arrays and objects within each other. Every supported interpreter reads and writes so many, with room for the
# recursions of Python code over such a value.
DEPTH_LIMIT = 300

WHITESPACE = " \t\n\r"  # RFC 8259, section 2
_INFINITY = float("inf")


class DuplicateKey(ValueError):
    """An object has a name twice; which value counts is nobody's rule (RFC 8259, section 4)."""


class _NotJson(ValueError):
    """A number that JSON, or Go, does not have."""


def _refuse_constant(name: str) -> object:
    raise _NotJson(f"{name} is no JSON value")


def _finite(digits: str) -> float:
    """1e999 would be infinity, which is no JSON value and could not be written again; Go refuses it as well."""
    number = float(digits)
    if number in (_INFINITY, -_INFINITY):
        raise _NotJson(f"the number {digits[:40]} is out of range")
    return number


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        names = [name for name, _ in pairs]
        raise DuplicateKey(next(name for at, name in enumerate(names) if name in names[:at]))
    return members


class _Settings:
    """What the scanner asks its maker for."""

    strict = True
    object_hook = None
    parse_float = staticmethod(_finite)
    parse_int: Callable[[str], int | None] = int
    parse_constant = staticmethod(_refuse_constant)

    def __init__(self, pairs_hook: Callable[[list[tuple[str, object]]], object] | None) -> None:
        self.object_pairs_hook = pairs_hook
        self.parse_string = scanstring  # this and the next are read by the scanner written in Python only
        self.memo: dict[str, str] = {}


def _integer_or_none(digits: str) -> int | None:
    return int(digits) if len(digits) < _SAFE_DIGITS else None


class _LenientSettings(_Settings):
    """Reads also integers that are too long, as null."""

    parse_int = staticmethod(_integer_or_none)


_SAFE_DIGITS = 640  # int() reads so many, however it is configured
_scan_value = make_scanner(_Settings(None))
_scan_any_value = make_scanner(_LenientSettings(None))
_scan_unique_value = make_scanner(_Settings(_unique))


def scan_value(text: str, start: int, *, unique: bool = False, lenient: bool = False) -> tuple[object, int]:
    """Read one value.

    Args:
        text: JSON.
        start: where the value begins; not at white space.
        unique: raise DuplicateKey where an object within has a name twice.
        lenient: read also what is over the limits of depth and digits; the value of a long integer is None.

    Returns:
        The value and the position behind it.

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
        if type(error) is ValueError:  # of int(); all others have classes of their own
            most = f"{sys.get_int_max_str_digits():,}"
            raise MessageError(INVALID_REQUEST, f"the JSON has an integer of more than {most} digits") from None
        raise MessageError(PARSE_ERROR, f"not JSON: {error}") from None
    # The text is counted first, for that is quick: all that is deeper than the limit has more brackets.
    if not lenient and text.count("[", start, end) + text.count("{", start, end) > DEPTH_LIMIT and is_too_deep(value):
        raise _too_deep()
    return value, end


def _too_deep() -> MessageError:
    return MessageError(INVALID_REQUEST, f"the JSON is nested too deeply: more than {DEPTH_LIMIT} levels")


def _told(read: Reader[T], text: str, start: int) -> tuple[T, int]:
    """Call a C reader so that its errors have a text.

    It looks for their class in `json.decoder` without importing that (CPython 3.11 to 3.14), and ends in a
    SystemError instead.
    """
    try:
        return read(text, start)
    except SystemError:
        import json.decoder  # noqa: F401  (its presence is what counts)

        return read(text, start)


def is_too_deep(value: object) -> bool:
    """Return True if arrays and objects are within each other more than DEPTH_LIMIT times; a cycle is, too."""
    level = [value]
    for _ in range(DEPTH_LIMIT):
        level = [item for one in level if isinstance(one, (dict, list)) for item in _items(one)]
        if not level:
            return False
    return any(isinstance(item, (dict, list)) for item in level)


def _items(container: dict[object, object] | list[object]) -> Iterable[object]:
    return container.values() if isinstance(container, dict) else container


def skip_whitespace(text: str, at: int) -> int:
    """The first position from `at` on that holds no white space."""
    while at < len(text) and text[at] in WHITESPACE:
        at += 1
    return at


def scan_string(text: str, start: int) -> tuple[str, int]:
    """Read a string that begins at `start`: its value and the position behind it. Raises MessageError."""
    try:
        return _told(scanstring, text, start + 1)
    except ValueError as error:
        raise MessageError(PARSE_ERROR, f"not JSON: {error}") from None


def loads(text: str) -> object:
    """The value of a JSON text; of a name given twice the last counts. Raises MessageError, whatever the text."""
    value, end = scan_value(text, skip_whitespace(text, 0))
    end = skip_whitespace(text, end)
    if end != len(text):
        raise MessageError(PARSE_ERROR, f"not JSON: more text after the value, at character {end}")
    return value


def dumps(value: object) -> str:
    """Compact JSON, characters as they are. Raises TypeError for no JSON value, ValueError for NaN or a cycle."""
    return _encoder()(value)


_encoders: list[Callable[[object], str]] = []


def _encoder() -> Callable[[object], str]:
    """Made at the first use: `json` imports `re`, and nothing is encoded before the manifest is out."""
    if not _encoders:
        from json import JSONEncoder

        _encoders.append(JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode)
    return _encoders[0]
