"""The place in a value that an error of msgspec is about, with the keys of maps, which msgspec writes as `[...]`."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from .hints import LONGEST
from .wire import dumps

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MOST_KEYS = 1000  # of a map that are tried: each costs a conversion
_STEP = re.compile(r"\.(?P<name>[^.\[]+)|\[(?:(?P<index>\d+)|\.\.\.)\]")
_PLAIN = re.compile(r"[A-Za-z_][\w-]*")


def with_keys(path: str, value: object, fails: Callable[[object], bool], *, of_key: bool = False) -> tuple[str, str]:
    """Return a path of msgspec with the keys of maps, and the key that the error is about.

    Args:
        path: such as `.env[...]`; "" for the value itself.
        value: what was refused.
        fails: whether a value is refused with the same error. It is called with parts of the value.
        of_key: the error is about a key of the map at the path, and not about a value.

    Returns:
        The path, in which `[...]` is left where the key is not found; and the key of that map, or "".
    """
    steps = _STEP.finditer(path)
    trail: list[str | int] = []
    told = ""
    for step in steps:
        key: str | int | None = int(step["index"]) if step["index"] else step["name"]
        if key is None:
            key = _failing_key(value, trail, fails)
            if key is None:
                return path if not told else told + path[step.start() :], ""
            told += _written(str(key))
        else:
            told += step[0]
        trail.append(key)
    return told, (_failing_key(value, trail, fails) or "") if of_key else ""


def _failing_key(value: object, trail: list[str | int], fails: Callable[[object], bool]) -> str | None:
    """Return the first key of the map at the end of the trail that is refused by itself."""
    found = _at(value, trail)
    if not isinstance(found, dict):
        return None
    keys = islice(found, MOST_KEYS)
    return next((key for key in keys if fails(_replaced(value, trail, {key: found[key]}))), None)


def _at(value: object, trail: list[str | int]) -> object:
    for key in trail:
        if isinstance(value, dict):
            value = value.get(key)
        else:
            value = value[key] if isinstance(value, list) and isinstance(key, int) and key < len(value) else None
    return value


def _replaced(value: object, trail: list[str | int], part: Mapping[str, object]) -> object:
    """Return a copy of the value with another part at the end of the trail."""
    if not trail:
        return part
    key, *rest = trail
    if isinstance(value, dict):
        return value | {key: _replaced(value.get(key), rest, part)}
    items = list(value) if isinstance(value, list) else []
    return [_replaced(item, rest, part) if at == key else item for at, item in enumerate(items)]


def _written(key: str) -> str:
    shown = key if len(key) <= LONGEST else key[:LONGEST] + "…"
    return f".{shown}" if _PLAIN.fullmatch(shown) else f"[{dumps(shown)}]"
