"""`get`: read objects, and put values of them out."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import NotFound, error_context
from ext_kubernetes.objects.fields import identity, items, members, text
from ext_kubernetes.objects.jsonpath import PathFailed, problem, text_of, values
from ext_kubernetes.objects.secret_data import has_hidden, marked
from ext_kubernetes.targets import TargetArgs, missing_namespace_context, target_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target


PAGE = 500  # objects of a list that come in one answer
MOST_PAGES = 200


class Output(ext_sdk.Args):
    """A value to put out."""

    path: Annotated[str, Meta(description="JSONPath: $.status.phase (RFC 9535), or {.status.phase} as kubectl has it")]
    default: Annotated[str | UnsetType, Meta(description="Where there is nothing, else a failure")] = UNSET
    decode: Annotated[Literal["none", "base64"], Meta(description="base64 for the data of a Secret")] = "none"
    secret: Annotated[
        bool, Meta(description="Only for later steps, as ${NAME.key}; always so for data of a Secret")
    ] = False


class Get(TargetArgs):
    """What to read, and what of it to put out."""

    selector: Annotated[str, Meta(description="With a kind alone: those with these labels, such as app=web")] = ""
    field_selector: Annotated[str, Meta(description="With a kind alone: such as status.phase=Running")] = ""
    all_namespaces: Annotated[bool, Meta(description="With a kind alone: of all namespaces")] = False
    subresource: Annotated[str, Meta(description="With a name: such as status or scale")] = ""
    outputs: Annotated[
        dict[Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")], str | Output],
        Meta(description="What to put out, by name: a JSONPath, or more. Of a list, paths begin at its `items`"),
    ] = field(default_factory=dict)
    ignore_not_found: Annotated[bool, Meta(description="A success, with output `found`, if there is none")] = False
    timeout: ext_sdk.Duration = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        for name, output in self.outputs.items():
            if wrong := problem(_path(output)):
                raise ValueError(f"outputs.{name}: {wrong}")


def get(args: Get, context: ext_sdk.Context) -> ext_sdk.Result:
    """Read an object, or all of a kind, and put out what JSONPaths find in it, in the dialect of RFC 9535 or kubectl.

    A path that finds several values puts out one a line; text as it is, all else as JSON. Values of a Secret are never
    shown: later steps use them as ${NAME.key}.
    """
    client = client_for(context)
    listing = "/" not in args.resource and not args.metadata.name
    target = target_of(args, context, client, named=False, everywhere=args.all_namespaces)
    try:
        with error_context(f"failed to get {target.where}"):
            found = _listed(target, args, context) if listing else _one(target, args, context)
    except NotFound:
        if not args.ignore_not_found:
            with missing_namespace_context(target, client, context.deadline):
                raise
        return ext_sdk.Result.ok(f"{target} not found (ignored)", outputs={"found": False})
    told: dict[str, str | int | bool] = {"found": True}
    if listing:
        count = len(items(found, "items"))
        told |= {"found": count > 0, "count": count, "names": "\n".join(_names(found))}
    else:
        told |= identity(found)
    secret: dict[str, str | int | bool] = {}
    for name, output in args.outputs.items():
        value, hidden = _value(name, output, found, target)
        (secret if hidden else told)[name] = value
    what = f"{told['count']} {target.resource.plural}" if listing else str(target)
    return ext_sdk.Result.ok(f"Got {what}", outputs=told, secret_outputs=secret)


def _one(target: Target, args: Get, context: ext_sdk.Context) -> Object:
    path = target.resource.path(target.namespace, target.name, args.subresource)
    return marked(members(client_for(context).request("GET", path, deadline=context.deadline)), target.resource.kind)


def _listed(target: Target, args: Get, context: ext_sdk.Context) -> Object:
    """The list, page by page."""
    query = [("limit", str(PAGE))]
    query += [("labelSelector", args.selector)] if args.selector else []
    query += [("fieldSelector", args.field_selector)] if args.field_selector else []
    found: list[Object] = []
    following = ""
    for _ in range(MOST_PAGES):
        page = client_for(context).request(
            "GET",
            target.path,
            query=[*query, ("continue", following)] if following else query,
            deadline=context.deadline,
        )
        found += [marked(item, target.resource.kind) for item in items(page, "items")]
        following = text(page, "metadata", "continue")
        if not following:
            break
    return {"apiVersion": "v1", "kind": "List", "items": found}


def _names(found: Object) -> list[str]:
    return [text(one, "metadata", "name") for one in items(found, "items")]


def _path(output: str | Output) -> str:
    return output if isinstance(output, str) else output.path


def _value(name: str, output: str | Output, found: Object, target: Target) -> tuple[str, bool]:
    """Return the value of an output, and whether only later steps may see it."""
    path = _path(output)
    try:
        selected = values(path, found)
    except PathFailed as error:
        raise ext_sdk.InvalidArgs(f"outputs.{name}", str(error)) from error
    if not selected:
        if isinstance(output, Output) and output.default is not UNSET:
            return output.default, output.secret
        raise ext_sdk.OperationFailed(
            f"nothing is at {path} of {target}",
            error=f"outputs.{name}: expected a value at {path} of {target.where}, found none; it has "
            f"{_outline(found)}. `default` says what to put out then",
        )
    value, hidden = text_of(selected), has_hidden(selected)
    if isinstance(output, str):
        return value, hidden
    return _DECODERS[output.decode](name, value), hidden or output.secret


def _outline(found: Mapping[str, object]) -> str:
    """The top of an object, for who looks for something else in it."""
    status = found.get("status")
    told = [*found, *(f"status.{key}" for key in status)] if isinstance(status, dict) else list(found)
    return json.dumps(told[:40])


def _decoded(name: str, value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise ext_sdk.OperationFailed(f"outputs.{name}: the value is no base64 of a text") from error


_DECODERS = {"none": lambda name, value: value, "base64": _decoded}

OPERATIONS = (
    ext_sdk.Operation("get", get, {"resource": "configmap/settings", "outputs": {"colour": "{.data.colour}"}}),
)
