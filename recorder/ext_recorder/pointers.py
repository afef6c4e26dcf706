"""JSON pointers (RFC 6901): finding a value, taking it out, and naming where two values differ."""

from __future__ import annotations

from itertools import zip_longest

from ext_sdk.wire.errors import MessageError
from ext_sdk.wire.jsonrpc import scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MISSING = object()  # what `resolve` gives where nothing is


def parts(pointer: str) -> list[str]:
    """The tokens of a pointer. Raises ValueError where it is none."""
    if pointer == "":
        return []
    if not pointer.startswith("/"):
        raise ValueError(f"{pointer!r} is no JSON pointer: it begins with a slash, as in /params/args/file")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def join(pointer: str, token: str | int) -> str:
    """The pointer one level further down."""
    return f"{pointer}/{str(token).replace('~', '~0').replace('/', '~1')}"


def resolve(value: object, pointer: str) -> object:
    """What stands at a pointer, or MISSING."""
    for token in parts(pointer):
        value = _child(value, token)
    return value


def _child(value: object, token: str) -> object:
    if isinstance(value, dict):
        return value.get(token, MISSING)
    if isinstance(value, list) and token.isascii() and token.isdigit() and int(token) < len(value):
        return value[int(token)]
    return MISSING


def without(value: object, pointers: Iterable[str]) -> object:
    """A copy of a JSON value, less what stands at the pointers. `*` as a token is every item or member.

    A member is left out; an item leaves a hole, so that the others keep their places.
    """
    for pointer in pointers:
        tokens = parts(pointer)
        value = _less(value, tokens) if tokens else None
    return value


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
    """Pointers to where two JSON values differ, in the order of the left one.

    Types count: true is not 1, "1" is not 1. Numbers are equal when their values are, however they are
    spelled (1, 1.0, 1e0).
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
            todo += reversed([(one, other, join(pointer, at)) for at, (one, other) in enumerate(pairs)])
        elif _kind(left) is not _kind(right) or left != right:
            yield pointer


def _kind(value: object) -> type:
    """The JSON type: a bool is none of the numbers."""
    return float if type(value) is int else type(value)


def spans(text: str, pointers: Iterable[str]) -> Iterator[tuple[int, int, object]]:
    """Where in a JSON text the values at these pointers stand: (start, end, value)."""
    for pointer in pointers:
        start, end, value = 0, len(text), MISSING
        for token in parts(pointer):
            try:
                member = scan(text[start:end]).members.get(token)
            except MessageError:
                member = None
            if member is None:
                value = MISSING
                break
            start, end, value = start + member.start, start + member.end, member.value
        if value is not MISSING:
            yield start, end, value
