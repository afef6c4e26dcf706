"""Configured answers and the responses rendered from them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ext_http.mock.request import ReceivedRequest
from ext_http.mock.response import (
    Answer,
    Reply,
    RequestValues,
    TemplateError,
    answer_for,
    plain_response,
    prepare_answer,
)
from ext_sdk import InvalidArgs
from ext_sdk.server.validation import validate
from tests.support.http_contexts import context_in

if TYPE_CHECKING:
    from pathlib import Path


def filled(tmp_path: Path, value: object) -> object:
    """Return a JSON value with the references to a request filled in."""
    request = ReceivedRequest("POST", "/a?q=1", [("X-Id", "7")], b'{"a": {"b/c": [true]}, "t": "${now}"}')
    request.parameters = {"city": "Oslo"}
    request.count = 3
    return RequestValues(request).fill_json(context_in(tmp_path).template(value))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${request.method} ${request.url} ${request.count}", "POST /a?q=1 3"),
        ("${request.path.city} ${request.query.q} ${request.header.x-id}", "Oslo 1 7"),
        ("${request.json/a/b~1c/0}", True),
        ("is ${request.json/a/b~1c/0}", "is true"),
        ("${request.query.missing|none} ${request.json/x|}", "none "),
        ("${request.query.missing|<${request.count}>}", "<3>"),
        ("$${request.method}", "${request.method}"),
        ("${request.json/t}", "${now}"),
        (["${request.json/a/b~1c}", {"${now}": "is ${request.json/a/b~1c}"}], [[True], {"${now}": "is [true]"}]),
    ],
)
def test_references_are_replaced_by_parts_of_the_request(tmp_path: Path, text: object, expected: object) -> None:
    assert filled(tmp_path, text) == expected


def test_generated_values_are_new_in_each_response(tmp_path: Path) -> None:
    reply = prepare_answer(validate(Answer, {"json": {"id": "${uuid}", "at": "${now}"}}), "", context_in(tmp_path))
    first, second = (json.loads(reply.render(ReceivedRequest("GET", "/")).body or b"") for _ in range(2))
    assert len(first["id"]) == 36
    assert first["id"] != second["id"]
    assert first["at"].endswith("Z")


def test_a_missing_part_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match=r"no value for \$\{request.header.missing\}; set a default with"):
        filled(tmp_path, "${request.header.missing}")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("${request.method} $${any}", ""),
        ({"a": ["${request.path.city}"]}, ""),
        ("${request.path.day}", "the path has no parameter 'day'; its parameters: city"),
        ("${request.query.}", "expected request.method, request.url"),
        ("${request.query.x|${request.os}}", "${request.os}: expected request.method, request.url"),
    ],
)
def test_invalid_references_are_found_before_a_request(tmp_path: Path, value: object, problem: str) -> None:
    found = prepare_answer(Answer(json=value), "", context_in(tmp_path)).problems(frozenset({"city"}))
    assert problem in "".join(found)
    assert len(found) == bool(problem)


def test_a_header_is_one_line_whatever_the_request_has(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="header X-A: expected one line"):
        render(tmp_path, headers={"X-A": "${request.body}"}, text="x", body=b"1\r\nX-B: 2")


def test_nothing_is_replaced_in_a_verbatim_call(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    context.verbatim = True
    reply = prepare_answer(Answer(text="$${a} ${request.method} ${x.y}"), "", context)
    assert reply.render(ReceivedRequest("GET", "/")).body == b"$${a} ${request.method} ${x.y}"


def render(
    tmp_path: Path, body: bytes = b'{"a": [1]}', **members: object
) -> tuple[list[tuple[str, str]], bytes | None]:
    reply = prepare_answer(validate(Answer, members), "", context_in(tmp_path))
    response = reply.render(ReceivedRequest("GET", "/?q=1", body=body))
    return response.headers, response.body


def test_the_kind_of_body_sets_the_content_type(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x")
    assert render(tmp_path, text="${request.query.q}") == ([("Content-Type", "text/plain; charset=utf-8")], b"1")
    assert render(tmp_path, json={"b": "${request.json/a}"}) == ([("Content-Type", "application/json")], b'{"b": [1]}')
    assert render(tmp_path, file="a.csv") == ([("Content-Type", "text/csv")], b"x")
    assert render(tmp_path, base64="eA==") == ([("Content-Type", "application/octet-stream")], b"x")
    assert render(tmp_path, text="x", headers={"content-type": "a/b"}) == ([("content-type", "a/b")], b"x")
    headers = [("X-Count", "5"), ("X-Each", "true"), ("X-Each", "1.5"), ("X-Each", "$")]
    assert render(tmp_path, headers={"X-Count": 5, "X-Each": [True, 1.5, "$"]}) == (headers, b"")
    assert render(tmp_path) == ([], b"")
    assert render(tmp_path, status=204) == ([], None)


def test_a_missing_part_of_the_request_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="the request has no value"):
        render(tmp_path, text="${request.query.missing}")
    with pytest.raises(InvalidArgs, match="expected base64"):
        render(tmp_path, base64="?")


@pytest.mark.parametrize(
    ("members", "problem"),
    [
        ({"text": "a", "json": 1}, "expected one body"),
        ({"status": 204, "text": "a"}, "has no body"),
        ({"headers": {"Content-Length": "1"}}, "computed from the body"),
        ({"headers": {"X": "a\nb"}}, "expected one line"),
        ({"delay": "-1s"}, "expected 0s or more"),
        ({"fault": "reset", "text": "a"}, "sends no response"),
    ],
)
def test_contradictory_answers_are_refused(members: object, problem: str) -> None:
    with pytest.raises(InvalidArgs, match=problem):
        validate(Answer, members)


def test_answers_are_given_in_turn_and_the_last_one_repeats() -> None:
    replies = [Reply(answer, (), None) for answer in (Answer(status=503, times=2), Answer(status=201))]
    assert [answer_for(count, replies).answer.status for count in (1, 2, 3, 4)] == [503, 503, 201, 201]


def test_a_response_of_the_mock_itself_is_the_reason_phrase() -> None:
    assert plain_response(404).body == b"Not Found\n"
    assert plain_response(500, "why").body == b"why\n"
