"""Operations `patch`, `label`, `annotate` and `scale`: change parts of objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.connection import Request
from ext_kubernetes.api.errors import ApiError, NotFound, error_context
from ext_kubernetes.config import ExpectedRefusal  # noqa: TC001 - msgspec reads it
from ext_kubernetes.manifests.bulk import catching, combined_failure, run_parallel
from ext_kubernetes.manifests.write import (
    MANAGER,
    MERGE_PATCH,
    DryRun,
    IgnoreNotFound,
    Subresource,
    Validation,
    merge,
    names_of,
    read,
    write_options,
)
from ext_kubernetes.objects.fields import identity, members, named, number, text
from ext_kubernetes.objects.readiness import RULES
from ext_kubernetes.objects.yaml_loader import Json  # noqa: TC001 - msgspec reads it
from ext_kubernetes.polling import Verdict, wait_until
from ext_kubernetes.targets import TargetArgs, TimeLimit, target_of
from ext_kubernetes.waiting.failure_report import wait_failure
from ext_kubernetes.waiting.waiter import (
    IsReady,
    PodCheck,
    Selector,
    Timeout,
    combine_verdicts,
    resolve_target,
    verdict_for_target,
    wait_for,
)

from . import DONE_IF_WAITED, FAILED_WAIT, IDENTITY, ONE, REFUSAL, REPORT

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target
    from ext_kubernetes.waiting.waiter import WaitResult


CONTENT_TYPES = {
    "strategic": "application/strategic-merge-patch+json",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}


class Patch(TargetArgs):
    """Arguments of `patch`."""

    patch: Annotated[
        dict[str, Json] | list[dict[str, Json]],
        Meta(description="Fields to change, null to remove a field; or a list of JSON Patch operations"),
    ]
    type: Annotated[
        Literal["auto", "strategic", "merge", "json"],
        Meta(
            description="Patch type. strategic merges lists by their keys; auto: json for a list, else strategic, or "
            "merge for kinds without strategic merge patch"
        ),
    ] = "auto"
    subresource: Subresource = ""
    ignore_not_found: IgnoreNotFound = False
    dry_run: DryRun = False
    strict: Validation = True
    expect: ExpectedRefusal = UNSET
    timeout: TimeLimit = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if (self.type == "json") != isinstance(self.patch, list) and self.type != "auto":
            raise ValueError("`patch` must be a list of operations for type json, and an object for all other types")


def patch(args: Patch, context: ext_sdk.Context) -> ext_sdk.Result:
    """Change parts of an object or its subresource by a strategic merge patch, JSON merge patch or JSON patch."""
    client = client_for(context, args)
    target = target_of(args, context, client)
    path = target.resource.path(target.namespace, target.name, args.subresource)
    query = [("fieldManager", MANAGER), *write_options(dry_run=args.dry_run, strict=args.strict)]
    types = [args.type] if args.type != "auto" else ["json"] if isinstance(args.patch, list) else ["strategic", "merge"]
    for type_ in types:
        request = Request("PATCH", path, query, args.patch, CONTENT_TYPES[type_])
        try:
            with error_context(f"failed to patch {target.where}"):
                patched = members(client.ask(request, deadline=context.deadline).value)
        except ApiError as error:
            if error.status == 415 and type_ != types[-1]:  # a custom resource
                continue
            if args.ignore_not_found and isinstance(error, NotFound):
                return not_found_ignored(target)
            raise
        return ext_sdk.Result.ok(f"{'Would patch' if args.dry_run else 'Patched'} {target}", outputs=identity(patched))
    raise AssertionError("the last type of patch returns or raises")


def not_found_ignored(target: Target) -> ext_sdk.Result:
    """Return the result of an operation on an object that does not exist, with `ignoreNotFound`."""
    return ext_sdk.Result.ok(f"{target} not found (ignored)", outputs={"count": 0, "changed": 0})


Values = dict[str, str | None]


class _ValuesArgs(TargetArgs):
    """Common arguments of `label` and `annotate`."""

    selector: Selector = ""
    all: Annotated[bool, Meta(description="Change all objects of the kind; with a kind without name or selector")] = (
        False
    )
    overwrite: Annotated[bool, Meta(description="Change existing values; false: an existing value is a failure")] = True
    ignore_not_found: IgnoreNotFound = False
    wait: Annotated[
        bool, Meta(description="Wait until all objects are ready, by the rules of `wait` with `for: ready`")
    ] = False
    expect: ExpectedRefusal = UNSET
    timeout: Timeout = ext_sdk.Duration.parse("25s")
    on_timeout: ext_sdk.OnTimeout = "fail"


class Label(_ValuesArgs):
    """Arguments of `label`."""

    labels: Annotated[Values, Meta(description="Labels to set, by name; null removes a label", min_length=1)]


class Annotate(_ValuesArgs):
    """Arguments of `annotate`."""

    annotations: Annotated[
        Values, Meta(description="Annotations to set, by name; null removes an annotation", min_length=1)
    ]


def label(args: Label, context: ext_sdk.Context) -> ext_sdk.Result:
    """Set, change or remove labels of an object, or of all objects that a selector matches."""
    return _change_values(args, "label", args.labels, context)


def annotate(args: Annotate, context: ext_sdk.Context) -> ext_sdk.Result:
    """Set, change or remove annotations of an object, or of all objects that a selector matches."""
    return _change_values(args, "annotate", args.annotations, context)


def _change_values(
    args: _ValuesArgs, verb: Literal["label", "annotate"], values: Values, context: ext_sdk.Context
) -> ext_sdk.Result:
    client = client_for(context, args)
    field, past = {"label": ("labels", "Labelled"), "annotate": ("annotations", "Annotated")}[verb]
    target = resolve_target(args, args.selector, context, client, retry=False)
    if not (target.name or args.selector or args.all):
        raise ext_sdk.InvalidArgs("resource", "expected a name, a `selector` or `all: true`, found a kind only")
    with error_context(f"failed to {verb} {target}"):
        selected = read(target, args.selector, context, client, ignore_not_found=args.ignore_not_found)
    if not selected:
        return not_found_ignored(target)
    if not args.overwrite:
        _check_absent(selected, field, values)
    outdated = [
        item
        for item in selected
        if any(members(item, "metadata", field).get(name) != value for name, value in values.items())
    ]
    change: Object = {"metadata": {field: values}}

    def send(item: Object) -> Object:
        with error_context(f"failed to {verb} {named(item)}"):
            return merge(target, item, change, context, client)

    results = list(zip(map(named, outdated), run_parallel(catching(send), outdated), strict=True))
    changed = [result for _, result in results if not isinstance(result, ext_sdk.OperationFailed)]
    outputs: Outputs = {"count": len(selected), "changed": len(changed)}
    outputs |= identity((changed or selected)[0]) if len(selected) == 1 else {}
    if failed := [(name, result) for name, result in results if isinstance(result, ext_sdk.OperationFailed)]:
        raise combined_failure(failed, len(selected), verb, outputs)
    if args.wait:
        with error_context(f"failed to wait for {target}"):
            waited = _wait_until_ready(target, selected, context, client)
        if not waited.outcome.done:
            return wait_failure(waited, "ready", context, client, args, outputs=outputs)
        outputs |= {"done": True}
    return ext_sdk.Result.ok(
        f"{past} {names_of(target, selected)}{'' if outdated else ' (no change)'}", outputs=outputs
    )


def _wait_until_ready(target: Target, selected: list[Object], context: ext_sdk.Context, client: Client) -> WaitResult:
    """Wait until objects are ready, selected by name: the selector may not match their new labels."""
    names = set(map(target.name_of, selected))
    ready = IsReady(PodCheck(client, context.deadline))

    def evaluate(objects: list[Object]) -> Verdict:
        present = [item for item in objects if target.name_of(item) in names]
        return combine_verdicts(present, ready, len(names), target.name_of)

    return wait_for(target, evaluate, context, client)


def _check_absent(selected: list[Object], field: str, values: Values) -> None:
    """Raise OperationFailed if an object has another value for one of the names."""
    for item in selected:
        present = members(item, "metadata", field)
        for name, value in values.items():
            if value is not None and present.get(name) not in {None, value}:
                item_name = text(item, "metadata", "name")
                raise ext_sdk.OperationFailed(
                    f"{item_name} has {name} already",
                    error=f"expected {name} to be absent from the {field} of {item_name}, found "
                    f"{present.get(name)!r}; nothing was changed. Set `overwrite: true` to change it",
                )


class Scale(TargetArgs):
    """Arguments of `scale`."""

    replicas: Annotated[int, Meta(ge=0, description="Number of replicas"), ext_sdk.Computed]
    current_replicas: Annotated[
        Annotated[int, Meta(ge=0)] | UnsetType,
        Meta(description="Required present number of replicas; another number is a failure, and nothing is changed"),
    ] = UNSET
    ignore_not_found: IgnoreNotFound = False
    wait: Annotated[bool, Meta(description="Wait until all replicas are ready and surplus ones are gone")] = False
    expect: ExpectedRefusal = UNSET
    timeout: Timeout = ext_sdk.Duration.parse("60s")
    on_timeout: ext_sdk.OnTimeout = "fail"


def scale(args: Scale, context: ext_sdk.Context) -> ext_sdk.Result:
    """Set the number of replicas of a Deployment, StatefulSet, ReplicaSet or any other kind that has a scale."""
    client = client_for(context, args)
    target = target_of(args, context, client)
    if "scale" not in target.resource.subresources:
        raise ext_sdk.InvalidArgs("resource", f"{target.resource.kind} can't be scaled: no subresource scale")
    try:
        with error_context(f"failed to scale {target.where}"):
            before = _scale(target, args, context, client)
    except NotFound:
        if not args.ignore_not_found:
            raise
        return not_found_ignored(target)
    outputs: Outputs = {"replicas": args.replicas, "previous": before}
    message = f"Scaled {target.resource.kind}/{target.name} from {before} to {args.replicas} replicas"
    if not args.wait:
        return ext_sdk.Result.ok(message, outputs=outputs)
    predicate = verdict_for_target(target, IsReady(PodCheck(client, context.deadline)), "all")
    waited = wait_for(target, predicate, context, client)
    if waited.outcome.done and (target.resource.group, target.resource.kind) not in RULES:
        # The status of a custom resource may not reflect its replicas; its scale subresource does.
        path = target.resource.path(target.namespace, target.name, "scale")

        def check(_age: float) -> Verdict:
            replicas = number(client.request("GET", path, deadline=context.deadline), "status", "replicas")
            status = f"{replicas} of {args.replicas} replicas in its scale subresource"
            return Verdict(replicas == args.replicas, status)

        waited = waited._replace(outcome=wait_until(check, context.deadline))
    if waited.outcome.done:
        outputs |= {"seconds": f"{waited.outcome.seconds:.3f}", "done": True}
        return ext_sdk.Result.ok(message, outputs=outputs)
    return wait_failure(
        waited,
        f"{args.replicas} replicas",
        context,
        client,
        args,
        outputs=outputs,
        message=f"{message}, which are not all ready",
    )


def _scale(target: Target, args: Scale, context: ext_sdk.Context, client: Client) -> int:
    """Scale, and return the previous number of replicas."""
    path = target.resource.path(target.namespace, target.name, "scale")
    present: Object = members(client.request("GET", path, deadline=context.deadline))
    before = number(present, "spec", "replicas")
    change: dict[str, object] = {"spec": {"replicas": args.replicas}}
    if not isinstance(args.current_replicas, UnsetType):
        if before != args.current_replicas:
            raise ext_sdk.OperationFailed(
                "another number of replicas",
                error=f"expected {args.current_replicas} replicas of {target.where}, found {before}; not changed",
                outputs={"replicas": before},
            )
        # The server rejects the request if another client scales the object in between.
        change["metadata"] = {"resourceVersion": text(present, "metadata", "resourceVersion")}
    client.request(
        "PATCH",
        path,
        query=[("fieldManager", MANAGER)],
        body=change,
        content_type=MERGE_PATCH,
        deadline=context.deadline,
    )
    return before


CHANGED = (
    ONE
    | {"count": "number of objects", "changed": "number of changed objects"}
    | FAILED_WAIT
    | {"seconds?": "duration in seconds, if the wait did not succeed"}
    | DONE_IF_WAITED
    | REPORT
)
IGNORED = {
    "count?": "0, if the object is missing and that is ignored",
    "changed?": "0, if the object is missing and that is ignored",
}

OPERATIONS = (
    ext_sdk.Operation(
        "patch",
        patch,
        {"resource": "configmap/settings", "patch": {"data": {"colour": "green"}}},
        outputs={f"{name}?": f"{text}, unless it was missing and ignored" for name, text in IDENTITY.items()}
        | IGNORED
        | REFUSAL,
        title="Patch object",
    ),
    ext_sdk.Operation(
        "label",
        label,
        {"resource": "pod/nginx", "labels": {"tier": "web"}},
        outputs=CHANGED | REFUSAL,
        title="Label objects",
        idempotent=True,
    ),
    ext_sdk.Operation(
        "annotate",
        annotate,
        {"resource": "pod/nginx", "annotations": {"note": "seen"}},
        outputs=CHANGED | REFUSAL,
        title="Annotate objects",
        idempotent=True,
    ),
    ext_sdk.Operation(
        "scale",
        scale,
        {"resource": "deploy/web", "replicas": 3},
        outputs=(
            {
                "replicas?": "new number of replicas, unless the object was missing and ignored",
                "previous?": "previous number of replicas, unless the object was missing and ignored",
                "seconds?": "duration in seconds, if `wait` is true",
            }
            | DONE_IF_WAITED
            | FAILED_WAIT
            | REPORT
            | REFUSAL
        ),
        title="Scale workload",
        idempotent=True,
    ),
)
