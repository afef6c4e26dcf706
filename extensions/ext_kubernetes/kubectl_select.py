"""What a JSONPath as kubectl has it selects in a document, and the text that a template makes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .kubectl_path import PathFailed
from .secret_data import Hidden, has_hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from .kubectl_path import Part, Step

DEEPEST = 300  # levels that `..` goes down


def select(steps: tuple[Step, ...], value: object, root: object) -> Iterator[object]:
    """The values that steps lead to, from a value that is within a document."""
    if not steps:
        yield value
        return
    for found in _STEPPERS[steps[0].kind](steps[0].value, value, root):
        yield from select(steps[1:], found, root)


def _key(name: object, value: object, root: object) -> Iterator[object]:
    del root
    if isinstance(value, dict) and name in value:
        yield value[name]


def _all(nothing: object, value: object, root: object) -> Iterator[object]:
    del nothing, root
    yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()


def _recursive(nothing: object, value: object, root: object, depth: int = 0) -> Iterator[object]:
    yield value
    if depth < DEEPEST:
        for inner in _all(nothing, value, root):
            if isinstance(inner, (dict, list)):
                yield from _recursive(nothing, inner, root, depth + 1)


def _slice(bounds: object, value: object, root: object) -> Iterator[object]:
    del root
    if isinstance(value, list) and isinstance(bounds, slice):
        yield from value[bounds]


def _union(names: object, value: object, root: object) -> Iterator[object]:
    for name in names if isinstance(names, tuple) else ():
        if isinstance(name, int) and isinstance(value, list) and -len(value) <= name < len(value):
            yield value[name]
        elif isinstance(name, str):
            yield from _key(name, value, root)


def _filter(condition: object, value: object, root: object) -> Iterator[object]:
    assert isinstance(condition, tuple)
    left, operator, right = condition
    for one in _all(None, value, root):
        found = _operands(left, one, root)
        if not operator:
            if found:
                yield one
            continue
        wanted = _operands(right, one, root)
        if wanted and any(_compare(each, operator, wanted[0]) for each in found):
            yield one


def _operands(operand: tuple[str, object], here: object, root: object) -> list[object]:
    kind, value = operand
    if kind == "value":
        return [value]
    assert isinstance(value, tuple)
    return list(select(value, here if kind == "here" else root, root))


def _compare(left: object, operator: str, right: object) -> bool:
    """Compare two values; a text also matches the equal number or boolean, as the argument `value` of waits does."""
    if isinstance(left, str) != isinstance(right, str):
        left, right = _scalar(left), _scalar(right)
    same = left == right and isinstance(left, bool) == isinstance(right, bool)
    if operator in {"==", "!="}:
        return same == (operator == "==")
    for kind in (str, (int, float)):
        if isinstance(left, kind) and isinstance(right, kind):
            return _ORDER[operator](left, right)
    return False


def _scalar(value: object) -> object:
    """Return a text that is a number or a boolean as such; any other value as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


_ORDER: Mapping[str, Callable[..., bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}
_STEPPERS: Mapping[str, Callable[[object, object, object], Iterator[object]]] = {
    "key": _key,
    "all": _all,
    "recursive": _recursive,
    "slice": _slice,
    "union": _union,
    "filter": _filter,
}


def rendered(parts: list[Part], value: object, root: object) -> Iterator[str]:
    """Yield the text that a template makes, piece by piece; Hidden where it holds a value of a Secret."""
    position = 0
    while position < len(parts):
        part = parts[position]
        if part.kind == "text":
            yield part.text
        elif part.kind == "path":
            found = list(select(part.steps, value, root))
            made = " ".join(map(text_of_one, found))
            yield Hidden(made) if has_hidden(found) else made
        elif part.kind == "range":
            end = _end_of(parts, position)
            for one in select(part.steps, value, root):
                yield from rendered(parts[position + 1 : end], one, root)
            position = end
        position += 1


def _end_of(parts: list[Part], start: int) -> int:
    depth = 0
    for position in range(start, len(parts)):
        depth += {"range": 1, "end": -1}.get(parts[position].kind, 0)
        if not depth:
            return position
    raise PathFailed("expected an {end} after {range …}")


def text_of_one(value: object) -> str:
    """A value as text: a text as it is, all else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
