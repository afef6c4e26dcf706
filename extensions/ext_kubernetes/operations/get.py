"""Operation `get`: read objects and output values of them."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_kubernetes.api.client import client_for
from ext_kubernetes.api.errors import NotFound, error_context
from ext_kubernetes.config import ExpectedRefusal  # noqa: TC001 - msgspec reads it
from ext_kubernetes.objects.fields import has_hidden, identity, items, marked, members
from ext_kubernetes.objects.kubectl_jsonpath import PathFailed, problem, text_of, values
from ext_kubernetes.targets import TargetArgs, TimeLimit, missing_namespace_context, target_of
from ext_kubernetes.waiting.waiter import check_namespace
from ext_sdk.capture import Filter, Unreadable, filtered
from ext_sdk.capture import NotFound as CaptureNotFound
from ext_sdk.core.text import counted
from ext_sdk.expect import Integer, Searcher, check_integer, failure_text, passed

from . import ONE, REFUSAL

if TYPE_CHECKING:
    from ext_kubernetes.api.client import Client
    from ext_kubernetes.objects.fields import Outputs
    from ext_kubernetes.objects.yaml_loader import Object
    from ext_kubernetes.targets import Target


MOST_NAMED = 20  # objects named in an error


class Output(ext_sdk.Args):
    """A value to output."""

    path: Annotated[str, Meta(description="JSONPath: $.status.phase (RFC 9535) or {.status.phase} (kubectl)")]
    default: Annotated[str | UnsetType, Meta(description="Value if the path selects nothing; default: fail")] = UNSET
    decode: Annotated[Literal["none", "base64"], Meta(description="Decoding; base64 for the data of a Secret")] = "none"
    filters: Annotated[list[Filter], Meta(description="Changes of the value after `decode`, in this order")] = field(
        default_factory=list
    )
    secret: Annotated[
        bool,
        Meta(description="Redact the value; later steps can use it as ${NAME.key}. Always true for data of a Secret"),
    ] = False


class Get(TargetArgs):
    """Arguments of `get`."""

    selector: Annotated[
        str, Meta(description="Label selector, such as app=web; with a kind without a name in `resource`")
    ] = ""
    field_selector: Annotated[
        str, Meta(description="Field selector, such as status.phase=Running; with a kind without a name")
    ] = ""
    all_namespaces: Annotated[bool, Meta(description="List all namespaces; with a kind without a name")] = False
    subresource: Annotated[str, Meta(description="Subresource, such as status or scale; with a name")] = ""
    outputs: Annotated[
        dict[Annotated[str, Meta(pattern="^[A-Za-z0-9_-]{1,64}$")], str | Output],
        Meta(description="Values to output, by name: a JSONPath, or an object. In a list, paths begin at `items`"),
    ] = field(default_factory=dict)
    count: Annotated[
        Integer | UnsetType,
        Meta(description="Expected number of objects, such as 0 or {gte: 1}; with a kind without a name"),
    ] = UNSET
    ignore_not_found: Annotated[
        bool, Meta(description="Treat a missing object as success; the output `found` is then false")
    ] = False
    expect: ExpectedRefusal = UNSET
    timeout: TimeLimit = ext_sdk.Duration.parse("25s")

    def __post_init__(self) -> None:
        for name, output in self.outputs.items():
            if wrong := problem(output if isinstance(output, str) else output.path):
                raise ValueError(f"outputs.{name}: {wrong}")


def get(args: Get, context: ext_sdk.Context) -> ext_sdk.Result:
    """Read an object, or all objects of a kind, check their number, and output the values that JSONPaths select.

    Paths are in the dialect of RFC 9535 or of kubectl. A path that selects several values outputs one a line; strings
    are output unchanged, all other values as JSON. Values of a Secret are never shown: later steps use them as
    ${NAME.key}.
    """
    client = client_for(context, args)
    listing = "/" not in args.resource and not args.metadata.name
    target = target_of(args, context, client, named=False, everywhere=args.all_namespaces)
    if args.count is not UNSET and not listing:
        raise ext_sdk.InvalidArgs("count", f"expected a kind without a name, found {target}")
    try:
        with error_context(f"failed to get {target.where}"):
            if listing:
                document = _list(target, args, context, client)
            else:
                path = target.resource.path(target.namespace, target.name, args.subresource)
                item = members(client.request("GET", path, deadline=context.deadline))
                document = marked(item, target.resource.kind)
    except NotFound:
        if not args.ignore_not_found:
            with missing_namespace_context(target, client, context.deadline):
                raise
        return ext_sdk.Result.ok(f"{target} not found (ignored)", outputs={"found": False})
    outputs: Outputs = {"found": True}
    if listing:
        names = list(map(target.name_of, items(document, "items")))
        outputs |= {"found": bool(names), "count": len(names), "names": "\n".join(names)}
        where = target._replace(selector=args.selector).where
        checks = [] if isinstance(args.count, UnsetType) else check_integer(args.count, len(names), where=where)
        if checks and not passed(checks):
            shown = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
            error = failure_text(checks) + (f": {shown}" if names else "")
            return ext_sdk.Result.failed(f"found {counted(len(names), 'object')}", error=error, outputs=outputs)
        if checks and not names:
            check_namespace(target, context, client)
    else:
        outputs |= identity(document)
    secret: Outputs = {}
    with Searcher(deadline=context.deadline) as searcher:
        for name, output in args.outputs.items():
            value, hidden = _value(name, output, document, target, searcher)
            (secret if hidden else outputs)[name] = value
    subject = f"{outputs['count']} {target.plural}" if listing else str(target)
    return ext_sdk.Result.ok(f"Got {subject}", outputs=outputs, secret_outputs=secret)


def _list(target: Target, args: Get, context: ext_sdk.Context, client: Client) -> Object:
    """Return the objects of all kinds of the target as a List."""
    query = [("labelSelector", args.selector)] if args.selector else []
    query += [("fieldSelector", args.field_selector)] if args.field_selector else []
    objects: list[Object] = []
    for one in target.each:
        objects += map(marked, client.list(one.resource, target.namespace, query, deadline=context.deadline))
    return {"apiVersion": "v1", "kind": "List", "items": objects}


def _value(name: str, output: str | Output, document: Object, target: Target, searcher: Searcher) -> tuple[str, bool]:
    """Return the value of an output, and True if it is secret."""
    path = output if isinstance(output, str) else output.path
    try:
        selected = values(path, document)
    except PathFailed as error:
        raise ext_sdk.InvalidArgs(f"outputs.{name}", str(error)) from error
    if not selected:
        if isinstance(output, Output) and output.default is not UNSET:
            return output.default, output.secret
        status = document.get("status")
        keys = [*document, *(f"status.{key}" for key in status)] if isinstance(status, dict) else list(document)
        raise ext_sdk.OperationFailed(
            f"no value at {path} of {target}",
            error=f"outputs.{name}: expected a value at {path} of {target.where}, found none; it has "
            f"{json.dumps(keys[:40])}. Set `default` to output another value then",
        )
    value, hidden = text_of(selected), has_hidden(selected)
    if isinstance(output, str):
        return value, hidden
    if output.decode == "base64":
        try:
            value = base64.b64decode(value, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError) as error:
            raise ext_sdk.OperationFailed(f"outputs.{name}: the value is not base64-encoded text") from error
    hidden = hidden or output.secret
    try:
        return filtered(value, output.filters, searcher, secret=hidden), hidden
    except CaptureNotFound as error:
        if output.default is not UNSET and not isinstance(error, Unreadable):
            return output.default, hidden
        raise ext_sdk.OperationFailed(
            f"no value at {path} of {target} after `filters`", error=f"outputs.{name}: found {error}"
        ) from None


OPERATIONS = (
    ext_sdk.Operation(
        "get",
        get,
        {"resource": "configmap/settings", "outputs": {"colour": "{.data.colour}"}},
        outputs=(
            ONE
            | {
                "found": "`true` if there is an object",
                "count?": "number of objects, if only a kind is given",
                "names?": "names of the objects, one per line, if only a kind is given",
                "NAME?": "value of the JSONPath, if `outputs` has this name",
            }
            | REFUSAL
        ),
        title="Get objects",
        read_only=True,
    ),
)
