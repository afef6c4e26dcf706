"""What may stand in place of a value that is expected: operators, and how they are checked and told."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, NamedTuple

from ext_sdk.expect.json_values import equal, is_type

from .difference import NOTHING, Difference, told

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .matching import Match

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


def _ordered(compare: Callable[[Decimal, Decimal], bool]) -> Callable[[Match, object, object], bool]:
    def holds(match: Match, found: object, bound: object) -> bool:
        left, right = _quantity(found), _quantity(bound)
        return left is not None and right is not None and compare(left, right)

    return holds


def _contains(match: Match, found: object, bound: object) -> bool:
    if isinstance(found, str):
        return isinstance(bound, str) and bound in found
    if isinstance(found, list):
        return any(not list(match.of(bound, one, "")) for one in found)
    return isinstance(found, dict) and isinstance(bound, str) and bound in found


def _matches(match: Match, found: object, bound: object) -> bool:
    return isinstance(found, str) and match.searcher.search(str(bound), found) is not None


def _length(match: Match, bound: object, found: object, path: str) -> Iterator[Difference]:
    length = len(found) if isinstance(found, (str, list, dict)) else NOTHING
    yield from match.of(bound, length, f"length of {path}")


def _not(match: Match, bound: object, found: object, path: str) -> Iterator[Difference]:
    if not list(match.of(bound, found, path)):
        yield Difference(path, f"not {told(bound)}", told(found))


def _every(match: Match, bound: object, found: object, path: str) -> Iterator[Difference]:
    if not isinstance(found, list):
        yield Difference(path, "a list", told(found))
        return
    for index, one in enumerate(found):
        yield from match.of(bound, one, f"{path}[{index}]")


def _one_of(match: Match, found: object, bound: object) -> bool:
    return isinstance(bound, list) and any(equal(found, one) for one in bound) and found is not NOTHING


def _a_list(value: object) -> str:
    return "" if isinstance(value, list) and value else "expected a list that is not empty"


def _a_boolean(value: object) -> str:
    return "" if isinstance(value, bool) else "expected true or false"


def _a_quantity(value: object) -> str:
    return "" if _quantity(value) is not None else "expected a number, or a quantity such as 500m or 1Gi"


def _a_regex(value: object) -> str:
    from ext_sdk.expect.pattern import problem

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
    holds: Callable[[Match, object, object], bool] | None = None
    problem: Callable[[object], str] = _anything
    inner: Callable[[Match, object, object, str], Iterator[Difference]] | None = None


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
