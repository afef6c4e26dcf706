"""`rollout`: the state of a rollout, restart, pause, resume, undo."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import Meta

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import error_context
from ext_kubernetes.api.paths import api_path
from ext_kubernetes.manifests.merge_patch import merge, read
from ext_kubernetes.manifests.write_options import MANAGER
from ext_kubernetes.objects.fields import at, items, members, number, text
from ext_kubernetes.targets import Target, TargetArgs, target_of
from ext_kubernetes.waiting.failure_report import wait_failure
from ext_kubernetes.waiting.pod_failures import PodCheck
from ext_kubernetes.waiting.predicates import IsReady, verdict_for_target
from ext_kubernetes.waiting.waiter import Timeout, wait_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object


REVISION = "deployment.kubernetes.io/revision"
RESTARTED = "kubectl.kubernetes.io/restartedAt"  # the same as kubectl's, so that both see the other's restarts
HASH = "pod-template-hash"
JSON_PATCH = "application/json-patch+json"
KINDS = ("Deployment", "StatefulSet", "DaemonSet")
ONLY_DEPLOYMENTS = ("pause", "resume")


class Rollout(TargetArgs):
    """What to do with which rollout."""

    action: Annotated[
        Literal["status", "restart", "pause", "resume", "undo", "history"],
        Meta(
            description="status: wait until it is complete; restart: new pods, same template; pause, resume: of a "
            "Deployment; undo: back to an earlier template; history: which revisions there are"
        ),
    ] = "status"
    to_revision: Annotated[int, Meta(ge=0, description="With `undo`: to which; 0: the one before")] = 0
    wait: Annotated[bool, Meta(description="Until the rollout is complete; `status` always waits")] = False
    timeout: Timeout = ext_sdk.Duration.parse("60s")

    def __post_init__(self) -> None:
        if self.to_revision and self.action != "undo":
            raise ValueError("`toRevision` is for `action: undo`")
        if self.wait and self.action in {"pause", "history"}:
            raise ValueError(f"there is nothing to wait for after `action: {self.action}`")


def rollout(args: Rollout, context: ext_sdk.Context) -> ext_sdk.Result:
    """See a rollout through, restart it, pause and resume it, or undo it.

    A rollout that can't complete fails early, with the reason: crash loops, images that can't be pulled, deadlines.
    """
    client = client_for(context)
    target = target_of(args, context, client, patient=args.action == "status")
    if target.resource.kind not in KINDS or target.resource.group != "apps":
        raise ext_sdk.InvalidArgs("resource", f"expected one of {', '.join(KINDS)}, found {target.resource.kind}")
    if args.action in ONLY_DEPLOYMENTS and target.resource.kind != "Deployment":
        raise ext_sdk.InvalidArgs("action", f"{args.action} is for a Deployment, not for a {target.resource.kind}")
    with error_context(f"failed to {args.action if args.action != 'status' else 'see'} {target.where}"):
        message, outputs = ACTIONS[args.action](args, target, context, client)
        if not (args.wait or args.action == "status"):
            return ext_sdk.Result.ok(message, outputs=outputs)
        judge = verdict_for_target(target, IsReady(PodCheck(client, context.deadline)), "all")
        seen = wait_for(target, judge, context, client)
    item = seen.objects[0] if seen.objects else {}
    outputs = {
        **_counts(item),
        **outputs,
        "status": seen.waited.verdict.status if seen.waited.verdict else "",
        "seconds": f"{seen.waited.seconds:.3f}",
    }
    if not seen.waited.done:
        return wait_failure(seen, "a complete rollout", context, client, timeout=args.timeout, outputs=outputs)
    told = f"Rollout of {target.resource.kind}/{target.name} is complete"
    return ext_sdk.Result.ok(f"{message}. {told}" if message else told, outputs=outputs)


Done = tuple[str, dict[str, str | int | bool]]


def _status(args: Rollout, target: Target, context: ext_sdk.Context, client: Client) -> Done:
    del args, target, context, client
    return "", {}


def _restart(args: Rollout, target: Target, context: ext_sdk.Context, client: Client) -> Done:
    (item,) = read(target, "", context, client)
    if at(item, "spec", "paused") is True:
        raise ext_sdk.OperationFailed(
            f"{target} is paused", error=f"expected {target.where} not to be paused: resume it before a restart"
        )
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    change: Object = {"spec": {"template": {"metadata": {"annotations": {RESTARTED: now}}}}}
    merge(target, item, change, context, client)
    return f"Restarted {target.resource.kind}/{target.name}", {"restartedAt": now}


def _pause(args: Rollout, target: Target, context: ext_sdk.Context, client: Client) -> Done:
    paused = args.action == "pause"
    (item,) = read(target, "", context, client)
    was = at(item, "spec", "paused") is True
    if was != paused:
        merge(target, item, {"spec": {"paused": paused}}, context, client)
    word = "Paused" if paused else "Resumed"
    return f"{word} {target.resource.kind}/{target.name}{' (no change)' if was == paused else ''}", {"paused": paused}


def _history(args: Rollout, target: Target, context: ext_sdk.Context, client: Client) -> Done:
    del args
    revisions = _revisions(target, context, client)
    told = "\n".join(f"{number}: {_images(template)}" for number, template in revisions)
    return f"{target.resource.kind}/{target.name} has {len(revisions)} revisions", {
        "revisions": told,
        "current": revisions[-1][0] if revisions else 0,
        "count": len(revisions),
    }


def _undo(args: Rollout, target: Target, context: ext_sdk.Context, client: Client) -> Done:
    (item,) = read(target, "", context, client)
    if at(item, "spec", "paused") is True:
        raise ext_sdk.OperationFailed(
            f"{target} is paused", error=f"expected {target.where} not to be paused: resume it before an undo"
        )
    revisions = _revisions(target, context, client)
    known = ", ".join(str(revision) for revision, _ in revisions)
    wanted = args.to_revision or (revisions[-2][0] if len(revisions) > 1 else 0)
    template = dict(revisions).get(wanted)
    if template is None:
        what = f"revision {wanted}" if wanted else "an earlier revision"
        raise ext_sdk.OperationFailed(
            f"{target} has no {what}", error=f"expected {what} of {target.where}, found {known or 'none'}"
        )
    version = text(item, "metadata", "resourceVersion")
    client.request(
        "PATCH",
        target.path,
        query=[("fieldManager", MANAGER)],
        body=[
            {"op": "test", "path": "/metadata/resourceVersion", "value": version},
            {"op": "replace", "path": "/spec/template", "value": template},
        ],
        content_type=JSON_PATCH,
        deadline=context.deadline,
    )
    return f"Rolled {target.resource.kind}/{target.name} back to revision {wanted}", {"toRevision": wanted}


def _revisions(target: Target, context: ext_sdk.Context, client: Client) -> list[tuple[int, Object]]:
    """The templates that there were, by revision, the newest last: what ReplicaSets and ControllerRevisions keep."""
    (item,) = read(target, "", context, client)
    deployment = target.resource.kind == "Deployment"
    plural = "replicasets" if deployment else "controllerrevisions"
    path = api_path("apps", "v1", plural, target.namespace)
    found = items(client.request("GET", path, deadline=context.deadline), "items")
    uid = text(item, "metadata", "uid")
    owned = [
        one for one in found if any(text(owner, "uid") == uid for owner in items(one, "metadata", "ownerReferences"))
    ]
    read_one = _of_replica_set if deployment else _of_controller_revision
    return sorted((read_one(one) for one in owned), key=lambda one: one[0])


def _of_replica_set(item: Object) -> tuple[int, Object]:
    template = members(item, "spec", "template")
    metadata = members(template, "metadata")
    labels = {key: value for key, value in members(metadata, "labels").items() if key != HASH}
    revision = text(item, "metadata", "annotations", REVISION)
    return int(revision) if revision.isdecimal() else 0, template | {"metadata": metadata | {"labels": labels}}


def _of_controller_revision(item: Object) -> tuple[int, Object]:
    template = {key: value for key, value in members(item, "data", "spec", "template").items() if key != "$patch"}
    return number(item, "revision"), template


def _images(template: Object) -> str:
    return ", ".join(text(container, "image") for container in items(template, "spec", "containers"))


def _counts(item: Object) -> dict[str, str | int | bool]:
    status = members(item, "status")
    fields = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    counts: dict[str, str | int | bool] = {field: number(status, field) for field in fields}
    if revision := text(item, "metadata", "annotations", REVISION):
        counts["revision"] = revision
    return counts


ACTIONS: Mapping[str, Callable[[Rollout, Target, ext_sdk.Context, Client], Done]] = {
    "status": _status,
    "restart": _restart,
    "pause": _pause,
    "resume": _pause,
    "undo": _undo,
    "history": _history,
}

OPERATIONS = (ext_sdk.Operation("rollout", rollout, {"resource": "deploy/web", "action": "status", "timeout": "20s"}),)
