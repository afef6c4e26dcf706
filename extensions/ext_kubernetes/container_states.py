"""What the containers of a pod are up to, in words, and whether one of them will not start without help."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .objects import age_of, at, items, members, number, seconds_between, text

if TYPE_CHECKING:
    from datetime import datetime

    from .manifests import Object

# Why a container waits that will not start without somebody's help.
HELD_BACK = frozenset({"CrashLoopBackOff", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})
# A container that was restarted counts as ready once it has run longer than the last time by MARGIN_SECONDS, or for
# LONGEST_PROOF_SECONDS. A run of SOUND_SECONDS resets the back-off of the kubelet: it was not part of a crash loop.
MARGIN_SECONDS = 5.0
LONGEST_PROOF_SECONDS = 60.0
SOUND_SECONDS = 600.0


def held_back(pod: Object) -> str:
    """Return why a container of a pod will not start without help, or crashes again and again; "" if none does.

    A kubelet reports the state `terminated` for most of the time of its back-off, and CrashLoopBackOff late.
    """
    for status, told in _containers(pod):
        if _reason(status) in HELD_BACK:
            return told
        if number(status, "restartCount") and number(status, "state", "terminated", "exitCode"):
            return f"{told}, in a crash loop"
    return ""


def unproven(pod: Object, now: datetime) -> tuple[float, str]:
    """Return the seconds until no container counts as between two crashes, and a text; 0 and "" if none does."""
    left = [(_proof_left(status, now), text(status, "name")) for status, _ in _containers(pod)]
    seconds, name = max(left, default=(0.0, ""))
    if seconds <= 0:
        return 0.0, ""
    return seconds, f"container {name} was restarted after it had ended; it counts as ready in {seconds:.0f} s"


def _proof_left(status: Object, now: datetime) -> float:
    started, last = text(status, "state", "running", "startedAt"), members(status, "lastState", "terminated")
    if not started or not last:
        return 0.0
    last_run = seconds_between(text(last, "startedAt"), text(last, "finishedAt"))
    if last_run >= SOUND_SECONDS:
        return 0.0
    return min(last_run + MARGIN_SECONDS, LONGEST_PROOF_SECONDS) - age_of(started, now)


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
