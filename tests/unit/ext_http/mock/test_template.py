"""Templates of responses."""

from __future__ import annotations

import pytest

from ext_http.mock.request import Request
from ext_http.mock.template import Template, TemplateError, template_problem


@pytest.fixture
def template() -> Template:
    request = Request("POST", "/a?q=1", [("X-Id", "7")], b'{"a": {"b/c": [true]}}')
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
