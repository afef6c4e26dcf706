"""Comparing JSON values strictly: "1" is no 1, true is no 1, and 9007199254740993 is not 9007199254740992."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class NotJson(ValueError):
    """A text is not JSON; str() says why and where."""


class Missing:
    """Stands for a value that is not there."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = Missing()


class Difference(NamedTuple):
    """Where two values first differ: the path, and what is there on either side (MISSING: nothing)."""

    path: str
    expected: object
    found: object


def parse(text: str) -> object:
    """The value of a JSON text (RFC 8259). Integers are exact.

    Raises:
        NotJson: it is none, or nested too deeply. NaN and Infinity are no JSON.
    """
    try:
        value: object = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError as error:
        raise NotJson(str(error)) from None
    return value


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is no JSON value")


def type_name(value: object) -> str:
    """The name of a value's type in JSON Schema; 1.0 is a number, 1 an integer."""
    for name, kind in _KINDS:
        if isinstance(value, kind):
            return name
    return type(value).__name__


# bool comes before int, of which it is a subclass in Python.
_KINDS: tuple[tuple[str, type | tuple[type, ...]], ...] = (
    ("null", type(None)),
    ("boolean", bool),
    ("integer", int),
    ("number", float),
    ("string", str),
    ("object", Mapping),
    ("array", (list, tuple)),
)


def is_type(value: object, name: str) -> bool:
    """Whether a value is of this type; every integer is a number too."""
    return name in {type_name(value), "number" if type_name(value) == "integer" else ""}


def equal(left: object, right: object) -> bool:
    """Whether two values are the same JSON; 1 equals 1.0, for JSON has one kind of number."""
    return differs(left, right) is None


def differs(expected: object, found: object, *, partial: bool = False, at: str = "$") -> Difference | None:
    """Where two values first differ; None where they don't.

    Args:
        expected: the one.
        found: the other.
        partial: whether objects may have further members, at any depth; arrays are the same length and order
            all the same.
        at: path of the two values, for the Difference.

    Raises:
        RecursionError: they are nested too deeply.
    """
    if isinstance(expected, Mapping) and isinstance(found, Mapping):
        return _members_differ(expected, found, partial, at)
    if isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)):
        return _items_differ(expected, found, partial, at)
    same = _comparable(expected) == _comparable(found) and expected == found
    return None if same else Difference(at, expected, found)


def _comparable(value: object) -> str:
    name = type_name(value)
    return "number" if name == "integer" else name


def _members_differ(
    expected: Mapping[str, object], found: Mapping[str, object], partial: bool, at: str
) -> Difference | None:
    names = [*expected, *(() if partial else (name for name in found if name not in expected))]
    for name in names:
        path = f"{at}.{name}" if name.isidentifier() else f"{at}[{json.dumps(name, ensure_ascii=False)}]"
        one, other = expected.get(name, MISSING), found.get(name, MISSING)
        if difference := differs(one, other, partial=partial, at=path):
            return difference
    return None


def _items_differ(expected: Sequence[object], found: Sequence[object], partial: bool, at: str) -> Difference | None:
    for index in range(max(len(expected), len(found))):
        one, other = (items[index] if index < len(items) else MISSING for items in (expected, found))
        if difference := differs(one, other, partial=partial, at=f"{at}[{index}]"):
            return difference
    return None
