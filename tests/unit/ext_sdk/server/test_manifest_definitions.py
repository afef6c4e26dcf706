"""Schemas that tell a repeated object once: shorter, and meaning the same."""

from __future__ import annotations

import copy

import pytest

from ext_sdk.server.manifest import SMALLEST_BYTES, extract_definitions

TEXT = {
    "type": "object",
    "properties": {
        name: {"type": "string", "description": f"What {name} is"} for name in ("equals", "contains", "matches")
    },
    "additionalProperties": False,
}
PATTERN = {"type": "string", "pattern": "^[0-9]+(milliseconds|seconds|minutes)$"}
SMALL = {"type": "object", "properties": {"a": {"type": "string"}}}
OUTER = {"type": "object", "properties": {"stdout": TEXT, "stderr": {"description": "Errors"} | TEXT}}


def schema(**properties: object) -> dict[str, object]:
    return {"type": "object", "properties": properties}


def expanded(value: object, definitions: dict[str, object]) -> object:
    """The schema with its references followed, as any JSON Schema library reads it."""
    if isinstance(value, list):
        return [expanded(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        target = definitions[value["$ref"].removeprefix("#/$defs/")]
        assert isinstance(target, dict)
        rest = {key: item for key, item in value.items() if key != "$ref"}
        return expanded(target | rest, definitions)
    return {key: expanded(item, definitions) for key, item in value.items() if key != "$defs"}


def definitions_of(found: dict[str, object]) -> dict[str, object]:
    definitions = found.get("$defs", {})
    assert isinstance(definitions, dict)
    return definitions


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (schema(), []),
        (schema(a=TEXT), []),
        (schema(a=SMALL, b=SMALL), []),
        (schema(a=PATTERN, b=PATTERN | {"description": "Another", "default": "0s"}), ["a"]),
        (schema(a=PATTERN | {"title": "time"}, b={"items": PATTERN | {"title": "time"}}), ["time"]),
        (schema(stdout=TEXT, stderr=TEXT), ["stdout"]),
        (schema(stdout=TEXT, stderr=TEXT | {"description": "Errors", "default": {}}), ["stdout"]),
        (schema(first={"type": "array", "items": TEXT}, second=TEXT), ["first"]),
        (schema(first={"anyOf": [{"type": "string"}, TEXT]}, second=TEXT), ["first"]),
        (schema(one=OUTER, two=OUTER), ["one", "stdout"]),
        (schema(one=OUTER, stdout=TEXT), ["stdout"]),
        (schema(description=TEXT, properties=TEXT, default=TEXT), ["description"]),
        (schema(a={"type": "object", "default": TEXT, "enum": [TEXT], "examples": [TEXT, TEXT]}), []),
    ],
)
def test_what_is_repeated_is_told_once_and_means_the_same(given: dict[str, object], names: list[str]) -> None:
    before = copy.deepcopy(given)
    found = extract_definitions(given)
    assert given == before
    assert list(definitions_of(found)) == names
    assert expanded(found, definitions_of(found)) == given


UNION = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "items": {"type": "string"}}, SMALL]}


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (schema(a=UNION), []),
        (schema(a={"anyOf": [{"type": "string"}]}, b={"anyOf": [{"type": "string"}]}), []),
        (schema(a=UNION, b=UNION | {"description": "Another", "default": ""}), ["a"]),
        (schema(a={"type": "array", "items": UNION}, b={"anyOf": [UNION, TEXT]}, c=TEXT), ["a", "b"]),
        (schema(a={"anyOf": [TEXT, {"type": "string"}]}, b={"anyOf": [TEXT, {"type": "string"}]}, c=TEXT), ["a", "a1"]),
        (schema(anyOf=UNION, b=UNION), ["anyOf"]),
    ],
)
def test_alternatives_are_told_once_on_request(given: dict[str, object], names: list[str]) -> None:
    found = extract_definitions(given, unions=True)
    assert sorted(definitions_of(found)) == names
    assert expanded(found, definitions_of(found)) == given
    assert "anyOf" not in str(definitions_of(extract_definitions(given)))


def test_a_name_that_is_taken_gets_a_number() -> None:
    other = TEXT | {"additionalProperties": {"type": "string"}}
    found = extract_definitions(schema(a=schema(x=TEXT), b=schema(x=other), c=TEXT, d=other))
    assert list(definitions_of(found)) == ["x", "x1"]
    assert expanded(found, definitions_of(found)) == schema(a=schema(x=TEXT), b=schema(x=other), c=TEXT, d=other)


def test_the_smallest_shared_object_is_longer_than_its_reference() -> None:
    assert len('{"$ref":"#/$defs/name"}') < SMALLEST_BYTES / 2
