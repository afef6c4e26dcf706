"""Checks of a body: text, JSON, JSON Schema, size, hash."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Annotated

from msgspec import UNSET, Meta, UnsetType

from ext_http.client.charsets import NotText, decoded
from ext_sdk import OperationFailed
from ext_sdk.expect import Check, Integer, TextExpectation, check_integer, check_text
from ext_sdk.expect import json_schema as schemas
from ext_sdk.expect.format import quoted
from ext_sdk.expect.json_equality import NotJson, parse
from ext_sdk.files import Workdir, os_errors

from .header_check import values_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .check_context import CheckContext


PAGE = 4096  # bytes that are compared at once
LARGEST_FILE = 64 * 1024 * 1024  # bytes of a file that a body is compared with
LARGEST_SCHEMA = 1024 * 1024  # bytes of a file with a schema
Path = Annotated[str, Meta(min_length=1)]
_OF_BYTES = ("size", "sha256", "sameAsFile")


class BodyExpectation(TextExpectation):
    """What a body must be; all that is given must hold.

    As text it is read in the charset that its Content-Type names, or else as UTF-8. In JSON types count: "1" is not 1,
    true is not 1, and 9007199254740993 is exact; 1.0 is 1, for JSON has one kind of number.
    """

    json_schema: Annotated[
        schemas.Schema | UnsetType,
        Meta(
            description="JSON Schema that it is valid for; nothing is fetched for it. `format` is checked; unknown "
            "keywords and formats are refused, x-… excepted"
        ),
    ] = UNSET
    json_schema_file: Annotated[Path | UnsetType, Meta(description="The same, a JSON file of the workdir")] = UNSET
    same_as_file: Annotated[Path | UnsetType, Meta(description="A file of the workdir with the same bytes")] = UNSET
    size: Annotated[Integer | UnsetType, Meta(description="Bytes, decoded")] = UNSET
    sha256: Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")] | UnsetType = UNSET

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.json_schema is not UNSET and (wrong := schemas.problem(self.json_schema)):
            raise ValueError(f"jsonSchema: {wrong}")


# As users write it: a text that it must equal, but for one line ending at the end, or an object.
Body = str | BodyExpectation


def check_body(
    expectation: Body,
    body: bytes,
    headers: Sequence[tuple[str, str]],
    means: CheckContext,
    *,
    truncated: bool = False,
    where: str = "body",
) -> list[Check]:
    """Hold a body against an expectation.

    Args:
        expectation: a text, or an object.
        body: what came of it.
        headers: of the message: its Content-Type may name a charset.
        means: what checks are made with.
        truncated: whether there is more of it than came: no check of a part holds for the whole.
        where: what it is, for the message.

    Raises:
        OperationFailed: a schema that can't be used, or a file that can't be read: waiting does not mend it.
    """
    if truncated:
        found = f"more than {len(body):,} bytes, of which the rest was not read (maxBody)"
        return [Check.failed("to be checked whole", found, where=where)]
    wanted = BodyExpectation(equals=expectation) if isinstance(expectation, str) else expectation
    checks = _of_bytes(wanted, body, where, means)
    if not wanted.given(besides=("ignoreCase", "lists", *_OF_BYTES)):
        return checks
    text = _decoded(body, headers)
    if isinstance(text, Check):
        text.where = where
        return [*checks, text]
    checks += check_text(wanted, text, where=where, searcher=means.searcher, redact=means.redact)
    return checks + [_of_schema(schema, text, where, means) for schema in _schemas(wanted, means)]


def _of_bytes(wanted: BodyExpectation, body: bytes, where: str, means: CheckContext) -> list[Check]:
    checks = []
    if not isinstance(wanted.size, UnsetType):
        checks += check_integer(wanted.size, len(body), where=f"size of {where}")
    if not isinstance(wanted.sha256, UnsetType):
        expected, found = wanted.sha256.lower(), hashlib.sha256(body).hexdigest()
        checks.append(Check(expected == found, "to be", expected, found, where=f"SHA-256 of {where}"))
    if not isinstance(wanted.same_as_file, UnsetType):
        path = wanted.same_as_file
        with os_errors("read", path):
            expected_bytes = Workdir(means.workdir).read(path, limit=LARGEST_FILE)
        checks.append(_same(path, expected_bytes, body, where))
    return checks


def _same(path: str, expected: bytes, found: bytes, where: str) -> Check:
    same = expected == found
    difference = "" if same else f"{len(found):,} bytes that differ from offset {_difference(expected, found):,} on"
    return Check(same, "to be", f"the {len(expected):,} bytes of {path}", difference, where=where)


def _difference(expected: bytes, found: bytes) -> int:
    """The offset from which on two texts differ: equal pages are passed over at once."""
    start = 0
    while expected[start : start + PAGE] == found[start : start + PAGE]:
        start += PAGE
    pairs = zip(expected[start : start + PAGE], found[start : start + PAGE], strict=False)
    shorter = min(len(expected), len(found))
    return next((start + at for at, (one, other) in enumerate(pairs) if one != other), shorter)


def _decoded(body: bytes, headers: Sequence[tuple[str, str]]) -> str | Check:
    """The text, or a check that says why it is none."""
    try:
        text = decoded(body, values_of("content-type", headers))
    except NotText as error:
        return Check.failed(f"to be {error.what}", error.found, where="")
    # Some servers begin with a byte order mark, which RFC 8259, 8.1, lets readers of JSON pass over.
    return text.removeprefix("\ufeff")


def _schemas(wanted: BodyExpectation, means: CheckContext) -> list[schemas.Schema]:
    found = [] if isinstance(wanted.json_schema, UnsetType) else [wanted.json_schema]
    if not isinstance(wanted.json_schema_file, UnsetType):
        path = wanted.json_schema_file
        with os_errors("read", path):
            data = Workdir(means.workdir).read(path, limit=LARGEST_SCHEMA)
        try:
            schema = parse(data.decode())
        except (NotJson, UnicodeDecodeError) as error:
            raise _unusable(path, f"{error}") from error
        if wrong := schemas.problem(schema):
            raise _unusable(path, wrong)
        assert isinstance(schema, dict)
        found.append(schema)
    return found


def _unusable(path: str, why: str) -> OperationFailed:
    return OperationFailed(f"can't use the schema {path!r}", error=f"jsonSchemaFile {path!r}: {why}")


def _of_schema(schema: schemas.Schema, text: str, where: str, means: CheckContext) -> Check:
    try:
        document = parse(text)
    except NotJson as error:
        return Check.failed("to be JSON", f"{quoted(text, means.redact)}: {error}", where=where)
    try:
        limit = min(schemas.LIMIT, means.searcher.remaining())
        return schemas.check_schema(schema, text, document, where=where, limit=limit, redact=means.redact)
    except schemas.SchemaTooSlow as error:
        return Check.failed("to be checked by its schema", f"an error: {error}", where=where)
    except schemas.SchemaFailed as error:
        raise OperationFailed(f"can't check {where} by its schema", error=f"jsonSchema: {error}") from error
