"""Manifest of an extension within the limit of its line, with repeated schemas as `$defs`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from ext_sdk.core import gevals_spec
from ext_sdk.core.wire.json_codec import dumps

from .line_limit import ID_LIMIT_BYTES, LINE_LIMIT_BYTES
from .schema import params_schema

if TYPE_CHECKING:
    from ext_sdk.args import Schema
    from ext_sdk.definition import Definition


SMALLEST_BYTES = 100  # an object that is shorter than this is not worth a reference
SMALLEST_UNION_BYTES = 50
SMALLEST_TEXT_BYTES = 50  # of a string with a pattern


def extract_definitions(schema: Schema, *, unions: bool = False) -> Schema:
    """Return the schema with its repeated objects and patterns under `$defs`.

    Each is named by its title, or after the first property that has it.

    Args:
        unions: also extract repeated alternatives (`anyOf`), which makes the schema shorter and harder to read.
    """
    counts: Counter[str] = Counter()
    _count(schema, counts, unions)
    repeated = {text for text, count in counts.items() if count > 1}
    if not repeated:
        return schema
    definitions: dict[str, tuple[str, Schema]] = {}  # by the text of a definition: its name and schema
    members = _members(schema, "", repeated, definitions)
    return members | {"$defs": dict(definitions.values())}


def _count(schema: object, counts: Counter[str], unions: bool) -> None:
    """Count possible definitions; those within a repeated one are counted once."""
    if isinstance(schema, list):
        for item in schema:
            _count(item, counts, unions)
    if isinstance(schema, dict):
        if (unions or "anyOf" not in schema) and (text := _identity(schema)):
            counts[text] += 1
            if counts[text] > 1:
                return
        for value in schema.values():
            _count(value, counts, unions)


def _identity(schema: Schema) -> str:
    """Return the text of a schema that is worth a reference, without the description that belongs to its property."""
    if schema.get("type") == "object" and "properties" in schema:
        smallest = SMALLEST_BYTES
    elif isinstance(schema.get("anyOf"), list):
        smallest = SMALLEST_UNION_BYTES
    elif schema.get("type") == "string" and isinstance(schema.get("pattern"), str):
        smallest = SMALLEST_TEXT_BYTES
    else:
        return ""
    text = dumps({key: value for key, value in schema.items() if key not in _OF_THE_PLACE})
    return text if len(text) >= smallest else ""


_OF_THE_PLACE = ("description", "default")


def _referring(schema: object, name: str, repeated: set[str], definitions: dict[str, tuple[str, Schema]]) -> object:
    """Return the schema with references; `name` is that of the property it describes."""
    if isinstance(schema, list):
        return [_referring(item, name, repeated, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    text = _identity(schema)
    if text in repeated:
        of_the_place = {key: value for key, value in schema.items() if key in _OF_THE_PLACE}
        if text not in definitions:
            title, taken = str(schema.get("title") or name), {definition for definition, _ in definitions.values()}
            names = (f"{title}{number or ''}" for number in range(len(taken) + 1))
            free = next(name for name in names if name not in taken)
            definitions[text] = (free, {})  # first: reserves the name for schemas within
            definition = {key: value for key, value in schema.items() if key not in of_the_place}
            definitions[text][1].update(_members(definition, name, repeated, definitions))
        return {"$ref": f"#/$defs/{definitions[text][0]}"} | of_the_place
    return _members(schema, name, repeated, definitions)


def _members(
    schema: Schema, name: str, repeated: set[str], definitions: dict[str, tuple[str, Schema]]
) -> dict[str, object]:
    members: dict[str, object] = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            members[key] = {
                property: _referring(member, property, repeated, definitions) for property, member in value.items()
            }
        elif key in ("default", "enum", "examples"):
            members[key] = value
        else:
            members[key] = _referring(value, name, repeated, definitions)
    return members


LIMIT_BYTES = LINE_LIMIT_BYTES - ID_LIMIT_BYTES - 64  # of the manifest; the response adds its id and under 64 bytes


class Detail(NamedTuple):
    """Level of detail of descriptions.

    Attributes:
        depth: depth of descriptions: 1 for arguments alone, 2 for their members too.
        short: first sentences instead of complete descriptions.
        once: omit a description that an argument of the same name has before, in this operation or another.
        unions: extract repeated alternatives.
        bare: omit examples, defaults except those of arguments, defaults that are empty or false, and all but the first
            paragraph of the operation's description; write several types as one list.
        plain: omit all defaults and titles.
    """

    depth: int
    short: bool = True
    once: bool = False
    unions: bool = False
    bare: bool = False
    plain: bool = False


ALL = 1000  # deeper than schemas are

# References of unions are used only if they make room for descriptions.
DETAILS = (
    Detail(ALL, short=False),
    Detail(ALL),
    Detail(ALL, once=True),
    Detail(2, once=True, unions=True),
    Detail(1, once=True, unions=True),
    Detail(1, once=True, unions=True, bare=True),
    Detail(0, bare=True),
    Detail(0, unions=True, bare=True),
    Detail(0, unions=True, bare=True, plain=True),
)


def build_manifest(extension: Definition) -> dict[str, object]:
    """Return the manifest of an extension (gevals 0.0.1, "Initialize"), with descriptions as long as the line allows.

    Descriptions are shortened in one operation after the other: first in aliases of operations, then in the order of
    the bytes that it saves.

    Raises:
        ValueError: it has no operations, or does not fit on a line even without descriptions of arguments.
    """
    if not extension.operations:
        raise ValueError(f"extension {extension.name!r} has no operations; add one with @extension.operation()")
    schemas = {name: params_schema(operation.args_type) for name, operation in extension.operations.items()}
    operations = _operations(extension, schemas, DETAILS[0])
    manifest: dict[str, object] = {
        "name": extension.name,
        "version": extension.version,
        "protocolVersion": gevals_spec.PROTOCOL_VERSION,
    }
    if extension.description:
        manifest["description"] = extension.description
    if extension.requires:
        manifest["requires"] = [{"command": command} for command in extension.requires]
    manifest["operations"] = operations
    size = _size(manifest)
    for detail in DETAILS[1:]:
        shorter = _operations(extension, schemas, detail)
        savings = {name: _size(operations[name]) - _size(shorter[name]) for name in operations}
        for name in sorted(savings, key=lambda name: (not extension.operations[name].same_as, -savings[name])):
            if size <= LIMIT_BYTES:
                return manifest
            if savings[name] > 0:
                operations[name] = shorter[name]
                size -= savings[name]
    if size <= LIMIT_BYTES:
        return manifest
    raise ValueError(
        f"the manifest of {extension.name!r} does not fit on a line of {LIMIT_BYTES} bytes: too many operations"
    )


def _size(value: object) -> int:
    return len(dumps(value).encode())


def _operations(extension: Definition, schemas: dict[str, Schema], detail: Detail) -> dict[str, object]:
    seen: set[tuple[str, str]] = set()
    return {
        name: {
            "description": operation.description.partition("\n\n")[0] if detail.bare else operation.description,
            "params": extract_definitions(_described(schemas[name], detail, 0, seen), unions=detail.unions),
        }
        for name, operation in extension.operations.items()
    }


def _described(schema: Schema, detail: Detail, depth: int, seen: set[tuple[str, str]], name: str = "") -> Schema:
    """Return a schema with its descriptions shortened. A property may itself be named `description` or `default`.

    Args:
        schema: of the arguments, or of something within them.
        detail: what is left.
        depth: 1 for an argument, 2 for a member of one.
        seen: names of arguments and descriptions that are not repeated; it gets those of this schema.
        name: of the argument.
    """
    shorter: Schema = {}
    for key, value in schema.items():
        if key == "description" and isinstance(value, str):
            if depth <= detail.depth and (name, value) not in seen:
                shorter[key] = value.partition(". ")[0] if detail.short else value
                if detail.once:
                    seen.add((name, value))
        elif (key in ("default", "examples") and detail.bare) or (key == "title" and detail.plain):
            has_content = any(value.values()) if isinstance(value, dict) else value
            if key == "default" and depth == 1 and has_content and not detail.plain:
                shorter[key] = value
        elif key == "properties" and isinstance(value, dict):
            shorter[key] = {member: _described(item, detail, depth + 1, seen, member) for member, item in value.items()}
        elif key == "anyOf" and isinstance(value, list):
            branches = [_described(item, detail, depth, seen, name) for item in value]
            shorter |= {key: branches} if not detail.bare else _merged(branches)
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            shorter[key] = _described(value, detail, depth, seen, name)
        else:
            shorter[key] = value
    return shorter


def _merged(branches: list[Schema]) -> Schema:
    """Return the schema of a union; its types without further rules are one list."""
    plain = [branch["type"] for branch in branches if branch.keys() == {"type"}]
    others = [branch for branch in branches if branch.keys() != {"type"}]
    if len(plain) < 2:
        return {"anyOf": branches}
    merged: Schema = {"type": plain}
    return {"anyOf": [merged, *others]} if others else merged
