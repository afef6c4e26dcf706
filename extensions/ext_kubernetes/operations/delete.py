"""`delete`: objects by name, by selector or by manifest, and the wait until they are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import NotFound, error_context
from ext_kubernetes.manifests.bulk import catching, combined_failure, resolve_manifest, run_parallel
from ext_kubernetes.manifests.sources import File, Inline, Kustomize, Recursive, Url, manifests_of
from ext_kubernetes.objects.fields import items, text
from ext_kubernetes.own_namespaces import own_namespaces
from ext_kubernetes.targets import TargetArgs, target_of
from ext_kubernetes.waiting.deletion import MOST_TOLD, DeletedObject, send_delete, wait_for_deletion

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.api.discovery import Resource
    from ext_kubernetes.objects.yaml_loader import Object


class Delete(TargetArgs):
    """What to delete, and how."""

    file: File = ""
    recursive: Recursive = False
    manifest: Inline = UNSET
    url: Url = ""
    kustomize: Kustomize = ""
    selector: Annotated[str, Meta(description="With a kind alone: those with these labels, such as app=web")] = ""
    field_selector: Annotated[str, Meta(description="With a kind alone: such as status.phase=Failed")] = ""
    all: Annotated[bool, Meta(description="With a kind alone: all of the namespace")] = False
    ignore_not_found: Annotated[bool, Meta(description="A success if there is none")] = False
    propagation: Annotated[
        Literal["Foreground", "Background", "Orphan"] | UnsetType,
        Meta(
            description="What becomes of what it owns: it goes before it, goes after it, or stays. Where left out: "
            "Foreground; for custom resources Background, for the garbage collector is late to learn of new kinds"
        ),
    ] = UNSET
    grace_period: Annotated[
        Annotated[int, Meta(ge=0)] | UnsetType, Meta(description="Seconds for pods to end; 0: at once, without asking")
    ] = UNSET
    wait: Annotated[
        bool | UnsetType,
        Meta(description="Until it is gone; the default, but for an object named by `kind` and `metadata`"),
    ] = UNSET
    dry_run: Annotated[bool, Meta(description="Let the server check everything and change nothing")] = False
    timeout: Annotated[ext_sdk.Duration, Meta(description="For all of it")] = ext_sdk.Duration.parse("25s")


def delete(args: Delete, context: ext_sdk.Context) -> ext_sdk.Result:
    """Delete objects and wait until they are gone: one by name, those of a selector, or those of a manifest.

    Another object that has come under the same name is left alone, and is no reason to wait. One that is named by
    `kind` and `metadata` is waited for only with `wait: true`.
    """
    client = client_for(context)
    chosen, asked = _chosen(args, context, client)

    def send(one: DeletedObject) -> DeletedObject:
        with error_context(f"failed to delete {one}"):
            return _delete(one, args, context, client)

    # One failure does not keep others from being deleted, because this may be the end of a task. What a manifest lists
    # has an order; what a selector finds has none.
    attempt = catching(send)
    results = run_parallel(attempt, chosen) if _by_choice(args) else [attempt(one) for one in chosen]
    gone = [result for result in results if isinstance(result, DeletedObject)]
    failed = [
        (str(one), result) for one, result in zip(chosen, results, strict=True) if not isinstance(result, DeletedObject)
    ]
    missing = [name for name, result in failed if isinstance(result, NotFound)]
    refused = [(name, result) for name, result in failed if not isinstance(result, NotFound)]
    outputs: dict[str, str | int | bool] = {"count": len(gone), "resources": "\n".join(map(str, gone))}
    if refused:
        raise combined_failure(refused, len(chosen), "delete", outputs)
    if missing and not args.ignore_not_found:
        told = ", ".join(missing[:MOST_TOLD])
        raise ext_sdk.OperationFailed(
            f"failed to delete {told}: not found",
            error=f"{told} not found{_where(chosen)}; `ignoreNotFound: true` makes that a success",
            outputs=outputs,
        )
    if not args.dry_run and (args.wait if args.wait is not UNSET else not args.kind):
        wait_for_deletion(gone, context, client)
    if not gone and missing:
        return ext_sdk.Result.ok(f"{', '.join(missing[:MOST_TOLD])} not found (ignored)", outputs=outputs)
    what = str(gone[0]) if len(gone) == 1 else f"{len(gone)} {asked}"
    return ext_sdk.Result.ok(f"{'Would delete' if args.dry_run else 'Deleted'} {what}", outputs=outputs)


def _by_choice(args: Delete) -> bool:
    return bool(args.selector or args.field_selector or args.all)


def _chosen(args: Delete, context: ext_sdk.Context, client: Client) -> tuple[list[DeletedObject], str]:
    """What to delete, and a word for it. Without a uid, whatever has the name."""
    if not (args.resource or args.kind):
        manifests = manifests_of(args, context)
        found = [resolve_manifest(one, context, client, args.namespace) for one in reversed(manifests)]
        if nameless := [str(one) for one in found if not one.name]:
            raise ext_sdk.OperationFailed(f"{nameless[0]} has no name to delete it by")
        return [DeletedObject(one.resource, one.namespace, one.name, "") for one in found], "objects"
    if others := [name for name in ("file", "manifest", "url", "kustomize") if getattr(args, name) not in ("", UNSET)]:
        raise ext_sdk.InvalidArgs(others[0], "expected a manifest or a resource, found both")
    target = target_of(args, context, client, named=not _by_choice(args))
    if not _by_choice(args):
        return [DeletedObject(target.resource, target.namespace, target.name, "")], target.resource.plural
    if target.name:
        raise ext_sdk.InvalidArgs("selector", f"expected a kind alone with a selector, found {target}")
    query = [("labelSelector", args.selector)] if args.selector else []
    query += [("fieldSelector", args.field_selector)] if args.field_selector else []
    with error_context(f"failed to list {target}"):
        found_list = client.request("GET", target.path, query=query, deadline=context.deadline)
    return [
        DeletedObject(
            target.resource,
            text(one, "metadata", "namespace"),
            text(one, "metadata", "name"),
            text(one, "metadata", "uid"),
        )
        for one in items(found_list, "items")
    ], target.resource.plural


def _delete(one: DeletedObject, args: Delete, context: ext_sdk.Context, client: Client) -> DeletedObject:
    path = one.resource.path(one.namespace, one.name)
    uid = one.uid or text(client.request("GET", path, deadline=context.deadline), "metadata", "uid")
    body: Object = {"propagationPolicy": _propagation(one.resource) if args.propagation is UNSET else args.propagation}
    if uid:
        body["preconditions"] = {"uid": uid}
    if args.grace_period is not UNSET:
        body["gracePeriodSeconds"] = args.grace_period
    if args.dry_run:
        body["dryRun"] = ["All"]
    send_delete(path, body, context, client)
    if uid and not args.dry_run and one.resource.name == "namespaces":
        own_namespaces(context).deleted(uid, gone=False)
    return one._replace(uid=uid)


def _propagation(resource: Resource) -> str:
    """The default. The garbage collector looks for new kinds every 30 s, and only it ends a Foreground deletion."""
    custom = "." in resource.group and not resource.group.endswith(".k8s.io")
    return "Background" if custom else "Foreground"


def _where(chosen: list[DeletedObject]) -> str:
    return f" in namespace {chosen[0].namespace}" if chosen and chosen[0].namespace else ""


OPERATIONS = (ext_sdk.Operation("delete", delete, {"resource": "configmap/settings"}),)
