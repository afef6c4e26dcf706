"""Operations `create-namespace`, `delete-namespace` and `delete-generated-namespaces`.

A task owns the namespaces that it creates: its operations use them by default, and only they are cleaned up.
"""

from __future__ import annotations

import random
import string
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.connection import Request
from ext_kubernetes.api.discovery import Resource, core_path
from ext_kubernetes.api.errors import AlreadyExists, KubernetesError, NotFound, advising, error_context
from ext_kubernetes.config import ClusterArgs, ExpectedRefusal
from ext_kubernetes.manifests.write import MANAGER, MERGE_PATCH
from ext_kubernetes.objects.fields import at, identity, items, members, text
from ext_kubernetes.polling import Unfinished, Verdict, wait_until
from ext_kubernetes.targets import Created, OwnNamespaces, Target, TimeLimitOfWait, listed, namespace_exists
from ext_kubernetes.waiting.deletion import DeletedObject, DeletionTimedOut, delete_one, wait_for_deletion
from ext_kubernetes.waiting.informer import subscribe

from . import DONE, DONE_IF_WAITED, IDENTITY, LEFT, REFUSAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object


PATH = core_path("namespaces")
ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
SUFFIX = 8  # characters
ALPHABET = string.ascii_lowercase + string.digits
ATTEMPTS = 5  # to generate an unused name
ACCOUNT_SECONDS = 2.0  # for the default service account; a server without controllers never creates it
NAME_MOST = 63
BEING_DELETED = "object is being deleted"  # in the message of AlreadyExists
MOST_PODS = 10  # named in an error

KILL = ". `gracePeriod: 0` kills pods immediately"
HELD = ". Pods with finalizers remain until these are removed"

TAKEN = "Set `ifExists: use` or `ifExists: replace`, choose another `name`, or use `prefix` to generate an unused name"

GracePeriod = Annotated[
    Annotated[int, Meta(ge=0)] | UnsetType,
    Meta(
        description="Grace period of the pods in seconds, which overrides their own; 0 kills them immediately. The "
        "pods are deleted right after the namespace, so that controllers do not replace them"
    ),
]


class CreateNamespace(ClusterArgs, one_of=("name", "prefix")):
    """Arguments of `create-namespace`."""

    name: Annotated[str, Meta(description="Name of the namespace")] = ""
    prefix: Annotated[
        str,
        Meta(
            description=f"Prefix of a generated name, PREFIX-{'x' * SUFFIX}; replaces `name`. Such namespaces are "
            "deleted by delete-generated-namespaces"
        ),
    ] = ""
    if_exists: Annotated[
        Literal["fail", "use", "replace"],
        Meta(
            description="If the namespace exists: fail; use it, with the given labels and annotations added; or delete "
            "it with its contents, and create it again. One that is being deleted is always waited for"
        ),
    ] = "fail"
    labels: Annotated[dict[str, str], Meta(description="Labels of the namespace")] = field(default_factory=dict)
    annotations: Annotated[dict[str, str], Meta(description="Annotations of the namespace")] = field(
        default_factory=dict
    )
    use: Annotated[
        bool,
        Meta(
            description="Make it the default namespace of all operations of this workdir and scope. They fail while "
            "there are several such namespaces, or if this operation failed"
        ),
    ] = True
    expect: ExpectedRefusal = UNSET
    timeout: TimeLimitOfWait = ext_sdk.Duration.parse("25s")
    on_timeout: ext_sdk.OnTimeout = "fail"


class DeleteNamespace(ClusterArgs):
    """Arguments of `delete-namespace`."""

    name: Annotated[
        str,
        Meta(
            description="Name of the namespace; default: the one that create-namespace created in this workdir and "
            "scope, if it is the only one and no create-namespace has failed"
        ),
    ] = ""
    ignore_not_found: Annotated[bool, Meta(description="Treat a missing namespace as success")] = False
    grace_period: GracePeriod = UNSET
    wait: Annotated[bool, Meta(description="Wait until the namespace and its contents are gone")] = True
    expect: ExpectedRefusal = UNSET
    timeout: TimeLimitOfWait = ext_sdk.Duration.parse("25s")
    on_timeout: ext_sdk.OnTimeout = "fail"


class DeleteGeneratedNamespaces(ClusterArgs):
    """Arguments of `delete-generated-namespaces`."""

    name: Annotated[str, Meta(description="Name of a generated namespace, such as ${ns.name}")] = ""
    names: Annotated[list[str], Meta(description="Names of several generated namespaces")] = field(default_factory=list)
    prefix: Annotated[
        str, Meta(description="Delete all namespaces that create-namespace generated from this prefix")
    ] = ""
    grace_period: GracePeriod = UNSET
    wait: Annotated[bool, Meta(description="Wait until the namespaces and their contents are gone")] = False
    timeout: TimeLimitOfWait = ext_sdk.Duration.parse("25s")
    on_timeout: ext_sdk.OnTimeout = "fail"

    def __post_init__(self) -> None:
        if self.prefix and (self.name or self.names):
            raise ValueError("expected names or a `prefix`, found both")


def create_namespace(args: CreateNamespace, context: ext_sdk.Context) -> ext_sdk.Result:
    """Create a namespace with a given or generated name; it becomes the default namespace of this workdir and scope.

    The operation waits briefly for the default service account, so that pods can be created at once. If it fails, or if
    there are several such namespaces, operations without a namespace fail; they never use another task's namespace or
    `default`. After a step with `onTimeout: ok`, the next one succeeds also if the namespace was created.
    """
    own = context.state(OwnNamespaces)
    try:
        client = client_for(context, args)
        context.log.info(f"Creating namespace {args.name or args.prefix + '-…'}")
        created, adopted = _create(args, context, client)
    except DeletionTimedOut as error:
        own.failed(error.message, used=args.use, pending=args.on_timeout == "ok" and error.timed_out)
        return _deletion_timed_out(error, args.on_timeout, {"namespace": args.name})
    except Exception as error:
        own.failed(str(error), used=args.use)
        raise
    name = text(created, "metadata", "name")
    done = Created(name, text(created, "metadata", "uid"), args.prefix, args.use, 0, client.server, adopted)
    context.state(Unfinished).keep(args.on_timeout, (client.server, "create-namespace", name), done)
    own.created(
        name, text(created, "metadata", "uid"), prefix=args.prefix, used=args.use, server=client.server, adopted=adopted
    )
    # Wait briefly for the default service account; continue if it cannot be read.
    deadline = context.deadline.limit(ACCOUNT_SECONDS)
    with subscribe(Target(ACCOUNTS, name, "default"), context, client) as watcher, suppress(KubernetesError):
        wait_until(
            lambda age: Verdict(done=bool(watcher.get(age, deadline)), status=""),
            deadline,
            wake=lambda seconds: watcher.wait(seconds, deadline),
            pace=watcher.pace,
        )
    outputs = {**identity(created), "namespace": name, "created": not adopted, "done": True}
    return ext_sdk.Result.ok(f"{'Using the existing' if adopted else 'Created'} namespace {name}", outputs=outputs)


def note_invalid(invalid: ext_sdk.InvalidArgs, context: ext_sdk.Context) -> None:
    """Record a create-namespace that failed because of invalid arguments, such as an unknown `${NAME.key}`."""
    context.state(OwnNamespaces).failed(str(invalid), used=True)


def delete_namespace(args: DeleteNamespace, context: ext_sdk.Context) -> ext_sdk.Result:
    """Delete a namespace and its contents, and wait until it is gone; a failure names the remaining pods.

    After a step with `onTimeout: ok`, the next one continues its wait, or succeeds again if it ended.
    """
    client = client_for(context, args)
    own, unfinished = context.state(OwnNamespaces), context.state(Unfinished)
    key = (client.server, "delete-namespace", args.name)
    pending, previous = unfinished.take(key, DeletedObject), unfinished.take((*key, "done"), DeletedObject)
    name = pending.name if pending else args.name
    if not name:
        mine = [created for created in own.live(client.server) if not created.adopted]
        only = own.certain(mine, partial(namespace_exists, context, client))  # raises OperationFailed for several
        name = only.name if only else ""
    deleted = pending or (previous if previous and previous.name == (name or previous.name) else None)
    missing = f"namespace {name} not found"
    if not name:
        missing = "no namespace to delete: create-namespace left none in this workdir and scope"
        if names := own.deleted_names(client.server):
            missing = f"no namespace to delete; already deleted: {', '.join(names)}"
    if name:
        deleted = _delete(name, args.grace_period, context, client) or deleted
    outputs: Outputs = {"namespace": name} | ({"done": True} if args.wait else {})
    own.deleted_by_name(name, client.server)
    if deleted is not None and args.wait:
        try:
            _wait_for_deletion([deleted], context, client)
        except DeletionTimedOut as error:
            unfinished.keep(args.on_timeout, key, deleted)
            return _deletion_timed_out(error, args.on_timeout, outputs)
    own.deleted_by_name(name, client.server, gone=True)
    if deleted is not None:
        unfinished.keep(args.on_timeout, (*key, "done"), deleted)
        outputs["namespace"] = deleted.name
        return ext_sdk.Result.ok(f"Deleted namespace {deleted.name}", outputs=outputs)
    if args.ignore_not_found:
        return ext_sdk.Result.ok(f"{missing} (ignored)", outputs=outputs)
    error_text = f"{missing}; set `ignoreNotFound: true` to treat that as success"
    return ext_sdk.Result.failed(missing, error=error_text, outputs={"namespace": name})


def _deletion_timed_out(error: DeletionTimedOut, on_timeout: ext_sdk.OnTimeout, outputs: Outputs) -> ext_sdk.Result:
    """Return the result of an operation whose namespaces still exist."""
    failure = ext_sdk.Result.failed(error.message, error=error.error, outputs=error.outputs | outputs)
    return ext_sdk.conclude_wait(failure, on_timeout, timed_out=error.timed_out, last_seen=error.last_seen)


def delete_generated_namespaces(args: DeleteGeneratedNamespaces, context: ext_sdk.Context) -> ext_sdk.Result:
    """Delete namespaces with generated names that create-namespace created in this workdir and scope.

    Without names and prefix, the operation deletes the only one. If several are left, or another create-namespace
    failed, it deletes none and lists them, because they may be another task's. A namespace that could not be deleted,
    or with `wait` is not gone before the deadline, stays on the list for another attempt.
    """
    own = context.state(OwnNamespaces)
    left = own.generated()
    if not left:
        own.cleaned_up()
    client = client_for(context, args) if left else None
    chosen = _choose(args, [created for created in left if client and created.server == client.server], own)
    if client is not None and not (args.name or args.names or args.prefix):
        only = own.certain(chosen, partial(namespace_exists, context, client))
        chosen = [only] if only else []
    waited: Outputs = {"done": True} if args.wait else {}
    if client is None or not chosen:
        return ext_sdk.Result.ok("No generated namespaces to delete", outputs={"count": 0, **waited})
    failures: list[str] = []
    pending: dict[DeletedObject, Created] = {}
    for created in chosen:
        try:
            deleted = _delete(created.name, args.grace_period, context, client, uid=created.uid)
        except KubernetesError as error:
            failures.append(f"{created.name}: {error.error}")
            continue
        own.deleted(created.uid, gone=not (deleted and args.wait))
        if deleted and args.wait:
            pending[deleted] = created
    timed_out = _wait_for_all(pending, own, context, client)
    done = [created.name for created in chosen if created not in own.generated()]
    outputs: Outputs = {"count": len(done), "namespaces": "\n".join(done)}
    if failures or timed_out:
        all_failures = [*failures, *([timed_out.error] if timed_out else [])]
        failure = DeletionTimedOut(
            f"deleted {len(done)} of {len(chosen)} generated namespaces",
            error="failed to delete namespaces, which stay on the list: " + "; ".join(all_failures),
            left=timed_out.left if timed_out else [],
            timed_out=bool(timed_out and timed_out.timed_out and not failures),
            last_seen=timed_out.last_seen if timed_out else "",
        )
        return _deletion_timed_out(failure, args.on_timeout, outputs)
    return ext_sdk.Result.ok(f"Deleted {len(chosen)} generated namespace(s)", outputs={**outputs, **waited})


def _choose(args: DeleteGeneratedNamespaces, left: Sequence[Created], own: OwnNamespaces) -> list[Created]:
    """Return the namespaces that the arguments name, or all. Raises OperationFailed for names of others."""
    names = {args.name, *args.names} - {""}
    if others := sorted(names - own.names()):
        raise ext_sdk.OperationFailed(
            f"not generated in this workdir and scope: {', '.join(others)}",
            error="expected names that create-namespace generated in this workdir and scope, found "
            f"{', '.join(others)}; left are: {listed(left) or 'none'}. delete-namespace deletes any namespace",
        )
    if names:
        return [created for created in left if created.name in names]
    return [created for created in left if args.prefix in {"", created.prefix}]


def _wait_for_all(
    pending: dict[DeletedObject, Created], own: OwnNamespaces, context: ext_sdk.Context, client: Client
) -> DeletionTimedOut | None:
    """Wait until namespaces are gone, and remove those from the list that are. Return the failure of the others."""
    left, failure = list(pending), None
    try:
        _wait_for_deletion(left, context, client)
        left = []
    except DeletionTimedOut as error:
        left, failure = error.left, error
    except KubernetesError as error:
        failure = DeletionTimedOut(error.message, error=error.error, left=left, timed_out=False, last_seen="")
    for deleted, created in pending.items():
        if deleted not in left:
            own.deleted(created.uid, gone=True)
    return failure


def _delete(
    name: str, grace: int | UnsetType, context: ext_sdk.Context, client: Client, uid: str = ""
) -> DeletedObject | None:
    """Delete a namespace, and its pods if a grace period is given. Return None if it does not exist."""
    resource = client.discovery.resource("namespaces", "v1", deadline=context.deadline)
    with error_context(f"failed to delete namespace {name}"):
        try:
            deleted = delete_one(resource, "", name, context, client, uid=uid)
        except NotFound:
            return None
    if grace is not UNSET:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": grace}
        with error_context(f"failed to delete the pods of namespace {name}"), suppress(NotFound):
            client.ask(Request("DELETE", core_path("pods", name), body=body), deadline=context.deadline)
    return deleted


def _wait_for_deletion(
    deleted: list[DeletedObject], context: ext_sdk.Context, client: Client, advice: str = KILL
) -> None:
    """Wait until namespaces are gone. Raises DeletionTimedOut, which names the remaining pods.

    Args:
        advice: for pods that have not been killed.
    """
    try:
        wait_for_deletion(deleted, context, client)
    except DeletionTimedOut as error:
        remaining, advices = "", set[str]()
        for namespace in error.left:
            path = core_path("pods", namespace.name)
            try:
                pods = items(client.request("GET", path, deadline=context.deadline, retry=False), "items")
            except KubernetesError:
                continue
            more = f" and {len(pods) - MOST_PODS} more" if len(pods) > MOST_PODS else ""
            for pod in pods:
                killed = at(pod, "metadata", "deletionGracePeriodSeconds") == 0
                advices.add(advice if not killed else HELD if at(pod, "metadata", "finalizers") else "")
            if pods:
                described = ", ".join(map(_describe_pod, pods[:MOST_PODS]))
                remaining += f"; pods left in {namespace.name}: {described}{more}"
        error.error += "".join([remaining, *sorted(advices)])
        raise


def _describe_pod(pod: Object) -> str:
    """Return the name of a pod, and the reasons why it still exists."""
    reasons = []
    finalizers = at(pod, "metadata", "finalizers")
    seconds = at(pod, "metadata", "deletionGracePeriodSeconds")
    if seconds is not None and (seconds or not finalizers):
        reasons.append(f"grace period {seconds} s")
    elif seconds is None and not text(pod, "metadata", "deletionTimestamp"):
        reasons.append("not being deleted")
    if isinstance(finalizers, list) and finalizers:
        reasons.append(f"finalizers {', '.join(map(str, finalizers))}")
    reason = f" ({'; '.join(reasons)})" if reasons else ""
    return text(pod, "metadata", "name") + reason


def _adopt(args: CreateNamespace, context: ext_sdk.Context, client: Client) -> Object | None:
    """Return the existing namespace if it is to be used; None once it is gone, so that it can be created.

    Raises:
        DeletionTimedOut: it still exists at the deadline.
    """
    path = core_path("namespaces", name=args.name)
    try:
        existing = members(client.request("GET", path, deadline=context.deadline))
    except NotFound:
        return None
    ending = bool(text(existing, "metadata", "deletionTimestamp"))
    if args.if_exists == "use" and not ending:
        if args.labels or args.annotations:
            change = {"metadata": {"labels": args.labels, "annotations": args.annotations}}
            query = [("fieldManager", MANAGER)]
            request = Request("PATCH", path, query, change, MERGE_PATCH)
            existing = members(client.ask(request, deadline=context.deadline).value)
        return existing
    resource = client.discovery.resource("namespaces", "v1", deadline=context.deadline)
    deleted: DeletedObject | None = DeletedObject(resource, "", args.name, text(existing, "metadata", "uid"))
    if args.if_exists == "replace":
        context.log.info(f"Deleting the existing namespace {args.name}")
        deleted = _delete(args.name, 0, context, client)
    if deleted is not None:
        _wait_for_deletion([deleted], context, client, KILL.replace("kills", "of delete-namespace kills"))
        context.state(OwnNamespaces).deleted(deleted.uid, gone=True)
    return None


def _create(args: CreateNamespace, context: ext_sdk.Context, client: Client) -> tuple[Object, bool]:
    """Create the namespace; with a prefix, generate names until one is unused. Return True if it existed before."""
    labels = {"app.kubernetes.io/managed-by": MANAGER} | args.labels
    query = [("fieldManager", MANAGER)]
    attempts = ATTEMPTS
    for attempt in range(1, attempts + 1):
        name = args.name
        if not name:
            # Not secrets.choice: a recorder of HTTP replays `random`, so that a recorded session has the same names.
            suffix = "".join(random.choice(ALPHABET) for _ in range(SUFFIX))  # noqa: S311
            name = f"{args.prefix[: NAME_MOST - SUFFIX - 1]}-{suffix}"
        metadata = {"name": name, "labels": labels, "annotations": args.annotations}
        body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
        try:
            with error_context(f"failed to create namespace {name}"), advising(TAKEN):
                return members(client.request("POST", PATH, query=query, body=body, deadline=context.deadline)), False
        except AlreadyExists as error:
            previous = context.state(Unfinished).take((client.server, "create-namespace", name), Created)
            if previous and args.if_exists != "replace" and namespace_exists(context, client, previous):
                path = core_path("namespaces", name=name)
                return members(client.request("GET", path, deadline=context.deadline)), previous.adopted
            if attempt == attempts or (args.name and args.if_exists == "fail" and BEING_DELETED not in error.text):
                raise
            if args.name and (existing := _adopt(args, context, client)):
                return existing, True
    raise AssertionError("the last attempt returns or raises")


GENERATED = (
    {"count": "number of deleted namespaces", "namespaces?": "their names, one per line, if there are any"}
    | DONE_IF_WAITED
    | LEFT
)
CREATED_NAMESPACE = (
    IDENTITY
    | {"namespace": "name of the namespace", "created": "`false` if it existed, with `ifExists: use`"}
    | DONE
    | LEFT
)

OPERATIONS = (
    ext_sdk.Operation(
        "create-namespace",
        create_namespace,
        {"name": "web"},
        on_invalid=note_invalid,
        outputs=CREATED_NAMESPACE | REFUSAL,
        destructive=False,
    ),
    ext_sdk.Operation(
        "delete-generated-namespaces",
        delete_generated_namespaces,
        {"prefix": "old", "wait": True},
        outputs=GENERATED,
        idempotent=True,
    ),
    ext_sdk.Operation(
        "delete-namespace",
        delete_namespace,
        {"name": "old", "ignoreNotFound": True},
        outputs={"namespace": "name of the namespace"} | DONE_IF_WAITED | LEFT | REFUSAL,
        idempotent=True,
    ),
    ext_sdk.Operation(
        "createNamespace",
        create_namespace,
        {"prefix": "eval"},
        same_as="create-namespace",
        on_invalid=note_invalid,
        outputs=CREATED_NAMESPACE | REFUSAL,
    ),
    ext_sdk.Operation(
        "deleteGeneratedNamespaces",
        delete_generated_namespaces,
        {"prefix": "eval"},
        same_as="delete-generated-namespaces",
        outputs=GENERATED,
    ),
)
