"""Which expected item takes which found one, when they don't stand in the same places.

Each takes an item of its own. In any order that is settled as a whole: a greedy choice for the first could leave the
last without one.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # Whether the expected item of the first index can take the found one of the second.
    Fits = Callable[[int, int], bool]


def in_order(expected: int, found: int, fits: Fits) -> dict[int, int]:
    """The item that each expected one takes, each behind the one before; without those that find none.

    Args:
        expected: how many there are.
        found: how many there are to take.
        fits: see Fits.
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


def in_any_order(expected: int, found: int, fits: Fits) -> dict[int, int]:
    """The item that each expected one takes, so that as many as possible have one.

    This is a maximum matching by augmenting paths (Kuhn): one that finds nothing free asks those that took what fits it
    to take something else. Arguments as for `in_order`; `fits` may be asked for a pair again.
    """
    owner: dict[int, int] = {}
    for wanted in range(expected):
        owner.update(_path_to_a_free_one(wanted, found, fits, owner))
    return {taker: there for there, taker in owner.items()}


def _path_to_a_free_one(first: int, found: int, fits: Fits, owner: dict[int, int]) -> list[tuple[int, int]]:
    """Who takes what from now on, so that `first` has something; nothing where that is not possible."""
    asked_by: dict[int, int] = {}  # item -> the expected one that was first to ask for it
    holds = {taker: there for there, taker in owner.items()}
    waiting = [first]
    for asking in waiting:  # grows
        for there in range(found):
            if there in asked_by or not fits(asking, there):
                continue
            asked_by[there] = asking
            if there not in owner:
                return _back(there, first, asked_by, holds)
            waiting.append(owner[there])
    return []


def _back(free: int, first: int, asked_by: dict[int, int], holds: dict[int, int]) -> list[tuple[int, int]]:
    path = [(free, asked_by[free])]
    while path[-1][1] != first:
        there = holds[path[-1][1]]
        path.append((there, asked_by[there]))
    return path
