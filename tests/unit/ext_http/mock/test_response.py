"""Configured answers and the responses rendered from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.mock.request import ReceivedRequest
from ext_http.mock.response import (
    Answer,
    Renderer,
    Template,
    TemplateError,
    answer_for,
    plain_response,
    template_problem,
)
from ext_sdk import InvalidArgs
from ext_sdk.server.validation import validate

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def template() -> Template:
    request = ReceivedRequest("POST", "/a?q=1", [("X-Id", "7")], b'{"a": {"b/c": [true]}}')
    request.parameters = {"city": "Oslo"}
    request.count = 3
    return Template(request)


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("$(method) $(url) $(count)", "POST /a?q=1 3"),
        ("$(path.city) $(query.q) $(header.x-id)", "Oslo 1 7"),
        ("$(json/a/b~1c/0)", "true"),
        ("$(query.missing|none) $(json/x|)", "none "),
        ("$$(method)", "$(method)"),
    ],
)
def test_references_are_replaced_by_parts_of_the_request(template: Template, text: str, filled: str) -> None:
    assert template.fill(text) == filled


def test_a_reference_to_json_keeps_its_type_within_json(template: Template) -> None:
    assert template.fill_json(["$(json/a/b~1c)", "is $(json/a/b~1c)"]) == [[True], "is [true]"]


def test_a_missing_part_is_an_error(template: Template) -> None:
    with pytest.raises(TemplateError, match="set a default"):
        template.fill("$(header.missing)")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("$(method) $$(any)", ""),
        ({"a": ["$(path.city)"]}, ""),
        ("$(path.day)", "the path has no parameter 'day'; its parameters: city"),
        ("$(query.)", "expected method, url"),
        ("$(os.environ)", "expected method, url"),
    ],
)
def test_invalid_references_are_found_before_a_request(value: object, problem: str) -> None:
    assert problem in template_problem(value, frozenset({"city"}))
    assert bool(problem) == bool(template_problem(value, frozenset({"city"})))


def render(tmp_path: Path, **members: object) -> tuple[list[tuple[str, str]], bytes | None]:
    answer = validate(Answer, members)
    response = Renderer([answer], tmp_path).render(answer, ReceivedRequest("GET", "/?q=1", body=b'{"a": [1]}'))
    return response.headers, response.body


def test_the_kind_of_body_sets_the_content_type(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"x")
    assert render(tmp_path, text="$(query.q)") == ([("Content-Type", "text/plain; charset=utf-8")], b"1")
    assert render(tmp_path, json={"b": "$(json/a)"}) == ([("Content-Type", "application/json")], b'{"b": [1]}')
    assert render(tmp_path, file="a.csv") == ([("Content-Type", "text/csv")], b"x")
    assert render(tmp_path, base64="eA==") == ([("Content-Type", "application/octet-stream")], b"x")
    assert render(tmp_path, text="x", headers={"content-type": "a/b"}) == ([("content-type", "a/b")], b"x")
    headers = [("X-Count", "5"), ("X-Each", "true"), ("X-Each", "1.5"), ("X-Each", "$")]
    assert render(tmp_path, headers={"X-Count": 5, "X-Each": [True, 1.5, "$"]}) == (headers, b"")
    assert render(tmp_path) == ([], b"")
    assert render(tmp_path, status=204) == ([], None)


def test_a_missing_part_of_the_request_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TemplateError, match="the request has no value"):
        render(tmp_path, text="$(query.missing)")
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
    answers = [Answer(status=503, times=2), Answer(status=201)]
    assert [answer_for(count, answers).status for count in (1, 2, 3, 4)] == [503, 503, 201, 201]
    assert answer_for(9, Answer(status=418)).status == 418


def test_a_response_of_the_mock_itself_is_the_reason_phrase() -> None:
    assert plain_response(404).body == b"Not Found\n"
    assert plain_response(500, "why").body == b"why\n"
