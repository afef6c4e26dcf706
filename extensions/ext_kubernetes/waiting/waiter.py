"""Wait for the objects of a target: verdicts on a condition, a value or readiness, of one object and of several.

A wait for a workload ends early if its pods make it fail permanently: crash loops, images that can't be pulled,
unschedulable pods.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.api.discovery import core_path
from ext_kubernetes.api.errors import KubernetesError
from ext_kubernetes.objects.fields import condition_of, items, marked, masked, members, text
from ext_kubernetes.objects.kubectl_jsonpath import text_of, values
from ext_kubernetes.objects.readiness import blocked_reason, failed, progressing, readiness_of, seconds_until_stable
from ext_kubernetes.polling import Verdict, WaitOutcome, wait_until
from ext_kubernetes.targets import TargetArgs, namespace_missing, target_of
from ext_sdk.expect.json_equality import equal

from .informer import subscribe

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.readiness import Readiness
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target

Selector = Annotated[
    str,
    Meta(description="Label selector, such as app=web,tier!=test; replaces a name, and selects all matching objects"),
]

Require = Annotated[
    Literal["all", "any"] | Annotated[int, Meta(ge=1)],
    Meta(
        description="Number of objects that must meet it, if there are several: all of them (at least one), any, or at "
        "least a number"
    ),
]

Timeout = Annotated[
    ext_sdk.Duration,
    Meta(description="Maximum wait; 0s polls once. Capped below the host's call timeout (about 30 s)"),
]

FailFast = Annotated[
    bool,
    Meta(
        description="Fail as soon as the object can't become ready without intervention: in a crash "
        "loop (a container failed again after a restart), ImagePullBackOff, unschedulable for 15 s, failed, or "
        "ProgressDeadlineExceeded"
    ),
]

MINUTE = ext_sdk.Duration.parse("60s")


class WaitResult(NamedTuple):
    """End of a wait, and the objects at the last poll."""

    outcome: WaitOutcome
    objects: list[Object]
    target: Target


def wait_for(
    target: Target,
    evaluate: Callable[[list[Object]], Verdict],
    context: ext_sdk.Context,
    client: Client,
    *,
    selector: str = "",
) -> WaitResult:
    """Poll a target until the wait succeeds or fails permanently, or until the deadline of the call.

    Args:
        evaluate: returns the verdict on the objects currently present.

    Raises:
        KubernetesError: a permanent error.
    """
    last_status = None
    has_secrets = any(resource.kind == "Secret" for resource in target.resources)
    objects: list[Object] = []
    with subscribe(target, context, client, selector=selector) as watcher:

        def check(age: float) -> Verdict:
            nonlocal last_status
            objects[:] = watcher.get(age, context.deadline)
            if has_secrets:
                objects[:] = map(marked, objects)
            verdict = evaluate(objects)
            if verdict.status != last_status:
                last_status = verdict.status
                context.log.info(f"{target}: {verdict.status}")
            return verdict._replace(data_age=watcher.data_age())

        outcome = wait_until(
            check,
            context.deadline,
            wake=lambda seconds: watcher.wait(seconds, context.deadline),
            pace=watcher.pace,
        )
    return WaitResult(outcome, objects, target)


def combine_verdicts(
    objects: Sequence[Object],
    evaluate: Callable[[Object], Verdict],
    require: Literal["all", "any"] | int,
    name_of: Callable[[Object], str] = lambda item: text(item, "metadata", "name"),
) -> Verdict:
    """Return the verdict on several objects.

    Args:
        evaluate: returns the verdict on one object.
        require: number of objects that must be done.
        name_of: returns the name of an object, for messages.
    """
    verdicts = [(name_of(item), evaluate(item)) for item in objects]
    done = sum(verdict.done for _, verdict in verdicts)
    expected = {"all": max(1, len(verdicts)), "any": 1}.get(require, 0) if isinstance(require, str) else require
    failed = [f"{name}: {verdict.failed_reason}" for name, verdict in verdicts if verdict.failed_reason]
    pending = [f"{name}: {verdict.status}" for name, verdict in verdicts if not verdict.done]
    rechecks = [verdict.recheck_after for _, verdict in verdicts if verdict.recheck_after is not None]
    impossible = bool(failed) and len(verdicts) - len(failed) < expected
    status = f"{done} of {len(verdicts)}" + (
        f" ({'; '.join(pending[:5])}{'; …' if len(pending) > 5 else ''})" if pending else ""
    )
    reason = "; ".join(failed[:5]) if impossible else ""
    return Verdict(done >= expected, status, reason, min(rechecks, default=None))


Value = str | int | float | bool


class IsReady:
    """Predicate: an object is ready. Its verdict has a reason if the object can't become ready by itself.

    Args:
        pods: checks the pods of workloads.
        fail_fast: False omits that reason, so that the wait continues.
    """

    def __init__(self, pods: PodCheck, *, fail_fast: bool = True) -> None:
        self._pods = pods
        self._fail_fast = fail_fast

    def __call__(self, item: Object) -> Verdict:
        readiness = readiness_of(item)
        if readiness.state == "ready":
            crashing = self._pods.crashing(item)
            if crashing is None:
                return Verdict(done=True, status=readiness.text)
            readiness = crashing
        reason = readiness.text if readiness.state == "failed" else self._pods.failed_reason(item)
        details = [detail for detail in (reason or self._pods.pending_reason(item),) if detail not in readiness.text]
        return Verdict(
            done=False,
            status="; ".join([readiness.text, *details]),
            failed_reason=reason if self._fail_fast else "",
            recheck_after=readiness.recheck_after,
        )


def value_verdict(item: Object, path: str, expected: Value | UnsetType) -> Verdict:
    """Return the verdict on the values that a path selects; any value suffices if none is expected."""
    selected = values(path, item)
    status = text_of([masked(value) for value in selected])
    if expected is UNSET:
        done = bool(selected) and selected != [None] and text_of(selected) != ""
        return Verdict(done, status or "no value")
    same = all(
        equal(value, expected) or (isinstance(expected, str) and text_of([value]) == expected) for value in selected
    )
    return Verdict(done=bool(selected) and same, status=status if selected else "no value")


def condition_verdict(item: Object, type: str, status: str) -> Verdict:
    """Return the verdict on the status of a condition."""
    condition = condition_of(item, type)
    if condition is None:
        others = ", ".join(text(other, "type") for other in items(item, "status", "conditions"))
        return Verdict(done=False, status=f"ConditionNotFound; found: {others}" if others else "NoConditions")
    return Verdict(condition.holds(status), f"{condition.status}, outdated" if condition.outdated else condition.status)


def resolve_target(
    args: TargetArgs, selector: str, context: ext_sdk.Context, client: Client, *, retry: bool = True
) -> Target:
    """Return the target that arguments name: one object, or all of a kind.

    Raises:
        ext_sdk.InvalidArgs: both a name and a selector, or `metadata` without either: a name was forgotten.
    """
    target = target_of(args, context, client, named=False, retry=retry)
    if "metadata" in context.given and not (target.name or selector):
        raise ext_sdk.InvalidArgs("metadata.name", "required; omit `metadata` for all objects of the kind")
    if target.name and selector:
        raise ext_sdk.InvalidArgs("selector", f"expected a name ({target.name!r}) or a selector, found both")
    return target._replace(selector=selector)


def verdict_for_target(
    target: Target, evaluate: Callable[[Object], Verdict], require: Literal["all", "any"] | int
) -> Callable[[list[Object]], Verdict]:
    """Return a predicate of all objects of a target, from the predicate of one object."""

    def judge_all(objects: list[Object]) -> Verdict:
        if not target.name:
            return combine_verdicts(objects, evaluate, require, target.name_of)
        return evaluate(objects[0]) if objects else Verdict(done=False, status="NotFound")

    return judge_all


def display_name(target: Target) -> str:
    """Return `Pod nginx` or `pods`, for messages."""
    return f"{target.resource.kind} {target.name}" if target.name else str(target)


def check_namespace(target: Target, context: ext_sdk.Context, client: Client) -> None:
    """Raise OperationFailed if the namespace of a target does not exist: absence would prove nothing."""
    if missing := namespace_missing(target, client, context.deadline):
        raise ext_sdk.OperationFailed(f"{display_name(target)} can't be checked", error=missing)


FIRST_SECONDS = 1.0  # into a wait, before pods are listed for the first time
EVERY_SECONDS = 1.0
MOST_PODS = "50"
TEMPLATE = "pod-template-hash"
KINDS = frozenset({"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet"})


class PodCheck:
    """Checks during a wait, about once a second, if the newest pods of a workload can become ready."""

    def __init__(self, client: Client, deadline: ext_sdk.Deadline) -> None:
        self._client = client
        self._deadline = deadline
        self._next = time.monotonic() + FIRST_SECONDS
        self._reasons: dict[str, str] = {}
        self._pending: dict[str, str] = {}

    def failed_reason(self, item: Object) -> str:
        """Return the reason why a workload can't become ready; "" if it can, and for all other kinds."""
        uid = text(item, "metadata", "uid")
        if text(item, "kind") not in KINDS:
            return ""
        if time.monotonic() >= self._next:
            pods = self._pods(item)
            self._reasons[uid], self._pending[uid] = unrecoverable_pod(pods), unschedulable_pod(pods)
            self._next = time.monotonic() + EVERY_SECONDS
        return self._reasons.get(uid, "")

    def pending_reason(self, item: Object) -> str:
        """Return the reason why no node takes a pod of a workload, as of the last `failed_reason`; "" if one does."""
        return self._pending.get(text(item, "metadata", "uid"), "")

    def crashing(self, item: Object) -> Readiness | None:
        """Return the true readiness of a workload whose status is ready while a pod is between two crashes, or None.

        The status is not enough: a pod without a probe is available as soon as its containers run.
        """
        for pod in newest_template(self._pods(item)) if text(item, "kind") in KINDS else ():
            name = text(pod, "metadata", "name")
            if blocked := blocked_reason(pod):
                return failed(f"pod {name}: {blocked}")
            seconds, reason = seconds_until_stable(pod, datetime.now(UTC))
            if reason:
                return progressing(f"pod {name}: {reason}", seconds)
        return None

    def _pods(self, item: Object) -> list[Object]:
        """Return pods of a workload; none if they can't be read, as for a user without that permission."""
        labels = members(item, "spec", "selector", "matchLabels")
        if not labels:
            return []
        query = [("labelSelector", ",".join(f"{key}={value}" for key, value in labels.items())), ("limit", MOST_PODS)]
        path = core_path("pods", text(item, "metadata", "namespace"))
        try:
            return items(self._client.request("GET", path, query=query, deadline=self._deadline, retry=False), "items")
        except KubernetesError:
            return []


def unrecoverable_pod(pods: list[Object]) -> str:
    """Return the reason why one of the newest pods can't become ready; "" if all can. Older pods are being replaced."""
    for pod in newest_template(pods):
        readiness = readiness_of(pod | {"kind": "Pod", "apiVersion": "v1"})
        if readiness.state == "failed":
            return f"pod {text(pod, 'metadata', 'name')}: {readiness.text}"
    return ""


def unschedulable_pod(pods: list[Object]) -> str:
    """Return the reason why the scheduler found no node for one of the newest pods; "" if it found one for each."""
    for pod in newest_template(pods):
        scheduled = condition_of(pod, "PodScheduled")
        if scheduled is not None and scheduled.status == "False" and scheduled.reason == "Unschedulable":
            return f"pod {text(pod, 'metadata', 'name')}: {scheduled}"
    return ""


def newest_template(pods: list[Object]) -> list[Object]:
    """Return the pods of the newest template that are not being deleted, the newest first."""
    remaining = [pod for pod in pods if not text(pod, "metadata", "deletionTimestamp")]
    remaining.sort(key=lambda pod: text(pod, "metadata", "creationTimestamp"), reverse=True)
    newest = text(remaining[0], "metadata", "labels", TEMPLATE) if remaining else ""
    return [pod for pod in remaining if text(pod, "metadata", "labels", TEMPLATE) == newest]
