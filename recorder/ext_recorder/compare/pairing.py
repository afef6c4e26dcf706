"""Which units of two cassettes belong together.

Those that say the same, the first with the first and so on; of the rest those of one method that are about one thing,
in their order. What then is left stands in one of the two only. The order differs where a pair would have to move for
all to be in one order; told are the fewest that would.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from .units import Unit

    Pair = tuple[Unit, Unit]


def pairs(one: Sequence[Unit], other: Sequence[Unit]) -> tuple[list[Pair], list[Unit], list[Unit]]:
    """Pair the units of two cassettes.

    Returns:
        The pairs, in the order of the first cassette; what stands in the first only, and in the second only.
    """
    equal, left, right = _paired(one, other, lambda unit: (*unit.sort, unit.says))
    alike, left, right = _paired(left, right, lambda unit: unit.sort)
    return sorted([*equal, *alike], key=lambda pair: pair[0].index), left, right


def _paired(
    one: Iterable[Unit], other: Iterable[Unit], key: Callable[[Unit], Hashable]
) -> tuple[list[Pair], list[Unit], list[Unit]]:
    waiting: dict[Hashable, deque[Unit]] = {}
    for unit in one:
        waiting.setdefault(key(unit), deque()).append(unit)
    found, right = [], []
    for unit in other:
        same = waiting.get(key(unit))
        if same:
            found.append((same.popleft(), unit))
        else:
            right.append(unit)
    left = sorted((unit for rest in waiting.values() for unit in rest), key=lambda unit: unit.index)
    return found, left, right


def moved(found: Sequence[Pair]) -> list[Pair]:
    """The fewest pairs without which the second cassette has the order of the first."""
    tails: list[int] = []  # the smallest last place of a rising run, by its length
    ends: list[int] = []  # which pair that is
    before: list[int] = []  # for each pair, the one before it in its run
    for at, (_, unit) in enumerate(found):
        length = bisect_left(tails, unit.index)
        before.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [unit.index]
        ends[length : length + 1] = [at]
    kept = set()
    at = ends[-1] if ends else -1
    while at >= 0:
        kept.add(at)
        at = before[at]
    return [pair for at, pair in enumerate(found) if at not in kept]
