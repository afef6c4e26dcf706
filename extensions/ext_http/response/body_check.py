"""Checks of a body: text, JSON, JSON Schema, size, hash."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated, Protocol

from msgspec import UNSET, Meta, UnsetType

from ext_sdk import OperationFailed
from ext_sdk.expect import Check, Integer, TextExpectation, check_integer, check_text
from ext_sdk.expect import json_schema as schemas
from ext_sdk.expect.format import quoted
from ext_sdk.expect.json_equality import NotJson, parse
from ext_sdk.files import Workdir, os_errors

if TYPE_CHECKING:
    from ext_http.client.response import NotText

    from .header_check import CheckContext


BLOCK = 4096  # bytes compared at once
MAX_FILE_BYTES = 64 * 1024 * 1024  # of a file that a body is compared with
MAX_SCHEMA_BYTES = 1024 * 1024  # of a file with a schema
Path = Annotated[str, Meta(min_length=1)]
_BINARY = {"size", "sha256", "sameAsFile"}
_MODIFIERS = ("ignoreCase", "lists")


class BodyExpectation(TextExpectation):
    """Expected body; all members given must hold.

    The body is decoded in the charset of its Content-Type, by default UTF-8. JSON types matter: "1" is not 1, true is
    not 1, and 9007199254740993 is exact; 1.0 equals 1, as JSON has one type of number.
    """

    json_schema: Annotated[
        schemas.Schema | UnsetType,
        Meta(
            description="JSON Schema that the body must be valid for; external references are not fetched. `format` is "
            "checked; unknown keywords and formats are refused, except x-…"
        ),
    ] = UNSET
    json_schema_file: Annotated[Path | UnsetType, Meta(description="JSON Schema in a file of the workdir")] = UNSET
    same_as_file: Annotated[Path | UnsetType, Meta(description="File of the workdir with the same bytes")] = UNSET
    size: Annotated[Integer | UnsetType, Meta(description="Size in bytes, decoded")] = UNSET
    sha256: Annotated[
        Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")] | UnsetType, Meta(description="SHA-256 in hex")
    ] = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.json_schema is not UNSET and (problem := schemas.problem(self.json_schema)):
            raise ValueError(f"jsonSchema: {problem}")


class Message(Protocol):
    """Request or response with a body.

    Attributes:
        truncated: `body` is only the first part.
        decoded: `body` as text, or the reason why it is not text.
    """

    @property
    def body(self) -> bytes: ...
    @property
    def truncated(self) -> bool: ...
    @property
    def decoded(self) -> str | NotText: ...


# As users write it: a text, which may differ in one final line ending, or an object.
Body = str | BodyExpectation


def check_body(expectation: Body, message: Message, context: CheckContext) -> list[Check]:
    """Check the body of a message against an expectation: a text, or an object.

    Raises:
        OperationFailed: a schema or a file is not usable; retrying does not help.
    """
    if message.truncated:  # no check of the first part holds for the complete body
        found = f"more than {len(message.body):,} bytes, of which the rest was not read (maxBody)"
        return [Check.failed("to be read completely", found, where="body")]
    wanted = BodyExpectation(equals=expectation) if isinstance(expectation, str) else expectation
    given = set(wanted.given(besides=_MODIFIERS))
    checks = _check_bytes(wanted, message.body, context) if given & _BINARY else []
    if given <= _BINARY:
        return checks
    text = message.decoded
    if not isinstance(text, str):
        return [*checks, Check.failed(f"to be {text.expected}", text.found, where="body")]
    # Some servers send a byte order mark, which RFC 8259, 8.1, allows readers of JSON to ignore.
    text = text.removeprefix("\ufeff")
    checks += check_text(wanted, text, where="body", searcher=context.searcher, redact=context.redact)
    if not isinstance(wanted.json_schema, UnsetType):
        checks.append(_check_schema(wanted.json_schema, text, context))
    if not isinstance(wanted.json_schema_file, UnsetType):
        checks.append(_check_schema(_read_schema(wanted.json_schema_file, context), text, context))
    return checks


def _check_bytes(wanted: BodyExpectation, body: bytes, context: CheckContext) -> list[Check]:
    checks = []
    if not isinstance(wanted.size, UnsetType):
        checks += check_integer(wanted.size, len(body), where="size of body")
    if not isinstance(wanted.sha256, UnsetType):
        expected, found = wanted.sha256.lower(), hashlib.sha256(body).hexdigest()
        checks.append(Check(expected == found, "to be", expected, found, where="SHA-256 of body"))
    if not isinstance(wanted.same_as_file, UnsetType):
        path = wanted.same_as_file
        with os_errors("read", path):
            content = Workdir(context.workdir).read(path, limit=MAX_FILE_BYTES)
        same = content == body
        difference = "" if same else f"{len(body):,} bytes that differ from offset {_difference(content, body):,} on"
        checks.append(Check(same, "to be", f"the {len(content):,} bytes of {path}", difference, where="body"))
    return checks


def _difference(expected: bytes, found: bytes) -> int:
    """Return the offset of the first difference. Equal blocks are compared at once."""
    start = 0
    while expected[start : start + BLOCK] == found[start : start + BLOCK]:
        start += BLOCK
    pairs = zip(expected[start : start + BLOCK], found[start : start + BLOCK], strict=False)
    shorter = min(len(expected), len(found))
    return next((start + at for at, (left, right) in enumerate(pairs) if left != right), shorter)


def _read_schema(path: str, context: CheckContext) -> schemas.Schema:
    with os_errors("read", path):
        data = Workdir(context.workdir).read(path, limit=MAX_SCHEMA_BYTES)
    try:
        schema = parse(data.decode())
        problem = schemas.problem(schema)
    except (NotJson, UnicodeDecodeError) as error:
        schema, problem = None, str(error)
    if problem:
        raise OperationFailed(f"can't use the schema {path!r}", error=f"jsonSchemaFile {path!r}: {problem}")
    assert isinstance(schema, dict)
    return schema


def _check_schema(schema: schemas.Schema, text: str, context: CheckContext) -> Check:
    try:
        document = parse(text)
    except NotJson as error:
        return Check.failed("to be JSON", f"{quoted(text, context.redact)}: {error}", where="body")
    try:
        limit = min(schemas.LIMIT, context.searcher.remaining())
        return schemas.check_schema(schema, text, document, where="body", limit=limit, redact=context.redact)
    except schemas.SchemaTooSlow as error:
        return Check.failed("to be checked by its schema", f"an error: {error}", where="body")
    except schemas.SchemaFailed as error:
        raise OperationFailed("can't check body by its schema", error=f"jsonSchema: {error}") from error
