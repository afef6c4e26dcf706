"""Readiness of objects by the rules of kstatus, and the states of containers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from .fields import (
    age_of,
    at,
    condition_of,
    conditions_of,
    has,
    is_outdated,
    items,
    members,
    number,
    seconds_between,
    text,
)

if TYPE_CHECKING:
    from .yaml_loader import Object


# Reasons of waiting containers that do not start without intervention.
BLOCKED = frozenset({"CrashLoopBackOff", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull"})

# A container that was restarted counts as ready once it has run longer than the last time by MARGIN_SECONDS, or for
# LONGEST_PROOF_SECONDS. A run of SOUND_SECONDS resets the back-off of the kubelet: it was not part of a crash loop.
MARGIN_SECONDS = 5.0
LONGEST_PROOF_SECONDS = 60.0
SOUND_SECONDS = 600.0


def blocked_reason(pod: Object) -> str:
    """Return the reason why a container can't start without intervention, or crashes repeatedly; "" if none does.

    A kubelet reports the state `terminated` for most of its back-off, and CrashLoopBackOff late.
    """
    for status, state in _containers(pod):
        if text(status, "state", "waiting", "reason") in BLOCKED:
            return state
        if number(status, "restartCount") and number(status, "state", "terminated", "exitCode"):
            return f"{state}, in a crash loop"
    return ""


def seconds_until_stable(pod: Object, now: datetime) -> tuple[float, str]:
    """Return the seconds until no container counts as being between two crashes, and the reason; 0 and "" if none."""
    seconds, name = 0.0, ""
    for status, _ in _containers(pod):
        started, last = text(status, "state", "running", "startedAt"), members(status, "lastState", "terminated")
        last_run = seconds_between(text(last, "startedAt"), text(last, "finishedAt"))
        if started and last and last_run < SOUND_SECONDS:
            left = min(last_run + MARGIN_SECONDS, LONGEST_PROOF_SECONDS) - age_of(started, now)
            seconds, name = max((seconds, name), (left, text(status, "name")))
    if seconds <= 0:
        return 0.0, ""
    return seconds, f"container {name} was restarted after it had exited; it counts as ready in {seconds:.0f} s"


def crashed_containers(pod: Object) -> list[tuple[str, bool]]:
    """Return the containers of a pod that exited with an error and are not ready, by name.

    The second value is True if the run that failed was the previous one: the container is waiting or running again.
    """
    crashed: list[tuple[str, bool]] = []
    for status, _ in _containers(pod):
        if at(status, "ready") is True:
            continue
        for previous, state in ((False, "state"), (True, "lastState")):
            if number(status, state, "terminated", "exitCode"):
                crashed.append((text(status, "name"), previous))
                break
    return crashed


def describe_containers(pod: Object) -> str:
    """Return the states of a pod's containers that are not ready."""
    return "; ".join(state for status, state in _containers(pod) if at(status, "ready") is not True)


def _containers(pod: Object) -> list[tuple[Object, str]]:
    kinds = ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses")
    return [(status, describe_container(status)) for kind in kinds for status in items(pod, "status", kind)]


def describe_container(status: Object) -> str:
    """Return the state of a container as text: `container app is waiting: ImagePullBackOff, 2 restarts`."""
    name, state = text(status, "name"), members(status, "state")
    kind = next(iter(state), "waiting")
    details = (text(state, kind, "reason"), text(state, kind, "message"))
    described = f"container {name} is {kind}" + "".join(f": {detail}" for detail in details if detail)
    terminated = members(state, "terminated") or members(status, "lastState", "terminated")
    if terminated:
        when = "" if "terminated" in state else "it last exited "
        reason = text(terminated, "reason") or "no reason"
        described += f" ({when}with exit code {number(terminated, 'exitCode')}, {reason})"
    restarts = number(status, "restartCount")
    return described + (f", {restarts} restart{'s' if restarts > 1 else ''}" if restarts else "")


UNSCHEDULABLE_SECONDS = 15.0  # an autoscaler may add a node in that time


class Readiness(NamedTuple):
    """Readiness of an object.

    Attributes:
        state: `failed` can't become `ready` without intervention.
        text: the reason.
        recheck_after: seconds after which time alone may change it; None if only a change of the object can.
    """

    state: Literal["ready", "progressing", "failed"]
    text: str
    recheck_after: float | None = None


def ready(text: str) -> Readiness:
    """Return the readiness of an object that is ready."""
    return Readiness("ready", text)


def progressing(text: str, recheck_after: float | None = None) -> Readiness:
    """Return the readiness of an object that may become ready."""
    return Readiness("progressing", text, recheck_after)


def failed(text: str) -> Readiness:
    """Return the readiness of an object that can't become ready."""
    return Readiness("failed", text)


Rule = Callable[["Object", datetime], Readiness]
RULES: dict[tuple[str, str], Rule] = {}  # by API group and kind


def _rule(group: str, kind: str) -> Callable[[Rule], Rule]:
    def register(rule: Rule) -> Rule:
        RULES[group, kind] = rule
        return rule

    return register


def readiness_of(item: Object, now: datetime | None = None) -> Readiness:
    """Return the readiness of an object by the kstatus rules of its kind; `now` defaults to the system's time."""
    if text(item, "metadata", "deletionTimestamp"):
        return progressing("it is being deleted")
    if is_outdated(item):
        return progressing("its controller has not observed the newest generation yet")
    if has(item, "Stalled", "True"):
        return failed(f"stalled: {condition_of(item, 'Stalled')}")
    if has(item, "Reconciling", "True"):
        return progressing(str(condition_of(item, "Reconciling")))
    group = text(item, "apiVersion").rpartition("/")[0]
    rule = RULES.get((group, text(item, "kind")), _other)
    return rule(item, now or datetime.now(UTC))


@_rule("apps", "Deployment")
def _deployment(item: Object, now: datetime) -> Readiness:
    condition = condition_of(item, "Progressing")
    if condition is not None and condition.reason == "ProgressDeadlineExceeded":
        return failed(str(condition))
    desired, status = _replicas(item), members(item, "status")
    updated, total = number(status, "updatedReplicas"), number(status, "replicas")
    available = number(status, "availableReplicas")
    if is_unobserved(item):
        return progressing("its controller has not observed it yet")
    if updated < desired:
        failure = f"; {condition_of(item, 'ReplicaFailure')}" if has(item, "ReplicaFailure", "True") else ""
        return progressing(f"{updated} of {desired} replicas have the newest template{failure}")
    if total > min(updated, desired):
        return progressing(f"{total - min(updated, desired)} replicas are still to be deleted")
    if available < desired:
        return progressing(f"{available} of {desired} replicas are available")
    if condition_of(item, "Available") is not None and not has(item, "Available", "True"):
        return progressing(str(condition_of(item, "Available")))
    return ready(f"{available} of {desired} replicas are available")


@_rule("apps", "ReplicaSet")
@_rule("", "ReplicationController")
def _replica_set(item: Object, now: datetime) -> Readiness:
    if has(item, "ReplicaFailure", "True"):
        return progressing(str(condition_of(item, "ReplicaFailure")))
    desired, status = _replicas(item), members(item, "status")
    for field in ("fullyLabeledReplicas", "availableReplicas", "readyReplicas"):
        if number(status, field) < desired:
            return progressing(f"{field} is {number(status, field)}, expected {desired}")
    if number(status, "replicas") > desired:
        return progressing(f"{number(status, 'replicas') - desired} replicas are still to be deleted")
    return ready(f"{desired} replicas are available")


@_rule("apps", "StatefulSet")
def _stateful_set(item: Object, now: datetime) -> Readiness:
    if text(item, "spec", "updateStrategy", "type") == "OnDelete":
        return ready("its pods are updated when they are deleted (OnDelete)")
    if is_unobserved(item):
        return progressing("its controller has not observed it yet")
    desired, status = _replicas(item), members(item, "status")
    partition = number(item, "spec", "updateStrategy", "rollingUpdate", "partition")
    for field, least in (("replicas", desired), ("readyReplicas", desired), ("updatedReplicas", desired - partition)):
        if number(status, field) < least:
            return progressing(f"{field} is {number(status, field)}, expected {least}")
    if number(status, "replicas") > desired:
        return progressing(f"{number(status, 'replicas') - desired} replicas are still to be deleted")
    if not partition and text(status, "currentRevision") != text(status, "updateRevision"):
        return progressing("not all pods have the newest revision")
    return ready(f"{desired} replicas are ready")


@_rule("apps", "DaemonSet")
def _daemon_set(item: Object, now: datetime) -> Readiness:
    if is_unobserved(item):
        return progressing("its controller has not observed it yet")
    status = members(item, "status")
    desired = number(status, "desiredNumberScheduled")
    updated = "updatedNumberScheduled" if text(item, "spec", "updateStrategy", "type") != "OnDelete" else ""
    for field in ("currentNumberScheduled", updated, "numberAvailable", "numberReady"):
        if field and number(status, field) < desired:
            return progressing(f"{field} is {number(status, field)}, expected {desired}")
    return ready(f"{desired} pods are available")


@_rule("", "Pod")
def _pod(item: Object, now: datetime) -> Readiness:
    phase = text(item, "status", "phase")
    if phase == "Succeeded":
        return ready("it has succeeded")
    if phase == "Failed":
        details = [text(item, "status", "reason"), text(item, "status", "message"), describe_containers(item)]
        return failed("it has failed" + "".join(f": {detail}" for detail in details if detail))
    if blocked := blocked_reason(item):
        return failed(blocked)
    scheduled = condition_of(item, "PodScheduled")
    if scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable":
        left = UNSCHEDULABLE_SECONDS - age_of(scheduled.since, now)
        return progressing(str(scheduled), left) if left > 0 else failed(str(scheduled))
    if has(item, "Ready", "True"):
        seconds, reason = seconds_until_stable(item, now)
        return progressing(reason, seconds) if reason else ready("it is running and ready")
    return progressing(
        describe_containers(item) or str(condition_of(item, "Ready") or f"phase is {phase or 'unknown'}")
    )


@_rule("batch", "Job")
def _job(item: Object, now: datetime) -> Readiness:
    """Return the readiness of a job, which is ready when it is complete."""
    for type in ("Failed", "FailureTarget"):
        if has(item, type, "True"):
            return failed(str(condition_of(item, type)))
    if has(item, "Complete", "True"):
        return ready("it is complete")
    if has(item, "Suspended", "True") or at(item, "spec", "suspend") is True:
        return progressing("it is suspended")
    counts = ", ".join(f"{number(item, 'status', word)} {word}" for word in ("active", "succeeded", "failed"))
    return progressing(counts)


@_rule("", "Service")
def _service(item: Object, now: datetime) -> Readiness:
    if text(item, "spec", "type") == "LoadBalancer" and not items(item, "status", "loadBalancer", "ingress"):
        return progressing("it has no load balancer address yet")
    return ready("it exists")


@_rule("", "PersistentVolumeClaim")
def _volume_claim(item: Object, now: datetime) -> Readiness:
    phase = text(item, "status", "phase")
    return ready("it is bound") if phase == "Bound" else _by_phase(phase, lost="Lost")


@_rule("", "PersistentVolume")
def _volume(item: Object, now: datetime) -> Readiness:
    phase = text(item, "status", "phase")
    return ready(f"it is {phase}") if phase in {"Available", "Bound", "Released"} else _by_phase(phase, lost="Failed")


@_rule("", "Namespace")
def _namespace(item: Object, now: datetime) -> Readiness:
    phase = text(item, "status", "phase")
    return ready("it is active") if phase == "Active" else _by_phase(phase)


@_rule("policy", "PodDisruptionBudget")
def _disruption_budget(item: Object, now: datetime) -> Readiness:
    healthy, desired = number(item, "status", "currentHealthy"), number(item, "status", "desiredHealthy")
    status = f"{healthy} of {desired} pods are healthy"
    return ready(status) if not is_unobserved(item) and healthy >= desired else progressing(status)


@_rule("apiextensions.k8s.io", "CustomResourceDefinition")
def _definition(item: Object, now: datetime) -> Readiness:
    names = condition_of(item, "NamesAccepted")
    if names is not None and names.status == "False":
        return failed(str(names))
    return _by_condition(item, "Established")


def _other(item: Object, now: datetime) -> Readiness:
    types = [type for type in ("Ready", "Available", "Healthy", "Synced") if condition_of(item, type) is not None]
    if types:
        pending = (readiness for type in types if (readiness := _by_condition(item, type)).state != "ready")
        return next(pending, ready("True"))
    if has(item, "Failed", "True"):
        return failed(str(condition_of(item, "Failed")))
    waiting = [
        str(condition)
        for condition in conditions_of(item)
        if condition.type in {"Established", "Accepted"} and condition.status != "True"
    ]
    return progressing(waiting[0]) if waiting else ready("it exists")


def _by_condition(item: Object, type: str) -> Readiness:
    condition = condition_of(item, type)
    if condition is None:
        return progressing(f"it has no condition {type} yet")
    return ready(str(condition)) if condition.holds("True") else progressing(str(condition))


def _by_phase(phase: str, lost: str = "") -> Readiness:
    status = f"phase is {phase or 'unknown'}"
    return failed(status) if phase and phase == lost else progressing(status)


def is_unobserved(item: Object) -> bool:
    """Return True if a controller that reports observedGeneration has not reported it yet."""
    return "observedGeneration" not in members(item, "status") and number(item, "metadata", "generation") > 0


def _replicas(item: Object) -> int:
    desired = at(item, "spec", "replicas")
    return desired if isinstance(desired, int) else 1
