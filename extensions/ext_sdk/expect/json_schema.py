"""Validation by JSON Schema, with the library jsonschema, in a child process with limits on time and memory.

A schema is from a task file and the document from a server or a program: `pattern` may explode, references may be
circular, and `uniqueItems` of a large array may take forever. A child process can be killed in any case. Starting it
takes 0.1 s.

The drafts let a validator ignore an unknown keyword or format: a misspelled one would check nothing. So they are
refused before.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from msgspec import Meta, UnsetType

from ext_sdk.core.regex import TIME_UP, Searcher
from ext_sdk.core.text import suggest
from ext_sdk.files import Workdir, os_errors
from ext_sdk.result import OperationFailed

from .check import Check, Json, quoted, redact_named, shown
from .json_equality import NotJson, member_path, parse, type_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .check import Redact


DRAFTS = (
    "http://json-schema.org/draft-04/schema",
    "http://json-schema.org/draft-06/schema",
    "http://json-schema.org/draft-07/schema",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)

LATEST = len(DRAFTS) - 1

# Formats that json_schema_worker.py checks. Others are refused, those of the drafts as well.
FORMATS = frozenset(
    [
        "date",
        "date-time",
        "duration",
        "email",
        "hostname",
        "ipv4",
        "ipv6",
        "json-pointer",
        "regex",
        "time",
        "uri",
        "uri-reference",
        "uuid",
    ]
)

# Keywords that say nothing about the document by themselves.
SAY_NOTHING = frozenset(
    [
        "$anchor",
        "$comment",
        "$defs",
        "$dynamicAnchor",
        "$id",
        "$recursiveAnchor",
        "$schema",
        "$vocabulary",
        "contentEncoding",
        "contentMediaType",
        "contentSchema",
        "default",
        "definitions",
        "deprecated",
        "description",
        "example",
        "examples",
        "id",
        "readOnly",
        "title",
        "writeOnly",
    ]
)

_OF_ONE_SCHEMA = frozenset(
    [
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentSchema",
    ]
)

_OF_SCHEMAS = frozenset(["allOf", "anyOf", "items", "oneOf", "prefixItems"])

_OF_NAMED_SCHEMAS = frozenset(
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]
)

_OF_VALUES = frozenset(
    [
        "$dynamicRef",
        "$recursiveRef",
        "$ref",
        "const",
        "dependentRequired",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "maxContains",
        "maxItems",
        "maxLength",
        "maxProperties",
        "maximum",
        "minContains",
        "minItems",
        "minLength",
        "minProperties",
        "minimum",
        "multipleOf",
        "pattern",
        "required",
        "type",
        "uniqueItems",
    ]
)

# Keywords that not every draft has: the indexes in DRAFTS of the first and the last that has them.
_DRAFTS_OF = {
    "$dynamicRef": (4, 4),
    "$recursiveRef": (3, 3),
    "additionalItems": (0, 3),
    "const": (1, 4),
    "contains": (1, 4),
    "dependencies": (0, 2),
    "dependentRequired": (3, 4),
    "dependentSchemas": (3, 4),
    "else": (2, 4),
    "if": (2, 4),
    "maxContains": (3, 4),
    "minContains": (3, 4),
    "prefixItems": (4, 4),
    "propertyNames": (1, 4),
    "then": (2, 4),
    "unevaluatedItems": (3, 4),
    "unevaluatedProperties": (3, 4),
}


def unknown_word(schema: dict[str, object]) -> str:
    """Return the error about the first keyword or format of a schema that checks nothing; "" if there is none."""
    name = schema.get("$schema", DRAFTS[LATEST])
    plain = name.rstrip("#") if isinstance(name, str) else ""
    if plain not in DRAFTS:
        return ""  # the worker refuses the draft
    draft = DRAFTS.index(plain)
    known = {
        word
        for word in (SAY_NOTHING | _OF_ONE_SCHEMA | _OF_SCHEMAS | _OF_NAMED_SCHEMAS | _OF_VALUES)
        if (bounds := _DRAFTS_OF.get(word, (0, LATEST)))[0] <= draft <= bounds[1]
    }
    for path, subschema in _schemas(schema, "$"):
        for word in subschema:
            if word not in known and not word.startswith("x-"):
                of_another = " in this draft" if word in _DRAFTS_OF else ""
                return f"at {path}: unknown keyword {word!r:.80}{of_another}; {suggest(word, sorted(known))}"
        form = subschema.get("format")
        if isinstance(form, str) and form not in FORMATS:
            return f"at {path}.format: unknown format {form!r:.80}; known are {', '.join(sorted(FORMATS))}"
    return ""


def _schemas(schema: object, path: str) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield a schema and all schemas in it, each with its path."""
    if not isinstance(schema, dict):
        return
    yield path, schema
    for word, value in schema.items():
        place = f"{path}.{word}"
        if word in _OF_ONE_SCHEMA and isinstance(value, dict):
            yield from _schemas(value, place)
        elif word in _OF_SCHEMAS and isinstance(value, list):
            for at, item in enumerate(value):
                yield from _schemas(item, f"{place}[{at}]")
        elif word in _OF_NAMED_SCHEMAS and isinstance(value, dict):
            for name, member in value.items():
                yield from _schemas(member, f"{place}.{name}")


Schema = dict[str, Json]
SchemaFile = Annotated[str, Meta(min_length=1)]
MOST_NAMES = 10  # of additional members that a failure shows
MAX_SCHEMA_BYTES = 1024 * 1024  # of a file with a schema
LIMIT = 5.0  # seconds for one document
GRACE = 3.0  # seconds until a child that survives its own alarm is killed
_WORKER = str(Path(__file__).with_name("json_schema_worker.py"))


class SchemaFailed(Exception):
    """Invalid schema; str() is the reason."""


class SchemaTooSlow(SchemaFailed):
    """Validation that did not end within its limit."""


def problem(schema: object) -> str:
    """Return an error in a schema that shows without validation, or ""; other errors show during validation."""
    if not isinstance(schema, dict):
        return f"expected a JSON Schema, which is an object, found {shown(schema)}"
    if all(word in SAY_NOTHING or word.startswith("x-") for word in schema):
        return "this schema checks nothing; every document matches it"
    try:
        return unknown_word(schema)
    except RecursionError:
        return "the schema is nested too deeply"


def check_schema(schema: Schema, document: object, *, where: str, limit: float = LIMIT, redact: Redact = str) -> Check:
    """Validate a document by a schema, `format` included.

    Args:
        schema: of the draft in its `$schema`. Default: 2020-12.
        where: name of the document in messages: `body`.
        limit: seconds.

    Raises:
        SchemaFailed, SchemaTooSlow: see there.
    """
    answer = _ask(schema, json.dumps(document), limit)
    if "wrong" in answer:
        raise SchemaFailed(f"the schema can't be used: {answer['wrong']}")
    if not answer["errors"]:
        return Check(ok=True, what="to fit the schema", where=where)
    steps = answer["at"]
    assert isinstance(steps, list)
    found = document
    for step in steps:
        if isinstance(found, list):
            found = found[step] if isinstance(step, int) else None
        elif isinstance(found, dict):
            found = found[step]
    path = _path(steps)
    redact = redact_named(path, redact)
    missing = answer.get("missing")
    more = f"; {answer['errors']} places don't fit" if answer["errors"] != 1 else ""
    if isinstance(others := answer.get("others"), list) and others:
        more += ", also " + ", ".join(f"${_path(at)} ({keyword})" for at, keyword in others)
    what, expected = "to fit the schema's", "false"
    if isinstance(additional := answer.get("additional"), list) and additional:
        more = f" with {', '.join(quoted(name, redact) for name in additional[:MOST_NAMES])}{more}"
    if isinstance(missing, list):
        what = "to have the required member" + ("s" if len(missing) > 1 else "")
        expected = ", ".join(quoted(name, redact) for name in missing)
    elif answer["keyword"]:
        expected = f"{answer['keyword']}: {shown(answer['value'], redact)}"
    return Check(
        False,  # noqa: FBT003  # as Check has it
        what,
        expected,
        f"{shown(found, redact)} ({type_name(found)}){more}",
        where=f"{where} at ${path}",
    )


def _path(steps: list[str | int]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else member_path(step) for step in steps)


def check_against_schemas(
    schema: Schema | UnsetType,
    path: str | UnsetType,
    document: object,
    *,
    where: str,
    workdir: Path | None,
    searcher: Searcher,
    redact: Redact,
) -> Iterator[Check]:
    """Yield the check of a document by a schema, and by the schema in a file, if they are given.

    Raises:
        OperationFailed: a schema or its file is not usable, whatever the document is.
    """
    schemas = [] if isinstance(schema, UnsetType) else [schema]
    if not isinstance(path, UnsetType):
        schemas.append(_schema_of(path, workdir))
    for each in schemas:
        try:
            limit = min(LIMIT, searcher.remaining())
            yield check_schema(each, document, where=where, limit=limit, redact=redact)
        except (SchemaTooSlow, RecursionError) as error:
            yield Check.failed("to be checked by its schema", f"an error: {error}", where=where)
        except SchemaFailed as error:
            raise OperationFailed(f"can't check {where} by its schema", error=f"jsonSchema: {error}") from error


def _schema_of(path: str, workdir: Path | None) -> Schema:
    if workdir is None:
        raise OperationFailed(
            f"can't read the schema {path!r}",
            error=f"jsonSchemaFile {path!r}: this operation has no access to files; use `jsonSchema`",
        )
    with os_errors("read", path):
        data = Workdir(workdir).read(path, limit=MAX_SCHEMA_BYTES)
    try:
        schema = parse(data.decode())
        wrong = problem(schema)
    except (NotJson, UnicodeDecodeError) as error:
        schema, wrong = None, str(error)
    if wrong or not isinstance(schema, dict):
        raise OperationFailed(f"can't use the schema {path!r}", error=f"jsonSchemaFile {path!r}: {wrong}")
    return schema


def _ask(schema: Schema, text: str, limit: float) -> dict[str, object]:
    if limit <= 0:
        raise SchemaTooSlow(TIME_UP)
    header = json.dumps({"path": sys.path, "schema": schema}).encode()
    command = [sys.executable, "-I", "-S", "-W", "ignore", _WORKER, str(limit)]
    try:
        # An empty environment: it has secrets, and PYTHON… variables would change the child.
        done = subprocess.run(
            command,
            input=header + b"\n" + text.encode("utf-8", "surrogatepass"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={},
            timeout=limit + GRACE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise SchemaTooSlow(_too_long(limit)) from None
    except OSError as error:
        raise SchemaFailed(f"no process for the schema: {error}") from error
    if done.returncode == -signal.SIGALRM:
        raise SchemaTooSlow(_too_long(limit))
    if done.returncode or not done.stdout:
        raise SchemaFailed(f"the process that validates by the schema ended with status {done.returncode}")
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


def _too_long(limit: float) -> str:
    return f"validating the document by the schema took longer than {limit:.3g} s; make the schema simpler"
