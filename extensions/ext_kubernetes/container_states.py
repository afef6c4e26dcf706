"""What the containers of a pod are up to, in words, and whether one of them will not start without help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .objects import at, items, members, number, text

if TYPE_CHECKING:
    from .manifests import Object

# Why a container waits that will not start without somebody's help.
HELD_BACK = frozenset({"CrashLoopBackOff", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})


def held_back(pod: Object) -> str:
    """Why a container of a pod will not start without somebody's help; "" where that is not so."""
    return next((told for status, told in _containers(pod) if _reason(status) in HELD_BACK), "")


def containers_told(pod: Object) -> str:
    """The states of a pod's containers that do not run well."""
    return "; ".join(told for status, told in _containers(pod) if at(status, "ready") is not True)


def _containers(pod: Object) -> list[tuple[Object, str]]:
    kinds = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return [(status, _container_told(status)) for kind in kinds for status in items(pod, "status", kind)]


def _container_told(status: Object) -> str:
    name, state = text(status, "name"), members(status, "state")
    what = next(iter(state), "waiting")
    reason, message = text(state, what, "reason"), text(state, what, "message")
    told = f"container {name} is {what}" + "".join(f": {part}" for part in (reason, message) if part)
    ended = members(state, "terminated") or members(status, "lastState", "terminated")
    if ended:
        when = "" if "terminated" in state else "it last ended "
        told += f" ({when}with exit code {number(ended, 'exitCode')}, {text(ended, 'reason') or 'no reason'})"
    restarts = number(status, "restartCount")
    return told + (f", {restarts} restart{'s' if restarts > 1 else ''}" if restarts else "")


def _reason(status: Object) -> str:
    return text(status, "state", "waiting", "reason")
