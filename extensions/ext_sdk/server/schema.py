"""JSON Schema of a class of arguments, as far as hosts read it: no references, defaults, descriptions.

Hosts check arguments by it before they call. mcpchecker uses Go's jsonschema: `pattern` must be RE2, and
`additionalProperties: false` is its only guard against misspelled names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec import inspect

from ext_sdk.duration import DURATION_PATTERN, Duration
from ext_sdk.references import COMPUTED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_sdk.args import Args, Schema


# A text with a reference `${NAME.key}` is a duration once the reference is replaced.
DURATION_SCHEMA: Schema = {
    "type": "string",
    "title": "duration",
    "pattern": rf"{DURATION_PATTERN}|\$\{{",
}

# Arguments that the SDK accepts for every operation; short, because each operation of the manifest has them. `\w` is
# ASCII in RE2 and ECMAScript; the session checks the characters of names.
COMMON: dict[str, Schema] = {
    "as": {"type": "string", "pattern": r"^[\w-]*$", "description": "Keep outputs for later steps: ${NAME.key}"},
    "scope": {"type": "string", "pattern": r"^[\w-]*$", "description": "Separates tasks of one workdir"},
    "verbatim": {"type": "boolean", "description": "Replace no ${NAME.key}"},
}


def params_schema(args_type: type[Args]) -> Schema:
    """Return the `params` of an operation (gevals 0.0.1, "Operation Object").

    Common arguments are added, unless the operation has an argument of that name.
    """
    schema = object_schema(args_type)
    properties = properties_of(schema)
    schema |= {"properties": properties | COMMON | properties}
    alternatives = schema.get("oneOf")
    if isinstance(alternatives, list):
        for branch in alternatives:  # errors of mcpchecker name a branch by its anchor only
            branch["$anchor"] = branch["required"][0]
    return schema


def object_schema(args_type: type[Args]) -> Schema:
    """Return the JSON Schema of a class of arguments. Raises TypeError for a field of a type that has no JSON."""
    return _of(inspect.type_info(args_type), ())


def branches_of(schema: Schema) -> list[Schema]:
    """Return the schemas of which a value must match one; `anyOf` of an object with properties is not split."""
    branches = schema.get("anyOf") if "properties" not in schema else None
    return [inner for branch in branches for inner in branches_of(branch)] if isinstance(branches, list) else [schema]


def properties_of(schema: Schema) -> dict[str, Schema]:
    """Return the properties of an object's schema by name; those of all branches if there are several."""
    properties: dict[str, Schema] = {}
    for branch in branches_of(schema):
        own = branch.get("properties")
        properties |= own if isinstance(own, dict) else {}
    return properties


def _of(kind: inspect.Type, within: tuple[type, ...]) -> Schema:
    """Return the schema of one type. `within`: the enclosing classes, so that a recursive one ends."""
    if isinstance(kind, inspect.Metadata):
        schema = _of(kind.type, within) | (kind.extra_json_schema or {})
        return _computed(schema) if (kind.extra or {}).get("references") == COMPUTED else schema
    if isinstance(kind, inspect.StructType):
        return _struct(kind, within)
    if isinstance(kind, inspect.UnionType):
        types = [member.type if isinstance(member, inspect.Metadata) else member for member in kind.types]
        if any(isinstance(member, inspect.StrType) and member.pattern for member in types) and any(
            isinstance(member, _CONTAINERS) for member in types
        ):
            # Seen with 0.22: PYTHONMALLOC=debug shows it at each collection.
            raise TypeError(
                "msgspec crashes in the garbage collector if a str with a pattern may also be a container; "
                "give the pattern in extra_json_schema, and check it in __post_init__"
            )
        # None makes the argument optional, and is not offered.
        branches = [_of(member, within) for member in kind.types if not isinstance(member, inspect.NoneType)]
        if {"type": "number"} in branches:  # an integer is a number
            branches = [branch for branch in branches if branch != {"type": "integer"}]
        return branches[0] if len(branches) == 1 else {"anyOf": branches}
    if isinstance(kind, (inspect.ListType, inspect.VarTupleType)):
        return {"type": "array", "items": _of(kind.item_type, within)} | _limits(kind, "Items")
    if isinstance(kind, inspect.DictType):
        return {"type": "object", "additionalProperties": _of(kind.value_type, within)} | _limits(kind, "Properties")
    return _scalar(kind)


def _computed(schema: Schema) -> Schema:
    """Return the schema of a number, or of a string with a pattern, that also accepts a text with a reference."""
    if "pattern" in schema:
        return schema | {"pattern": rf"{schema['pattern']}|\$\{{"}
    if schema.get("type") not in {"integer", "number"}:
        raise TypeError("Computed marks a number, or a string with a pattern; in a union, write it in that type")
    return schema | {"type": [schema["type"], "string"], "pattern": r"\$\{"}


def _scalar(kind: inspect.Type) -> Schema:
    if isinstance(kind, inspect.StrType):
        return {"type": "string"} | _limits(kind, "Length") | ({"pattern": kind.pattern} if kind.pattern else {})
    if isinstance(kind, (inspect.IntType, inspect.FloatType)):
        limits = {
            "minimum": kind.ge,
            "exclusiveMinimum": kind.gt,
            "maximum": kind.le,
            "exclusiveMaximum": kind.lt,
            "multipleOf": kind.multiple_of,
        }
        name = "integer" if isinstance(kind, inspect.IntType) else "number"
        return {"type": name} | {word: limit for word, limit in limits.items() if limit is not None}
    if isinstance(kind, inspect.LiteralType):
        return {"enum": list(kind.values)}
    if isinstance(kind, inspect.CustomType) and kind.cls is Duration:
        return dict(DURATION_SCHEMA)
    if type(kind) in _PLAIN:
        return dict(_PLAIN[type(kind)])
    name, instead = type(kind).__name__.removesuffix("Type").lower(), _INSTEAD.get(type(kind), "str")
    if isinstance(kind, inspect.CustomType):
        name, instead = kind.cls.__name__, "str, or a subclass of ext_sdk.Args"
    raise TypeError(f"a {name} cannot be an argument; write {instead}")


def _struct(kind: inspect.StructType, within: tuple[type, ...]) -> Schema:
    if kind.cls in within:
        return {"type": "object"}
    inner = (*within, kind.cls)
    properties: dict[str, Schema] = {}
    last = getattr(kind.cls, "fields_last", ())
    for field in sorted(kind.fields, key=lambda field: last.index(field.name) + 1 if field.name in last else 0):
        try:
            properties[field.encode_name] = _of(field.type, inner)
        except TypeError as error:
            raise TypeError(f"{kind.cls.__name__}.{field.name}: {error}") from error
        if field.default is not msgspec.NODEFAULT and field.default is not None:
            properties[field.encode_name] |= {"default": msgspec.to_builtins(field.default, enc_hook=str)}
    required = [field.encode_name for field in kind.fields if field.required]
    if kind.tag_field is not None:
        tag: Schema = {"enum": [kind.tag]}
        properties = {kind.tag_field: tag} | properties
        required = [kind.tag_field, *required]
    schema: Schema = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    schema["additionalProperties"] = not kind.forbid_unknown_fields
    names = {field.name: field.encode_name for field in kind.fields}
    for rule in getattr(kind.cls, "__alternatives__", ()):
        schema[rule.keyword] = rule.schema(kind.cls, names)
    return schema


def _limits(kind: inspect.StrType | inspect.ListType | inspect.VarTupleType | inspect.DictType, what: str) -> Schema:
    limits = {f"min{what}": kind.min_length, f"max{what}": kind.max_length}
    return {word: limit for word, limit in limits.items() if limit is not None}


_CONTAINERS = (inspect.ListType, inspect.VarTupleType, inspect.DictType)

# Types to write in place of those without JSON.
_INSTEAD: Mapping[type, str] = {
    inspect.SetType: "list",
    inspect.FrozenSetType: "list",
    inspect.TupleType: "list",
    inspect.EnumType: "Literal",
    inspect.DecimalType: "float",
    **dict.fromkeys(
        (inspect.DataclassType, inspect.TypedDictType, inspect.NamedTupleType), "a subclass of ext_sdk.Args"
    ),
}

_PLAIN: Mapping[type, Schema] = {
    inspect.AnyType: {},
    inspect.BoolType: {"type": "boolean"},
    inspect.NoneType: {"type": "null"},
}
