"""JSON held against a JSON Schema, whatever the schema does."""

from __future__ import annotations

import socket
from typing import Any

import pytest
from jsonschema import Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator

from ext_sdk.expect import json_schema_worker
from ext_sdk.expect.json_schema import FORMATS, SchemaFailed, SchemaTooSlow, check_schema, problem, unknown_word


def told(schema: dict[str, object], document: object, limit: float = 5.0) -> str:
    check = check_schema(schema, document, where="body", limit=limit)
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
        ({"format": "email"}, 7),
        (
            {"properties": {"propertys": {"x-note": 1, "type": "integer"}, "format": {}}},
            {"propertys": 1, "format": "x"},
        ),
        ({"const": {"propertys": 1}, "examples": [{"propertys": 1}], "$comment": "propertys"}, {"propertys": 1}),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"a": ["b"]}}, {"a": 1, "b": 2}),
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
        ({"items": {"type": "string"}}, ["a", 1, 2], "got 1 (integer); 2 places don't fit, also $[2] (type)"),
        ({"properties": {"a b": {"items": {"minimum": 3}}}}, {"a b": [3, 2]}, 'body at $["a b"][1]: expected to fit'),
        ({"properties": {"a": False}}, {"a": 1}, "expected to fit the schema's false, got"),
        (
            {"properties": {"a": {"type": "string"}}, "patternProperties": {"^p": {}}, "additionalProperties": False},
            {"a": 1, "pq": 2, "x": 3, "y": 4},
            """(object) with "x", "y"; 2 places don't fit, also $.a (type)""",
        ),
        (
            {"required": ["a", "b"]},
            {"a": 1},
            'body at $: expected to have the required member "b", got {"a": 1} (object)',
        ),
        ({"required": ["a", "b"]}, {}, 'to have the required members "a", "b", got {} (object); 2 places'),
        (
            {"properties": {"x": {"required": ["a"]}}},
            {"x": {}},
            'body at $.x: expected to have the required member "a"',
        ),
        (
            {"items": {"format": "uuid"}},
            ["007"],
            'body at $[0]: expected to fit the schema\'s format: "uuid", got "007"',
        ),
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


FORMATS_OF_TEXTS: dict[str, tuple[list[str], list[str]]] = {
    "date": (
        ["2026-11-22", "2024-02-29"],
        ["2026-02-29", "2026-11-2", "20261122", "2026-W47-7", "22.11.2026", "٢٠٢٦-11-22"],
    ),
    "date-time": (
        ["2026-11-22T16:00:00Z", "2026-11-22t16:00:00.123+02:00", "1998-12-31T23:59:60Z", "1998-12-31T15:59:60-08:00"],
        [
            "007",
            "2026-11-22",
            "2026-11-22 16:00:00Z",
            "2026-11-22T16:00:00",
            "2026-13-01T00:00:00Z",
            "2026-11-22T24:00:00Z",
            "1998-12-31T22:59:60Z",
            "2026-11-22T16:00Z",
            "2026-11-22T16:00:00+2:00",
            "2026-11-22T16:00:00Z\n",
        ],
    ),
    "time": (["16:00:00Z", "16:00:00.5-00:30"], ["16:00", "16:00:00", "16:60:00Z", "4pm", "16:00:00+24:00"]),
    "duration": (["P1D", "PT1H30M", "P2W", "P1Y2M3DT4H5M6S"], ["P", "PT", "1d", "P1H", "30s", "P1DT"]),
    "email": (
        ["ada@example.org", "a.b+c@x", '"a b"@x.org', "a@[127.0.0.1]", "a@[IPv6:::1]"],
        ["no address", "a@", "@b", "a@b@c", "a@-b", ".a@b", "a..b@c", "a@[x]", "a b@c", "a@b."],
    ),
    "hostname": (["localhost", "a-b.example.org", "x" * 63], ["", "a_b", "-a", "a-", "a..b", "a.", "x" * 64, "a b"]),
    "ipv4": (["127.0.0.1"], ["127.0.0", "256.0.0.1", "127.0.0.01", "::1", " 127.0.0.1"]),
    "ipv6": (["::1", "fe80::1", "::ffff:127.0.0.1"], ["127.0.0.1", "fe80::1%eth0", ":::", "12345::"]),
    "uri": (
        ["http://x.org/a?b=c#d", "urn:isbn:1", "http://[::1]:80/", "mailto:a@b", "http://a/%20"],
        [
            "x.org",
            "/a/b",
            "http://a b/",
            "http://a:x/",
            "http://a/%2",
            "http://a/<b>",
            "",
            "http://a/#b#c",
            "http://ä/",
        ],
    ),
    "uri-reference": (["/a/b", "x", "", "?a", "#b", "//h/p"], ["a b", "\\\\x", "a#b#c"]),
    "uuid": (
        ["123e4567-e89b-12d3-a456-426614174000", "00000000-0000-0000-0000-000000000000"],
        [
            "007",
            "123e4567e89b12d3a456426614174000",
            "123e4567-e89b-12d3-a456-42661417400g",
            "{123e4567-e89b-12d3-a456-426614174000}",
        ],
    ),
    "regex": (["^a+$"], ["("]),
    "json-pointer": (["", "/a/0", "/a~0~1"], ["a", "/~", "/~2", "#/a"]),
}


def test_the_formats_of_texts_are_checked() -> None:
    """`date-time`, `email` and `uuid` all accepted "007"."""
    valid = {form: texts for form, (texts, _) in FORMATS_OF_TEXTS.items()}
    invalid = {form: texts for form, (_, texts) in FORMATS_OF_TEXTS.items()}
    assert told({"properties": {form: {"items": {"format": form}} for form in valid}}, valid) == ""
    assert told({"properties": {form: {"items": {"not": {"format": form}}} for form in invalid}}, invalid) == ""


def test_the_formats_that_are_known_are_those_that_are_checked() -> None:
    assert json_schema_worker.FORMATS.keys() == FORMATS == FORMATS_OF_TEXTS.keys()


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"propertys": {}}, "at $: unknown keyword 'propertys'; did you mean 'properties'?"),
        (
            {"properties": {"a": {"requird": []}}},
            "at $.properties.a: unknown keyword 'requird'; did you mean 'required'?",
        ),
        (
            {"allOf": [{"items": {"Type": "string"}}]},
            "at $.allOf[0].items: unknown keyword 'Type'; did you mean 'type'?",
        ),
        ({"$defs": {"a": {"minLenght": 1}}, "$ref": "#/$defs/a"}, "at $.$defs.a: unknown keyword 'minLenght'"),
        ({"type": "string", "nullable": True}, "unknown keyword 'nullable'"),
        ({"dependencies": {}}, "at $: unknown keyword 'dependencies' in this draft; did you mean"),
        ({"$schema": "http://json-schema.org/draft-07/schema#", "prefixItems": []}, "'prefixItems' in this draft"),
        ({"items": {"format": "int64"}}, "at $.items.format: unknown format 'int64'; known are date, date-time, "),
        ({"x-only": 1}, "checks nothing"),
    ],
)
def test_what_would_check_nothing_is_refused_before(schema: dict[str, object], text: str) -> None:
    assert text in problem(schema)


@pytest.mark.parametrize(
    "validator", [Draft4Validator, Draft6Validator, Draft7Validator, Draft201909Validator, Draft202012Validator]
)
def test_the_keywords_that_are_known_are_those_that_the_library_checks(validator: Any) -> None:
    schema = {"$schema": validator.META_SCHEMA["$schema"], "not": {}}
    checked = set(validator.VALIDATORS)
    assert {word for word in checked if unknown_word(schema | {word: {}})} == set()
    others = set().union(*(each.VALIDATORS for each in (Draft4Validator, Draft201909Validator, Draft202012Validator)))
    companions = {
        "then",
        "else",
        "minContains",
        "maxContains",
        "exclusiveMinimum",
        "exclusiveMaximum",
    }  # looked at by the keyword that they belong to
    assert {word for word in others - checked - companions if not unknown_word(schema | {word: {}})} == set()


def test_without_time_nothing_is_begun() -> None:
    with pytest.raises(SchemaTooSlow, match="the time of the operation was up"):
        told({"type": "string"}, "x", limit=0)
