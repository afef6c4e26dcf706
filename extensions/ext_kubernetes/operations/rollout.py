"""Operation `rollout`: wait for, restart, pause, resume or undo a rollout."""

from __future__ import annotations

from datetime import UTC, datetime
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.discovery import api_path
from ext_kubernetes.api.errors import NotFound, error_context
from ext_kubernetes.config import ExpectedRefusal  # noqa: TC001 - msgspec reads it
from ext_kubernetes.manifests.write import MANAGER, IgnoreNotFound, merge, read
from ext_kubernetes.objects.fields import Outputs, at, items, members, number, text
from ext_kubernetes.polling import Unfinished
from ext_kubernetes.targets import Target, TargetArgs, target_of
from ext_kubernetes.waiting.failure_report import wait_failure
from ext_kubernetes.waiting.waiter import FailFast, IsReady, PodCheck, Timeout, verdict_for_target, wait_for

from . import DONE_IF_WAITED, FAILED_WAIT, REFUSAL, REPORT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object


REVISION = "deployment.kubernetes.io/revision"
RESTARTED = "kubectl.kubernetes.io/restartedAt"  # kubectl's annotation, so that each recognises restarts by the other
HASH = "pod-template-hash"
JSON_PATCH = "application/json-patch+json"
KINDS = ("Deployment", "StatefulSet", "DaemonSet")
ONLY_DEPLOYMENTS = ("pause", "resume")
BEFORE = " in a previous step"  # in the message of a step that continues


class Rollout(TargetArgs):
    """Arguments of `rollout`."""

    action: Annotated[
        Literal["status", "restart", "pause", "resume", "undo", "history"],
        Meta(
            description="status: wait until the rollout is complete; restart: replace all pods, with the same "
            "template; pause, resume: of a Deployment; undo: return to a previous template; history: list revisions"
        ),
    ] = "status"
    to_revision: Annotated[int, Meta(ge=0, description="Revision for `undo`; 0: the previous one")] = 0
    fail_fast: FailFast = True
    ignore_not_found: IgnoreNotFound = False
    wait: Annotated[bool, Meta(description="Wait until the rollout is complete; `status` always waits")] = False
    expect: ExpectedRefusal = UNSET
    timeout: Timeout = ext_sdk.Duration.parse("60s")
    on_timeout: ext_sdk.OnTimeout = "fail"

    def __post_init__(self) -> None:
        if self.to_revision and self.action != "undo":
            raise ValueError("`toRevision` requires `action: undo`")
        if self.ignore_not_found and self.action == "status":
            raise ValueError("`ignoreNotFound` is not accepted with `action: status`, which waits for the object")
        if self.wait and self.action in {"pause", "history"}:
            raise ValueError(f"`wait` is not accepted with `action: {self.action}`")


def rollout(args: Rollout, context: ext_sdk.Context) -> ext_sdk.Result:
    """Wait for, restart, pause, resume or undo a rollout.

    A rollout that can't complete fails early, with the reason: a crash loop, an image that can't be pulled, an exceeded
    progress deadline. After a restart or undo with `onTimeout: ok`, the next step with the same arguments only waits.
    """
    client = client_for(context, args)
    target = target_of(args, context, client, retry=args.action == "status")
    kind, name = target.resource.kind, f"{target.resource.kind}/{target.name}"
    if kind not in KINDS or target.resource.group != "apps":
        raise ext_sdk.InvalidArgs("resource", f"expected one of {', '.join(KINDS)}, found {kind}")
    if args.action in ONLY_DEPLOYMENTS and kind != "Deployment":
        raise ext_sdk.InvalidArgs("action", f"{args.action} requires a Deployment, found a {kind}")
    message, outputs = "", Outputs()
    with error_context(f"failed to {args.action if args.action != 'status' else 'wait for'} {target.where}"):
        if args.action != "status":
            try:
                message, outputs = _act(args, target, context, client)
            except NotFound:
                if not args.ignore_not_found:
                    raise
                return ext_sdk.Result.ok(f"{target} not found (ignored)")
        if not (args.wait or args.action == "status"):
            return ext_sdk.Result.ok(message, outputs=outputs)
        ready = IsReady(PodCheck(client, context.deadline), fail_fast=args.fail_fast)
        predicate = verdict_for_target(target, ready, "all")
        result = wait_for(target, predicate, context, client)
    item = result.objects[0] if result.objects else {}
    counts: Outputs = {
        field: number(item, "status", field)
        for field in ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
    }
    if revision := text(item, "metadata", "annotations", REVISION):
        counts["revision"] = revision
    outputs = {
        **counts,
        **outputs,
        "status": result.outcome.verdict.status if result.outcome.verdict else "",
        "seconds": f"{result.outcome.seconds:.3f}",
    }
    if not result.outcome.done:
        return wait_failure(
            result,
            "a complete rollout",
            context,
            client,
            args,
            outputs=outputs,
            message=f"{message}, but its rollout is not complete" if message else f"rollout of {name} not complete",
        )
    complete = f"Rollout of {name} is complete"
    return ext_sdk.Result.ok(f"{message}. {complete}" if message else complete, outputs=outputs | {"done": True})


class _Begun(NamedTuple):
    """Restart or undo of a step with `onTimeout: ok`, and the version of the object after it."""

    message: str
    outputs: Outputs
    version: tuple[str, int]


def _act(args: Rollout, target: Target, context: ext_sdk.Context, client: Client) -> ActionResult:
    """Run an action, unless a previous step with `onTimeout: ok` did and the object has not changed since."""
    unfinished = context.state(Unfinished)
    key = (client.server, "rollout", target.namespace, target.name, args.action, args.to_revision)
    previous = unfinished.take(key, _Begun)
    if previous is None or previous.version != _version_of(target, context, client):
        message, outputs = ACTIONS[args.action](args, target, context, client)
    else:
        message, outputs = previous.message.removesuffix(BEFORE) + BEFORE, previous.outputs
    if args.wait and args.on_timeout == "ok":
        unfinished.keep(args.on_timeout, key, _Begun(message, outputs, _version_of(target, context, client)))
    return message, outputs


def _version_of(target: Target, context: ext_sdk.Context, client: Client) -> tuple[str, int]:
    """Return the uid and the generation of the object. Raises NotFound."""
    item = client.request("GET", target.path, deadline=context.deadline)
    return text(item, "metadata", "uid"), number(item, "metadata", "generation")


ActionResult = tuple[str, Outputs]  # message and outputs


def _restart(args: Rollout, target: Target, context: ext_sdk.Context, client: Client) -> ActionResult:
    item = _read_unpaused(args, target, context, client)
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    change: Object = {"spec": {"template": {"metadata": {"annotations": {RESTARTED: now}}}}}
    merge(target, item, change, context, client)
    return f"Restarted {target.resource.kind}/{target.name}", {"restartedAt": now}


def _pause(args: Rollout, target: Target, context: ext_sdk.Context, client: Client) -> ActionResult:
    paused = args.action == "pause"
    (item,) = read(target, "", context, client)
    unchanged = (at(item, "spec", "paused") is True) == paused
    if not unchanged:
        merge(target, item, {"spec": {"paused": paused}}, context, client)
    past = "Paused" if paused else "Resumed"
    message = f"{past} {target.resource.kind}/{target.name}{' (no change)' if unchanged else ''}"
    return message, {"paused": paused}


def _history(args: Rollout, target: Target, context: ext_sdk.Context, client: Client) -> ActionResult:
    del args
    (item,) = read(target, "", context, client)
    revisions = _revisions(item, target, context, client)
    lines = []
    for revision, template in revisions:
        images = ", ".join(text(container, "image") for container in items(template, "spec", "containers"))
        lines.append(f"{revision}: {images}")
    return f"{target.resource.kind}/{target.name} has {len(revisions)} revisions", {
        "revisions": "\n".join(lines),
        "current": revisions[-1][0] if revisions else 0,
        "count": len(revisions),
    }


def _undo(args: Rollout, target: Target, context: ext_sdk.Context, client: Client) -> ActionResult:
    item = _read_unpaused(args, target, context, client)
    revisions = _revisions(item, target, context, client)
    chosen = args.to_revision or (revisions[-2][0] if len(revisions) > 1 else 0)
    template = dict(revisions).get(chosen)
    if template is None:
        known = ", ".join(str(revision) for revision, _ in revisions)
        missing = f"revision {chosen}" if chosen else "a previous revision"
        raise ext_sdk.OperationFailed(
            f"{target} has no {missing.removeprefix('a ')}",
            error=f"expected {missing} of {target.where}, found {known or 'none'}",
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
    return f"Rolled {target.resource.kind}/{target.name} back to revision {chosen}", {"toRevision": chosen}


def _read_unpaused(args: Rollout, target: Target, context: ext_sdk.Context, client: Client) -> Object:
    """Read the object. Raises OperationFailed if it is paused."""
    (item,) = read(target, "", context, client)
    if at(item, "spec", "paused") is True:
        raise ext_sdk.OperationFailed(
            f"{target} is paused", error=f"{target.where} is paused; resume it before {args.action}"
        )
    return item


def _revisions(item: Object, target: Target, context: ext_sdk.Context, client: Client) -> list[tuple[int, Object]]:
    """Return the pod templates by revision, the newest last, from ReplicaSets or ControllerRevisions."""
    deployment = target.resource.kind == "Deployment"
    plural = "replicasets" if deployment else "controllerrevisions"
    path = api_path("apps", "v1", plural, target.namespace)
    uid = text(item, "metadata", "uid")
    revisions: list[tuple[int, Object]] = []
    for owned in items(client.request("GET", path, deadline=context.deadline), "items"):
        if all(text(owner, "uid") != uid for owner in items(owned, "metadata", "ownerReferences")):
            continue
        if deployment:
            template = members(owned, "spec", "template")
            metadata = members(template, "metadata")
            labels = {key: value for key, value in members(metadata, "labels").items() if key != HASH}
            revision = text(owned, "metadata", "annotations", REVISION)
            template = template | {"metadata": metadata | {"labels": labels}}
            revisions.append((int(revision) if revision.isdecimal() else 0, template))
        else:
            template = members(owned, "data", "spec", "template")
            template = {key: value for key, value in template.items() if key != "$patch"}
            revisions.append((number(owned, "revision"), template))
    return sorted(revisions, key=itemgetter(0))


ACTIONS: Mapping[str, Callable[[Rollout, Target, ext_sdk.Context, Client], ActionResult]] = {
    "restart": _restart,
    "pause": _pause,
    "resume": _pause,
    "undo": _undo,
    "history": _history,
}

OPERATIONS = (
    ext_sdk.Operation(
        "rollout",
        rollout,
        {"resource": "deploy/web", "action": "status", "timeout": "20s"},
        outputs=(
            {
                "status?": "last seen state, if it was waited for",
                "seconds?": "duration in seconds, if it was waited for",
                "replicas?": "number of pods, if it was waited for",
                "updatedReplicas?": "number of pods with the newest template, if it was waited for",
                "readyReplicas?": "number of ready pods, if it was waited for",
                "availableReplicas?": "number of available pods, if it was waited for",
                "revision?": "revision of a Deployment, if it was waited for, or undone",
                "toRevision?": "revision that was restored, if it was undone",
                "restartedAt?": "time of the restart, if it was restarted",
                "paused?": "`true` if it is paused, if it was paused or resumed",
                "revisions?": "revisions with their images, one per line, if the history was requested",
                "current?": "newest revision, if the history was requested",
                "count?": "number of revisions, if the history was requested",
                "attempts?": FAILED_WAIT["attempts?"],
            }
            | DONE_IF_WAITED
            | REPORT
            | REFUSAL
        ),
    ),
)
