"""Expectations on how long something took, or on how long something still lasts."""

from __future__ import annotations

import operator

from msgspec import UNSET, UnsetType

from ext_sdk.duration import Duration

from .base import Expectation
from .check import Check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class DurationExpectation(Expectation):
    """What a duration must be; all that is given must hold."""

    gt: Duration | UnsetType = UNSET
    gte: Duration | UnsetType = UNSET
    lt: Duration | UnsetType = UNSET
    lte: Duration | UnsetType = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()


# field, words after "expected", comparison of the nanoseconds found with those given
_COMPARISONS: tuple[tuple[str, str, Callable[[int, int], bool]], ...] = (
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
    for name, what, holds in _COMPARISONS:
        bound = getattr(expectation, name)
        if isinstance(bound, Duration):
            ok = holds(found.nanoseconds, bound.nanoseconds)
            checks.append(Check(ok, what, str(bound), str(found), where=where))
    return checks
