"""Read nested members of objects."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ext_sdk.result import Outputs

    from .yaml_loader import Object


def members(value: object, *path: str) -> Object:
    """The object at a path of keys; an empty one where there is none."""
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def items(value: object, *path: str) -> list[Object]:
    """The objects of the list at a path of keys; none where there is none."""
    found = at(value, *path)
    return [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []


def text(value: object, *path: str) -> str:
    """The text at a path of keys; "" where there is none."""
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def number(value: object, *path: str) -> int:
    """The integer at a path of keys; 0 where there is none."""
    found = at(value, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def at(value: object, *path: str) -> object:
    """What is at a path of keys; None where there is nothing."""
    for key in path:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def named(item: Object) -> str:
    """`Deployment/web`, for messages."""
    return (
        f"{text(item, 'kind') or 'object'}/{text(item, 'metadata', 'name') or text(item, 'metadata', 'generateName')}"
    )


def identity(item: Object) -> Outputs:
    """What most operations put out about an object."""
    return {key: text(item, "metadata", key) for key in ("name", "namespace", "uid", "resourceVersion")}


def age_of(moment: str, now: datetime | None = None) -> float:
    """Seconds since a time, as objects have it; 0 where there is none."""
    then = _time(moment)
    return max(0.0, ((now or datetime.now(UTC)) - then).total_seconds()) if then else 0.0


def seconds_between(start: str, end: str) -> float:
    """Return the seconds from one time of an object to another; 0 if either is missing."""
    until = _time(end)
    return age_of(start, until) if until else 0.0


def _time(moment: str) -> datetime | None:
    try:
        found = datetime.fromisoformat(moment)
    except ValueError:
        return None
    return found if found.tzinfo else None
