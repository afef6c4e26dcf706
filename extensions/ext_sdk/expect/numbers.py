"""Expectations on integers and durations."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from ext_sdk.args import Computed
from ext_sdk.duration import Duration

from .check import Check, Expectation

ComputedInt = Annotated[int, Computed]
Integers = Annotated[list[int], Meta(min_length=1)]


class IntegerExpectation(Expectation):
    """Expectation on an integer; all given fields must hold."""

    equals: Annotated[ComputedInt | UnsetType, Meta(description="Equal to this")] = UNSET
    in_: Annotated[Integers | UnsetType, Meta(description="One of these")] = field(default=UNSET, name="in")
    not_: Annotated[int | Integers | UnsetType, Meta(description="None of these")] = field(default=UNSET, name="not")
    gt: Annotated[ComputedInt | UnsetType, Meta(description="Greater than this")] = UNSET
    gte: Annotated[ComputedInt | UnsetType, Meta(description="At least this")] = UNSET
    lt: Annotated[ComputedInt | UnsetType, Meta(description="Less than this")] = UNSET
    lte: Annotated[ComputedInt | UnsetType, Meta(description="At most this")] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()


# As users write it: 0, [0, 1], "nonzero", or an object.
Integer = ComputedInt | Integers | Literal["nonzero"] | IntegerExpectation
Holds = Callable[[int, int | list[int]], bool]


def _ordered(compare: Callable[[int, int], bool]) -> Holds:
    return lambda value, bound: isinstance(bound, int) and compare(value, bound)


def _among(value: int, wanted: int | list[int]) -> bool:
    return value in wanted if isinstance(wanted, list) else value == wanted


# Field of IntegerExpectation, text after "expected", comparison.
_COMPARISONS: tuple[tuple[str, str, Holds], ...] = (
    ("equals", "to equal", _among),
    ("in_", "to be one of", _among),
    ("not_", "not to be", lambda value, unwanted: not _among(value, unwanted)),
    ("gt", "to be greater than", _ordered(operator.gt)),
    ("gte", "to be at least", _ordered(operator.ge)),
    ("lt", "to be less than", _ordered(operator.lt)),
    ("lte", "to be at most", _ordered(operator.le)),
)


def check_integer(expectation: Integer, value: int, *, where: str) -> list[Check]:
    """Check an integer against an expectation.

    Args:
        expectation: the expected number, a list of accepted ones, "nonzero", or an IntegerExpectation.
        where: name of the number in messages: `exitCode`.

    Returns:
        One Check for each comparison.
    """
    if isinstance(expectation, str):
        return [Check(value != 0, "to be nonzero", "", str(value), where=where)]
    if isinstance(expectation, list):
        expectation = IntegerExpectation(in_=expectation)
    elif isinstance(expectation, int):
        expectation = IntegerExpectation(equals=expectation)
    checks = []
    for name, what, holds in _COMPARISONS:
        bound = getattr(expectation, name)
        if bound is not UNSET:
            expected = ", ".join(map(str, bound)) if isinstance(bound, list) else str(bound)
            checks.append(Check(holds(value, bound), what, expected, str(value), where=where))
    return checks


def largest(expectation: Integer) -> int | None:
    """Return the largest integer that an expectation accepts; None if it accepts any large ones."""
    if isinstance(expectation, str):
        return None
    if isinstance(expectation, (int, list)):
        return expectation if isinstance(expectation, int) else max(expectation)
    bounds: list[int] = []
    for name, less in (("equals", 0), ("lt", 1), ("lte", 0)):
        bound = getattr(expectation, name)
        bounds += [] if bound is UNSET else [bound - less]
    bounds += [] if isinstance(expectation.in_, UnsetType) else [max(expectation.in_)]
    return min(bounds, default=None)


class DurationExpectation(Expectation):
    """Expectation on a duration; all given fields must hold."""

    gt: Annotated[Duration | UnsetType, Meta(description="Greater than this")] = UNSET
    gte: Annotated[Duration | UnsetType, Meta(description="At least this")] = UNSET
    lt: Annotated[Duration | UnsetType, Meta(description="Less than this")] = UNSET
    lte: Annotated[Duration | UnsetType, Meta(description="At most this")] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()


# Field, text after "expected", comparison of nanoseconds.
_DURATION_COMPARISONS: tuple[tuple[str, str, Callable[[int, int], bool]], ...] = (
    ("gt", "to be more than", operator.gt),
    ("gte", "to be at least", operator.ge),
    ("lt", "to be less than", operator.lt),
    ("lte", "to be at most", operator.le),
)


def check_duration(expectation: DurationExpectation, found: Duration, *, where: str) -> list[Check]:
    """Check a duration against an expectation.

    Args:
        where: name of the duration in messages: `duration`.

    Returns:
        One Check for each bound.
    """
    checks = []
    for name, what, holds in _DURATION_COMPARISONS:
        bound = getattr(expectation, name)
        if isinstance(bound, Duration):
            ok = holds(found.nanoseconds, bound.nanoseconds)
            checks.append(Check(ok, what, str(bound), str(found), where=where))
    return checks
