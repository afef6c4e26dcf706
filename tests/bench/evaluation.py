"""From series of numbers to a figure: a median, its spread, the ratio to what was beside it, and whether it is kept."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from tests.bench.errors import NotHere

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.bench.figures import Figure
    from tests.bench.harness import Series

# "": nothing is asked; "goal": the limit is kept and more
Verdict: TypeAlias = Literal["goal", "met", "MISSED", "not measured", ""]


@dataclass(frozen=True, slots=True)
class Spread:
    """Values of several rounds."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """That of these values."""
        return cls(statistics.median(values), min(values), max(values))


@dataclass(frozen=True, slots=True)
class Judged:
    """A figure as it was found.

    Attributes:
        figure: which.
        value: None: it can't be measured here.
        beside: what it was measured side by side with.
        ratio: that of each round; its median is not always that of the two medians.
        reason: why it can't be measured here, as far as is known.
    """

    figure: Figure
    value: Spread | None = None
    beside: Spread | None = None
    ratio: Spread | None = None
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        """Whether the limit is kept, by the median of the rounds."""
        limit = self.figure.limit
        if self.value is None or self.ratio is None:
            return "not measured"
        if limit is None:
            return ""
        found = (self.value if limit.of == "value" else self.ratio).median

        def keeps(asked: float) -> bool:
            return found <= asked if limit.better == "less" else found >= asked

        if limit.goal is not None and keeps(limit.goal):
            return "goal"
        return "met" if keeps(limit.number) else "MISSED"


def judge(figure: Figure, measured: Series | NotHere) -> Judged:
    """What the series say about a figure. One that is missing, or 0, could not be measured on this system."""
    if isinstance(measured, NotHere):
        return Judged(figure, reason=str(measured))
    values, others = measured.get(figure.series, ()), measured.get(figure.beside, ())
    if not values or not others or not all(values) or not all(others):
        return Judged(figure, reason=figure.without)
    ratios = [value / other for value, other in zip(values, others, strict=True)]
    return Judged(figure, Spread.of(values), Spread.of(others), Spread.of(ratios))
