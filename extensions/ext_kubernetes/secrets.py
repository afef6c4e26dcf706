"""`create-secret` and `create-configmap`: from literals, and from files of the workdir."""

from __future__ import annotations

import base64
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, field

import ext_sdk
from ext_sdk.files import Workdir, os_errors

from .apply import MANAGER, DryRun, options
from .client import Request, client_for
from .errors import AlreadyExists, advising, doing
from .naming import namespace_of
from .objects import identity, members
from .paths import core_path

if TYPE_CHECKING:
    from .manifests import Object

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
    query = [("fieldManager", MANAGER), *options(dry_run=args.dry_run)]
    kind, word = content["kind"], "Would create" if args.dry_run else "Created"
    with doing(f"failed to create {kind}/{args.name}"), advising("Choose another name, or set `replace: true`"):
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
    ext_sdk.Operation("create-secret", create_secret, {"name": "login", "literals": {"user": "ada"}}),
    ext_sdk.Operation("create-configmap", create_configmap, {"name": "texts", "literals": {"greeting": "hello"}}),
)
