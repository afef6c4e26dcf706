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
from ext_kubernetes.api.discovery import core_path
from ext_kubernetes.api.errors import AlreadyExists, Conflict, advising, error_context
from ext_kubernetes.config import ClusterArgs, ExpectedRefusal
from ext_kubernetes.manifests.bulk import Item, Outcome, bulk_result, send_manifests, try_send
from ext_kubernetes.manifests.sources import SOURCES, Manifest, SourceArgs, manifests_of
from ext_kubernetes.manifests.write import MANAGER, DryRun, Namespace, Subresource, Validation, write_options
from ext_kubernetes.objects.fields import identity, members, text
from ext_kubernetes.objects.yaml_loader import Json
from ext_kubernetes.targets import TimeLimit, namespace_of
from ext_sdk.files import Workdir, os_errors

from . import IDENTITY, REFUSAL, SENT

if TYPE_CHECKING:
    from ext_kubernetes.objects.yaml_loader import Object


ATTEMPTS = 5  # to replace an object that other clients change at the same time
Member = Json | UnsetType


class ObjectArgs(SourceArgs):
    """Manifests, or a single object whose members are arguments."""

    api_version: Annotated[str, Meta(description="apiVersion of a single object: v1, apps/v1; replaces a manifest")] = (
        ""
    )
    kind: Annotated[str, Meta(description="Kind of that object: ConfigMap")] = ""
    metadata: Annotated[
        dict[str, Json] | UnsetType,
        Meta(description="Metadata of that object: name or generateName, namespace, labels, …"),
    ] = UNSET
    spec: Annotated[Member, Meta(description="Spec of that object")] = UNSET
    status: Annotated[Member, Meta(description="Status of that object")] = (
        UNSET  # this and the following: top-level fields of built-in kinds
    )
    data: Annotated[Member, Meta(description="Data of a ConfigMap or a Secret")] = UNSET
    string_data: Annotated[Member, Meta(description="Secret: values as text")] = UNSET
    binary_data: Annotated[Member, Meta(description="ConfigMap: values in base64")] = UNSET
    immutable: Annotated[Member, Meta(description="ConfigMap, Secret: refuse changes")] = UNSET
    type: Annotated[Member, Meta(description="Secret: its type, such as Opaque")] = UNSET
    rules: Annotated[Member, Meta(description="Role, ClusterRole: the permissions")] = UNSET
    role_ref: Annotated[Member, Meta(description="RoleBinding: the role")] = UNSET
    subjects: Annotated[Member, Meta(description="RoleBinding: users, groups and service accounts")] = UNSET
    aggregation_rule: Annotated[Member, Meta(description="ClusterRole: labels of the roles that it combines")] = UNSET
    subsets: Annotated[Member, Meta(description="Endpoints: addresses and ports")] = UNSET
    address_type: Annotated[Member, Meta(description="EndpointSlice: IPv4, IPv6 or FQDN")] = UNSET
    endpoints: Annotated[Member, Meta(description="EndpointSlice: the endpoints")] = UNSET
    ports: Annotated[Member, Meta(description="EndpointSlice: the ports")] = UNSET
    provisioner: Annotated[Member, Meta(description="StorageClass: the provisioner")] = UNSET
    parameters: Annotated[Member, Meta(description="StorageClass: parameters of the provisioner")] = UNSET
    reclaim_policy: Annotated[Member, Meta(description="StorageClass: Delete or Retain")] = UNSET
    mount_options: Annotated[Member, Meta(description="StorageClass: mount options")] = UNSET
    allow_volume_expansion: Annotated[Member, Meta(description="StorageClass: volumes may grow")] = UNSET
    volume_binding_mode: Annotated[Member, Meta(description="StorageClass: Immediate or WaitForFirstConsumer")] = UNSET
    webhooks: Annotated[Member, Meta(description="Webhook configuration: the webhooks")] = UNSET
    value: Annotated[Member, Meta(description="PriorityClass: the priority")] = UNSET
    global_default: Annotated[Member, Meta(description="PriorityClass: the default of pods")] = UNSET
    preemption_policy: Annotated[Member, Meta(description="PriorityClass: PreemptLowerPriority or Never")] = UNSET
    description: Annotated[Member, Meta(description="PriorityClass: its purpose")] = UNSET
    handler: Annotated[Member, Meta(description="RuntimeClass: name of the handler")] = UNSET
    overhead: Annotated[Member, Meta(description="RuntimeClass: additional resources of a pod")] = UNSET
    scheduling: Annotated[Member, Meta(description="RuntimeClass: nodes that support it")] = UNSET
    secrets: Annotated[Member, Meta(description="ServiceAccount: secrets of its pods")] = UNSET
    image_pull_secrets: Annotated[Member, Meta(description="ServiceAccount: secrets for image pulls")] = UNSET
    automount_service_account_token: Annotated[Member, Meta(description="ServiceAccount: mount its token in pods")] = (
        UNSET
    )
    template: Annotated[Member, Meta(description="PodTemplate: the pod")] = UNSET


class Create(ObjectArgs):
    """Arguments of `create`."""

    namespace: Namespace = ""
    expect: ExpectedRefusal = UNSET
    dry_run: DryRun = False
    strict: Validation = True


class Replace(ObjectArgs):
    """Arguments of `replace`."""

    namespace: Namespace = ""
    subresource: Subresource = ""
    expect: ExpectedRefusal = UNSET
    dry_run: DryRun = False
    strict: Validation = True


NO_MEMBERS = frozenset(
    {
        *(*ClusterArgs.__struct_encode_fields__, *SOURCES),
        *("recursive", "expand", "namespace", "subresource", "expect", "dryRun", "strict"),
    }
)


def create(args: Create, context: ext_sdk.Context) -> ext_sdk.Result:
    """Create objects; an object that already exists is a failure.

    The objects come from manifests, or the members of a single object (apiVersion, kind, metadata, spec, …) are the
    arguments.
    """
    client = client_for(context, args)
    query = [("fieldManager", MANAGER), *write_options(dry_run=args.dry_run, strict=args.strict)]

    def post(item: Item) -> tuple[Object, str]:
        path = item.resource.path(item.namespace)
        with error_context(f"failed to create {item}"):
            response = client.ask(Request("POST", path, query, item.object), deadline=context.deadline)
        return members(response.value), "created"

    def send(item: Item) -> Outcome:
        return try_send(item, lambda: post(item))

    outcomes = send_manifests(_manifests(args, context), context, client, args.namespace, send)
    return bulk_result(outcomes, "Would create" if args.dry_run else "Created")


def replace(args: Replace, context: ext_sdk.Context) -> ext_sdk.Result:
    """Replace existing objects entirely; fields missing from the manifest are removed.

    With `subresource`, such as status, only that part is replaced. If the manifest has metadata.resourceVersion, the
    operation fails for an object that has changed since.
    """
    client = client_for(context, args)
    query = [("fieldManager", MANAGER), *write_options(dry_run=args.dry_run, strict=args.strict)]

    def put(item: Item) -> tuple[Object, str]:
        if not item.name:
            raise ext_sdk.OperationFailed(f"{item}: replace requires metadata.name")
        path, metadata = item.path(args.subresource), members(item.object, "metadata")
        for attempt in range(1, ATTEMPTS + 1):
            # Some kinds can only be replaced with the resourceVersion of the present object.
            version = metadata.get("resourceVersion") or text(
                client.request("GET", path, deadline=context.deadline), "metadata", "resourceVersion"
            )
            body = item.object | {"metadata": metadata | {"resourceVersion": version}}
            try:
                with error_context(f"failed to replace {item}"):
                    response = client.ask(Request("PUT", path, query, body), deadline=context.deadline)
                return members(response.value), "replaced"
            except Conflict:
                if metadata.get("resourceVersion") or attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    def send(item: Item) -> Outcome:
        return try_send(item, lambda: put(item))

    outcomes = send_manifests(_manifests(args, context), context, client, args.namespace, send)
    return bulk_result(outcomes, "Would replace" if args.dry_run else "Replaced")


def _manifests(args: ObjectArgs, context: ext_sdk.Context) -> list[Manifest]:
    """Return the object whose members are the arguments, or the objects of the manifests that the arguments name."""
    sources = [name for name in SOURCES if getattr(args, name) not in ("", UNSET)]
    if not (args.api_version or args.kind or args.metadata is not UNSET):
        if not sources:
            problem = f"expected apiVersion, kind and metadata of an object, or one of {', '.join(SOURCES)}; found none"
            raise ext_sdk.InvalidArgs("apiVersion", problem)
        return manifests_of(args, context)
    if sources:
        raise ext_sdk.InvalidArgs(sources[0], "expected a manifest or the members of an object, found both")
    for name, value in (("apiVersion", args.api_version), ("kind", args.kind), ("metadata", args.metadata)):
        if value in ("", UNSET):
            raise ext_sdk.InvalidArgs(name, "missing; an object requires apiVersion, kind and metadata")
    built = msgspec.to_builtins(args)
    return [Manifest({key: value for key, value in built.items() if key not in NO_MEMBERS}, "args")]


MOST_BYTES = 1024 * 1024  # limit of the server for all data of an object
NAME = "^[A-Za-z0-9]([-A-Za-z0-9.]*[A-Za-z0-9])?$"


class DataArgs(ClusterArgs):
    """Arguments of `create-secret` and `create-configmap`."""

    name: Annotated[str, Meta(description="Name of the object", pattern=NAME)]
    literals: Annotated[dict[str, str], Meta(description="Values by key")] = field(default_factory=dict)
    files: Annotated[
        dict[str, str] | list[str],
        Meta(description="Files in the workdir by key; or a list of files, whose names become the keys"),
    ] = field(default_factory=dict)
    namespace: Annotated[
        str, Meta(description="Namespace; default: the one created by create-namespace, or the configured one")
    ] = ""
    labels: Annotated[dict[str, str], Meta(description="Labels of the object")] = field(default_factory=dict)
    replace: Annotated[bool, Meta(description="Replace an existing object; default: fail")] = False
    dry_run: DryRun = False
    expect: ExpectedRefusal = UNSET
    timeout: TimeLimit = ext_sdk.Duration.parse("25s")


class CreateSecret(DataArgs):
    """Arguments of `create-secret`."""

    type: Annotated[
        str, Meta(description="Type of the Secret, such as kubernetes.io/tls or kubernetes.io/dockerconfigjson")
    ] = "Opaque"


class CreateConfigMap(DataArgs):
    """Arguments of `create-configmap`."""


def create_secret(args: CreateSecret, context: ext_sdk.Context) -> ext_sdk.Result:
    """Create a Secret from literals and files; its values are redacted in all output."""
    data: dict[str, str] = {}
    for key, value in _data(args, context).items():
        data[key] = base64.b64encode(value).decode()
        context.secrets.add(f"secret.{key}", value.decode(errors="replace"))
    return _create(args, {"kind": "Secret", "type": args.type, "data": data}, "secrets", context)


def create_configmap(args: CreateConfigMap, context: ext_sdk.Context) -> ext_sdk.Result:
    """Create a ConfigMap from literals and files; a file that is not UTF-8 text becomes binaryData."""
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
    return _create(args, content, "configmaps", context)


def _data(args: DataArgs, context: ext_sdk.Context) -> dict[str, bytes]:
    data = {key: value.encode() for key, value in args.literals.items()}
    files = args.files if isinstance(args.files, dict) else {PurePosixPath(path).name: path for path in args.files}
    if isinstance(args.files, list) and len(files) < len(args.files):
        raise ext_sdk.InvalidArgs("files", "two files have the same name; give them keys")
    for key, path in files.items():
        if key in data:
            raise ext_sdk.InvalidArgs("files", f"the key {key!r} is also in `literals`")
        with os_errors("read", path):
            data[key] = Workdir(context.workdir).read(path, limit=MOST_BYTES)
    return data


def _create(args: DataArgs, content: Object, plural: str, context: ext_sdk.Context) -> ext_sdk.Result:
    client = client_for(context, args)
    namespace = namespace_of(context, client, args.namespace)
    metadata = {"name": args.name, "namespace": namespace, "labels": args.labels}
    body: Object = {"apiVersion": "v1", "metadata": metadata, **content}
    path = core_path(plural, namespace)
    query = [("fieldManager", MANAGER), *write_options(dry_run=args.dry_run)]
    kind, action = content["kind"], "Would create" if args.dry_run else "Created"
    with error_context(f"failed to create {kind}/{args.name}"), advising("Choose another name, or set `replace: true`"):
        try:
            response = client.ask(Request("POST", path, query, body), deadline=context.deadline)
        except AlreadyExists:
            if not args.replace:
                raise
            action = "Would replace" if args.dry_run else "Replaced"
            path = core_path(plural, namespace, args.name)
            response = client.ask(Request("PUT", path, query, body), deadline=context.deadline)
    return ext_sdk.Result.ok(f"{action} {kind}/{args.name}", outputs=identity(members(response.value)))


OPERATIONS = (
    ext_sdk.Operation(
        "create",
        create,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flags"}, "data": {"fast": "true"}},
        outputs=SENT | REFUSAL,
        title="Create objects",
        destructive=False,
    ),
    ext_sdk.Operation(
        "replace",
        replace,
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flags"}, "data": {"slow": "true"}},
        outputs=SENT | REFUSAL,
        title="Replace objects",
        idempotent=True,
    ),
    ext_sdk.Operation(
        "create-secret",
        create_secret,
        {"name": "login", "literals": {"user": "ada"}},
        outputs=IDENTITY | REFUSAL,
        destructive=False,
    ),
    ext_sdk.Operation(
        "create-configmap",
        create_configmap,
        {"name": "texts", "literals": {"greeting": "hello"}},
        outputs=IDENTITY | REFUSAL,
        title="Create ConfigMap",
        destructive=False,
    ),
)
