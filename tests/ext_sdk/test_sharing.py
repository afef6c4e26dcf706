"""A schema that is told once says what it said when it was told everywhere."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

import ext_sdk
from ext_sdk.schema import Schema, params_schema
from ext_sdk.sharing import shared


class Range(ext_sdk.Args, frozen=True):
    least: Annotated[int, Meta(description="The smallest that is accepted, itself included, and nothing below it")] = 0
    most: Annotated[int, Meta(description="The largest that is accepted, itself included, and nothing above it")] = 9


class Window(ext_sdk.Args, frozen=True):
    width: Annotated[Range | int, Meta(description="From left to right")] = 1
    height: Annotated[Range | int, Meta(description="From top to bottom")] = 1
    depth: Annotated[Range, Meta(description="From front to back")] = Range()


class Plain(ext_sdk.Args, frozen=True):
    only: Range = Range()


def resolved(schema: object, definitions: dict[str, Schema]) -> object:
    """The schema with every reference replaced by what it refers to."""
    if isinstance(schema, list):
        return [resolved(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    own = {key: resolved(value, definitions) for key, value in schema.items() if key not in {"$ref", "$defs"}}
    if "$ref" not in schema:
        return own
    target = resolved(definitions[str(schema["$ref"]).removeprefix("#/$defs/")], definitions)
    assert isinstance(target, dict)
    return target | own


def definitions_of(schema: Schema) -> dict[str, Schema]:
    found = schema.get("$defs", {})
    assert isinstance(found, dict)
    return found


def test_an_object_that_stands_in_several_places_is_told_once_by_the_name_of_the_first() -> None:
    schema = shared(params_schema(Window))
    assert list(definitions_of(schema)) == ["width"]
    assert str(schema).count("The smallest that is accepted") == 1


def test_what_belongs_to_the_place_stays_there() -> None:
    properties = shared(params_schema(Window))["properties"]
    assert isinstance(properties, dict)
    assert properties["depth"] == {
        "$ref": "#/$defs/width",
        "description": "From front to back",
        "default": {"least": 0, "most": 9},
    }


def test_nothing_that_was_said_is_lost() -> None:
    schema = shared(params_schema(Window))
    assert resolved(schema, definitions_of(schema)) == params_schema(Window)


def test_a_schema_without_repetition_is_left_as_it_is() -> None:
    assert shared(params_schema(Plain)) == params_schema(Plain)
