"""Operations `patch`, `label`, `annotate` and `scale`: change parts of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.connection import Request
from ext_kubernetes.api.errors import ApiError, error_context
from ext_kubernetes.manifests.bulk import catching, combined_failure, run_parallel
from ext_kubernetes.manifests.merge_patch import MERGE_PATCH, merge, names_of, read
from ext_kubernetes.manifests.write_options import MANAGER, DryRun, Subresource, Validation, write_options
from ext_kubernetes.objects.fields import identity, members, named, number, text
from ext_kubernetes.objects.readiness import RULES
from ext_kubernetes.objects.yaml_loader import Json  # noqa: TC001 - msgspec reads it
from ext_kubernetes.polling import Verdict, WaitOutcome, wait_until
from ext_kubernetes.targets import TargetArgs, target_of
from ext_kubernetes.waiting.failure_report import wait_failure
from ext_kubernetes.waiting.pod_failures import PodCheck
from ext_kubernetes.waiting.predicates import IsReady, resolve_target, verdict_for_target
from ext_kubernetes.waiting.waiter import Selector, Timeout, combine_verdicts, wait_for

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target
    from ext_kubernetes.waiting.waiter import WaitResult


CONTENT_TYPES = {
    "strategic": "application/strategic-merge-patch+json",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}


class Patch(TargetArgs):
    """Which object, and what to change of it."""

    patch: Annotated[
        dict[str, Json] | list[dict[str, Json]],
        Meta(description="The members to change, null for those to remove; or a list of JSON Patch operations"),
    ]
    type: Annotated[
        Literal["auto", "strategic", "merge", "json"],
        Meta(
            description="auto: json for a list; else strategic, which merges lists by their keys, and "
            "merge for kinds that don't know it"
        ),
    ] = "auto"
    subresource: Subresource = ""
    dry_run: DryRun = False
    strict: Validation = True
    timeout: ext_sdk.Duration = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if (self.type == "json") != isinstance(self.patch, list) and self.type != "auto":
            raise ValueError("expected a list of operations as `patch` for type json, and an object for all others")


def patch(args: Patch, context: ext_sdk.Context) -> ext_sdk.Result:
    """Change parts of an object, or of its subresource, by a strategic merge, a JSON merge patch or a JSON patch."""
    client = client_for(context)
    target = target_of(args, context, client)
    path = target.resource.path(target.namespace, target.name, args.subresource)
    query = [("fieldManager", MANAGER), *write_options(dry_run=args.dry_run, strict=args.strict)]
    kinds = [args.type] if args.type != "auto" else ["json"] if isinstance(args.patch, list) else ["strategic", "merge"]
    for kind in kinds:
        request = Request("PATCH", path, query, args.patch, CONTENT_TYPES[kind])
        try:
            with error_context(f"failed to patch {target.where}"):
                found = members(client.ask(request, deadline=context.deadline).value)
        except ApiError as error:
            if error.status == 415 and kind != kinds[-1]:  # a custom resource
                continue
            raise
        return ext_sdk.Result.ok(f"{'Would patch' if args.dry_run else 'Patched'} {target}", outputs=identity(found))
    raise AssertionError("the last kind of patch returns or raises")


Values = dict[str, str | None]

Overwrite = Annotated[
    bool, Meta(description="Whether one that is there with another value may be changed; else a failure")
]

All = Annotated[bool, Meta(description="With a kind alone and no selector: all of them are meant")]


class _Values(TargetArgs):
    """What labels and annotations have in common."""

    selector: Selector = ""
    all: All = False
    overwrite: Overwrite = True
    wait: Annotated[bool, Meta(description="Until all of them are ready, by the rules of `wait` with `for: ready`")] = (
        False
    )
    timeout: Timeout = ext_sdk.Duration.parse("25s")


class Label(_Values):
    """Which labels of what."""

    labels: Annotated[Values, Meta(description="Names and values; null removes", min_length=1)]


class Annotate(_Values):
    """Which annotations of what."""

    annotations: Annotated[Values, Meta(description="Names and values; null removes", min_length=1)]


def label(args: Label, context: ext_sdk.Context) -> ext_sdk.Result:
    """Set, change or remove labels of an object, or of all that a selector finds."""
    return _changed(args, "labels", args.labels, context)


def annotate(args: Annotate, context: ext_sdk.Context) -> ext_sdk.Result:
    """Set, change or remove annotations of an object, or of all that a selector finds."""
    return _changed(args, "annotations", args.annotations, context)


def _changed(args: _Values, field: str, wanted: Values, context: ext_sdk.Context) -> ext_sdk.Result:
    client = client_for(context)
    target = resolve_target(args, args.selector, context, client, patient=False)
    if not (target.name or args.selector or args.all):
        raise ext_sdk.InvalidArgs("resource", "expected a name, a `selector`, or `all: true`, found a kind alone")
    verb = field.removesuffix("s").replace("annotation", "annotate")
    with error_context(f"failed to {verb} {target}"):
        found = read(target, args.selector, context, client)
    if not args.overwrite:
        _refuse(found, field, wanted)
    changed = [item for item in found if _differs(item, field, wanted)]
    change: Object = {"metadata": {field: wanted}}

    def send(item: Object) -> Object:
        with error_context(f"failed to {verb} {named(item)}"):
            return merge(target, item, change, context, client)

    results = list(zip(map(named, changed), run_parallel(catching(send), changed), strict=True))
    now = [result for _, result in results if not isinstance(result, ext_sdk.OperationFailed)]
    outputs: dict[str, str | int | bool] = {"count": len(found), "changed": len(now)}
    outputs |= identity((now or found)[0]) if len(found) == 1 else {}
    if failed := [(name, result) for name, result in results if isinstance(result, ext_sdk.OperationFailed)]:
        raise combined_failure(failed, len(found), verb, outputs)
    if args.wait:
        with error_context(f"failed to wait for {target}"):
            seen = _settled(target, found, context, client)
        if not seen.waited.done:
            return wait_failure(seen, "ready", context, client, timeout=args.timeout, outputs=outputs)
    verb = {"label": "Labelled", "annotate": "Annotated"}[verb]
    return ext_sdk.Result.ok(f"{verb} {names_of(target, found)}{'' if changed else ' (no change)'}", outputs=outputs)


def _settled(target: Target, found: list[Object], context: ext_sdk.Context, client: Client) -> WaitResult:
    """Wait until objects are ready: by name, for a selector may not find them by their new labels."""
    names = {text(item, "metadata", "name") for item in found}
    ready = IsReady(PodCheck(client, context.deadline))

    def judge(objects: list[Object]) -> Verdict:
        return combine_verdicts(
            [item for item in objects if text(item, "metadata", "name") in names], ready, len(names)
        )

    return wait_for(target, judge, context, client)


def _differs(item: Object, field: str, wanted: Values) -> bool:
    has = members(item, "metadata", field)
    return any(has.get(name) != value for name, value in wanted.items())


def _refuse(found: list[Object], field: str, wanted: Values) -> None:
    """Nothing is changed where one object has another value. Raises OperationFailed."""
    for item in found:
        has = members(item, "metadata", field)
        for name, value in wanted.items():
            if value is not None and has.get(name) not in {None, value}:
                item_name = members(item, "metadata").get("name")
                raise ext_sdk.OperationFailed(
                    f"{item_name} has {name} already",
                    error=f"expected no {name} among the {field} of {item_name}, found {has.get(name)!r}; "
                    "nothing was changed; `overwrite: true` changes it",
                )


class Scale(TargetArgs):
    """What to scale, and how far."""

    replicas: Annotated[int, Meta(ge=0, description="How many there shall be")]
    current_replicas: Annotated[
        Annotated[int, Meta(ge=0)] | UnsetType,
        Meta(description="A failure, and no change, if there are not so many now"),
    ] = UNSET
    wait: Annotated[bool, Meta(description="Until all of them are ready, and those that are too many are gone")] = False
    timeout: Timeout = ext_sdk.Duration.parse("60s")


def scale(args: Scale, context: ext_sdk.Context) -> ext_sdk.Result:
    """Set the number of replicas of a Deployment, StatefulSet, ReplicaSet, or of any kind that has a scale."""
    client = client_for(context)
    target = target_of(args, context, client)
    if "scale" not in target.resource.subresources:
        raise ext_sdk.InvalidArgs("resource", f"{target.resource.kind} can't be scaled: it has no subresource scale")
    with error_context(f"failed to scale {target.where}"):
        before = _scaled(target, args, context, client)
    outputs: dict[str, str | int | bool] = {"replicas": args.replicas, "previous": before}
    message = f"Scaled {target.resource.kind}/{target.name} from {before} to {args.replicas} replicas"
    if not args.wait:
        return ext_sdk.Result.ok(message, outputs=outputs)
    judge = verdict_for_target(target, IsReady(PodCheck(client, context.deadline)), "all")
    seen = wait_for(target, judge, context, client)
    if seen.waited.done and (target.resource.group, target.resource.kind) not in RULES:
        seen = seen._replace(waited=_await_replicas(target, args, context, client))
    if seen.waited.done:
        return ext_sdk.Result.ok(message, outputs=outputs | {"seconds": f"{seen.waited.seconds:.3f}"})
    wanted = f"{args.replicas} replicas"
    return wait_failure(seen, wanted, context, client, timeout=args.timeout, outputs=outputs)


def _await_replicas(target: Target, args: Scale, context: ext_sdk.Context, client: Client) -> WaitOutcome:
    """Wait until the subresource scale counts as many replicas as wanted: the status of a custom resource may not."""
    path = target.resource.path(target.namespace, target.name, "scale")

    def check(_age: float) -> Verdict:
        found = number(client.request("GET", path, deadline=context.deadline), "status", "replicas")
        return Verdict(found == args.replicas, f"{found} of {args.replicas} replicas, by its subresource scale")

    return wait_until(check, context.deadline, context.deadline.wait)


def _scaled(target: Target, args: Scale, context: ext_sdk.Context, client: Client) -> int:
    """Scale, and give the number of replicas before."""
    path = target.resource.path(target.namespace, target.name, "scale")
    found: Object = members(client.request("GET", path, deadline=context.deadline))
    before = number(found, "spec", "replicas")
    change: dict[str, object] = {"spec": {"replicas": args.replicas}}
    if not isinstance(args.current_replicas, UnsetType):
        if before != args.current_replicas:
            raise ext_sdk.OperationFailed(
                "another number of replicas",
                error=f"expected {args.current_replicas} replicas of {target.where}, found {before}; not changed",
                outputs={"replicas": before},
            )
        # somebody may scale it in this very moment: then the server refuses
        change["metadata"] = {"resourceVersion": text(found, "metadata", "resourceVersion")}
    client.request(
        "PATCH",
        path,
        query=[("fieldManager", MANAGER)],
        body=change,
        content_type=MERGE_PATCH,
        deadline=context.deadline,
    )
    return before


OPERATIONS = (
    ext_sdk.Operation("patch", patch, {"resource": "configmap/settings", "patch": {"data": {"colour": "green"}}}),
    ext_sdk.Operation("label", label, {"resource": "pod/nginx", "labels": {"tier": "web"}}),
    ext_sdk.Operation("annotate", annotate, {"resource": "pod/nginx", "annotations": {"note": "seen"}}),
    ext_sdk.Operation("scale", scale, {"resource": "deploy/web", "replicas": 3}),
)
