"""Read nested members of objects, the conditions in their status, and the values of Secrets.

Values of Secrets are compared as plain strings, and shown as a placeholder. They are marked when objects are read, not
registered with the redactor: it ignores short values, and would redact a word such as `default` in every later message.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from .yaml_loader import Object

Outputs = dict[str, str | int | bool]  # of an operation, by name


def members(value: object, *path: str) -> Object:
    """Return the object at a path of keys; an empty one if absent."""
    member = at(value, *path)
    return member if isinstance(member, dict) else {}


def items(value: object, *path: str) -> list[Object]:
    """Return the objects in the list at a path of keys; an empty list if absent."""
    listed = at(value, *path)
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def text(value: object, *path: str) -> str:
    """Return the string at a path of keys; "" if absent."""
    for key in path:  # as `at`, which every event of a watch would call some twenty times
        if not isinstance(value, dict):
            return ""
        value = value.get(key)
    return value if isinstance(value, str) else ""


def number(value: object, *path: str) -> int:
    """Return the integer at a path of keys; 0 if absent."""
    member = at(value, *path)
    return member if isinstance(member, int) and not isinstance(member, bool) else 0


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


# Suffixes of types for which True means trouble: ReplicaFailure, MemoryPressure, NetworkUnavailable.
TROUBLES = ("Failure", "Failed", "FailureTarget", "Pressure", "NetworkUnavailable", "Degraded", "Stalled")


class Condition(NamedTuple):
    """A condition.

    Attributes:
        status: True, False, Unknown, or another status that the kind has.
        since: lastTransitionTime.
        outdated: it refers to an older generation of the object.
    """

    type: str
    status: str
    reason: str
    message: str
    since: str
    outdated: bool

    @property
    def is_trouble(self) -> bool:
        """Return True for a condition such as ReplicaFailure=True or Ready=False."""
        return (self.status == "True") == self.type.endswith(TROUBLES)

    def holds(self, status: str) -> bool:
        """Return True if the condition has this status, in any case, for the present generation of the object."""
        return not self.outdated and self.status.casefold() == status.casefold()

    def __str__(self) -> str:
        explanation = ": ".join(part for part in (self.reason, self.message) if part)
        outdated = ", about an older generation" if self.outdated else ""
        return f"{self.type}={self.status}{outdated}{f' ({explanation})' if explanation else ''}"


def conditions_of(item: Object) -> list[Condition]:
    """Return all conditions of an object, in its order."""
    return [_condition(item, member) for member in items(item, "status", "conditions")]


def condition_of(item: Object, type: str) -> Condition | None:
    """Return the condition of a type, in any case; one with the same case is preferred."""
    similar = None
    for member in items(item, "status", "conditions"):
        name = text(member, "type")
        if name == type:
            return _condition(item, member)
        if similar is None and name.casefold() == type.casefold():
            similar = member
    return None if similar is None else _condition(item, similar)


def _condition(item: Object, member: Object) -> Condition:
    return Condition(
        text(member, "type"),
        text(member, "status"),
        text(member, "reason"),
        text(member, "message").strip(),
        text(member, "lastTransitionTime"),
        is_outdated(item, member),
    )


def has(item: Object, type: str, status: str) -> bool:
    """Return True if a condition has this status for the present generation of the object."""
    condition = condition_of(item, type)
    return condition is not None and condition.holds(status)


def is_outdated(item: Object, condition: Object | None = None) -> bool:
    """Return True if the controller has not observed the newest generation of the object."""
    for holder in (condition, item.get("status")):
        if isinstance(holder, dict) and "observedGeneration" in holder:
            return number(holder, "observedGeneration") < number(item, "metadata", "generation")
    return False


PLACEHOLDER = "(hidden value of a Secret)"
FIELDS = ("data", "stringData")
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"  # kubectl's copy of the manifest, data included


class Hidden(str):
    """A string of a Secret: equal to the same string, but not to be shown."""

    __slots__ = ()


def marked(item: Object, kind: str = "") -> Object:
    """Return the object with the values of a Secret as Hidden; other objects unchanged.

    Args:
        kind: of the object; items of a list have no kind themselves.
    """
    if (kind or text(item, "kind")) != "Secret":
        return item
    secret = item | {field: _hide(item[field]) for field in FIELDS if field in item}
    annotations = members(item, "metadata", "annotations")
    if LAST_APPLIED in annotations:
        annotations = annotations | {LAST_APPLIED: _hide(annotations[LAST_APPLIED])}
        secret |= {"metadata": members(item, "metadata") | {"annotations": annotations}}
    return secret


def _hide(value: object) -> object:
    if isinstance(value, dict):
        return {key: _hide(member) for key, member in value.items()}
    return Hidden(value) if isinstance(value, str) else value


def masked(value: object) -> object:
    """Return a value for messages: PLACEHOLDER replaces every Hidden text in it."""
    if isinstance(value, Hidden):
        return PLACEHOLDER
    if isinstance(value, dict):
        return {key: masked(member) for key, member in value.items()}
    return [masked(member) for member in value] if isinstance(value, list) else value


def has_hidden(value: object) -> bool:
    """Return True if a value is Hidden, or contains a Hidden text."""
    if isinstance(value, (dict, list)):
        return any(map(has_hidden, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Hidden)
