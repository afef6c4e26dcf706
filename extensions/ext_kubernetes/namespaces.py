"""Namespaces that a task makes: it owns them, uses them by default, and deletes them, and nobody else's."""

from __future__ import annotations

import random
import string
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, field

import ext_sdk

from .absence import Gone, StillThere, await_absence
from .apply import MANAGER
from .client import client_for
from .delete import delete_one
from .discovery import Resource
from .errors import AlreadyExists, KubernetesError, NotFound, doing
from .hub import subscribe
from .naming import Target, current_of
from .objects import identity, members, text
from .paths import core_path
from .waiting import Verdict, wait_until

if TYPE_CHECKING:
    from .client import Client
    from .manifests import Object

PATH = core_path("namespaces")
ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts", namespaced=True)
SUFFIX = 8  # characters
ALPHABET = string.ascii_lowercase + string.digits
ATTEMPTS = 5  # to find a name that is free
ACCOUNT_SECONDS = 2.0  # for the account that pods run under; a server without controllers never makes it
NAME_MOST = 63


class CreateNamespace(ext_sdk.Args):
    """What to call it."""

    name: Annotated[str, Meta(description="The name")] = ""
    prefix: Annotated[
        str, Meta(description=f"In place of `name`: a new name, PREFIX-{'x' * SUFFIX}, for delete-generated-namespaces")
    ] = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    use: Annotated[bool, Meta(description="Operations of this workdir use it where they name none")] = True
    timeout: ext_sdk.Duration = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        if bool(self.name) == bool(self.prefix):
            raise ValueError("expected `name` or `prefix`, found " + ("both" if self.name else "none"))


class DeleteNamespace(ext_sdk.Args):
    """Which one."""

    name: Annotated[str, Meta(description="The name; by default the one that create-namespace made last")] = ""
    ignore_not_found: Annotated[bool, Meta(description="A success if there is none")] = False
    wait: Annotated[bool, Meta(description="Until it is gone, with all that is in it")] = True
    timeout: Annotated[ext_sdk.Duration, Meta(description="For the wait")] = ext_sdk.Duration.parse("25s")


class DeleteGeneratedNamespaces(ext_sdk.Args):
    """How."""

    wait: Annotated[bool, Meta(description="Until they are gone, with all that is in them")] = False
    timeout: Annotated[ext_sdk.Duration, Meta(description="For the wait")] = ext_sdk.Duration.parse("25s")


class Made(NamedTuple):
    """A namespace that was generated: who makes one of the same name later makes another one."""

    name: str
    uid: str


class Generated:
    """Those of one workdir that are still to be deleted; safe in several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: list[Made] = []

    def add(self, made: Made) -> None:
        """It was made."""
        with self._lock:
            self._made.append(made)

    def remove(self, made: Made) -> None:
        """It is gone, or going."""
        with self._lock:
            self._made = [one for one in self._made if one != made]

    def all(self) -> list[Made]:
        """In the order of their making."""
        with self._lock:
            return list(self._made)


def create_namespace(args: CreateNamespace, context: ext_sdk.Context) -> ext_sdk.Result:
    """Make a namespace, of a given name or of a new one; operations of this workdir use it from then on.

    It waits a moment for the account that pods run under, so that pods can be made at once.
    """
    client = client_for(context)
    context.log.info(f"Creating namespace {args.name or args.prefix + '-…'}")
    made = _made(args, context, client)
    name = text(made, "metadata", "name")
    if args.prefix:
        context.state(Generated).add(Made(name, text(made, "metadata", "uid")))
    if args.use:
        current_of(context).enter(name)
    _await_account(name, context, client)
    outputs = {**identity(made), "namespace": name}
    return ext_sdk.Result.ok(f"Created namespace {name}", outputs=outputs)


def delete_namespace(args: DeleteNamespace, context: ext_sdk.Context) -> ext_sdk.Result:
    """Delete a namespace and all that is in it, and wait until it is gone."""
    client = client_for(context)
    name = args.name or current_of(context).namespace
    if not name:
        raise ext_sdk.InvalidArgs("name", "this task has made no namespace, so the one to delete has to be named")
    gone = _deleted(name, context, client)
    current_of(context).leave(name)
    if gone is not None and args.wait:
        await_absence([gone], context, client)
    for made in context.state(Generated).all():
        if made.name == name:
            context.state(Generated).remove(made)
    outputs = {"namespace": name}
    if gone is None:
        text_ = f"namespace {name} not found"
        if args.ignore_not_found:
            return ext_sdk.Result.ok(f"{text_} (ignored)", outputs=outputs)
        return ext_sdk.Result.failed(text_, error=f"{text_}; `ignoreNotFound: true` makes that a success")
    return ext_sdk.Result.ok(f"Deleted namespace {name}", outputs=outputs)


def delete_generated_namespaces(args: DeleteGeneratedNamespaces, context: ext_sdk.Context) -> ext_sdk.Result:
    """Delete the namespaces with generated names that this workdir made, and no others.

    One whose deletion fails stays on the list, for another try; with `wait`, so does one that is not gone in time.
    """
    generated = context.state(Generated)
    waiting = generated.all()
    if not waiting:
        return ext_sdk.Result.ok("No generated namespaces to delete", outputs={"count": 0})
    client = client_for(context)
    failures: list[str] = []
    going: dict[Gone, Made] = {}
    for made in waiting:
        try:
            gone = _deleted(made.name, context, client, uid=made.uid)
        except KubernetesError as error:
            failures.append(f"{made.name}: {error.error}")
            continue
        current_of(context).leave(made.name)
        if gone and args.wait:
            going[gone] = made
        else:
            generated.remove(made)
    failures += _awaited(going, generated, context, client)
    done = [made.name for made in waiting if made not in generated.all()]
    outputs: dict[str, str | int | bool] = {"count": len(done), "namespaces": "\n".join(done)}
    if failures:
        raise ext_sdk.OperationFailed(
            f"deleted {len(done)} of {len(waiting)} generated namespaces",
            error="failed to delete namespaces, which stay on the list: " + "; ".join(failures),
            outputs=outputs,
        )
    return ext_sdk.Result.ok(f"Deleted {len(waiting)} generated namespace(s)", outputs=outputs)


def _awaited(going: dict[Gone, Made], generated: Generated, context: ext_sdk.Context, client: Client) -> list[str]:
    """Wait until namespaces are gone, and take those off the list that are. Returns why others are not."""
    left, failures = list(going), []
    try:
        await_absence(left, context, client)
        left = []
    except StillThere as error:
        left, failures = error.left, [error.error]
    except KubernetesError as error:
        failures = [error.error]
    for gone, made in going.items():
        if gone not in left:
            generated.remove(made)
    return failures


def _deleted(name: str, context: ext_sdk.Context, client: Client, uid: str = "") -> Gone | None:
    resource = client.discovery.resource("namespaces", "v1", deadline=context.deadline)
    with doing(f"failed to delete namespace {name}"):
        try:
            return delete_one(resource, "", name, context, client, uid=uid)
        except NotFound:
            return None


def _made(args: CreateNamespace, context: ext_sdk.Context, client: Client) -> Object:
    last = args.prefix == ""
    for number in range(ATTEMPTS):
        name = args.name or _generated(args.prefix)
        try:
            with doing(f"failed to create namespace {name}"):
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
    ext_sdk.Operation("create-namespace", create_namespace, {"prefix": "eval"}),
    ext_sdk.Operation("delete-generated-namespaces", delete_generated_namespaces, {"wait": True}),
    ext_sdk.Operation("delete-namespace", delete_namespace, {"name": "web", "ignoreNotFound": True}),
)
