"""Read nested members of objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .yaml_loader import Object


Outputs = dict[str, str | int | bool]  # of an operation, by name


def members(value: object, *path: str) -> Object:
    """Return the object at a path of keys; an empty one if absent."""
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def items(value: object, *path: str) -> list[Object]:
    """Return the objects in the list at a path of keys; an empty list if absent."""
    found = at(value, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def text(value: object, *path: str) -> str:
    """Return the string at a path of keys; "" if absent."""
    for key in path:  # as `at`, which every event of a watch would call some twenty times
        if not isinstance(value, dict):
            return ""
        value = value.get(key)
    return value if isinstance(value, str) else ""


def number(value: object, *path: str) -> int:
    """Return the integer at a path of keys; 0 if absent."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def at(value: object, *path: str) -> object:
    """Return the value at a path of keys; None if absent."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def named(item: Object) -> str:
    """Return `Deployment/web`, for messages."""
    name = text(item, "metadata", "name") or text(item, "metadata", "generateName")
    return f"{text(item, 'kind') or 'object'}/{name}"


def identity(item: Object) -> Outputs:
    """Return the outputs that identify an object."""
    return {key: text(item, "metadata", key) for key in ("name", "namespace", "uid", "resourceVersion")}


def age_of(timestamp: str, now: datetime | None = None) -> float:
    """Return the seconds since a timestamp; 0 if it is missing."""
    then = _parse_time(timestamp)
    return max(0.0, ((now or datetime.now(UTC)) - then).total_seconds()) if then else 0.0


def seconds_between(start: str, end: str) -> float:
    """Return the seconds from one timestamp to another; 0 if either is missing."""
    until = _parse_time(end)
    return age_of(start, until) if until else 0.0


def _parse_time(timestamp: str) -> datetime | None:
    try:
        parsed = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else None
