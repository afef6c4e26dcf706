"""Shorter schemas: an object or a pattern that occurs several times is defined once, under `$defs`.

An expectation on text, for example, has twenty members and occurs in a dozen places; with each of them repeated, a
manifest of some ten operations would not fit a line. A reference leads no further than its own operation: hosts take
the `params` of each for a schema by itself.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from .wire import dumps

if TYPE_CHECKING:
    from .schema import Schema

SMALLEST_BYTES = 100  # an object that is shorter than this is not worth a reference
SMALLEST_UNION_BYTES = 50
SMALLEST_TEXT_BYTES = 50  # of a string with a pattern


def shared(schema: Schema, *, unions: bool = False) -> Schema:
    """Return the schema with its repeated objects and patterns under `$defs`.

    Each is named by its title, or after the first property that has it.

    Args:
        schema: of the arguments of an operation.
        unions: tell repeated alternatives (`anyOf`) once, too. Whoever reads has to look up more.
    """
    counts: Counter[str] = Counter()
    _count(schema, counts, unions)
    repeated = {text for text, count in counts.items() if count > 1}
    if not repeated:
        return schema
    definitions: dict[str, tuple[str, Schema]] = {}  # the text of what is shared: its name, and what stands under it
    members = _members(schema, "", repeated, definitions)
    return members | {"$defs": dict(definitions.values())}


def _count(schema: object, counts: Counter[str], unions: bool) -> None:
    """Count what may be shared; what is within a repeated one is counted once."""
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
    """The text of what is worth a reference, without the description that belongs to where it stands."""
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
    """The schema with references; `name` is that of the property it describes."""
    if isinstance(schema, list):
        return [_referring(item, name, repeated, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    text = _identity(schema)
    if text in repeated:
        of_the_place = {key: value for key, value in schema.items() if key in _OF_THE_PLACE}
        if text not in definitions:
            title = str(schema.get("title") or name)
            definitions[text] = (_free(title, definitions), {})  # first, so that what is within finds its name taken
            whole = {key: value for key, value in schema.items() if key not in of_the_place}
            definitions[text][1].update(_members(whole, name, repeated, definitions))
        return {"$ref": f"#/$defs/{definitions[text][0]}"} | of_the_place
    return _members(schema, name, repeated, definitions)


def _members(
    schema: Schema, name: str, repeated: set[str], definitions: dict[str, tuple[str, Schema]]
) -> dict[str, object]:
    members: dict[str, object] = {}
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            members[key] = {one: _referring(item, one, repeated, definitions) for one, item in value.items()}
        elif key in ("default", "enum", "examples"):
            members[key] = value
        else:
            members[key] = _referring(value, name, repeated, definitions)
    return members


def _free(name: str, definitions: dict[str, tuple[str, Schema]]) -> str:
    taken = {one for one, _ in definitions.values()}
    return next(f"{name}{number or ''}" for number in range(len(taken) + 1) if f"{name}{number or ''}" not in taken)
