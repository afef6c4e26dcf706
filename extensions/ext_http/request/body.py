"""Bodies of requests: JSON, forms, several parts, files, texts, bytes, GraphQL."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import urlencode

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_http.response.header_check import header_value_problem
from ext_sdk.core.redaction.secret_names import looks_secret
from ext_sdk.expect.check import Json  # noqa: TC001 - msgspec reads it

from .secrets import read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any


Scalar = str | int | float | bool
Values = Scalar | list[Scalar]


class FormPart(ext_sdk.Args, one_of=("text", "file")):
    """A part of a multipart body: a text, or a file of the working directory."""

    text: str | UnsetType = UNSET
    file: Annotated[str | UnsetType, Meta(description="Path in the workdir")] = UNSET
    filename: Annotated[str | UnsetType, Meta(description="As it is told; the file's own name where left out")] = UNSET
    content_type: str | UnsetType = UNSET

    def __post_init__(self) -> None:
        if isinstance(self.content_type, str) and (wrong := header_value_problem(self.content_type)):
            raise ValueError(f"contentType: {wrong}")


class GraphqlBody(ext_sdk.Args):
    """A GraphQL request, as JSON."""

    query: Annotated[str, Meta(min_length=1)]
    variables: dict[str, Json] | UnsetType = UNSET
    operation_name: str | UnsetType = UNSET


KINDS = ("json", "form", "multipart", "file", "raw", "base64", "graphql")


class Body(ext_sdk.Args, one_of=KINDS):
    """One body. Its Content-Type follows from its kind, unless `contentType` says another one."""

    json: Annotated[Json | UnsetType, Meta(description="Any JSON value; integers stay exact, up to 4,300 digits")] = (
        UNSET
    )
    form: Annotated[
        dict[str, Values] | UnsetType,
        Meta(description="As a web form is sent; a list repeats a name. Values are hidden where a name sounds secret"),
    ] = UNSET
    multipart: Annotated[
        dict[str, Scalar | FormPart | list[Scalar | FormPart]] | UnsetType, Meta(description="Fields and files")
    ] = UNSET
    file: Annotated[str | UnsetType, Meta(description="A file of the workdir, as it is")] = UNSET
    raw: Annotated[str | UnsetType, Meta(description="A text, as it is")] = UNSET
    base64: Annotated[str | UnsetType, Meta(description="Bytes, in Base64")] = UNSET
    graphql: GraphqlBody | UnsetType = UNSET
    content_type: str | UnsetType = UNSET


class Encoded(NamedTuple):
    """The bytes of a body, and its Content-Type; "" for none."""

    content: bytes
    content_type: str


def encode(body: Body, context: ext_sdk.Context) -> Encoded:
    """The bytes of a body.

    Raises:
        OperationFailed: a file can't be read.
        InvalidArgs: no Base64.
    """
    kind = next(name for name in KINDS if getattr(body, name) is not UNSET)
    content, content_type = _ENCODERS[kind](getattr(body, kind), context)
    return Encoded(content, content_type if body.content_type is UNSET else body.content_type)


def _json(value: object, context: ext_sdk.Context) -> tuple[bytes, str]:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), "application/json"


def _form(fields: dict[str, Values], context: ext_sdk.Context) -> tuple[bytes, str]:
    for name, value in pairs(fields):
        _hide(name, value, context)
    return urlencode(list(pairs(fields))).encode(), "application/x-www-form-urlencoded"


def _hide(name: str, value: str, context: ext_sdk.Context) -> None:
    """Redact the value of a field from here on if its name looks secret, as for the parameters of a URL."""
    if looks_secret(name):
        context.secrets.add(f"form.{name}", value)


def _multipart(
    fields: dict[str, Scalar | FormPart | list[Scalar | FormPart]], context: ext_sdk.Context
) -> tuple[bytes, str]:
    from ext_http.client.encoding import Part, multipart

    parts = []
    for name, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            text = value.text if isinstance(value, FormPart) else scalar(value)
            if isinstance(text, str):
                _hide(name, text, context)
            if not isinstance(value, FormPart):
                parts.append(Part(name, scalar(value).encode()))
                continue
            content_type = None if value.content_type is UNSET else value.content_type
            filename = None if value.filename is UNSET else value.filename
            if isinstance(value.file, str):
                filename = filename or value.file.rpartition("/")[2]
                parts.append(Part(name, read_file(value.file, context), filename, content_type))
            else:
                parts.append(Part(name, str(value.text).encode(), filename, content_type))
    content_type, content = multipart(parts)
    return content, content_type


def _file(path: str, context: ext_sdk.Context) -> tuple[bytes, str]:
    from mimetypes import guess_type

    return read_file(path, context), guess_type(path)[0] or "application/octet-stream"


def _raw(text: str, context: ext_sdk.Context) -> tuple[bytes, str]:
    return text.encode(), "text/plain; charset=utf-8"


def _base64(text: str, context: ext_sdk.Context) -> tuple[bytes, str]:
    try:
        return base64.b64decode("".join(text.split()), validate=True), "application/octet-stream"
    except ValueError as error:
        raise ext_sdk.InvalidArgs("body.base64", f"expected Base64: {error}") from None


def _graphql(body: GraphqlBody, context: ext_sdk.Context) -> tuple[bytes, str]:
    value: dict[str, object] = {"query": body.query}
    if body.variables is not UNSET:
        value["variables"] = body.variables
    if body.operation_name is not UNSET:
        value["operationName"] = body.operation_name
    return _json(value, context)


_ENCODERS: Mapping[str, Callable[[Any, ext_sdk.Context], tuple[bytes, str]]] = {  # each gets what its field holds
    "json": _json,
    "form": _form,
    "multipart": _multipart,
    "file": _file,
    "raw": _raw,
    "base64": _base64,
    "graphql": _graphql,
}


def pairs(fields: dict[str, Values]) -> Iterator[tuple[str, str]]:
    """Names and values, one pair for each value."""
    for name, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            yield name, scalar(value)


def scalar(value: Scalar) -> str:
    """As JSON writes it, but for quotation marks: true, 1, 1.5, text."""
    return value if isinstance(value, str) else json.dumps(value)
