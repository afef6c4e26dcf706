"""Comparison of JSON values: equal or partly equal, with the path of the first difference."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Literal, NamedTuple

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # Returns True if the expected item of the first index matches the found one of the second.
    Fits = Callable[[int, int], bool]


def match_ordered(expected: int, found: int, fits: Fits) -> dict[int, int]:
    """Match each expected item with a found one after the previous match; the result leaves out those without a match.

    Args:
        expected: number of expected items.
        found: number of found items.
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
    """Match as many expected items as possible with found ones, in any order.

    This is a maximum bipartite matching by augmenting paths (Kuhn). Arguments as for `match_ordered`; `fits` may be
    called for a pair again.
    """
    owner: dict[int, int] = {}  # the expected item by the found one that it is matched with
    for index in range(expected):
        owner.update(_augmenting_path(index, found, fits, owner))
    return {expected_item: item for item, expected_item in owner.items()}


def _augmenting_path(first: int, found: int, fits: Fits, owner: dict[int, int]) -> list[tuple[int, int]]:
    """Return the augmenting path (found item, expected item) that begins at `first`; empty if there is none."""
    reached_from: dict[int, int] = {}  # the expected item from which a found item was reached first
    matched = {expected_item: item for item, expected_item in owner.items()}
    queue = [first]
    for expected_item in queue:  # grows
        for item in range(found):
            if item in reached_from or not fits(expected_item, item):
                continue
            reached_from[item] = expected_item
            if item in owner:
                queue.append(owner[item])
                continue
            path = [(item, expected_item)]
            while path[-1][1] != first:
                previous = matched[path[-1][1]]
                path.append((previous, reached_from[previous]))
            return path
    return []


# exact: the same items in the same order; unordered: in any order; ordered: these items in their order, with others
# before, between and after; subset: these items in any order, with others. Each expected item needs an item of its own:
# [1, 1] is not a subset of [1, 2].
Lists = Literal["exact", "ordered", "unordered", "subset"]
STEPS = 4096  # comparisons between two readings of the clock, some 10 ms
MOST_COMPARISONS = 1_000_000  # of two values, some 2 s: unordered items are compared each with each


class NotJson(ValueError):
    """Text that is not JSON; str() gives reason and position."""


class TooManyComparisons(ValueError):
    """Values that are too large for this comparison; str() is the message."""


class Missing:
    """Placeholder for a missing value."""

    def __repr__(self) -> str:
        return "nothing"


MISSING = Missing()


class Difference(NamedTuple):
    """First difference of two values: its path, and the values on both sides (MISSING: nothing)."""

    path: str
    expected: object
    found: object


def parse(text: str) -> object:
    """Return the value of a JSON text (RFC 8259). Integers are exact.

    Raises:
        NotJson: it is not JSON, has NaN or Infinity, or is nested too deeply.
    """
    try:
        value: object = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError as error:
        raise NotJson(str(error)) from None
    return value


def _refuse(word: str) -> object:
    raise ValueError(f"{word} is not a JSON value")


def type_name(value: object) -> str:
    """Return the name of a value's type in JSON Schema; 1.0 is a number, 1 an integer."""
    for name, kind in _KINDS:
        if isinstance(value, kind):
            return name
    return type(value).__name__


# bool is before int, of which it is a subclass in Python.
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


def member_path(name: str) -> str:
    """Return the part of a path that leads to a member of an object: `.name` or `["any name"]`."""
    return f".{name}" if name.isidentifier() else f"[{json.dumps(name, ensure_ascii=False)}]"


def equal(left: object, right: object) -> bool:
    """Return True if two values are the same JSON; 1 equals 1.0, because JSON has one kind of number."""
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
    """Return the first difference of two values; None if they match.

    Args:
        partial: objects may have further members, at any depth.
        lists: comparison of arrays, at any depth; see Lists.
        at: path of the two values, for the Difference.
        check_time: called regularly; may raise.

    Raises:
        RecursionError: the values are nested too deeply.
        TooManyComparisons: the values are too large for another `lists` than "exact".
    """
    return _Comparison(partial, lists, check_time).of(expected, found, at)


def _comparable(value: object) -> str:
    name = type_name(value)
    return "number" if name == "integer" else name


class _Comparison:
    """Comparison of two documents."""

    def __init__(self, partial: bool, lists: Lists, check_time: Callable[[], None] | None) -> None:
        self._check_time = check_time
        self._steps = 0
        self._partial = partial
        self._lists = lists
        self._left = float("inf") if lists == "exact" else MOST_COMPARISONS

    def of(self, expected: object, found: object, at: str) -> Difference | None:
        """Return the first difference of two values."""
        self._count()
        if isinstance(expected, Mapping) and isinstance(found, Mapping):
            names = [*expected, *(() if self._partial else (name for name in found if name not in expected))]
            for name in names:
                pair = expected.get(name, MISSING), found.get(name, MISSING)
                if difference := self.of(*pair, at + member_path(name)):
                    return difference
            return None
        if isinstance(expected, (list, tuple)) and isinstance(found, (list, tuple)):
            return self._in_place(expected, found, at) if self._lists == "exact" else self._taken(expected, found, at)
        same = _comparable(expected) == _comparable(found) and expected == found
        return None if same else Difference(at, expected, found)

    def _common(self, expected: object, found: object) -> int:
        """Return the number of members that two objects have in common; 0 for other values."""
        if not isinstance(expected, Mapping) or not isinstance(found, Mapping):
            return 0
        return sum(self.of(value, found.get(name, MISSING), "") is None for name, value in expected.items())

    def _count(self) -> None:
        self._steps += 1
        if self._check_time and self._steps % STEPS == 0:
            self._check_time()
        self._left -= 1
        if self._left < 0:
            raise TooManyComparisons(
                f"comparing arrays with `lists: {self._lists}` took over {MOST_COMPARISONS:,} comparisons"
            )

    def _in_place(self, expected: Sequence[object], found: Sequence[object], at: str) -> Difference | None:
        for index, pair in enumerate(zip_longest(expected, found, fillvalue=MISSING)):
            if difference := self.of(*pair, f"{at}[{index}]"):
                return difference
        return None

    def _taken(self, expected: Sequence[object], found: Sequence[object], at: str) -> Difference | None:
        """Return the first expected item without a match, or, if unordered, the first found item without one.

        An item that only differs in some members is named by the first of these, which shows more than all of the item.
        """
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
            if index in taken:
                continue
            rest = [item for item in range(len(found)) if item not in taken.values()]
            common = {item: self._common(value, found[item]) for item in rest}
            nearest = max(rest, key=common.__getitem__, default=0)
            difference = self.of(value, found[nearest], f"{at}[{nearest}]") if common.get(nearest) else None
            return difference or Difference(f"{at}[*]", value, MISSING)
        over = set(range(len(found))) - set(taken.values()) if self._lists == "unordered" else set()
        return Difference(f"{at}[{min(over)}]", MISSING, found[min(over)]) if over else None
