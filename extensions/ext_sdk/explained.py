"""Operations and results, as people read them in a terminal."""

from __future__ import annotations

import shlex
import textwrap
from typing import TYPE_CHECKING

import msgspec

from .alternatives import rules_text
from .schema import branches_of, params_schema, properties_of
from .wire import dumps

if TYPE_CHECKING:
    from .extension import Extension
    from .operation import Operation
    from .result import Result
    from .schema import Schema

WIDTH = 110  # columns of a list of members


def operations_text(extension: Extension, program: str) -> str:
    """All operations, and how to call one; other names of operations stand apart.

    Args:
        extension: whose operations.
        program: its name.
    """
    known = extension.operations
    main = [one for one in known.values() if not one.same_as]
    others = [one for one in known.values() if one.same_as]
    width = max(map(len, known), default=0)
    lines = ["operations:", *(f"  {one.name:<{width}}  {_first_line(one.description)}" for one in main), ""]
    if others:
        lines += ["other names:", *(f"  {one.name:<{width}}  {one.same_as}" for one in others), ""]
    first = next(iter(known), "OPERATION")
    example = next((one for one in main if one.example), None)
    return "\n".join(
        [
            *lines,
            "examples:",
            f"  {program} call {first} --describe",
            f"  {_typed(example, program) if example else f'{program} call {first}'}",
            f"  {program} --manifest",
        ]
    )


def operation_text(operation: Operation, program: str) -> str:
    """One operation: its description, its arguments, its example."""
    required = {field.encode_name for field in msgspec.structs.fields(operation.args_type) if field.required}
    rules = rules_text(operation.args_type)
    lines = [f"{operation.name}: {operation.description}", "", f"arguments{f' ({rules})' if rules else ''}:"]
    for field, schema in properties_of(params_schema(operation.args_type)).items():
        fallback = f", default {dumps(schema['default'])}" if "default" in schema else ""
        lines.append(f"  {field} ({_kind(schema)}{', required' if field in required else fallback})")
        if "description" in schema:
            lines.append(f"      {schema['description']}")
        if members := _members(schema):
            text = f"members: {', '.join(members)}"
            lines += textwrap.wrap(text, WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 8)
    if operation.example:
        lines += ["", "example:", f"  {_typed(operation, program)}"]
    return "\n".join(lines)


def result_text(result: Result) -> str:
    """How an operation ended, and its outputs."""
    lines = [("ok: " if result.success else "failed: ") + result.message]
    if not result.success and result.error and result.error != result.message:
        lines.append(result.error)
    for name, value in result.outputs.items():
        text = value.rstrip("\n")
        lines.append(f"  {name}: {text}" if "\n" not in text else f"  {name}:\n    " + text.replace("\n", "\n    "))
    return "\n".join(lines)


def _typed(operation: Operation, program: str) -> str:
    """An operation's example as a person types it."""
    return f"{program} call {operation.name} {shlex.quote(dumps(operation.example))}"


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _items(schema: Schema) -> Schema:
    """Return the schema of the items of a list, {} for anything else."""
    items = schema.get("items")
    return items if isinstance(items, dict) else {}


def _members(schema: Schema) -> list[str]:
    """Return the names of the members of an object, or of each object of a list."""
    branches = [_items(branch) or branch for branch in branches_of(schema)]
    return list(dict.fromkeys(name for branch in branches for name in properties_of(branch)))


def _kind(schema: Schema) -> str:
    """What a value is, in a word or two."""
    branches = branches_of(schema)
    if branches != [schema]:
        return " or ".join(_kind(branch) for branch in branches)
    if "enum" in schema:
        return dumps(schema["enum"])
    return str(schema.get("type", "any value"))
