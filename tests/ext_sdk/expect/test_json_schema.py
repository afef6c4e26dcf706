"""JSON held against a JSON Schema, whatever the schema does."""

from __future__ import annotations

import json
import socket

import pytest

from ext_sdk.expect.json_schema import SchemaFailed, check_schema, problem


def told(schema: dict[str, object], document: object, limit: float = 5.0) -> str:
    check = check_schema(schema, json.dumps(document), document, where="body", limit=limit)
    return "" if check.ok else str(check)


@pytest.mark.parametrize(
    ("schema", "document"),
    [
        ({"type": "integer"}, 1.0),
        ({"const": 1}, 1.0),
        ({"const": 9007199254740993}, 9007199254740993),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "string"}}}, "x"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {}, "type": "null"}, None),
        ({"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 1, "exclusiveMinimum": True}, 2),
        ({"format": "email"}, "no address"),
        ({"properties": {"child": {"$ref": "#"}}, "required": ["name"]}, {"name": 1, "child": {"name": 2}}),
    ],
)
def test_a_document_fits_its_schema(schema: dict[str, object], document: object) -> None:
    assert told(schema, document) == ""


@pytest.mark.parametrize(
    ("schema", "document", "text"),
    [
        ({"type": "integer"}, "1", 'body at $: expected to fit the schema\'s type: "integer", got "1" (string)'),
        ({"const": 1}, True, "const: 1, got true (boolean)"),
        ({"const": 9007199254740993}, 9007199254740992, "got 9007199254740992 (integer)"),
        ({"items": {"type": "string"}}, ["a", 1, 2], "got 1 (integer); 2 places don't fit"),
        ({"properties": {"a b": {"items": {"minimum": 3}}}}, {"a b": [3, 2]}, 'body at $["a b"][1]: expected to fit'),
        ({"properties": {"a": False}}, {"a": 1}, "expected to fit the schema's false, got"),
        ({"additionalProperties": False}, {"a": 1}, "additionalProperties: false"),
    ],
)
def test_a_failure_says_the_place_the_keyword_and_the_value(
    schema: dict[str, object], document: object, text: str
) -> None:
    assert text in told(schema, document)


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "objct"}, "the schema can't be used: at $.type"),
        ({"$ref": "#"}, "refers to itself without end"),
        ({"$ref": "#/$defs/missing"}, "leads to nothing within the schema"),
        ({"$ref": "file:///etc/passwd"}, "nothing is fetched"),
        ({"$schema": "https://example.com/own", "type": "object"}, "$schema: expected one of https://json-schema.org/"),
        ({"$schema": 7, "type": "object"}, "$schema: expected one of"),
        ({"pattern": "("}, "the schema can't be used"),
    ],
)
def test_a_schema_that_can_not_be_used_is_an_error_of_its_own(schema: dict[str, object], text: str) -> None:
    with pytest.raises(SchemaFailed) as failed:
        told(schema, "x")
    assert text in str(failed.value)


def test_a_schema_without_end_is_ended() -> None:
    with pytest.raises(SchemaFailed, match=r"took longer than 0\.5 s"):
        told({"pattern": "^(a+)+$"}, "a" * 60 + "b", limit=0.5)


def test_nothing_is_fetched() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        with pytest.raises(SchemaFailed, match="nothing is fetched"):
            told({"$ref": f"http://127.0.0.1:{server.getsockname()[1]}/schema.json"}, 1)
        with pytest.raises(BlockingIOError):
            server.accept()


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({}, "checks nothing"),
        ({"$defs": {"a": {"type": "string"}}, "title": "x"}, "checks nothing"),
        (True, "expected a JSON Schema, which is an object, found true"),
        ([], "expected a JSON Schema"),
        ({"type": "string"}, ""),
    ],
)
def test_a_schema_that_checks_nothing_is_known_before(schema: object, text: str) -> None:
    assert text in problem(schema) if text else not problem(schema)
