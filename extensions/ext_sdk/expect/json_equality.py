"""Comparison of JSON values: equal or partly equal, with the path of the first difference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # Whether the expected item of the first index can take the found one of the second.
    Fits = Callable[[int, int], bool]


def match_ordered(expected: int, found: int, fits: Fits) -> dict[int, int]:
    """Return the item that each expected one takes, each behind the one before; without those that find none.

    Args:
        expected: how many there are.
        found: how many there are to take.
        fits: see Fits.
    """
    taken: dict[int, int] = {}
    there = 0
    for wanted in range(expected):
        while there < found and not fits(wanted, there):
            there += 1
        if there == found:
            break
        taken[wanted] = there
        there += 1
    return taken


def match_unordered(expected: int, found: int, fits: Fits) -> dict[int, int]:
    """Return the item that each expected one takes, so that as many as possible have one.

    This is a maximum matching by augmenting paths (Kuhn): one that finds nothing free asks those that took what fits it
    to take something else. Arguments as for `in_order`; `fits` may be asked for a pair again.
    """
    owner: dict[int, int] = {}
    for wanted in range(expected):
        owner.update(_path_to_a_free_one(wanted, found, fits, owner))
    return {taker: there for there, taker in owner.items()}


def _path_to_a_free_one(first: int, found: int, fits: Fits, owner: dict[int, int]) -> list[tuple[int, int]]:
    """Who takes what from now on, so that `first` has something; nothing where that is not possible."""
    asked_by: dict[int, int] = {}  # item -> the expected one that was first to ask for it
    holds = {taker: there for there, taker in owner.items()}
    waiting = [first]
    for asking in waiting:  # grows
        for there in range(found):
            if there in asked_by or not fits(asking, there):
                continue
            asked_by[there] = asking
            if there not in owner:
                return _back(there, first, asked_by, holds)
            waiting.append(owner[there])
    return []


def _back(free: int, first: int, asked_by: dict[int, int], holds: dict[int, int]) -> list[tuple[int, int]]:
    path = [(free, asked_by[free])]
    while path[-1][1] != first:
        there = holds[path[-1][1]]
        path.append((there, asked_by[there]))
    return path


# exact: the same items in the same order; unordered: in any order; ordered: these items in their order, with others
# before, between and after; subset: these items in any order, with others. Each takes an item of its own: [1, 1] is no
# subset of [1, 2].
Lists = Literal["exact", "ordered", "unordered", "subset"]
STEPS = 4096  # comparisons between two readings of the clock, some 10 ms
MOST_COMPARISONS = 1_000_000  # of two values, some 2 s: items in any order are compared each with each


class NotJson(ValueError):
    """A text is not JSON; str() says why and where."""


class TooManyComparisons(ValueError):
    """Two values are too large to be compared in this way; str() says it."""


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
    """Return the value of a JSON text (RFC 8259). Integers are exact.

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
    """Return the name of a value's type in JSON Schema; 1.0 is a number, 1 an integer."""
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
    """Return True if a value is of this type; every integer is a number too."""
    return name in {type_name(value), "number" if type_name(value) == "integer" else ""}


def equal(left: object, right: object) -> bool:
    """Return True if two values are the same JSON; 1 equals 1.0, for JSON has one kind of number."""
    return differs(left, right) is None


def differs(
    expected: object,
    found: object,
    *,
    partial: bool = False,
    lists: Lists = "exact",
    at: str = "$",
    check_time: Callable[[], None] | None = None,
) -> Difference | None:
    """Where two values first differ; None if they don't.

    Args:
        expected: the one.
        found: the other.
        partial: whether objects may have further members, at any depth.
        lists: how arrays are compared, at any depth; see Lists.
        at: path of the two values, for the Difference.
        check_time: called now and then; may raise.

    Raises:
        RecursionError: they are nested too deeply.
        TooManyComparisons: they are too large for another `lists` than "exact".
    """
    return _Comparison(partial, lists, check_time).of(expected, found, at)


def _comparable(value: object) -> str:
    name = type_name(value)
    return "number" if name == "integer" else name


class _Comparison:
    """One comparison of two documents."""

    def __init__(self, partial: bool, lists: Lists, check_time: Callable[[], None] | None) -> None:
        self._check_time = check_time
        self._steps = 0
        self._partial = partial
        self._lists = lists
        self._left = float("inf") if lists == "exact" else MOST_COMPARISONS

    def of(self, expected: object, found: object, at: str) -> Difference | None:
        """Where they first differ."""
        self._count()
        if isinstance(expected, Mapping) and isinstance(found, Mapping):
            return self._members(expected, found, at)
        if isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)):
            return self._in_place(expected, found, at) if self._lists == "exact" else self._taken(expected, found, at)
        same = _comparable(expected) == _comparable(found) and expected == found
        return None if same else Difference(at, expected, found)

    def _count(self) -> None:
        self._steps += 1
        if self._check_time and self._steps % STEPS == 0:
            self._check_time()
        self._left -= 1
        if self._left < 0:
            raise TooManyComparisons(
                f"comparing arrays with `lists: {self._lists}` took over {MOST_COMPARISONS:,} comparisons"
            )

    def _members(self, expected: Mapping[str, object], found: Mapping[str, object], at: str) -> Difference | None:
        names = [*expected, *(() if self._partial else (name for name in found if name not in expected))]
        for name in names:
            path = f"{at}.{name}" if name.isidentifier() else f"{at}[{json.dumps(name, ensure_ascii=False)}]"
            if difference := self.of(expected.get(name, MISSING), found.get(name, MISSING), path):
                return difference
        return None

    def _in_place(self, expected: Sequence[object], found: Sequence[object], at: str) -> Difference | None:
        for index in range(max(len(expected), len(found))):
            one, other = (items[index] if index < len(items) else MISSING for items in (expected, found))
            if difference := self.of(one, other, f"{at}[{index}]"):
                return difference
        return None

    def _taken(self, expected: Sequence[object], found: Sequence[object], at: str) -> Difference | None:
        """Arrays whose items don't stand in the same places: what finds no item, or, unordered, an item too many."""
        known: dict[tuple[int, int], bool] = {}

        def fits(wanted: int, there: int) -> bool:
            self._count()
            pair = (wanted, there)
            if pair not in known:
                known[pair] = self.of(expected[wanted], found[there], at) is None
            return known[pair]

        match = match_ordered if self._lists == "ordered" else match_unordered
        taken = match(len(expected), len(found), fits)
        for index, value in enumerate(expected):
            if index not in taken:
                return Difference(f"{at}[*]", value, MISSING)
        over = set(range(len(found))) - set(taken.values()) if self._lists == "unordered" else set()
        return Difference(f"{at}[{min(over)}]", MISSING, found[min(over)]) if over else None
