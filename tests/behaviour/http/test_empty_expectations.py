"""An expectation that compares nothing never makes a success: it is refused, or it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.ext_http import Extension
    from tests.support.http_stub import Stub

EMPTY_TEXTS: tuple[object, ...] = (
    {},
    None,
    {"ignoreCase": True},
    {"lists": "unordered"},
    {"contains": []},
    {"contains": ""},
    {"notContains": []},
    {"matches": []},
    {"lineCount": {}},
    {"json": []},
    {"json": [{"path": "$"}]},
    {"json": [{"path": "$[*]", "nodes": "all", "notEquals": 1}]},
    {"json": [{"path": "$[*]", "nodes": "any", "notEquals": 1}]},
    {"json": [{"path": "$.a", "notEquals": 1}]},
    {"size": {}},
    {"jsonSchema": {}},
    {"jsonSchema": True},
)
EMPTY: tuple[dict[str, object], ...] = (
    {},
    *({"body": text} for text in EMPTY_TEXTS),
    {"status": []},
    {"status": {}},
    {"status": {"not": []}},
    {"headers": {}},
    {"headers": {"x": {}}},
    {"headers": {"x": []}},
    {"headers": {"x": {"values": "all"}}},
    {"headers": {"x": {"values": "all", "notContains": "a"}}},
    {"headers": {"x": {"values": "any", "notContains": "a"}}},
    {"duration": {}},
    {"certificateExpiry": {"gt": "0s"}},
)
CALLS: tuple[object, ...] = (
    [],
    [{}],
    [{"path": "/never", "atLeast": 0}],
    [{"path": "/list", "headers": {}}],
    [{"path": "/list", "query": {"a": {"notContains": "x"}}}],
    [{"path": "/list", "body": {}}],
)
Case = tuple[str, dict[str, object]]
OF_REQUESTS: list[Case] = [("request", {"expect": expect}) for expect in EMPTY]
OF_WAITS: list[Case] = [("wait", {"timeout": "50ms", "expect": expect}) for expect in EMPTY[:3]]
CASES: list[Case] = [
    *OF_REQUESTS,
    *OF_WAITS,
    ("request", {"method": "HEAD", "expect": {"body": {"notContains": "error"}}}),
    ("request", {"method": "head", "expect": {"body": ""}}),
    ("request", {"capture": {"x": {"json": "$.a"}}}),
    ("download", {"path": "x", "expect": {}}),
    ("graphql", {"query": "{a}", "errors": "any"}),  # what it gets is no GraphQL response
]


@pytest.mark.parametrize(("operation", "args"), CASES, ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)])
def test_nothing_checked_is_never_a_success(
    operation: str, args: dict[str, object], http: Extension, stub: Stub
) -> None:
    answer = http.peer.execute(operation, {"url": stub.json("/list", []), **args}, workdir=str(http.workdir))
    result = answer.get("result", {"success": False})
    assert isinstance(result, dict)
    assert result["success"] is False, answer


@pytest.mark.parametrize("args", [{}, {"unmatched": {}}, {"unmatched": []}, *({"calls": calls} for calls in CALLS)])
def test_a_verification_of_nothing_is_never_a_success(args: dict[str, object], http: Extension) -> None:
    started = http.ok("mock-start", routes=[{"path": "/list", "answer": {"json": []}}])
    http.get(f"{started.outputs['url'].rstrip('/')}/list")
    answer = http.peer.execute("mock-verify", args, workdir=str(http.workdir))
    http.ok("mock-stop")
    result = answer.get("result", {"success": False})
    assert isinstance(result, dict)
    assert result["success"] is False, answer
