"""Namespaces that a task makes: it owns them, uses them by default, and deletes them, and nobody else's."""

from __future__ import annotations

import random
import string
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.connection import Request
from ext_kubernetes.api.discovery import Resource
from ext_kubernetes.api.errors import AlreadyExists, KubernetesError, NotFound, advising, error_context
from ext_kubernetes.api.paths import core_path
from ext_kubernetes.manifests.write_options import MANAGER
from ext_kubernetes.objects.fields import at, identity, items, members, text
from ext_kubernetes.own_namespaces import existence, listed, own_namespaces
from ext_kubernetes.polling import Verdict, wait_until
from ext_kubernetes.targets import Target
from ext_kubernetes.waiting.deletion import DeletedObject, DeletionTimedOut, delete_one, wait_for_deletion
from ext_kubernetes.waiting.informer import subscribe

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.own_namespaces import Created, OwnNamespaces


PATH = core_path("namespaces")
ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
SUFFIX = 8  # characters
ALPHABET = string.ascii_lowercase + string.digits
ATTEMPTS = 5  # to find a name that is free
ACCOUNT_SECONDS = 2.0  # for the account that pods run under; a server without controllers never makes it
NAME_MOST = 63
MOST_PODS = 10  # that are named in a failure

TAKEN = (
    "Choose another `name`, or a `prefix` in its place, from which an unused name is generated; delete-namespace "
    "deletes the one that exists"
)

GracePeriod = Annotated[
    Annotated[int, Meta(ge=0)] | UnsetType,
    Meta(
        description="Seconds for its pods to end, in place of their own; 0: at once. The pods are deleted right after "
        "the namespace, so that none is replaced"
    ),
]


class CreateNamespace(ext_sdk.Args, one_of=("name", "prefix")):
    """What to call it."""

    name: Annotated[str, Meta(description="The name")] = ""
    prefix: Annotated[
        str, Meta(description=f"In place of `name`: a new name, PREFIX-{'x' * SUFFIX}, for delete-generated-namespaces")
    ] = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    use: Annotated[
        bool,
        Meta(
            description="Operations of this workdir and scope that name no namespace use it. They fail while several "
            "such namespaces are there, or if this operation failed"
        ),
    ] = True
    timeout: ext_sdk.Duration = ext_sdk.Duration.parse("25s")


class DeleteNamespace(ext_sdk.Args):
    """Which one."""

    name: Annotated[
        str,
        Meta(
            description="The name; by default the one that create-namespace made in this workdir and scope, if it made "
            "only one and did not fail since"
        ),
    ] = ""
    ignore_not_found: Annotated[bool, Meta(description="A success if there is none")] = False
    grace_period: GracePeriod = UNSET
    wait: Annotated[bool, Meta(description="Until it is gone, with all that is in it")] = True
    timeout: Annotated[ext_sdk.Duration, Meta(description="For the wait")] = ext_sdk.Duration.parse("25s")


class DeleteGeneratedNamespaces(ext_sdk.Args):
    """Names or prefix of the namespaces, and how they are deleted."""

    name: Annotated[str, Meta(description="One of them, such as ${ns.name}")] = ""
    names: Annotated[list[str], Meta(description="Several of them")] = field(default_factory=list)
    prefix: Annotated[str, Meta(description="In place of names: all that create-namespace made with this prefix")] = ""
    grace_period: GracePeriod = UNSET
    wait: Annotated[bool, Meta(description="Until they are gone, with all that is in them")] = False
    timeout: Annotated[ext_sdk.Duration, Meta(description="For the wait")] = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if self.prefix and (self.name or self.names):
            raise ValueError("expected names or a `prefix`, found both")


def create_namespace(args: CreateNamespace, context: ext_sdk.Context) -> ext_sdk.Result:
    """Make a namespace, of a given name or of a new one; operations of this workdir and scope use it from then on.

    It waits a moment for the account that pods run under, so that pods can be made at once. If it fails, or if several
    are there, operations that name no namespace fail instead of using another task's or `default`.
    """
    own = own_namespaces(context)
    try:
        client = client_for(context)
        context.log.info(f"Creating namespace {args.name or args.prefix + '-…'}")
        made = _made(args, context, client)
    except Exception as error:
        own.failed(str(error), used=args.use)
        raise
    name = text(made, "metadata", "name")
    own.created(name, text(made, "metadata", "uid"), prefix=args.prefix, used=args.use)
    _await_account(name, context, client)
    outputs = {**identity(made), "namespace": name}
    return ext_sdk.Result.ok(f"Created namespace {name}", outputs=outputs)


def note_invalid(refusal: ext_sdk.InvalidArgs, context: ext_sdk.Context) -> None:
    """Note a create-namespace whose arguments can't be used, such as one with an unknown `${NAME.key}`."""
    own_namespaces(context).failed(str(refusal), used=True)


def delete_namespace(args: DeleteNamespace, context: ext_sdk.Context) -> ext_sdk.Result:
    """Delete a namespace and all that is in it, and wait until it is gone.

    A failure names the pods that hold it.
    """
    client = client_for(context)
    own = own_namespaces(context)
    if not (name := args.name):
        if (only := own.certain(own.live(), existence(context, client))) is None:
            return _missing("no namespace to delete: create-namespace left none in this workdir and scope", "", args)
        name = only.name
    gone = _deleted(name, args.grace_period, context, client)
    for created in own.live():
        if created.name == name:  # also one that was deleted before
            own.deleted(created.uid, gone=False)
    if gone is not None and args.wait:
        _await_absence([gone], context, client)
    for created in own.generated():
        if created.name == name:
            own.deleted(created.uid, gone=True)
    if gone is None:
        return _missing(f"namespace {name} not found", name, args)
    return ext_sdk.Result.ok(f"Deleted namespace {name}", outputs={"namespace": name})


def _missing(told: str, name: str, args: DeleteNamespace) -> ext_sdk.Result:
    outputs = {"namespace": name}
    if args.ignore_not_found:
        return ext_sdk.Result.ok(f"{told} (ignored)", outputs=outputs)
    return ext_sdk.Result.failed(told, error=f"{told}; `ignoreNotFound: true` makes that a success", outputs=outputs)


def delete_generated_namespaces(args: DeleteGeneratedNamespaces, context: ext_sdk.Context) -> ext_sdk.Result:
    """Delete namespaces with generated names that create-namespace made in this workdir and scope.

    Without names and prefix, it deletes the only one; if several are left, or another create-namespace failed, it
    deletes none and lists them: they may be another task's. One whose deletion fails stays on the list, for another
    try; with `wait`, so does one that is not gone in time.
    """
    own = own_namespaces(context)
    left = own.generated()
    if not left:
        own.cleaned_up()
    wanted = _wanted(args, left, own)
    client = client_for(context) if wanted else None
    if client is not None and not (args.name or args.names or args.prefix):
        only = own.certain(wanted, existence(context, client))
        wanted = [only] if only else []
    if client is None or not wanted:
        return ext_sdk.Result.ok("No generated namespaces to delete", outputs={"count": 0})
    failures: list[str] = []
    going: dict[DeletedObject, Created] = {}
    for created in wanted:
        try:
            gone = _deleted(created.name, args.grace_period, context, client, uid=created.uid)
        except KubernetesError as error:
            failures.append(f"{created.name}: {error.error}")
            continue
        own.deleted(created.uid, gone=not (gone and args.wait))
        if gone and args.wait:
            going[gone] = created
    failures += _awaited(going, own, context, client)
    done = [created.name for created in wanted if created not in own.generated()]
    outputs: dict[str, str | int | bool] = {"count": len(done), "namespaces": "\n".join(done)}
    if failures:
        raise ext_sdk.OperationFailed(
            f"deleted {len(done)} of {len(wanted)} generated namespaces",
            error="failed to delete namespaces, which stay on the list: " + "; ".join(failures),
            outputs=outputs,
        )
    return ext_sdk.Result.ok(f"Deleted {len(wanted)} generated namespace(s)", outputs=outputs)


def _wanted(args: DeleteGeneratedNamespaces, left: Sequence[Created], own: OwnNamespaces) -> list[Created]:
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


def _awaited(
    going: dict[DeletedObject, Created], own: OwnNamespaces, context: ext_sdk.Context, client: Client
) -> list[str]:
    """Wait until namespaces are gone, and take those off the list that are. Returns why others are not."""
    left, failures = list(going), []
    try:
        _await_absence(left, context, client)
        left = []
    except DeletionTimedOut as error:
        left, failures = error.left, [error.error]
    except KubernetesError as error:
        failures = [error.error]
    for gone, created in going.items():
        if gone not in left:
            own.deleted(created.uid, gone=True)
    return failures


def _deleted(
    name: str, grace: int | UnsetType, context: ext_sdk.Context, client: Client, uid: str = ""
) -> DeletedObject | None:
    """Delete a namespace, and its pods with a grace period if one is given; None if it does not exist."""
    resource = client.discovery.resource("namespaces", "v1", deadline=context.deadline)
    with error_context(f"failed to delete namespace {name}"):
        try:
            gone = delete_one(resource, "", name, context, client, uid=uid)
        except NotFound:
            return None
    if grace is not UNSET:
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": grace}
        with error_context(f"failed to delete the pods of namespace {name}"), suppress(NotFound):
            client.ask(Request("DELETE", core_path("pods", name), body=body), deadline=context.deadline)
    return gone


def _await_absence(gone: list[DeletedObject], context: ext_sdk.Context, client: Client) -> None:
    """Wait until namespaces are gone. Raises StillThere, which names the pods that hold them."""
    try:
        wait_for_deletion(gone, context, client)
    except DeletionTimedOut as error:
        held = [told for one in error.left if (told := _pods_of(one.name, context, client))]
        if held:
            error.error += f"; {'; '.join(held)}. `gracePeriod: 0` ends pods at once"
        raise


def _pods_of(namespace: str, context: ext_sdk.Context, client: Client) -> str:
    """Return which pods are left in a namespace; "" if there are none, or they can't be listed."""
    try:
        found = items(
            client.request("GET", core_path("pods", namespace), deadline=context.deadline, retry=False), "items"
        )
    except KubernetesError:
        return ""
    more = f" and {len(found) - MOST_PODS} more" if len(found) > MOST_PODS else ""
    return f"pods left in {namespace}: {', '.join(map(_pod, found[:MOST_PODS]))}{more}" if found else ""


def _pod(pod: Object) -> str:
    """Return the name of a pod, and what it takes to end it."""
    told = []
    if (seconds := at(pod, "metadata", "deletionGracePeriodSeconds")) is not None:
        told.append(f"grace period {seconds} s")
    elif not text(pod, "metadata", "deletionTimestamp"):
        told.append("not being deleted")
    finalizers = at(pod, "metadata", "finalizers")
    if isinstance(finalizers, list) and finalizers:
        told.append(f"finalizers {', '.join(map(str, finalizers))}")
    about = f" ({'; '.join(told)})" if told else ""
    return f"{text(pod, 'metadata', 'name')}{about}"


def _made(args: CreateNamespace, context: ext_sdk.Context, client: Client) -> Object:
    last = args.prefix == ""
    for number in range(ATTEMPTS):
        name = args.name or _generated(args.prefix)
        try:
            with error_context(f"failed to create namespace {name}"), advising(TAKEN):
                return _posted(name, args, context, client)
        except AlreadyExists:
            if last or number == ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


def _posted(name: str, args: CreateNamespace, context: ext_sdk.Context, client: Client) -> Object:
    labels = {"app.kubernetes.io/managed-by": MANAGER} | args.labels
    metadata = {"name": name, "labels": labels, "annotations": args.annotations}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
    query = [("fieldManager", MANAGER)]
    return members(client.request("POST", PATH, query=query, body=body, deadline=context.deadline))


def _generated(prefix: str) -> str:
    # No secret, and a recorder of HTTP can bring chance of this kind back: a recorded session then has the same names.
    suffix = "".join(random.choice(ALPHABET) for _ in range(SUFFIX))  # noqa: S311
    return f"{prefix[: NAME_MOST - SUFFIX - 1]}-{suffix}"


def _await_account(namespace: str, context: ext_sdk.Context, client: Client) -> None:
    """Until pods can be made in it, or a moment; who may not look goes on."""
    deadline = context.deadline.limit(ACCOUNT_SECONDS)
    with subscribe(Target(ACCOUNTS, namespace, "default"), context, client) as subscription, suppress(KubernetesError):
        wait_until(
            lambda age: Verdict(done=bool(subscription.see(age, deadline)), status=""),
            deadline,
            lambda seconds: subscription.wait(seconds, deadline),
            pace=subscription.pace,
        )


OPERATIONS = (
    ext_sdk.Operation("create-namespace", create_namespace, {"name": "web"}, on_invalid=note_invalid),
    ext_sdk.Operation("delete-generated-namespaces", delete_generated_namespaces, {"prefix": "old", "wait": True}),
    ext_sdk.Operation("delete-namespace", delete_namespace, {"name": "old", "ignoreNotFound": True}),
)
