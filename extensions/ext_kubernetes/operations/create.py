"""Operations `create`, `replace`, `create-secret` and `create-configmap`."""

from __future__ import annotations

import base64
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.connection import Request
from ext_kubernetes.api.errors import AlreadyExists, Conflict, advising, error_context
from ext_kubernetes.api.paths import core_path
from ext_kubernetes.manifests.bulk import Item, Outcome, bulk_result, send_manifests, try_send
from ext_kubernetes.manifests.sources import Manifest, SourceArgs, manifests_of
from ext_kubernetes.manifests.write_options import MANAGER, DryRun, Namespace, Subresource, Validation, write_options
from ext_kubernetes.objects.fields import identity, members, text
from ext_kubernetes.objects.yaml_loader import Json
from ext_kubernetes.targets import namespace_of
from ext_sdk.files import Workdir, os_errors

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.yaml_loader import Object


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
    query = [("fieldManager", MANAGER), *write_options(dry_run=args.dry_run, strict=args.strict)]

    def created(item: Item) -> tuple[Object, str]:
        path = item.resource.path(item.namespace)
        with error_context(f"failed to create {item}"):
            answer = client.ask(Request("POST", path, query, item.object), deadline=context.deadline)
        return members(answer.value), "created"

    def send(item: Item) -> Outcome:
        return try_send(item, lambda: created(item))

    outcomes = send_manifests(_given(args, context), context, client, args.namespace, send)
    return bulk_result(outcomes, "Would create" if args.dry_run else "Created")


def replace(args: Replace, context: ext_sdk.Context) -> ext_sdk.Result:
    """Put objects in place of those of the same name, as a whole; what a manifest leaves out is gone.

    With `subresource`, such as status, nothing else of them is replaced.
    With metadata.resourceVersion it fails if the object has changed since.
    """
    client = client_for(context)
    query = [("fieldManager", MANAGER), *write_options(dry_run=args.dry_run, strict=args.strict)]

    def send(item: Item) -> Outcome:
        return try_send(item, lambda: (_replaced(item, args.subresource, query, context, client), "replaced"))

    outcomes = send_manifests(_given(args, context), context, client, args.namespace, send)
    return bulk_result(outcomes, "Would replace" if args.dry_run else "Replaced")


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
    for name, value in (("apiVersion", args.api_version), ("kind", args.kind), ("metadata", args.metadata)):
        if value in ("", UNSET):
            raise ext_sdk.InvalidArgs(name, "an object needs apiVersion, kind and metadata; this one was not given")
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
            with error_context(f"failed to replace {item}"):
                return members(client.ask(Request("PUT", path, query, body), deadline=context.deadline).value)
        except Conflict:
            if given or last:
                raise
    raise AssertionError("the last attempt returns or raises")


_VERSION = ("metadata", "resourceVersion")
MOST_BYTES = 1024 * 1024  # what the server takes for all data of an object
NAME = "^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$"


class DataArgs(ext_sdk.Args):
    """Keys and values."""

    name: Annotated[str, Meta(description="Of the object", pattern=NAME)]
    literals: Annotated[dict[str, str], Meta(description="Values by key")] = field(default_factory=dict)
    files: Annotated[
        dict[str, str] | list[str],
        Meta(description="Files of the workdir by key, or a list of them, whose names are the keys"),
    ] = field(default_factory=dict)
    namespace: Annotated[str, Meta(description="Where; by default that of create-namespace, or the configured one")] = (
        ""
    )
    labels: dict[str, str] = field(default_factory=dict)
    replace: Annotated[bool, Meta(description="Change one that is there, in place of a failure")] = False
    dry_run: DryRun = False
    timeout: ext_sdk.Duration = ext_sdk.Duration.parse("25s")


class CreateSecret(DataArgs):
    """What the Secret is to hold."""

    type: Annotated[str, Meta(description="Such as kubernetes.io/tls or kubernetes.io/dockerconfigjson")] = "Opaque"


class CreateConfigMap(DataArgs):
    """What the ConfigMap is to hold."""


def create_secret(args: CreateSecret, context: ext_sdk.Context) -> ext_sdk.Result:
    """Create a Secret from literals and files. The values are hidden in all that is written."""
    data: dict[str, str] = {}
    for key, value in _data(args, context).items():
        data[key] = base64.b64encode(value).decode()
        context.secrets.add(f"secret.{key}", value.decode(errors="replace"))
    return _created(args, {"kind": "Secret", "type": args.type, "data": data}, "secrets", context)


def create_configmap(args: CreateConfigMap, context: ext_sdk.Context) -> ext_sdk.Result:
    """Create a ConfigMap from literals and files; a file that is no text becomes binaryData."""
    text: dict[str, str] = {}
    binary: dict[str, str] = {}
    for key, value in _data(args, context).items():
        try:
            text[key] = value.decode()
        except UnicodeDecodeError:
            binary[key] = base64.b64encode(value).decode()
    content: Object = {"kind": "ConfigMap", "data": text}
    if binary:
        content["binaryData"] = binary
    return _created(args, content, "configmaps", context)


def _data(args: DataArgs, context: ext_sdk.Context) -> dict[str, bytes]:
    data = {key: value.encode() for key, value in args.literals.items()}
    files = args.files if isinstance(args.files, dict) else {PurePosixPath(path).name: path for path in args.files}
    if isinstance(args.files, list) and len(files) < len(args.files):
        raise ext_sdk.InvalidArgs("files", "two files have the same name: give them keys")
    for key, path in files.items():
        if key in data:
            raise ext_sdk.InvalidArgs("files", f"the key {key!r} is among the literals already")
        with os_errors("read", path):
            data[key] = Workdir(context.workdir).read(path, limit=MOST_BYTES)
    return data


def _created(args: DataArgs, content: Object, plural: str, context: ext_sdk.Context) -> ext_sdk.Result:
    client = client_for(context)
    namespace = namespace_of(context, client, args.namespace)
    metadata = {"name": args.name, "namespace": namespace, "labels": args.labels}
    body: Object = {"apiVersion": "v1", "metadata": metadata, **content}
    path = core_path(plural, namespace)
    query = [("fieldManager", MANAGER), *write_options(dry_run=args.dry_run)]
    kind, word = content["kind"], "Would create" if args.dry_run else "Created"
    with error_context(f"failed to create {kind}/{args.name}"), advising("Choose another name, or set `replace: true`"):
        try:
            answer = client.ask(Request("POST", path, query, body), deadline=context.deadline)
        except AlreadyExists:
            if not args.replace:
                raise
            word = "Would replace" if args.dry_run else "Replaced"
            path = core_path(plural, namespace, args.name)
            answer = client.ask(Request("PUT", path, query, body), deadline=context.deadline)
    return ext_sdk.Result.ok(f"{word} {kind}/{args.name}", outputs=identity(members(answer.value)))


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
    ext_sdk.Operation("create-secret", create_secret, {"name": "login", "literals": {"user": "ada"}}),
    ext_sdk.Operation("create-configmap", create_configmap, {"name": "texts", "literals": {"greeting": "hello"}}),
)
