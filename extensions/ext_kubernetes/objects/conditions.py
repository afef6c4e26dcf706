"""Conditions in the status of an object: found in any spelling of case, and told apart from those of an older spec."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .fields import items, number, text

if TYPE_CHECKING:
    from .yaml_loader import Object


# Ends of types that say by True what others say by False: ReplicaFailure, MemoryPressure, NetworkUnavailable.
TROUBLES = ("Failure", "Failed", "FailureTarget", "Pressure", "NetworkUnavailable", "Degraded", "Stalled")


class Condition(NamedTuple):
    """One condition.

    Attributes:
        type: as the object spells it.
        status: True, False, Unknown, or whatever the object says.
        reason: in one word.
        message: for people.
        since: when it last changed, as the object has it.
        outdated: it is about an older generation of the object.
    """

    type: str
    status: str
    reason: str
    message: str
    since: str
    outdated: bool

    @property
    def is_trouble(self) -> bool:
        """Whether it tells of something wrong: ReplicaFailure=True does, and so does Ready=False."""
        return (self.status == "True") == self.type.endswith(TROUBLES)

    def __str__(self) -> str:
        told = ": ".join(part for part in (self.reason, self.message) if part)
        older = ", about an older generation" if self.outdated else ""
        return f"{self.type}={self.status}{older}{f' ({told})' if told else ''}"


def conditions_of(item: Object) -> list[Condition]:
    """All conditions of an object, in its order."""
    return [
        Condition(
            text(one, "type"),
            text(one, "status"),
            text(one, "reason"),
            text(one, "message").strip(),
            text(one, "lastTransitionTime"),
            is_outdated(item, one),
        )
        for one in items(item, "status", "conditions")
    ]


def condition_of(item: Object, type: str) -> Condition | None:
    """The condition of a type, whatever the case; one in just this spelling comes first."""
    found = [one for one in conditions_of(item) if one.type.casefold() == type.casefold()]
    return next((one for one in found if one.type == type), found[0] if found else None)


def has(item: Object, type: str, status: str) -> bool:
    """Whether a condition has this status, for the object as it is now."""
    found = condition_of(item, type)
    return found is not None and not found.outdated and found.status.casefold() == status.casefold()


def is_outdated(item: Object, condition: Object | None = None) -> bool:
    """Whether the controller has yet to see the object's newest generation."""
    for holder in (condition, item.get("status")):
        if isinstance(holder, dict) and "observedGeneration" in holder:
            return number(holder, "observedGeneration") < number(item, "metadata", "generation")
    return False


def status_of(item: Object | None, type: str) -> str:
    """What a wait last saw of a condition: its status, or in one word why there is none."""
    if item is None:
        return "NotFound"
    found = condition_of(item, type)
    if found is None:
        return "ConditionNotFound" if conditions_of(item) else "NoConditions"
    return f"{found.status}, outdated" if found.outdated else found.status
