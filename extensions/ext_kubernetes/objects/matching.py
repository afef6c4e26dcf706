"""Partial match of an expected object, with operators, and the list of differences."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Literal, NamedTuple

from ext_sdk.expect.format import shown
from ext_sdk.expect.json_equality import equal, is_type

from .secret_data import masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ext_sdk.expect import Searcher


class Difference(NamedTuple):
    """One thing that is not as expected: where, and both sides as text."""

    path: str
    expected: str
    found: str

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, found {self.found}"


class Nothing:
    """Where there is no value."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = Nothing()


def format_value(value: object) -> str:
    """Return a value as text for messages; values of Secrets are masked."""
    return "nothing" if value is NOTHING else shown(masked(value))


# Powers of ten, and of two, in the quantities of Kubernetes: 500m, 1.5Gi.
SUFFIXES: Mapping[str, Decimal] = {
    **{
        word: Decimal(1000) ** (index - 3)
        for index, word in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"))
    },
    **{word: Decimal(1024) ** (index + 1) for index, word in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
}


class WrongPattern(ValueError):
    """What is expected can't be; str() says where and why."""


def check_pattern(expected: object, path: str = "expected") -> None:
    """Refuse operators that there are not, and values that they can't have. Raises WrongPattern."""
    if isinstance(expected, list):
        for index, one in enumerate(expected):
            check_pattern(one, f"{path}[{index}]")
    if not isinstance(expected, dict):
        return
    words = [key for key in expected if key.startswith("$")]
    if words and len(words) < len(expected):
        raise WrongPattern(
            f"{path}: operators ({', '.join(words)}) and members don't go together; use $equals for data"
        )
    for key, value in expected.items():
        if key not in words:
            check_pattern(value, f"{path}.{key}")
        elif key not in OPERATORS:
            raise WrongPattern(f"{path}: unknown operator {key}; there are {', '.join(OPERATORS)}")
        elif wrong := OPERATORS[key].problem(value):
            raise WrongPattern(f"{path}.{key}: {wrong}")


def _quantity(value: object) -> Decimal | None:
    """A number, or a quantity such as 500m or 1.5Gi."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    digits = str(value).rstrip("numkKMGTPEi") if isinstance(value, str) else str(value)
    suffix = str(value)[len(digits) :]
    try:
        return Decimal(digits) * SUFFIXES[suffix]
    except (InvalidOperation, KeyError):
        return None


def _ordered(compare: Callable[[Decimal, Decimal], bool]) -> Callable[[ObjectMatcher, object, object], bool]:
    def holds(match: ObjectMatcher, found: object, bound: object) -> bool:
        left, right = _quantity(found), _quantity(bound)
        return left is not None and right is not None and compare(left, right)

    return holds


def _contains(match: ObjectMatcher, found: object, bound: object) -> bool:
    if isinstance(found, str):
        return isinstance(bound, str) and bound in found
    if isinstance(found, list):
        return any(not list(match.of(bound, one, "")) for one in found)
    return isinstance(found, dict) and isinstance(bound, str) and bound in found


def _matches(match: ObjectMatcher, found: object, bound: object) -> bool:
    return isinstance(found, str) and match.searcher.search(str(bound), found) is not None


def _length(match: ObjectMatcher, bound: object, found: object, path: str) -> Iterator[Difference]:
    length = len(found) if isinstance(found, (str, list, dict)) else NOTHING
    yield from match.of(bound, length, f"length of {path}")


def _not(match: ObjectMatcher, bound: object, found: object, path: str) -> Iterator[Difference]:
    if not list(match.of(bound, found, path)):
        yield Difference(path, f"not {format_value(bound)}", format_value(found))


def _every(match: ObjectMatcher, bound: object, found: object, path: str) -> Iterator[Difference]:
    if not isinstance(found, list):
        yield Difference(path, "a list", format_value(found))
        return
    for index, one in enumerate(found):
        yield from match.of(bound, one, f"{path}[{index}]")


def _one_of(match: ObjectMatcher, found: object, bound: object) -> bool:
    return isinstance(bound, list) and any(equal(found, one) for one in bound) and found is not NOTHING


def _a_list(value: object) -> str:
    return "" if isinstance(value, list) and value else "expected a list that is not empty"


def _a_boolean(value: object) -> str:
    return "" if isinstance(value, bool) else "expected true or false"


def _a_quantity(value: object) -> str:
    return "" if _quantity(value) is not None else "expected a number, or a quantity such as 500m or 1Gi"


def _a_regex(value: object) -> str:
    from ext_sdk.expect.regex import problem

    return problem(value) if isinstance(value, str) else "expected a regular expression"


def _inner(value: object) -> str:
    try:
        check_pattern(value, "")
    except WrongPattern as error:
        return str(error).removeprefix(": ")
    return ""


def _an_item(value: object) -> str:
    return "{} is a part of every object; use {$equals: {}} for an empty one" if value == {} else _inner(value)


def _anything(value: object) -> str:
    del value
    return ""


class Operator(NamedTuple):
    """What an operator says, when it holds, and what may be behind it."""

    words: str
    holds: Callable[[ObjectMatcher, object, object], bool] | None = None
    problem: Callable[[object], str] = _anything
    inner: Callable[[ObjectMatcher, object, object, str], Iterator[Difference]] | None = None


OPERATORS: Mapping[str, Operator] = {
    "$equals": Operator("just", lambda _, found, bound: found is not NOTHING and equal(found, bound)),
    "$ne": Operator("anything but", lambda _, found, bound: found is NOTHING or not equal(found, bound)),
    "$in": Operator("one of", _one_of, _a_list),
    "$notIn": Operator("none of", lambda match, found, bound: not _one_of(match, found, bound), _a_list),
    "$gt": Operator("more than", _ordered(lambda left, right: left > right), _a_quantity),
    "$gte": Operator("at least", _ordered(lambda left, right: left >= right), _a_quantity),
    "$lt": Operator("less than", _ordered(lambda left, right: left < right), _a_quantity),
    "$lte": Operator("at most", _ordered(lambda left, right: left <= right), _a_quantity),
    "$exists": Operator("existence:", lambda _, found, bound: (found is not NOTHING) == bound, _a_boolean),
    "$type": Operator("a value of type", lambda _, found, bound: is_type(found, str(bound))),
    "$contains": Operator("something with", _contains, _an_item),
    "$matches": Operator("text that matches", _matches, _a_regex),
    "$length": Operator("", None, _inner, _length),
    "$not": Operator("", None, _inner, _not),
    "$every": Operator("", None, _inner, _every),
}

Lists = Literal["key", "order", "exact"]
MOST_NEAREST = 3  # differences of the nearest item in a message

# Keys that identify the items of a list, as the merge keys of Kubernetes do; the first that an item has counts. It
# selects the item that a message is about, not whether there is a difference.
KEYS = (
    "name",
    "containerPort",
    "mountPath",
    "devicePath",
    "type",
    "key",
    "port",
    "topologyKey",
    "uid",
    "ip",
    "host",
    "path",
)


def differences(
    expected: object, found: object, *, lists: Lists = "key", searcher: Searcher, path: str = ""
) -> list[Difference]:
    """What is not as expected; nothing where all is.

    Args:
        expected: part of an object, with operators.
        found: the object.
        lists: how lists are compared: see above.
        searcher: runs the regular expressions.
        path: of both, for the texts.

    Raises:
        SearchFailed: a regular expression took too long.
    """
    return list(ObjectMatcher(lists, searcher).of(expected, found, path))


class ObjectMatcher:
    """One comparison."""

    def __init__(self, lists: Lists, searcher: Searcher) -> None:
        self.lists = lists
        self.searcher = searcher

    def of(self, expected: object, found: object, path: str) -> Iterator[Difference]:
        """The differences."""
        if isinstance(expected, dict) and expected and all(key.startswith("$") for key in expected):
            for word, bound in expected.items():
                yield from self._operator(word, bound, found, path)
        elif expected is None:
            if found is not NOTHING and found is not None:
                yield Difference(path, "nothing", format_value(found))
        elif isinstance(expected, dict) and isinstance(found, dict):
            for key, value in expected.items():
                yield from self.of(value, found.get(key, NOTHING), f"{path}.{key}" if path else key)
        elif isinstance(expected, list) and isinstance(found, list):
            yield from self._list(expected, found, path)
        elif isinstance(found, Nothing) or not equal(expected, found):
            yield Difference(path, format_value(expected), format_value(found))

    def _operator(self, word: str, bound: object, found: object, path: str) -> Iterator[Difference]:
        operator = OPERATORS[word]
        if operator.inner is not None:
            yield from operator.inner(self, bound, found, path)
        elif operator.holds is not None and not operator.holds(self, found, bound):
            yield Difference(path, f"{operator.words} {format_value(bound)}", format_value(found))

    def _list(self, expected: Sequence[object], found: Sequence[object], path: str) -> Iterator[Difference]:
        if self.lists == "exact" and len(expected) != len(found):
            yield Difference(path, f"{len(expected)} items", f"{len(found)} items")
        if self.lists != "key":
            for index, value in enumerate(expected):
                there = found[index] if index < len(found) else NOTHING
                yield from self.of(value, there, f"{path}[{index}]")
            return
        taken: set[int] = set()
        for index, value in enumerate(expected):
            yield from self._item(value, found, taken, path, index)

    def _item(
        self, value: object, found: Sequence[object], taken: set[int], path: str, index: int
    ) -> Iterator[Difference]:
        """One expected item against the one of the same key, or against any."""
        key = next((key for key in KEYS if isinstance(value, dict) and _is_plain(value.get(key))), "")
        if key and isinstance(value, dict) and any(isinstance(one, dict) and key in one for one in found):
            place = f"{path}[{key}={value[key]}]"
            same = [
                number
                for number, one in enumerate(found)
                if number not in taken and isinstance(one, dict) and equal(one.get(key), value[key])
            ]
        else:
            place, same = f"{path}[{index}]", [number for number in range(len(found)) if number not in taken]
        tried = [(number, list(self.of(value, found[number], place))) for number in same]
        if not tried:
            yield Difference(
                place, format_value(value), "no such item" if key else f"nothing like it in {format_value(list(found))}"
            )
            return
        number, fewest = min(tried, key=lambda one: len(one[1]))
        if not fewest:
            taken.add(number)
        elif key:
            yield from fewest
        else:
            nearest = [each._replace(path=f"{path}[{number}]{each.path.removeprefix(place)}") for each in fewest]
            differing = "; ".join(map(str, nearest[:MOST_NEAREST]))
            yield Difference(place, format_value(value), f"nothing like it; nearest: {differing}")


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)
