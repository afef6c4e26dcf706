"""`create` and `replace`: new objects, and objects as a whole in place of what is there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

import ext_sdk

from .apply import MANAGER, DryRun, Namespace, Subresource, Validation, options
from .client import Request, client_for
from .errors import Conflict, doing
from .manifests import Json
from .objects import members, text
from .sending import Item, Outcome, attempt, concluded, send_all
from .sources import Manifest, SourceArgs, manifests_of

if TYPE_CHECKING:
    from .client import Client
    from .manifests import Object

ATTEMPTS = 5  # to replace an object that others change meanwhile
Member = Json | UnsetType


class ObjectArgs(SourceArgs):
    """Manifests, or one object written out: its members beside each other."""

    api_version: Annotated[str, Meta(description="An object in place of a manifest: v1, apps/v1")] = ""
    kind: Annotated[str, Meta(description="Of that object: ConfigMap")] = ""
    metadata: Annotated[
        dict[str, Json] | UnsetType, Meta(description="Of that object: name or generateName, namespace, labels, …")
    ] = UNSET
    spec: Annotated[Member, Meta(description="Of that object")] = UNSET
    status: Member = UNSET
    data: Annotated[Member, Meta(description="Of a ConfigMap or a Secret")] = UNSET
    string_data: Member = UNSET
    binary_data: Member = UNSET
    immutable: Member = UNSET
    type: Member = UNSET
    rules: Member = UNSET
    role_ref: Member = UNSET
    subjects: Member = UNSET
    aggregation_rule: Member = UNSET
    subsets: Member = UNSET
    address_type: Member = UNSET
    endpoints: Member = UNSET
    ports: Member = UNSET
    provisioner: Member = UNSET
    parameters: Member = UNSET
    reclaim_policy: Member = UNSET
    mount_options: Member = UNSET
    allow_volume_expansion: Member = UNSET
    volume_binding_mode: Member = UNSET
    webhooks: Member = UNSET
    value: Member = UNSET
    global_default: Member = UNSET
    preemption_policy: Member = UNSET
    description: Member = UNSET
    handler: Member = UNSET
    overhead: Member = UNSET
    scheduling: Member = UNSET
    secrets: Member = UNSET
    image_pull_secrets: Member = UNSET
    automount_service_account_token: Member = UNSET
    template: Member = UNSET


class Create(ObjectArgs):
    """What to create."""

    namespace: Namespace = ""
    dry_run: DryRun = False
    strict: Validation = True


class Replace(ObjectArgs):
    """What to put in place of what is there."""

    namespace: Namespace = ""
    subresource: Subresource = ""
    dry_run: DryRun = False
    strict: Validation = True


SOURCES = ("file", "manifest", "url", "kustomize")
NO_MEMBERS = frozenset({*SOURCES, "recursive", "namespace", "subresource", "dryRun", "strict"})


def create(args: Create, context: ext_sdk.Context) -> ext_sdk.Result:
    """Create objects; one that is there already is a failure.

    From manifests, or of one object whose members (apiVersion, kind, metadata, spec, data, …) are the arguments.
    """
    client = client_for(context)
    query = [("fieldManager", MANAGER), *options(dry_run=args.dry_run, strict=args.strict)]

    def created(item: Item) -> tuple[Object, str]:
        path = item.resource.path(item.namespace)
        with doing(f"failed to create {item}"):
            answer = client.ask(Request("POST", path, query, item.object), deadline=context.deadline)
        return members(answer.value), "created"

    def send(item: Item) -> Outcome:
        return attempt(item, lambda: created(item))

    outcomes = send_all(_given(args, context), context, client, args.namespace, send)
    return concluded(outcomes, "Would create" if args.dry_run else "Created")


def replace(args: Replace, context: ext_sdk.Context) -> ext_sdk.Result:
    """Put objects in place of those of the same name, as a whole; what a manifest leaves out is gone.

    With `subresource`, such as status, nothing else of them is replaced.
    With metadata.resourceVersion it fails if the object has changed since.
    """
    client = client_for(context)
    query = [("fieldManager", MANAGER), *options(dry_run=args.dry_run, strict=args.strict)]

    def send(item: Item) -> Outcome:
        return attempt(item, lambda: (_replaced(item, args.subresource, query, context, client), "replaced"))

    outcomes = send_all(_given(args, context), context, client, args.namespace, send)
    return concluded(outcomes, "Would replace" if args.dry_run else "Replaced")


def _given(args: ObjectArgs, context: ext_sdk.Context) -> list[Manifest]:
    """The object that the arguments are, or those of the manifests that they name."""
    others = [name for name in SOURCES if getattr(args, name) not in ("", UNSET)]
    if not (args.api_version or args.kind or args.metadata is not UNSET):
        if not others:
            told = f"expected apiVersion, kind and metadata of an object, or one of {', '.join(SOURCES)}; found none"
            raise ext_sdk.InvalidArgs("apiVersion", told)
        return manifests_of(args, context)
    if others:
        raise ext_sdk.InvalidArgs(others[0], "expected a manifest or an object's members, found both")
    for field, value in (("apiVersion", args.api_version), ("kind", args.kind), ("metadata", args.metadata)):
        if value in ("", UNSET):
            raise ext_sdk.InvalidArgs(field, "an object needs apiVersion, kind and metadata; this one was not given")
    built = msgspec.to_builtins(args)
    return [Manifest({key: value for key, value in built.items() if key not in NO_MEMBERS}, "args")]


def _replaced(
    item: Item, subresource: str, query: list[tuple[str, str]], context: ext_sdk.Context, client: Client
) -> Object:
    """Replace one object; some kinds take a new one only with the version that it replaces."""
    if not item.name:
        raise ext_sdk.OperationFailed(f"{item}: replace needs metadata.name")
    path = item.path(subresource)
    given = text(item.object, "metadata", "resourceVersion")
    for last in (*(False,) * (ATTEMPTS - 1), True):
        version = given or text(client.request("GET", path, deadline=context.deadline), *_VERSION)
        body = item.object | {"metadata": members(item.object, "metadata") | {"resourceVersion": version}}
        try:
            with doing(f"failed to replace {item}"):
                return members(client.ask(Request("PUT", path, query, body), deadline=context.deadline).value)
        except Conflict:
            if given or last:
                raise
    raise AssertionError("the last attempt returns or raises")


_VERSION = ("metadata", "resourceVersion")

OPERATIONS = (
    ext_sdk.Operation(
        "create",
        create,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flags"}, "data": {"fast": "true"}},
    ),
    ext_sdk.Operation(
        "replace",
        replace,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flags"}, "data": {"slow": "true"}},
    ),
)
