"""Does an object look as expected? What is expected is a part of it, with operators where a value says too little.

Objects: every member that is expected is there; others may be too; null: it is not there, or null. Lists by `lists`:

key     items that have a name, or another key of Kubernetes (containerPort, mountPath, type, …), are held against the
        item with the same; all others against any item that is not taken yet
order   the expected items come in this order, from the first one on; more may follow
exact   the same number of items, in the same order

A dictionary whose keys all begin with `$` is not data but operators: see OPERATORS.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ext_sdk.expect.json_values import equal

from .difference import NOTHING, Difference, Nothing, told
from .operators import OPERATORS, WrongPattern, check_pattern

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ext_sdk.expect import Searcher

__all__ = ["Difference", "Lists", "WrongPattern", "check_pattern", "differences"]
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
    return list(Match(lists, searcher).of(expected, found, path))


class Match:
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
                yield Difference(path, "nothing", told(found))
        elif isinstance(expected, dict) and isinstance(found, dict):
            for key, value in expected.items():
                yield from self.of(value, found.get(key, NOTHING), f"{path}.{key}" if path else key)
        elif isinstance(expected, list) and isinstance(found, list):
            yield from self._list(expected, found, path)
        elif isinstance(found, Nothing) or not equal(expected, found):
            yield Difference(path, told(expected), told(found))

    def _operator(self, word: str, bound: object, found: object, path: str) -> Iterator[Difference]:
        operator = OPERATORS[word]
        if operator.inner is not None:
            yield from operator.inner(self, bound, found, path)
        elif operator.holds is not None and not operator.holds(self, found, bound):
            yield Difference(path, f"{operator.words} {told(bound)}", told(found))

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
            yield Difference(place, told(value), "no such item" if key else f"nothing like it in {told(list(found))}")
            return
        number, fewest = min(tried, key=lambda one: len(one[1]))
        if not fewest:
            taken.add(number)
        elif key:
            yield from fewest
        else:
            nearest = [each._replace(path=f"{path}[{number}]{each.path.removeprefix(place)}") for each in fewest]
            differing = "; ".join(map(str, nearest[:MOST_NEAREST]))
            yield Difference(place, told(value), f"nothing like it; nearest: {differing}")


def _is_plain(value: object) -> bool:
    return isinstance(value, (str, int)) and not isinstance(value, bool)
