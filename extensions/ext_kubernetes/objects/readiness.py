"""Readiness of objects by the rules of kstatus, and the states of containers."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from .conditions import condition_of, conditions_of, has, is_outdated
from .fields import age_of, at, items, members, number, seconds_between, text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .yaml_loader import Object


# Why a container waits that will not start without somebody's help.
HELD_BACK = frozenset({"CrashLoopBackOff", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})

# A container that was restarted counts as ready once it has run longer than the last time by MARGIN_SECONDS, or for
# LONGEST_PROOF_SECONDS. A run of SOUND_SECONDS resets the back-off of the kubelet: it was not part of a crash loop.
MARGIN_SECONDS = 5.0
LONGEST_PROOF_SECONDS = 60.0
SOUND_SECONDS = 600.0


def blocked_reason(pod: Object) -> str:
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


def describe_containers(pod: Object) -> str:
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


UNSCHEDULABLE_SECONDS = 15.0  # an autoscaler may bring a node until then


class Readiness(NamedTuple):
    """Whether an object is ready.

    Attributes:
        state: `failed` will not become `ready` by itself.
        text: why, for people.
        again: seconds after which time alone makes it another; None: it does not.
    """

    state: Literal["ready", "progressing", "failed"]
    text: str
    again: float | None = None


def ready(text: str) -> Readiness:
    """It is ready."""
    return Readiness("ready", text)


def progressing(text: str, again: float | None = None) -> Readiness:
    """It is not ready yet."""
    return Readiness("progressing", text, again)


def failed(text: str) -> Readiness:
    """It will not be ready."""
    return Readiness("failed", text)


def readiness_of(item: Object, now: datetime | None = None) -> Readiness:
    """Whether an object is ready.

    Args:
        item: the object.
        now: the time, for what is given up after a while; the system's if left out.
    """
    if text(item, "metadata", "deletionTimestamp"):
        return progressing("it is being deleted")
    if is_outdated(item):
        return progressing("its controller has not seen its newest generation yet")
    if has(item, "Stalled", "True"):
        return failed(f"stalled: {condition_of(item, 'Stalled')}")
    if has(item, "Reconciling", "True"):
        return progressing(str(condition_of(item, "Reconciling")))
    group = text(item, "apiVersion").rpartition("/")[0]
    rule = RULES.get((group, text(item, "kind")), _other)
    return rule(item, now or datetime.now(UTC))


def _deployment(item: Object, now: datetime) -> Readiness:
    condition = condition_of(item, "Progressing")
    if condition is not None and condition.reason == "ProgressDeadlineExceeded":
        return failed(str(condition))
    wanted, status = _replicas(item), members(item, "status")
    updated, total = number(status, "updatedReplicas"), number(status, "replicas")
    available = number(status, "availableReplicas")
    if is_unseen(item):
        return progressing("its controller has not seen it yet")
    if updated < wanted:
        failure = f"; {condition_of(item, 'ReplicaFailure')}" if has(item, "ReplicaFailure", "True") else ""
        return progressing(f"{updated} of {wanted} replicas are of the newest template{failure}")
    if total > min(updated, wanted):
        return progressing(f"{total - min(updated, wanted)} replicas are still to go")
    if available < wanted:
        return progressing(f"{available} of {wanted} replicas are available")
    if condition_of(item, "Available") is not None and not has(item, "Available", "True"):
        return progressing(str(condition_of(item, "Available")))
    return ready(f"{available} of {wanted} replicas are available")


def _replica_set(item: Object, now: datetime) -> Readiness:
    if has(item, "ReplicaFailure", "True"):
        return progressing(str(condition_of(item, "ReplicaFailure")))
    wanted, status = _replicas(item), members(item, "status")
    for field in ("fullyLabeledReplicas", "availableReplicas", "readyReplicas"):
        if number(status, field) < wanted:
            return progressing(f"{field} is {number(status, field)}, expected {wanted}")
    if number(status, "replicas") > wanted:
        return progressing(f"{number(status, 'replicas') - wanted} replicas are still to go")
    return ready(f"{wanted} replicas are available")


def _stateful_set(item: Object, now: datetime) -> Readiness:
    if text(item, "spec", "updateStrategy", "type") == "OnDelete":
        return ready("its pods are updated when somebody deletes them")
    if is_unseen(item):
        return progressing("its controller has not seen it yet")
    wanted, status = _replicas(item), members(item, "status")
    partition = number(item, "spec", "updateStrategy", "rollingUpdate", "partition")
    for field, least in (("replicas", wanted), ("readyReplicas", wanted), ("updatedReplicas", wanted - partition)):
        if number(status, field) < least:
            return progressing(f"{field} is {number(status, field)}, expected {least}")
    if number(status, "replicas") > wanted:
        return progressing(f"{number(status, 'replicas') - wanted} replicas are still to go")
    if not partition and text(status, "currentRevision") != text(status, "updateRevision"):
        return progressing("not all pods are of the newest revision")
    return ready(f"{wanted} replicas are ready")


def _daemon_set(item: Object, now: datetime) -> Readiness:
    if is_unseen(item):
        return progressing("its controller has not seen it yet")
    status = members(item, "status")
    wanted = number(status, "desiredNumberScheduled")
    updated = "updatedNumberScheduled" if text(item, "spec", "updateStrategy", "type") != "OnDelete" else ""
    for field in ("currentNumberScheduled", updated, "numberAvailable", "numberReady"):
        if field and number(status, field) < wanted:
            return progressing(f"{field} is {number(status, field)}, expected {wanted}")
    return ready(f"{wanted} pods are available")


def _pod(item: Object, now: datetime) -> Readiness:
    phase = text(item, "status", "phase")
    if phase == "Succeeded":
        return ready("it has succeeded")
    if phase == "Failed":
        return failed(f"it has failed{_told(item)}")
    if held := blocked_reason(item):
        return failed(held)
    scheduled = condition_of(item, "PodScheduled")
    if scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable":
        left = UNSCHEDULABLE_SECONDS - age_of(scheduled.since, now)
        return progressing(str(scheduled), left) if left > 0 else failed(str(scheduled))
    if has(item, "Ready", "True"):
        left, why = unproven(item, now)
        return progressing(why, left) if why else ready("it is running and ready")
    return progressing(
        describe_containers(item) or str(condition_of(item, "Ready") or f"phase is {phase or 'unknown'}")
    )


def _job(item: Object, now: datetime) -> Readiness:
    """A job is ready when it is done: whoever waits for one waits for its end."""
    for type in ("Failed", "FailureTarget"):
        if has(item, type, "True"):
            return failed(str(condition_of(item, type)))
    if has(item, "Complete", "True"):
        return ready("it is complete")
    if has(item, "Suspended", "True") or at(item, "spec", "suspend") is True:
        return progressing("it is suspended")
    counts = ", ".join(f"{number(item, 'status', word)} {word}" for word in ("active", "succeeded", "failed"))
    return progressing(counts)


def _service(item: Object, now: datetime) -> Readiness:
    if text(item, "spec", "type") == "LoadBalancer" and not items(item, "status", "loadBalancer", "ingress"):
        return progressing("it has no address of a load balancer yet")
    return ready("it is there")


def _volume_claim(item: Object, now: datetime) -> Readiness:
    phase = text(item, "status", "phase")
    return ready("it is bound") if phase == "Bound" else _phase(phase, lost="Lost")


def _volume(item: Object, now: datetime) -> Readiness:
    phase = text(item, "status", "phase")
    return ready(f"it is {phase}") if phase in {"Available", "Bound", "Released"} else _phase(phase, lost="Failed")


def _namespace(item: Object, now: datetime) -> Readiness:
    phase = text(item, "status", "phase")
    return ready("it is active") if phase == "Active" else _phase(phase)


def _disruption_budget(item: Object, now: datetime) -> Readiness:
    healthy, wanted = number(item, "status", "currentHealthy"), number(item, "status", "desiredHealthy")
    told = f"{healthy} of {wanted} pods are healthy"
    return ready(told) if not is_unseen(item) and healthy >= wanted else progressing(told)


def _definition(item: Object, now: datetime) -> Readiness:
    names = condition_of(item, "NamesAccepted")
    if names is not None and names.status == "False":
        return failed(str(names))
    return _by_condition(item, "Established")


def _other(item: Object, now: datetime) -> Readiness:
    known = [type for type in ("Ready", "Available", "Healthy", "Synced") if condition_of(item, type) is not None]
    if known:
        return next(
            (one for one in (_by_condition(item, type) for type in known) if one.state != "ready"), ready("True")
        )
    if has(item, "Failed", "True"):
        return failed(str(condition_of(item, "Failed")))
    waiting = [
        str(one) for one in conditions_of(item) if one.type in {"Established", "Accepted"} and one.status != "True"
    ]
    return progressing(waiting[0]) if waiting else ready("it is there")


def _by_condition(item: Object, type: str) -> Readiness:
    found = condition_of(item, type)
    if found is None:
        return progressing(f"it has no condition {type} yet")
    return ready(str(found)) if has(item, type, "True") else progressing(str(found))


def _phase(phase: str, lost: str = "") -> Readiness:
    told = f"phase is {phase or 'unknown'}"
    return failed(told) if phase and phase == lost else progressing(told)


RULES: Mapping[tuple[str, str], Callable[[Object, datetime], Readiness]] = {
    ("apps", "Deployment"): _deployment,
    ("apps", "ReplicaSet"): _replica_set,
    ("", "ReplicationController"): _replica_set,
    ("apps", "StatefulSet"): _stateful_set,
    ("apps", "DaemonSet"): _daemon_set,
    ("", "Pod"): _pod,
    ("batch", "Job"): _job,
    ("", "Service"): _service,
    ("", "PersistentVolumeClaim"): _volume_claim,
    ("", "PersistentVolume"): _volume,
    ("", "Namespace"): _namespace,
    ("policy", "PodDisruptionBudget"): _disruption_budget,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): _definition,
}


def is_unseen(item: Object) -> bool:
    """Whether a controller that notes generations has noted none."""
    return "observedGeneration" not in members(item, "status") and number(item, "metadata", "generation") > 0


def _replicas(item: Object) -> int:
    wanted = at(item, "spec", "replicas")
    return wanted if isinstance(wanted, int) else 1


def _told(pod: Object) -> str:
    told = [text(pod, "status", "reason"), text(pod, "status", "message"), describe_containers(pod)]
    return "".join(f": {part}" for part in told if part)
