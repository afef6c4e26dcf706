"""What an answer must be: each check when it holds and when it does not, and how it is told."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec
import pytest

import ext_sdk
from ext_http.client.response import Response
from ext_http.response.expectations import Expect, check
from ext_sdk.expect import Searcher, failure_text, passed
from ext_sdk.server.validation import validate
from tests.support.http_contexts import context_in

if TYPE_CHECKING:
    from pathlib import Path

    from ext_sdk.expect import Check

DOCUMENT = {
    "id": 9007199254740993,
    "text": "1",
    "one": 1,
    "yes": True,
    "nothing": None,
    "items": [{"id": 1, "tags": ["a", "b"]}, {"id": 2, "tags": []}],
}
HEADERS = (
    ("Content-Type", "application/json"),
    ("Set-Cookie", "a=1; Path=/"),
    ("set-cookie", "b=2"),
    ("X-Empty", ""),
    ("Date", "Sun, 22 Nov 2026 02:00:00 GMT"),
)
ANSWER = Response(status=201, headers=HEADERS, body=json.dumps(DOCUMENT).encode(), elapsed=0.75)


def checks_of(expectation: object, response: Response, workdir: Path) -> list[Check]:
    with Searcher() as searcher:
        return check(validate(Expect, expectation), response, context_in(workdir), searcher)


def json_at(path: str, **what: object) -> dict[str, object]:
    return {"body": {"json": [{"path": path} | what]}}


HOLD: list[dict[str, object]] = [
    {"status": 201},
    {"status": "2xx"},
    {"status": "201"},
    {"status": "200-299"},
    {"status": [200, 201]},
    {"status": [404, "2xx"]},
    {"status": {"not": "5xx"}},
    {"status": {"not": [200, "202-599"]}},
    {"headers": {"content-type": "application/json"}},
    {"headers": {"CONTENT-TYPE": {"contains": "json", "startsWith": "application/", "endsWith": "json"}}},
    {"headers": {"Content-Type": {"matches": "^application/(json|xml)$", "notMatches": "text", "notContains": "xml"}}},
    {"headers": {"Content-Type": {"equals": "APPLICATION/JSON", "ignoreCase": True}}},
    {"headers": {"Set-Cookie": ["a=1; Path=/", "b=2"]}},
    {"headers": {"Set-Cookie": {"values": "any", "startsWith": "b="}}},
    {"headers": {"Set-Cookie": {"values": "all", "matches": r"^\w=\d"}}},
    {"headers": {"Set-Cookie": {"count": 2}}},
    {"headers": {"X-Empty": ""}},
    {"headers": {"X-Empty": {"exists": True}}},
    {"headers": {"X-Missing": {"exists": False}}},
    {"headers": {"X-Missing": {"count": 0}}},
    {"headers": {"Date": {"contains": "Nov 2026"}}},
    json_at("$.id", equals=9007199254740993),
    json_at("$.id", type="integer", gt=9007199254740992),
    json_at("$.text", equals="1", matches=r"^\d$"),
    json_at("$.one", equals=1.0),
    json_at("$.yes", equals=True),
    json_at("$.nothing", equals=None, exists=True),
    json_at("$.missing", exists=False),
    json_at("$.items[*]", count=2),
    json_at("$.items[?@.id == 2].tags", length=0),
    json_at("$.items[*].id", nodes="all", gte=1, lt=3),
    {"body": {"jsonContains": {"items": [{"id": 1}, {"tags": []}]}}},
    {"body": {"jsonContains": {"items": [{"tags": []}, {"id": 1}]}, "lists": "unordered"}},
    {"body": {"jsonContains": {"items": [{"id": 2}]}, "lists": "subset"}},
    {"body": {"jsonContains": {"items": [{"id": 2}]}, "lists": "ordered"}},
    {"body": {"jsonEquals": DOCUMENT}},
    {"body": {"jsonSchema": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}}},
    {"body": {"contains": '"text": "1"', "matches": r'"id": \d+'}},
    {"body": {"size": {"gt": 10}, "sha256": hashlib.sha256(ANSWER.body).hexdigest().upper()}},
    {"body": json.dumps(DOCUMENT)},
    {"duration": {"lt": "1s", "gte": "750ms"}},
]

FAIL: list[tuple[dict[str, object], str]] = [
    ({"status": 200}, "status: expected to be 200, got 201"),
    ({"status": "4xx"}, "status: expected to be 4xx, got 201"),
    ({"status": [200, "300-399"]}, "status: expected to be one of 200, 300-399, got 201"),
    ({"status": {"not": "2xx"}}, "status: expected not to be 2xx, got 201"),
    ({"headers": {"Content-Type": "text/plain"}}, 'header Content-Type: expected to be exactly "text/plain", got "app'),
    ({"headers": {"X-Missing": "1"}}, "header X-Missing: expected to exist, got nothing of this name"),
    ({"headers": {"X-Missing": {"matches": "."}}}, "header X-Missing: expected to exist, got nothing of this name"),
    ({"headers": {"Date": {"exists": False}}}, 'header Date: expected not to exist, got "Sun, 22 Nov'),
    ({"headers": {"Set-Cookie": "b=2"}}, "expected to occur once\n  got 2 values: "),
    ({"headers": {"Set-Cookie": {"equals": "b=2"}}}, "set `values: all` or `values: any`, or list them"),
    ({"headers": {"Set-Cookie": ["b=2", "a=1; Path=/"]}}, 'expected to be "b=2", "a=1; Path=/", got "a=1; Path=/", "b'),
    ({"headers": {"Set-Cookie": ["b=2"]}}, 'header Set-Cookie: expected to be "b=2", got'),
    ({"headers": {"Set-Cookie": {"values": "any", "equals": "c"}}}, 'to be exactly "c", got "a=1; Path=/", "b=2"'),
    ({"headers": {"Set-Cookie": {"values": "all", "contains": "Path"}}}, 'expected to contain "Path", got "b=2"'),
    ({"headers": {"Set-Cookie": {"count": 1}}}, "number of header Set-Cookie: expected to equal 1, got 2"),
    (json_at("$.text", equals=1), 'body at $.text: expected to equal 1, got "1" (string)'),
    (json_at("$.one", equals="1"), 'body at $.one: expected to equal "1"\n  got 1 (integer)'),
    (json_at("$.one", equals=True), "body at $.one: expected to equal true, got 1 (integer)"),
    (json_at("$.yes", equals=1), "body at $.yes: expected to equal 1, got true (boolean)"),
    (json_at("$.id", equals=9007199254740992), "expected to equal 9007199254740992, got 9007199254740993 (integer)"),
    (json_at("$.missing", equals=None), "body at $.missing: expected to select a value, got nothing"),
    ({"body": {"jsonContains": {"items": [{"id": 2}]}}}, "body at $.items[0].id: expected to contain 2 (integer)"),
    (
        {"body": {"jsonContains": {"items": [{"id": 3}]}, "lists": "subset"}},
        'body at $.items[*]: expected to contain {"id": 3} (object), got nothing',
    ),
    ({"body": {"jsonEquals": {}}}, "body at $.id: expected to equal nothing, got 9007199254740993 (integer)"),
    (
        {"body": {"jsonSchema": {"properties": {"items": {"items": {"required": ["name"]}}}}}},
        'body at $.items[0]: expected to have the required member "name"\n  got {"id": 1, "tags"',
    ),
    ({"body": {"size": 1}}, "size of body: expected to equal 1, got"),
    ({"body": {"sha256": "0" * 64}}, "SHA-256 of body:\n  expected to be 000"),
    ({"body": "nothing like it"}, 'body: expected to equal "nothing like it"\n  got'),
    ({"duration": {"lt": "500ms"}}, "duration: expected to be less than 500ms, got 750ms"),
    (
        {"certificateExpiry": {"gt": "0s"}},
        "time until the certificate expires: expected to be known, got no certificate: the connection did not use TLS",
    ),
]


@pytest.mark.parametrize("expectation", HOLD, ids=json.dumps)
def test_an_expectation_holds(expectation: dict[str, object], tmp_path: Path) -> None:
    checks = checks_of(expectation, ANSWER, tmp_path)
    assert passed(checks), checks


@pytest.mark.parametrize(("expectation", "told"), FAIL)
def test_a_failure_says_where_what_was_expected_and_what_came(
    expectation: dict[str, object], told: str, tmp_path: Path
) -> None:
    checks = checks_of(expectation, ANSWER, tmp_path)
    assert not passed(checks)
    assert told in failure_text(checks)


@pytest.mark.parametrize(
    ("expectation", "told"),
    [
        ({}, "this checks nothing; give at least one of status, headers, body, duration, certificateExpiry"),
        ({"sttus": 200}, "did you mean 'status'?"),
        ({"status": {}}, "expect.status.not: this argument is required"),
        ({"status": {"not": []}}, "length >= 1"),
        ({"status": []}, "length >= 1"),
        ({"status": 99}, "status"),
        ({"status": 600}, "status"),
        ({"status": "2x"}, "status"),
        ({"status": "6xx"}, "status"),
        ({"status": "300-200"}, "expected a range from low to high, found 300-200"),
        ({"status": {"not": [404, "300-200"]}}, "expected a range from low to high, found 300-200"),
        ({"status": True}, "status"),
        ({"headers": {}}, "length >= 1"),
        ({"headers": {"a b": "x"}}, "headers"),
        ({"headers": {"A": []}}, "length >= 1"),
        ({"headers": {"A": {}}}, "this checks nothing"),
        ({"headers": {"A": {"values": "any", "ignoreCase": True}}}, "this checks nothing"),
        ({"headers": {"A": {"exists": False, "equals": "x"}}}, "excludes all other checks"),
        ({"headers": {"A": {"matches": "("}}}, "not a regular expression"),
        ({"headers": {"A": {"equals": 1}}}, "expect.headers"),
        ({"body": {}}, "this checks nothing"),
        ({"body": {"json": [{"path": "$.a"}]}}, "this checks nothing"),
        ({"body": {"json": []}}, "length >= 1"),
        ({"body": {"jsonSchema": {}}}, "this schema checks nothing; every document matches it"),
        ({"body": {"jsonSchema": {"title": "x", "$defs": {}}}}, "this schema checks nothing"),
        ({"body": {"sha256": "ab"}}, "sha256"),
        ({"duration": {}}, "this checks nothing"),
        ({"certificateExpiry": {"gt": 30}}, 'expected a duration such as "30s"'),
    ],
)
def test_what_checks_nothing_or_can_not_hold_is_refused(expectation: dict[str, object], told: str) -> None:
    class Arguments(ext_sdk.Args):
        expect: Expect

    with pytest.raises(ext_sdk.InvalidArgs) as refused:
        validate(Arguments, {"expect": expectation})
    assert told in str(refused.value)


def test_the_number_of_checks_is_the_number_of_comparisons(tmp_path: Path) -> None:
    expectation = {
        "status": 201,
        "headers": {"Content-Type": {"contains": ["json", "app"]}, "Date": {"exists": True}},
        "body": {"contains": "text", "json": [{"path": "$.one", "equals": 1, "type": "integer"}]},
        "duration": {"lt": "1s"},
    }
    assert len(checks_of(expectation, ANSWER, tmp_path)) == 8


def test_nothing_of_a_body_that_was_cut_passes(tmp_path: Path) -> None:
    cut = Response(status=200, body=b"abc", truncated=True)
    for expectation in ({"contains": "a"}, {"notContains": "z"}, {"size": {"gt": 1}}, {"size": 3}):
        checks = checks_of({"body": expectation}, cut, tmp_path)
        assert "expected to be read completely, got more than 3 bytes" in failure_text(checks)
    assert passed(checks_of({"status": 200}, cut, tmp_path))


def with_body(body: bytes, content_type: str = "text/plain") -> Response:
    return Response(status=200, headers=(("Content-Type", content_type),), body=body)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        ("straße".encode(), "text/plain"),
        ("straße".encode("latin-1"), "text/plain; charset=ISO-8859-1"),
        ("straße".encode("utf-16"), 'text/plain; charset="utf-16"'),
        ("\ufeffstraße".encode(), "text/plain; charset=utf-8"),
    ],
)
def test_text_is_read_in_the_charset_of_the_content_type(body: bytes, content_type: str, tmp_path: Path) -> None:
    assert passed(checks_of({"body": "straße"}, with_body(body, content_type), tmp_path))


@pytest.mark.parametrize(
    ("response", "told"),
    [
        (with_body(b"ab\xff"), "body: expected to be text in utf-8, got byte 0xff at offset 2"),
        (
            with_body(b"ab", "text/plain; charset=klingon"),
            "expected to be text, got the unknown charset 'klingon'",
        ),
        (with_body(b"ab", "text/plain; charset=base64"), "unknown charset"),
    ],
)
def test_bytes_that_are_no_text_fail_as_text_and_pass_as_bytes(response: Response, told: str, tmp_path: Path) -> None:
    assert told in failure_text(checks_of({"body": {"notContains": "z"}}, response, tmp_path))
    assert passed(checks_of({"body": {"size": len(response.body)}}, response, tmp_path))


def test_a_body_is_held_against_the_bytes_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "expected.bin").write_bytes(bytes(range(256)) * 64)
    same, other = bytes(range(256)) * 64, bytes(range(256)) * 63 + bytes(256)
    wanted = {"body": {"sameAsFile": "expected.bin"}}
    assert passed(checks_of(wanted, with_body(same), tmp_path))
    told = failure_text(checks_of(wanted, with_body(other), tmp_path))
    assert (
        told
        == "body: expected to be the 16,384 bytes of expected.bin, got 16,384 bytes that differ from offset 16,129 on"
    )
    assert "got 0 bytes that differ from offset 0 on" in failure_text(checks_of(wanted, with_body(b""), tmp_path))


@pytest.mark.parametrize("name", ["sameAsFile", "jsonSchemaFile"])
@pytest.mark.parametrize("path", ["../secret", "/etc/hostname", "link", "missing"])
def test_no_file_out_of_the_workdir_is_read(name: str, path: str, tmp_path: Path) -> None:
    workdir = tmp_path / "workdir"
    workdir.mkdir()
    (tmp_path / "secret").write_text('{"type": "object"}')
    (workdir / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(ext_sdk.OperationFailed) as failed:
        checks_of({"body": {name: path}}, with_body(b"{}"), workdir)
    assert path in failed.value.error


def test_a_schema_may_be_a_file_of_the_workdir(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text('{"properties": {"one": {"const": 1}}}')
    assert passed(checks_of({"body": {"jsonSchemaFile": "schema.json"}}, ANSWER, tmp_path))
    told = failure_text(checks_of({"body": {"jsonSchemaFile": "schema.json"}}, with_body(b'{"one": true}'), tmp_path))
    assert told == "body at $.one: expected to fit the schema's const: 1, got true (boolean)"


@pytest.mark.parametrize(
    ("content", "told"), [("{", "Expecting property name"), ("[]", "expected a JSON Schema"), ("{}", "checks nothing")]
)
def test_a_file_that_is_no_schema_is_said_at_once(content: str, told: str, tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(content)
    with pytest.raises(ext_sdk.OperationFailed) as failed:
        checks_of({"body": {"jsonSchemaFile": "schema.json"}}, ANSWER, tmp_path)
    assert told in failed.value.error


def test_a_body_that_is_no_json_fails_every_check_of_json(tmp_path: Path) -> None:
    page = with_body(b"<html>")
    expectations: list[dict[str, object]] = [
        {"jsonEquals": {}},
        {"json": [{"path": "$", "exists": False}]},
        {"jsonSchema": {"type": "object"}},
    ]
    for expectation in expectations:
        told = failure_text(checks_of({"body": expectation}, page, tmp_path))
        assert 'body: expected to be JSON, got "<html>"' in told


@pytest.mark.parametrize(("days", "holds"), [(40, True), (20, False), (-40, False), (2_000_000, True)])
def test_a_certificate_that_has_expired_has_a_negative_time_left(days: int, holds: bool, tmp_path: Path) -> None:
    answer = Response(status=200, peer_certificate_expires=datetime.now(UTC) + timedelta(days=days))
    checks = checks_of({"certificateExpiry": {"gt": "720h"}}, answer, tmp_path)
    assert passed(checks) == holds
    if days < 0:
        assert "got -9" in failure_text(checks)


def test_no_secret_is_in_a_failure(tmp_path: Path) -> None:
    secret = "hunter2-hunter2"
    answer = Response(
        status=200,
        headers=(("X-Token", secret), ("Set-Cookie", f"s={secret}"), ("Set-Cookie", "t=1")),
        body=json.dumps({"token": secret, "list": [secret]}).encode(),
    )
    expectation = {
        "headers": {"X-Token": {"notContains": secret}, "Set-Cookie": {"values": "any", "equals": "x"}},
        "body": {
            "notContains": secret,
            "jsonEquals": {"token": 1},
            "json": [{"path": "$.token", "equals": "x"}, {"path": "$.list", "contains": "y"}],
            "jsonSchema": {"properties": {"token": {"const": f"{secret}!"}, "list": {"type": "object"}}},
        },
    }
    with Searcher() as searcher:
        checks = check(validate(Expect, expectation), answer, context_in(tmp_path, {"token": secret}), searcher)
    assert sum(not one.ok for one in checks) == 7
    assert secret not in "\n".join(map(str, checks))


def test_a_pattern_without_end_is_a_failure_in_time(tmp_path: Path) -> None:
    answer = with_body(b"a" * 40 + b"b")
    for expectation in ({"body": {"matches": "^(a+)+$"}}, {"headers": {"Content-Type": {"matches": "^((t|e|x)+)+$"}}}):
        checks = checks_of(expectation, answer, tmp_path)
        assert not passed(checks)
    assert "took longer than" in failure_text(checks_of({"body": {"matches": "^(a+)+$"}}, answer, tmp_path))


@pytest.mark.parametrize(
    "expectation",
    [
        {"body": {"jsonContains": {"one": 1}}},
        {"headers": {"Date": {"exists": True}}},
        {"duration": {"lt": "1s"}},
        {"certificateExpiry": {"gt": "0s"}},
    ],
)
def test_a_status_of_200_to_299_is_expected_unless_another_one_is_named(
    expectation: dict[str, object], tmp_path: Path
) -> None:
    """A 500 passed as soon as anything else was expected."""
    failed = msgspec.structs.replace(ANSWER, status=500, peer_certificate_expires=datetime.now(UTC) + timedelta(days=1))
    checks = checks_of(expectation, failed, tmp_path)
    assert [str(each) for each in checks if not each.ok] == ["status: expected to be 2xx, got 500"]
    assert passed(checks_of(expectation, msgspec.structs.replace(failed, status=299), tmp_path))
    assert passed(checks_of(expectation | {"status": "100-599"}, failed, tmp_path))
    assert passed(checks_of(expectation | {"status": {"not": 404}}, failed, tmp_path))
