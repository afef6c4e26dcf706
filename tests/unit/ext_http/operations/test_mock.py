"""Arguments of the mock operations, and what a mock that cannot be started reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from ext_http.operations.mock import MockStart, MockStop, MockVerify, create_mock, mock_stop
from ext_sdk import InvalidArgs, OperationFailed
from ext_sdk.server.validation import validate
from tests.support.http_contexts import context_in

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.mocks import MockMaker

ROUTE = {"path": "/a", "answer": {}}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"routes": [ROUTE, ROUTE]}, "occurs twice"),
        ({"routes": []}, "routes"),
    ],
)
def test_routes_must_be_distinct(arguments: object, problem: str) -> None:
    with pytest.raises(InvalidArgs, match=problem):
        validate(MockStart, arguments)


def test_an_order_requires_two_calls() -> None:
    with pytest.raises(InvalidArgs, match="expected two or more calls"):
        validate(MockVerify, {"inOrder": True, "calls": [{"path": "/a"}]})


def test_a_port_in_use_is_reported_with_the_mock_that_holds_it(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    first = create_mock(validate(MockStart, {"routes": [ROUTE]}), context)
    try:
        with pytest.raises(OperationFailed) as failed:
            create_mock(validate(MockStart, {"routes": [ROUTE], "port": first.server.port}), context)
        assert f"mock 'mock' of workdir {tmp_path} listens on it" in failed.value.error
    finally:
        first.close()


def test_a_missing_mock_can_be_ignored(tmp_path: Path) -> None:
    context = context_in(tmp_path)
    assert mock_stop(validate(MockStop, {"ignoreMissing": True}), context).success
    with pytest.raises(OperationFailed, match="mock 'mock' is not running"):
        mock_stop(validate(MockStop, {}), context)


def test_all_wrong_references_to_requests_are_reported_before_the_mock_starts(tmp_path: Path) -> None:
    answers = [{"text": "${request.path.b} ${request.count}"}, {"headers": {"X-Id": "${request.id}"}}]
    routes = [{"path": "/{a}", "answer": answers}, {"path": "/b", "answer": {"json": ["${request.path.a|x}"]}}]
    with pytest.raises(InvalidArgs) as failed:
        create_mock(validate(MockStart, {"routes": routes, "otherwise": {"text": "${request}"}}), context_in(tmp_path))
    lines = str(failed.value).splitlines()
    assert "4 references are not valid:" in lines[0]
    assert lines[1] == "  routes[0].answer[0]: ${request.path.b}: the path has no parameter 'b'; its parameters: a"
    assert lines[2].startswith("  routes[0].answer[1]: ${request.id}: expected request.method, request.url, ")
    assert lines[3] == "  routes[1].answer: ${request.path.a}: the path has no parameter 'a'; its parameters: none"
    assert lines[4].startswith("  otherwise: ${request}: expected request.method")
    assert "verbatim: true" in lines[5]
    with pytest.raises(InvalidArgs, match=r"routes\[0\].answer: \$\{request.id\}: expected request.method"):
        create_mock(validate(MockStart, {"routes": [{"answer": {"text": "${request.id}"}}]}), context_in(tmp_path))


ROUTES_FILE = """
routes:
  - {name: own, query: {q: "$${a}"}, answer: {text: "${request.method} $${x}"}}
  - {name: kept, path: /kept, answer: {json: {count: "${request.count}"}}}
"""


def test_routes_come_from_a_file_unless_a_route_of_the_arguments_has_the_same_name(mocks: MockMaker) -> None:
    (mocks.workdir / "routes.yaml").write_text(ROUTES_FILE)
    mock = mocks({"name": "own", "path": "/own", "answer": {"text": "mine"}}, routesFile="routes.yaml")
    assert (mock.ask("/own").text, mock.ask("/kept").text) == ("mine", '{"count": "1"}')
    file = mocks(name="file", routesFile="routes.yaml")
    assert file.ask("/?q=${a}", "PUT").text == "PUT ${x}"
    (mocks.workdir / "recorded.json").write_text('{"verbatim": true, "routes": [{"answer": {"text": "${now} $${"}}]}')
    assert mocks(name="verbatim", routesFile="recorded.json").ask("/").text == "${now} $${"


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("a.json", "[", "expected JSON with the member `routes` in 'a.json'"),
        ("a.json", "[]", "a.json: expected an object with the member `routes`, found an array"),
        ("a.yml", "routes: []", "a.yml: routes: expected an array of length >= 1"),
        ("a.yml", "routes: [{path: /a, answer: {txt: x}}]", "a.yml: routes[0].answer: unknown argument 'txt'"),
        ("a.yml", "routes: [{path: /a, answer: {}}, {path: /a, answer: {}}]", "occurs twice"),
        ("a.yml", "routes: [{path: '/${x.y}', answer: {}}]", "a.yml: routes[0].path: ${x.y} has no value"),
        ("a.yml", "routes: [{path: /, answer: {text: '${request.x}'}}]", "a.yml: routes[0].answer: ${request.x}: exp"),
    ],
)
def test_a_file_without_valid_routes_is_refused(tmp_path: Path, file: str, text: str, problem: str) -> None:
    (tmp_path / file).write_text(text)
    with pytest.raises(InvalidArgs) as failed:
        create_mock(validate(MockStart, {"routesFile": file}), context_in(tmp_path))
    assert problem in str(failed.value)
