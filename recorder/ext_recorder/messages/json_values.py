"""JSON values by pointer (RFC 6901): remove parts, find parts, compare two values."""

from __future__ import annotations

from itertools import zip_longest

from ext_sdk.core.wire.json_pointer import MISSING, child, parts, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["MISSING", "content_hash", "differences", "join", "parts", "places", "resolve", "without"]


_EVERY = frozenset("*")  # the tokens that match each member or item


def join(pointer: str, token: str | int) -> str:
    """Append a token to a pointer."""
    return f"{pointer}/{str(token).replace('~', '~0').replace('/', '~1')}"


def without(value: object, pointers: Iterable[str]) -> object:
    """Return a copy of a JSON value without the values at the pointers. `*` as a token is every member or item.

    A removed member is omitted; a removed item becomes a gap, so that the other items keep their index.
    """
    for pointer in pointers:
        tokens = parts(pointer)
        value = _less(value, tokens) if tokens else None
    return value


def places(value: object, pointers: Iterable[str]) -> Iterator[str]:
    """Yield the pointers that a JSON value has, with `*` in them replaced by each member or item."""
    for pointer in pointers:
        reached: list[tuple[str, object]] = [("", value)]
        for token in parts(pointer):
            above, reached = reached, []
            for place, holder in above:
                names: Iterable[str] = [token]
                if token in _EVERY and isinstance(holder, dict):
                    names = holder
                elif token in _EVERY:
                    names = map(str, range(len(holder))) if isinstance(holder, list) else ()
                values = ((name, child(holder, name)) for name in names)
                reached += [(join(place, name), value) for name, value in values if value is not MISSING]
        yield from (place for place, _ in reached)


def _less(value: object, tokens: list[str]) -> object:
    first, rest = tokens[0], tokens[1:]
    if isinstance(value, dict):
        return {
            key: (_less(item, rest) if _hits(first, key) else item)
            for key, item in value.items()
            if rest or not _hits(first, key)
        }
    if isinstance(value, list):
        return [
            (_less(item, rest) if rest else MISSING) if _hits(first, str(at)) else item for at, item in enumerate(value)
        ]
    return value


def _hits(token: str, key: str) -> bool:
    return token in {"*", key}


def differences(left: object, right: object, pointer: str = "") -> Iterator[str]:
    """Yield pointers to the differences of two JSON values, in the order of the left one.

    Types count: true is not 1, "1" is not 1. Numbers are equal if their values are: 1, 1.0 and 1e0 are one
    number.
    """
    todo = [(left, right, pointer)]  # a stack instead of recursion: a message may be nested deeper than Python calls
    while todo:
        left, right, pointer = todo.pop()
        if isinstance(left, dict) and isinstance(right, dict):
            keys = [*left, *(key for key in right if key not in left)]
            below = [(left.get(key, MISSING), right.get(key, MISSING), join(pointer, key)) for key in keys]
            todo += reversed(below)
        elif isinstance(left, list) and isinstance(right, list):
            pairs = zip_longest(left, right, fillvalue=MISSING)
            todo += reversed([(expected, actual, join(pointer, at)) for at, (expected, actual) in enumerate(pairs)])
        elif _kind(left) is not _kind(right) or left != right:
            yield pointer


def _kind(value: object) -> type:
    """Return the JSON type; a bool is not a number."""
    return float if type(value) is int else type(value)


def content_hash(value: object) -> int:
    """Return a hash of a JSON value; the order of members does not matter."""
    import json  # takes longer than the start of a replay

    return hash(json.dumps(value, sort_keys=True, default=str))
