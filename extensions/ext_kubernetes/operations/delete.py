"""Operation `delete`: delete objects by name, selector or manifest, and wait until they are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import NotFound, error_context
from ext_kubernetes.config import ExpectedRefusal  # noqa: TC001 - msgspec reads it
from ext_kubernetes.manifests.bulk import catching, combined_failure, resolve_manifest, run_parallel
from ext_kubernetes.manifests.sources import SOURCES, Expand, File, Inline, Kustomize, Recursive, Url, manifests_of
from ext_kubernetes.manifests.write import DryRun  # noqa: TC001 - msgspec reads it
from ext_kubernetes.objects.fields import text
from ext_kubernetes.polling import Unfinished, same_step
from ext_kubernetes.targets import OwnNamespaces, TargetArgs, TimeLimitOfWait, absent_namespace, target_of
from ext_kubernetes.waiting.deletion import MOST_NAMED, DeletedObject, DeletionTimedOut, send_delete, wait_for_deletion

from . import DONE_IF_WAITED, LEFT, REFUSAL

if TYPE_CHECKING:
    from collections.abc import Hashable

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object


class Delete(TargetArgs):
    """Arguments of `delete`."""

    file: File = ""
    recursive: Recursive = False
    manifest: Inline = UNSET
    expand: Expand = False
    url: Url = ""
    kustomize: Kustomize = ""
    selector: Annotated[
        str, Meta(description="Label selector, such as app=web; with a kind without a name in `resource`")
    ] = ""
    field_selector: Annotated[
        str, Meta(description="Field selector, such as status.phase=Failed; with a kind without a name")
    ] = ""
    all: Annotated[bool, Meta(description="Delete all objects of the kind in the namespace")] = False
    ignore_not_found: Annotated[bool, Meta(description="Treat a missing object as success")] = False
    propagation: Annotated[
        Literal["Foreground", "Background", "Orphan"] | UnsetType,
        Meta(
            description="Deletion of dependents: before the object (Foreground), after it (Background) or not at all "
            "(Orphan). Default: Foreground; Background for custom resources, because the garbage collector discovers "
            "new kinds late"
        ),
    ] = UNSET
    grace_period: Annotated[
        Annotated[int, Meta(ge=0)] | UnsetType,
        Meta(description="Grace period of pods in seconds; 0 kills them immediately"),
    ] = UNSET
    wait: Annotated[
        bool | UnsetType,
        Meta(description="Wait until the objects are gone; default: true, but false with `kind` and `metadata`"),
    ] = UNSET
    dry_run: DryRun = False
    expect: ExpectedRefusal = UNSET
    timeout: TimeLimitOfWait = ext_sdk.Duration.parse("25s")
    on_timeout: ext_sdk.OnTimeout = "fail"

    @property
    def selects(self) -> bool:
        """Return True if the objects are selected rather than named."""
        return bool(self.selector or self.field_selector or self.all)


def delete(args: Delete, context: ext_sdk.Context) -> ext_sdk.Result:
    """Delete objects by name, selector or manifest, and wait until they are gone.

    A new object of the same name is neither deleted nor waited for. An object given by `kind` and `metadata` is waited
    for only with `wait: true`. After a step with `onTimeout: ok`, the same one only waits for these objects.
    """
    client = client_for(context, args)
    chosen, plural, where = _choose(args, context, client)
    unfinished, key = context.state(Unfinished), (client.server, "delete", repr(same_step(args)), where)
    previous = unfinished.take(key, _Deleted)

    def send(item: DeletedObject) -> DeletedObject:
        with error_context(f"failed to delete {item}"):
            return _delete(item, args, context, client)

    # A failure does not stop the other deletions, because this may be the cleanup of a task. The objects of a manifest
    # are deleted in order; those of a selector have none.
    attempt = catching(send)
    if previous:  # what exists now under their names, or is selected now, is new
        chosen, attempt = previous.items, lambda item: item
    results = run_parallel(attempt, chosen) if args.selects else [attempt(item) for item in chosen]
    deleted = [result for result in results if isinstance(result, DeletedObject)]
    failed = [
        (str(item), result)
        for item, result in zip(chosen, results, strict=True)
        if not isinstance(result, DeletedObject)
    ]
    missing = ", ".join([name for name, error in failed if isinstance(error, NotFound)][:MOST_NAMED])
    rejected = [(name, error) for name, error in failed if not isinstance(error, NotFound)]
    outputs: Outputs = {"count": len(deleted), "resources": "\n".join(map(str, deleted))}
    if rejected:
        raise combined_failure(rejected, len(chosen), "delete", outputs)
    if missing and not (args.ignore_not_found or args.selects):  # selected ones existed, and are gone meanwhile
        where = f" in namespace {chosen[0].namespace}" if chosen[0].namespace else ""
        raise ext_sdk.OperationFailed(
            f"failed to delete {missing}: not found",
            error=f"{missing} not found{where}; set `ignoreNotFound: true` to treat that as success",
            outputs=outputs,
        )
    if not args.dry_run and (args.wait if args.wait is not UNSET else not args.kind):
        if deleted:
            unfinished.keep(args.on_timeout, key, _Deleted(deleted))
        try:
            wait_for_deletion(deleted, context, client)
        except DeletionTimedOut as error:
            failure = ext_sdk.Result.of_failure(error)
            failure.outputs |= {"count": str(len(deleted)), "resources": "\n".join(map(str, deleted))}
            return ext_sdk.conclude_wait(failure, args.on_timeout, timed_out=error.timed_out, last_seen=error.last_seen)
        outputs["done"] = True
    if not deleted and missing:
        return ext_sdk.Result.ok(f"{missing} not found (ignored)", outputs=outputs)
    if not deleted and args.selects:
        target = target_of(args, context, client, named=False)
        plural += absent_namespace(target, client, context.deadline)
    subject = str(deleted[0]) if len(deleted) == 1 else f"{len(deleted)} {plural}"
    return ext_sdk.Result.ok(f"{'Would delete' if args.dry_run else 'Deleted'} {subject}", outputs=outputs)


class _Deleted(NamedTuple):
    """Objects that a step with `onTimeout: ok` has deleted; the next one only waits for their end."""

    items: list[DeletedObject]


def _choose(args: Delete, context: ext_sdk.Context, client: Client) -> tuple[list[DeletedObject], str, Hashable]:
    """Return the objects to delete, a plural noun for them, and their names, or the namespace of selected ones.

    An object without uid is deleted by name.
    """
    if not (args.resource or args.kind):
        manifests = manifests_of(args, context)
        resolved = [resolve_manifest(manifest, context, client, args.namespace) for manifest in reversed(manifests)]
        if nameless := [str(item) for item in resolved if not item.name]:
            raise ext_sdk.OperationFailed(f"{nameless[0]} can't be deleted: its manifest has no metadata.name")
        named = [DeletedObject(item.resource, item.namespace, item.name, "") for item in resolved]
        return named, "objects", tuple(named)
    if sources := [name for name in SOURCES if getattr(args, name) not in ("", UNSET)]:
        raise ext_sdk.InvalidArgs(sources[0], "expected a manifest or a resource, found both")
    target = target_of(args, context, client, named=False)
    if not (args.selects or target.name):
        expected = "expected KIND/NAME, or with a kind alone `selector`, `fieldSelector` or `all: true`"
        raise ext_sdk.InvalidArgs("resource" if args.resource else "metadata.name", f"{expected}; found no name")
    if not args.selects:
        named = [DeletedObject(target.resource, target.namespace, target.name, "")]
        return named, target.plural, tuple(named)
    if target.name:
        raise ext_sdk.InvalidArgs("selector", f"expected a kind without a name, found {target}")
    query = [("labelSelector", args.selector)] if args.selector else []
    query += [("fieldSelector", args.field_selector)] if args.field_selector else []
    with error_context(f"failed to list {target}"):
        listed = [
            (one.resource, item)
            for one in target.each
            for item in client.list(one.resource, target.namespace, query, deadline=context.deadline)
        ]
    keys = ("namespace", "name", "uid")
    chosen = [DeletedObject(resource, *(text(item, "metadata", key) for key in keys)) for resource, item in listed]
    return chosen, target.plural, target.namespace


def _delete(item: DeletedObject, args: Delete, context: ext_sdk.Context, client: Client) -> DeletedObject:
    path = item.resource.path(item.namespace, item.name)
    uid = item.uid or text(client.request("GET", path, deadline=context.deadline), "metadata", "uid")
    propagation = args.propagation
    if propagation is UNSET:
        # Only the garbage collector ends a Foreground deletion, and it looks for new kinds every 30 s.
        custom = "." in item.resource.group and not item.resource.group.endswith(".k8s.io")
        propagation = "Background" if custom else "Foreground"
    body: Object = {"propagationPolicy": propagation}
    if uid:
        body["preconditions"] = {"uid": uid}
    if args.grace_period is not UNSET:
        body["gracePeriodSeconds"] = args.grace_period
    if args.dry_run:
        body["dryRun"] = ["All"]
    send_delete(path, body, context, client)
    if uid and not args.dry_run and item.resource.name == "namespaces":
        context.state(OwnNamespaces).deleted(uid, gone=False)
    return item._replace(uid=uid)


OPERATIONS = (
    ext_sdk.Operation(
        "delete",
        delete,
        {"resource": "configmap/settings"},
        outputs=(
            {"count": "number of deleted objects", "resources": "their kinds and names, one per line"}
            | DONE_IF_WAITED
            | LEFT
            | REFUSAL
        ),
        title="Delete objects",
        idempotent=True,
    ),
)
