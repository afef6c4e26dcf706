"""Expectations on integers and durations."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

from ext_sdk.duration import Duration

from .check import Check, Expectation

Integers = Annotated[list[int], Meta(min_length=1)]


class IntegerExpectation(Expectation):
    """What a whole number must be; all that is given must hold."""

    equals: int | UnsetType = UNSET
    in_: Annotated[Integers | UnsetType, Meta(description="One of these")] = field(default=UNSET, name="in")
    not_: Annotated[int | Integers | UnsetType, Meta(description="None of these")] = field(default=UNSET, name="not")
    gt: int | UnsetType = UNSET
    gte: int | UnsetType = UNSET
    lt: int | UnsetType = UNSET
    lte: int | UnsetType = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()


# As users write it: 0, [0, 1], "nonzero", or an object.
Integer = int | Integers | Literal["nonzero"] | IntegerExpectation
Holds = Callable[[int, int | list[int]], bool]


def _ordered(compare: Callable[[int, int], bool]) -> Holds:
    return lambda value, bound: isinstance(bound, int) and compare(value, bound)


def _among(value: int, wanted: int | list[int]) -> bool:
    return value in wanted if isinstance(wanted, list) else value == wanted


# field of IntegerExpectation, words after "expected", comparison
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
    """Hold a number against an expectation.

    Args:
        expectation: a number it must equal, a list of which it must be one, "nonzero", or an IntegerExpectation.
        value: the number found.
        where: what it is, for the message: `exitCode`.

    Returns:
        One Check for each comparison.
    """
    if isinstance(expectation, str):
        return [Check(value != 0, "to be nonzero", "", str(value), where=where)]
    wanted = _as_object(expectation)
    checks = []
    for name, what, holds in _COMPARISONS:
        bound = getattr(wanted, name)
        if bound is not UNSET:
            checks.append(Check(holds(value, bound), what, _listed(bound), str(value), where=where))
    return checks


def _as_object(expectation: int | list[int] | IntegerExpectation) -> IntegerExpectation:
    if isinstance(expectation, list):
        return IntegerExpectation(in_=expectation)
    if isinstance(expectation, int):
        return IntegerExpectation(equals=expectation)
    return expectation


def _listed(numbers: int | list[int]) -> str:
    return ", ".join(map(str, numbers)) if isinstance(numbers, list) else str(numbers)


class DurationExpectation(Expectation):
    """What a duration must be; all that is given must hold."""

    gt: Duration | UnsetType = UNSET
    gte: Duration | UnsetType = UNSET
    lt: Duration | UnsetType = UNSET
    lte: Duration | UnsetType = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()


# field, words after "expected", comparison of the nanoseconds found with those given
_DURATION_COMPARISONS: tuple[tuple[str, str, Callable[[int, int], bool]], ...] = (
    ("gt", "to be more than", operator.gt),
    ("gte", "to be at least", operator.ge),
    ("lt", "to be less than", operator.lt),
    ("lte", "to be at most", operator.le),
)


def check_duration(expectation: DurationExpectation, found: Duration, *, where: str) -> list[Check]:
    """Hold a duration against an expectation.

    Args:
        expectation: the bounds.
        found: the duration.
        where: what it is, for the message: `duration`.

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
