"""Partial match of an expected object, with operators, and the list of differences."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Literal, NamedTuple

from ext_sdk.expect.check import LINE, Check, shown
from ext_sdk.expect.json_equality import Missing, differs, equal, is_type

from .fields import has_hidden, masked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ext_sdk.expect import Searcher
    from ext_sdk.expect.check import Redact


class Difference(NamedTuple):
    """A difference between the expected and the found object; both values as text, on one line.

    Attributes:
        lines: the lines that differ, of a text of several lines; empty for all other values.
    """

    path: str
    expected: str
    found: str
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.path}: expected {self.expected}, found {self.found}"

    @property
    def paragraph(self) -> str:
        """The difference on several lines if it does not fit on one."""
        if self.lines:
            return "\n  ".join([f"{self.path}: {self.lines[0]}", *self.lines[1:]])
        if len(line := str(self)) <= LINE:
            return line
        return f"{self.path}:\n  expected {self.expected}\n  found    {self.found}"


class Nothing:
    """Type of NOTHING, a missing value."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING = Nothing()


def format_value(value: object) -> str:
    """Return a value as text for messages; values of Secrets are masked."""
    return "nothing" if isinstance(value, (Nothing, Missing)) else shown(masked(value))


# Powers of ten, and of two, in the quantities of Kubernetes: 500m, 1.5Gi.
SUFFIXES: Mapping[str, Decimal] = {
    **{
        word: Decimal(1000) ** (index - 3)
        for index, word in enumerate(("n", "u", "m", "", "k", "M", "G", "T", "P", "E"))
    },
    **{word: Decimal(1024) ** (index + 1) for index, word in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"))},
}


class WrongPattern(ValueError):
    """The expected object is invalid; str() is the place and the reason."""


def check_pattern(expected: object, path: str = "expected") -> None:
    """Raise WrongPattern for unknown operators, and for operands that they do not accept."""
    if isinstance(expected, list):
        for index, item in enumerate(expected):
            check_pattern(item, f"{path}[{index}]")
    if not isinstance(expected, dict):
        return
    names = [key for key in expected if key.startswith("$")]
    if names and len(names) < len(expected):
        raise WrongPattern(
            f"{path}: expected operators or members, found both ({', '.join(names)}); use $equals for data"
        )
    for key, value in expected.items():
        if key not in names:
            check_pattern(value, f"{path}.{key}")
        elif key not in OPERATORS:
            raise WrongPattern(f"{path}: unknown operator {key}; known operators: {', '.join(OPERATORS)}")
        elif wrong := operand_problem(OPERATORS[key].operand, value):
            raise WrongPattern(f"{path}.{key}: {wrong}")


def _quantity(value: object) -> Decimal | None:
    """Parse a number, or a quantity such as 500m or 1.5Gi; return None for any other value."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    digits = str(value).rstrip("numkKMGTPEi") if isinstance(value, str) else str(value)
    suffix = str(value)[len(digits) :]
    try:
        return Decimal(digits) * SUFFIXES[suffix]
    except (InvalidOperation, KeyError):
        return None


# Fields of quantities, by their own name or that of the object that they are in: the server stores 1024Mi as 1Gi.
QUANTITIES = frozenset({"sizeLimit", "averageValue", "divisor"})
QUANTITIES_IN = frozenset(
    {
        "requests",
        "limits",
        "capacity",
        "allocatable",
        "allocatedResources",
        "hard",
        "used",
        "overhead",
        "podFixed",
        "default",
        "defaultRequest",
        "max",
        "min",
    }
)


def is_quantity_field(path: str) -> bool:
    """Return True if the field at a path holds a quantity, such as `spec.resources.requests.memory`."""
    *_, parent, name = ("", *path.split("."))
    return name in QUANTITIES or parent in QUANTITIES_IN


def same_quantity(found: object, expected: object) -> bool:
    """Return True if both values are quantities of the same amount, such as 1Gi and 1024Mi."""
    left, right = _quantity(found), _quantity(expected)
    return left is not None and left == right


def _ordered(compare: Callable[[Decimal, Decimal], bool]) -> Callable[[ObjectMatcher, object, object], bool]:
    def holds(match: ObjectMatcher, found: object, bound: object) -> bool:
        left, right = _quantity(found), _quantity(bound)
        return left is not None and right is not None and compare(left, right)

    return holds


def _contains(match: ObjectMatcher, found: object, bound: object) -> bool:
    if isinstance(found, str):
        return isinstance(bound, str) and bound in found
    if isinstance(found, list):
        return any(not any(match.differences(bound, item, "")) for item in found)
    return isinstance(found, dict) and isinstance(bound, str) and bound in found


def _matches(match: ObjectMatcher, found: object, bound: object) -> bool:
    return isinstance(found, str) and match.searcher.search(str(bound), found) is not None


def _one_of(match: ObjectMatcher, found: object, bound: object) -> bool:
    return isinstance(bound, list) and any(equal(found, item) for item in bound) and found is not NOTHING


def operand_problem(kind: str, operand: object) -> str:
    """Return the reason why an operator does not accept an operand; "" if it does."""
    if kind == "list":
        return "" if isinstance(operand, list) and operand else "expected a list that is not empty"
    if kind == "boolean":
        return "" if isinstance(operand, bool) else "expected true or false"
    if kind == "quantity":
        wrong = _quantity(operand) is None
        return "expected a number, or a quantity such as 500m or 1Gi" if wrong else ""
    if kind == "regex":
        from ext_sdk.core.regex import problem

        return problem(operand) if isinstance(operand, str) else "expected a regular expression"
    if kind == "item" and operand == {}:
        return "{} matches every object; use {$equals: {}} for an empty one"
    if kind in {"item", "pattern"}:
        try:
            check_pattern(operand, "")
        except WrongPattern as error:
            return str(error).removeprefix(": ")
    return ""


class Operator(NamedTuple):
    """An operator.

    Attributes:
        text: of a difference, before the operand.
        operand: kind of the operand: see operand_problem.
        holds: predicate of the matcher, the found value and the operand; None for operators with a pattern as operand,
            which yield the differences of that.
    """

    text: str
    operand: str
    holds: Callable[[ObjectMatcher, object, object], bool] | None = None


OPERATORS: Mapping[str, Operator] = {
    "$equals": Operator("", "value"),
    "$ne": Operator("anything but", "value", lambda _, found, bound: found is NOTHING or not equal(found, bound)),
    "$in": Operator("one of", "list", _one_of),
    "$notIn": Operator("none of", "list", lambda match, found, bound: not _one_of(match, found, bound)),
    "$quantity": Operator("the quantity", "quantity", lambda _, found, bound: same_quantity(found, bound)),
    "$gt": Operator("more than", "quantity", _ordered(lambda left, right: left > right)),
    "$gte": Operator("at least", "quantity", _ordered(lambda left, right: left >= right)),
    "$lt": Operator("less than", "quantity", _ordered(lambda left, right: left < right)),
    "$lte": Operator("at most", "quantity", _ordered(lambda left, right: left <= right)),
    "$exists": Operator("existence:", "boolean", lambda _, found, bound: (found is not NOTHING) == bound),
    "$type": Operator("a value of type", "value", lambda _, found, bound: is_type(found, str(bound))),
    "$contains": Operator("something with", "item", _contains),
    "$matches": Operator("text that matches", "regex", _matches),
    "$length": Operator("", "pattern"),
    "$not": Operator("", "pattern"),
    "$every": Operator("", "pattern"),
}

Lists = Literal["key", "order", "exact"]
MOST_NEAREST = 3  # differences of the nearest item in a message

# Keys that identify the items of a list, like the merge keys of Kubernetes; the first one that an item has is used. The
# key selects the item that a message is about; it does not affect the result.
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
    expected: object, found: object, *, lists: Lists = "key", searcher: Searcher, path: str = "", redact: Redact = str
) -> list[Difference]:
    """Return the differences between expected and found; empty if they match.

    Args:
        expected: partial object, with operators.
        redact: redacts texts before they are shortened; without it, texts of several lines have no `lines`.

    Raises:
        SearchFailed: a regular expression took too long.
    """
    return list(ObjectMatcher(lists, searcher, redact).differences(expected, found, path))


class ObjectMatcher:
    """Compares a found object with an expected one."""

    def __init__(self, lists: Lists, searcher: Searcher, redact: Redact) -> None:
        self.lists = lists
        self.searcher = searcher
        self.redact = redact

    def differences(self, expected: object, found: object, path: str) -> Iterator[Difference]:
        """Yield the differences between expected and found."""
        if isinstance(expected, dict) and expected and all(key.startswith("$") for key in expected):
            yield from self._operators(expected, found, path)
        elif expected is None:
            if found is not NOTHING and found is not None:
                yield Difference(path, "nothing", format_value(found))
        elif isinstance(expected, dict) and isinstance(found, dict):
            for key, value in expected.items():
                yield from self.differences(value, found.get(key, NOTHING), f"{path}.{key}" if path else key)
        elif isinstance(expected, list) and isinstance(found, list):
            yield from self._list(expected, found, path)
        elif isinstance(found, Nothing) or not (
            equal(expected, found) or (is_quantity_field(path) and same_quantity(found, expected))
        ):
            yield from self._unequal(expected, found, path)

    def _unequal(self, expected: object, found: object, path: str) -> Iterator[Difference]:
        """Yield the first difference of two values: of objects and lists the member, of texts the part that differs."""
        if (different := differs(expected, found, at=path)) is None:
            return
        path, expected, found = different.path.removeprefix("."), different.expected, different.found
        texts = [value for value in (expected, found) if isinstance(value, str)]
        long = any(len(text) > LINE or "\n" in text for text in texts)
        if isinstance(expected, str) and isinstance(found, str) and long and not has_hidden(found):
            check = Check.of_texts(False, "", expected, found, where=path, redact=self.redact)  # noqa: FBT003
            yield Difference(path, check.expected, check.found, check.lines)
        else:
            names = [f"${key}" for key in expected if f"${key}" in OPERATORS] if isinstance(expected, dict) else []
            hint = f" (operators begin with $: {', '.join(names)})" if names else ""
            yield Difference(path, format_value(expected) + hint, format_value(found))

    def _operators(self, operands: Mapping[str, object], found: object, path: str) -> Iterator[Difference]:
        for name, operand in operands.items():
            text, _, holds = OPERATORS[name]
            if name == "$equals":
                yield from self._unequal(operand, found, path)
            elif holds is not None:
                if not holds(self, found, operand):
                    yield Difference(path, f"{text} {format_value(operand)}", format_value(found))
            elif name == "$length":
                length = len(found) if isinstance(found, (str, list, dict)) else NOTHING
                yield from self.differences(operand, length, f"length of {path}")
            elif name == "$not":
                if not any(self.differences(operand, found, path)):
                    yield Difference(path, f"not {format_value(operand)}", format_value(found))
            elif isinstance(found, list):
                for index, item in enumerate(found):
                    yield from self.differences(operand, item, f"{path}[{index}]")
            else:
                yield Difference(path, "a list", format_value(found))

    def _list(self, expected: Sequence[object], found: Sequence[object], path: str) -> Iterator[Difference]:
        if self.lists == "exact" and len(expected) != len(found):
            yield Difference(path, f"{len(expected)} items", f"{len(found)} items")
        if self.lists != "key":
            for index, value in enumerate(expected):
                present = found[index] if index < len(found) else NOTHING
                yield from self.differences(value, present, f"{path}[{index}]")
            return
        taken: set[int] = set()
        for index, value in enumerate(expected):
            yield from self._item(value, found, taken, path, index)

    def _item(
        self, value: object, found: Sequence[object], taken: set[int], path: str, index: int
    ) -> Iterator[Difference]:
        """Compare an expected item with the found one of the same key, or without a key with any of them.

        The index of the matching item is added to `taken`, so that no other expected item matches it.
        """
        expected = value if isinstance(value, dict) else {}
        keys = (
            key for key in KEYS if isinstance(expected.get(key), (str, int)) and not isinstance(expected[key], bool)
        )
        key = next(keys, "")
        if keyed := bool(key) and any(isinstance(item, dict) and key in item for item in found):
            place = f"{path}[{key}={expected[key]}]"
            candidates = [
                number
                for number, item in enumerate(found)
                if number not in taken and isinstance(item, dict) and equal(item.get(key), expected[key])
            ]
        else:
            place, candidates = f"{path}[{index}]", [number for number in range(len(found)) if number not in taken]
        compared = [(number, list(self.differences(value, found[number], place))) for number in candidates]
        number, fewest = min(  # of as many differences, those further inside are nearer
            compared,
            key=lambda candidate: (len(candidate[1]), -sum(each.path.count(".") for each in candidate[1])),
            default=(-1, []),
        )
        if compared and not fewest:
            taken.add(number)
        elif compared and keyed:
            yield from fewest
        elif compared and isinstance(value, dict) and isinstance(found[number], dict):
            note = f" (the nearest of {len(found)} items)" if len(found) > 1 else ""
            for difference in fewest[:MOST_NEAREST]:
                nearest = f"{path}[{number}]{difference.path.removeprefix(place)}"
                yield difference._replace(path=nearest, found=difference.found + note)
        else:
            missing = "no such item" if keyed else f"no such item in {format_value(list(found))}"
            yield Difference(place, format_value(value), missing)
