"""Expectations on the values that a JSONPath selects in a JSON document."""

from __future__ import annotations

import json
import operator
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from ext_sdk.args import Computed
from ext_sdk.core import regex
from ext_sdk.core.regex import Searcher, SearchFailed

from .check import HEAD, Check, Expectation, Json, difference, quoted, redact_named, shown
from .json_equality import MISSING, Difference, differs, equal, is_type, type_name
from .numbers import Integer, check_integer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .check import Redact
    from .json_path import Node

Number = Annotated[int | float, Computed]
Type = Literal["null", "boolean", "integer", "number", "string", "array", "object"]
NODES = 256  # compared between two readings of the clock
_HOW = ("path", "nodes")  # fields that check nothing by themselves


class JsonExpectation(Expectation):
    """Expectation on the values at a path of a JSON document; all given fields must hold.

    Types count: "1" is not 1, true is not 1, 9007199254740993 is not 9007199254740992. 1.0 is 1.
    """

    path: Annotated[str, Meta(description="JSONPath (RFC 9535), such as $.items[0].name")]
    nodes: Annotated[
        Literal["one", "all", "any"],
        Meta(description="one: the path must select one value. all, any: of several values"),
    ] = "one"
    exists: Annotated[bool | UnsetType, Meta(description="True: the path selects a value; false: none")] = UNSET
    count: Annotated[Integer | UnsetType, Meta(description="Number of selected values")] = UNSET
    type: Annotated[Type | UnsetType, Meta(description="Type of the value")] = UNSET
    equals: Annotated[Json | UnsetType, Meta(description="Equal to this")] = UNSET
    not_equals: Annotated[Json | UnsetType, Meta(description="Not equal to this")] = UNSET
    in_: Annotated[Annotated[list[Json], Meta(min_length=1)] | UnsetType, Meta(description="One of these")] = field(
        default=UNSET, name="in"
    )
    contains: Annotated[
        Json | UnsetType, Meta(description="Part of a string, item of an array, subset of an object")
    ] = UNSET
    matches: Annotated[str | UnsetType, Meta(description="Regular expression, found in a string")] = UNSET
    length: Annotated[Integer | UnsetType, Meta(description="Length of a string, array or object")] = UNSET
    gt: Annotated[Number | UnsetType, Meta(description="Greater than this")] = UNSET
    gte: Annotated[Number | UnsetType, Meta(description="At least this")] = UNSET
    lt: Annotated[Number | UnsetType, Meta(description="Less than this")] = UNSET
    lte: Annotated[Number | UnsetType, Meta(description="At most this")] = UNSET

    def __post_init__(self) -> None:
        from ext_sdk.expect import json_path

        self.refuse_empty(besides=_HOW)
        if problem := json_path.problem(self.path):
            raise ValueError(problem)
        if isinstance(self.matches, str) and (problem := regex.problem(self.matches)):
            raise ValueError(f"matches: {problem}")
        if self.exists is False and len(self.given(besides=_HOW)) > 1:
            raise ValueError("`exists: false` selects no value for other checks; remove one of them")


def _contains(value: object, part: object) -> bool:
    if isinstance(value, str):
        return isinstance(part, str) and part in value
    if isinstance(value, list):
        return any(differs(part, item, partial=True) is None for item in value)
    return isinstance(value, dict) and isinstance(part, dict) and differs(part, value, partial=True) is None


def _ordered(compare: Callable[[float, float], bool]) -> Callable[[object, object], bool]:
    def holds(value: object, bound: object) -> bool:
        numbers = all(isinstance(side, (int, float)) and not isinstance(side, bool) for side in (value, bound))
        return numbers and compare(value, bound)  # type: ignore[arg-type]  # both are numbers

    return holds


# Field, text after "expected", comparison of the found value with the given one.
_COMPARISONS: tuple[tuple[str, str, Callable[[object, object], bool]], ...] = (
    ("type", "to be of type", lambda value, name: is_type(value, str(name))),
    ("equals", "to equal", equal),
    ("not_equals", "not to equal", lambda value, unwanted: not equal(value, unwanted)),
    ("in_", "to be one of", lambda value, wanted: isinstance(wanted, list) and any(equal(value, w) for w in wanted)),
    ("contains", "to contain", _contains),
    ("gt", "to be greater than", _ordered(operator.gt)),
    ("gte", "to be at least", _ordered(operator.ge)),
    ("lt", "to be less than", _ordered(operator.lt)),
    ("lte", "to be at most", _ordered(operator.le)),
)


def check_json(
    expectation: JsonExpectation, document: object, *, where: str, searcher: Searcher, redact: Redact = str
) -> list[Check]:
    """Check a JSON document against an expectation on one path.

    Args:
        where: name of the document in messages: `stdout`.
        redact: redacts the values that are shown: `context.secrets.redact`.

    Returns:
        One Check for each comparison; with `nodes: all` one for all values, which shows the first that fails.
    """
    from ext_sdk.expect import json_path

    place = f"{where} at {expectation.path}"
    checks: list[Check] = []
    try:
        nodes = json_path.select(expectation.path, document, searcher)
        if not isinstance(expectation.exists, UnsetType):
            what = "to exist" if expectation.exists else "not to exist"
            found = shown(nodes[0].value, redact_named(nodes[0].path, redact)) if nodes else "nothing"
            checks.append(Check(bool(nodes) == expectation.exists, what, "", found, where=place))
        if not isinstance(expectation.count, UnsetType):
            checks += check_integer(expectation.count, len(nodes), where=f"number of values of {place}")
        if expectation.given(besides=(*_HOW, "exists", "count")):
            checks += _check_nodes(expectation, nodes, where, searcher, redact)
    except (json_path.PathFailed, SearchFailed, RecursionError) as error:
        return [Check.failed("to be checked", f"an error: {error}", where=place)]
    return checks


def _check_nodes(
    wanted: JsonExpectation, nodes: Sequence[Node], where: str, searcher: Searcher, redact: Redact
) -> list[Check]:
    """Compare the selected values; with several nodes, return one check for each comparison."""
    place = f"{where} at {wanted.path}"
    if not nodes:
        return [Check.failed("to select a value", "nothing", where=place)]
    if wanted.nodes == "one" and len(nodes) > 1:
        found = f"{len(nodes)}; say `nodes: all` or `nodes: any`, or make the path narrower"
        return [Check.failed("to select one value", found, where=place)]
    checks = []
    for number, node in enumerate(nodes):
        if number % NODES == NODES - 1:
            searcher.check_time()
        node_place = place if len(nodes) == 1 else f"{where} at {node.path}"
        checks.append(_check_value(wanted, node, node_place, searcher, redact))
    if wanted.nodes == "any":
        return min(checks, key=lambda of_value: sum(not check.ok for check in of_value))
    return [next((check for check in column if not check.ok), column[0]) for column in zip(*checks, strict=True)]


def _long_texts(found: Difference) -> bool:
    """Return True if both sides are texts of which only a part can be shown."""
    sides = found.expected, found.found
    return all(isinstance(side, str) for side in sides) and any(len(str(side)) > HEAD for side in sides)


def shown_difference(found: Difference, redact: Redact) -> tuple[str, str]:
    """Return both sides of a difference to show: texts around their first difference, other values with their type."""
    redact = redact_named(found.path, redact)
    if _long_texts(found):
        return difference(str(found.expected), str(found.found), redact)
    first, second = (
        str(side) if side is MISSING else f"{shown(side, redact)} ({type_name(side)})"
        for side in (found.expected, found.found)
    )
    return first, second


def _check_value(
    wanted: JsonExpectation, node: Node, place: str, searcher: Searcher, redact_text: Redact
) -> list[Check]:
    value, redact = node.value, redact_named(node.path, redact_text)
    found = f"{shown(value, redact)} ({type_name(value)})"
    checks = []
    for name, what, holds in _COMPARISONS:
        bound: object = getattr(wanted, name)
        if bound is not UNSET:
            text = str(bound) if name == "type" else shown(bound, redact)
            check = Check(holds(value, bound), what, text, found, where=place)
            if name == "equals" and type(value) in {int, float} and bound == json.dumps(value):
                check.found += "; values of references are strings: compare numbers by `gte` and `lte`"
            different = None if check.ok or name != "equals" else differs(bound, value, at=place)
            if different and different.path != place:  # a member or an item, not all of the value
                check.where = different.path
                check.expected, check.found = shown_difference(different, redact_text)
            elif different and _long_texts(different):
                check.expected, check.found = shown_difference(different, redact_text)
            checks.append(check)
    if isinstance(wanted.matches, str):
        matched = isinstance(value, str) and searcher.search(wanted.matches, value) is not None
        checks.append(Check(matched, "to match", quoted(wanted.matches, redact), found, where=place))
    if not isinstance(wanted.length, UnsetType):
        if isinstance(value, (str, list, dict)):
            checks += check_integer(wanted.length, len(value), where=f"length of {place}")
        else:
            checks.append(Check.failed("to have a length", found, where=place))
    return checks
