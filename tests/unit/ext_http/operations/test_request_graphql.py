"""`graphql`: errors are failures, unless they are expected."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.ext_http import Extension
    from tests.support.http_stub import Stub

QUERY = "query($id: ID!) { item(id: $id) { name } }"
FAILED = {"data": None, "errors": [{"message": "no such item", "path": ["items", 0, "name"]}, {"message": "and more"}]}


def test_document_variables_and_name_are_sent_as_json(http: Extension, stub: Stub) -> None:
    url = stub.json("/graphql", {"data": {"item": {"name": "lamp", "n": 9007199254740993}}})
    variables = {"id": "7", "big": 9007199254740993}
    result = http.ok(
        "graphql",
        url=url,
        query=QUERY,
        variables=variables,
        operationName="q",
        capture={"n": {"json": "$.data.item.n"}},
    )
    asked = stub.asked[-1]
    assert asked.method == "POST"
    assert json.loads(asked.body) == {"query": QUERY, "variables": variables, "operationName": "q"}
    assert asked.header("content-type") == "application/json"
    assert asked.header("accept") == "application/graphql-response+json, application/json;q=0.9"
    assert result.outputs["data"] == '{"item": {"name": "lamp", "n": 9007199254740993}}'
    assert result.outputs["n"] == "9007199254740993"
    assert "errors" not in result.outputs


@pytest.mark.parametrize("status", [200, 400])
def test_errors_are_a_failure(status: int, http: Extension, stub: Stub) -> None:
    result = http.failed("graphql", url=stub.json("/", FAILED, status), query="{items}")
    assert 'errors: expected to be empty, got "no such item (at items.0.name); and more"' in result.error
    assert json.loads(result.outputs["errors"]) == FAILED["errors"]


@pytest.mark.parametrize("status", [200, 400])
def test_errors_can_be_expected(status: int, http: Extension, stub: Stub) -> None:
    url = stub.json("/", FAILED, status)
    http.ok("graphql", url=url, query="{items}", errors="some")
    http.ok("graphql", url=url, query="{items}", errors="any")
    expect = {"body": {"json": [{"path": "$.errors[0].message", "equals": "no such item"}]}}
    http.ok("graphql", url=url, query="{items}", errors="some", expect=expect)
    assert "status" in http.failed("graphql", url=stub.json("/5", FAILED, 500), query="{a}", errors="any").error
    assert "status" in http.failed("graphql", url=stub.url("/5"), query="{a}", errors="some", expect=expect).error
    good = stub.json("/good", {"data": {}})
    assert (
        "errors: expected not to be empty, got none"
        in http.failed("graphql", url=good, query="{a}", errors="some").error
    )
    http.ok("graphql", url=good, query="{items}", errors="any")


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("<html>", "expected to be a GraphQL response, got text that is not JSON"),
        ("[]", "with data or errors, got []"),
        ("{}", "with data or errors, got {}"),
        ('{"errors": []}', 'with data or errors, got {"errors": []}'),
        ('{"data": null}', 'with data or errors, got {"data": null}'),
        ('{"errors": "odd"}', 'errors: expected to be empty, got "odd"'),
    ],
)
def test_what_is_no_response_is_a_failure(body: str, told: str, http: Extension, stub: Stub) -> None:
    assert told in http.failed("graphql", url=stub.says("/", body), query="{a}").error


def test_names_of_its_outputs_are_no_captures(http: Extension) -> None:
    assert "another output" in http.refused("graphql", url="http://a/", query="{a}", capture={"data": {}})
