"""Conditions in the status of an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .fields import items, number, text

if TYPE_CHECKING:
    from .yaml_loader import Object


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
