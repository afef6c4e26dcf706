"""Short ways to write JSON Schema (draft 2020-12)."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import TypeAlias

    Schema: TypeAlias = Mapping[str, object]

ANY: Schema = {}
TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": "number"}
FLAG: Schema = {"type": "boolean"}
OBJECT: Schema = {"type": "object"}
LIST: Schema = {"type": "array"}
TEXTS: Schema = {"type": "array", "items": TEXT}
# RFC 3339. Pi asks for it by `format`, which validators are free not to look at.
INSTANT: Schema = {
    "type": "string",
    "pattern": r"^\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})$",
}


def record(**fields: Schema) -> Schema:
    """An object with these members; those whose name ends with an underscore may be missing. Others are allowed."""
    return {
        "type": "object",
        "required": [name for name in fields if not name.endswith("_")],
        "properties": {name.removesuffix("_"): schema for name, schema in fields.items()},
    }


def maybe(fields: Mapping[str, Schema]) -> Schema:
    """An object that may have these members, under names that are no identifiers."""
    return {"type": "object", "properties": dict(fields)}


def list_of(schema: Schema) -> Schema:
    """An array of these."""
    return {"type": "array", "items": schema}


def map_of(schema: Schema) -> Schema:
    """An object whose members all are this."""
    return {"type": "object", "additionalProperties": schema}


def one_of(*values: object) -> Schema:
    """One of these values."""
    return {"enum": list(values)}


def either(*schemas: Schema) -> Schema:
    """One of these, at least."""
    return {"anyOf": list(schemas)}


def both(*schemas: Schema) -> Schema:
    """All of these."""
    return {"allOf": list(schemas)}


# JSON-RPC 2.0, section 5.1.
ERROR = record(code=WHOLE, message=TEXT, data_=ANY)
VERSION_2 = record(jsonrpc={"const": "2.0"})
