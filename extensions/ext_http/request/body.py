"""Request bodies: JSON, forms, multipart, files, text, bytes, GraphQL."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Annotated, NamedTuple
from urllib.parse import urlencode

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_http.request.auth import read_file
from ext_http.response.header_check import header_value_problem
from ext_sdk.args import Scalar, scalar_text
from ext_sdk.core.redaction.secret_names import looks_secret
from ext_sdk.expect.check import Json  # noqa: TC001 - msgspec reads it

if TYPE_CHECKING:
    from collections.abc import Iterator


Values = Scalar | list[Scalar]


class FormPart(ext_sdk.Args, one_of=("text", "file")):
    """Part of a multipart body: a text, or a file of the workdir."""

    text: Annotated[str | UnsetType, Meta(description="Content of the part")] = UNSET
    file: Annotated[str | UnsetType, Meta(description="Path of a file in the workdir")] = UNSET
    filename: Annotated[str | UnsetType, Meta(description="File name to send; that of `file` by default")] = UNSET
    content_type: Annotated[str | UnsetType, Meta(description="Content-Type of the part")] = UNSET

    def __post_init__(self) -> None:
        if isinstance(self.content_type, str) and (problem := header_value_problem(self.content_type)):
            raise ValueError(f"contentType: {problem}")


class GraphqlBody(ext_sdk.Args):
    """GraphQL request, sent as JSON."""

    query: Annotated[str, Meta(min_length=1, description="GraphQL document")]
    variables: Annotated[dict[str, Json] | UnsetType, Meta(description="Variables of the document")] = UNSET
    operation_name: Annotated[str | UnsetType, Meta(description="Operation to run, if there are several")] = UNSET


KINDS = ("json", "form", "multipart", "file", "raw", "base64", "graphql")


class Body(ext_sdk.Args, one_of=KINDS):
    """Request body of one kind. The kind sets the Content-Type, unless `contentType` or a header does."""

    json: Annotated[Json | UnsetType, Meta(description="JSON value; integers stay exact, up to 4,300 digits")] = UNSET
    form: Annotated[
        dict[str, Values] | UnsetType,
        Meta(description="Fields of a web form; a list repeats one. Values are redacted if the name looks secret"),
    ] = UNSET
    multipart: Annotated[
        dict[str, Scalar | FormPart | list[Scalar | FormPart]] | UnsetType,
        Meta(description="Fields and files of a multipart/form-data body"),
    ] = UNSET
    file: Annotated[str | UnsetType, Meta(description="Path of a file in the workdir to send unchanged")] = UNSET
    raw: Annotated[str | UnsetType, Meta(description="Text to send unchanged")] = UNSET
    base64: Annotated[str | UnsetType, Meta(description="Bytes in Base64")] = UNSET
    graphql: Annotated[GraphqlBody | UnsetType, Meta(description="GraphQL request")] = UNSET
    content_type: Annotated[str | UnsetType, Meta(description="Content-Type; by default that of the kind")] = UNSET


class EncodedBody(NamedTuple):
    """Bytes of a body and its Content-Type; "" for none."""

    content: bytes
    content_type: str


def encode(body: Body, context: ext_sdk.Context) -> EncodedBody:
    """Return the bytes of a body. Values of fields whose names look secret are redacted from here on.

    Raises:
        OperationFailed: a file can't be read.
        InvalidArgs: the Base64 is not valid.
    """
    if body.form is not UNSET:
        for name, value in pairs(body.form):
            _redact_secret(name, value, context)
        content, kind = urlencode(list(pairs(body.form))).encode(), "application/x-www-form-urlencoded"
    elif body.multipart is not UNSET:
        content, kind = _multipart(body.multipart, context)
    elif body.file is not UNSET:
        from mimetypes import guess_type

        content, kind = read_file(body.file, context), guess_type(body.file)[0] or "application/octet-stream"
    elif body.raw is not UNSET:
        content, kind = body.raw.encode(), "text/plain; charset=utf-8"
    elif body.base64 is not UNSET:
        try:
            content, kind = base64.b64decode("".join(body.base64.split()), validate=True), "application/octet-stream"
        except ValueError as error:
            raise ext_sdk.InvalidArgs("body.base64", f"expected Base64: {error}") from None
    else:
        document: object = body.json
        if body.graphql is not UNSET:
            members: dict[str, object] = {
                "query": body.graphql.query,
                "variables": body.graphql.variables,
                "operationName": body.graphql.operation_name,
            }
            document = {name: member for name, member in members.items() if member is not UNSET}
        content, kind = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode(), "application/json"
    return EncodedBody(content, kind if body.content_type is UNSET else body.content_type)


def _redact_secret(name: str, value: str, context: ext_sdk.Context) -> None:
    if looks_secret(name):
        context.secrets.add(f"form.{name}", value)


def _multipart(
    fields: dict[str, Scalar | FormPart | list[Scalar | FormPart]], context: ext_sdk.Context
) -> tuple[bytes, str]:
    from ext_http.client.client import Part, multipart

    parts = []
    for name, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            text = value.text if isinstance(value, FormPart) else scalar_text(value)
            if isinstance(text, str):
                _redact_secret(name, text, context)
            if not isinstance(value, FormPart):
                parts.append(Part(name, scalar_text(value).encode()))
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


def pairs(fields: dict[str, Values]) -> Iterator[tuple[str, str]]:
    """Yield (name, value) for each value of each field."""
    for name, values in fields.items():
        for value in values if isinstance(values, list) else [values]:
            yield name, scalar_text(value)
