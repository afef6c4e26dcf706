"""Mocks and requests of one workdir: a mock's address, which is an output, may be asked without being allowed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from tests.support.ext_http import Extension

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.http_stub import Stub

ROUTES = [{"path": "/items/{id}", "answer": {"json": {"id": "${request.path.id}"}}}]


def test_a_mock_of_the_workdir_is_asked_by_its_output(http: Extension) -> None:
    http.ok("mock-start", name="shop", routes=ROUTES, **{"as": "shop"})
    http.ok("wait", url="${shop.url}/items/7", expect={"body": {"jsonEquals": {"id": "7"}}})
    http.ok("mock-verify", name="shop", calls=[{"path": "/items/7", "exactly": 1}])
    http.ok("mock-stop", name="shop")
    assert "allowHosts" in http.failed("request", url="${shop.url}/items/7").error


def test_responses_have_values_of_steps_and_parts_of_requests(http: Extension, stub: Stub) -> None:
    url = stub.says("/", "one\ntwo ${now}", X_Id="7")
    capture = {"text": {"regex": "(?s).*"}, "id": {"from": "header", "header": "X-Id"}}
    http.ok("request", url=url, capture=capture, **{"as": "told"})
    answer = {
        "headers": {"X-Id": "${told.id}-${request.count}", "X-Late": "$${now}"},
        "json": {"${told.id}": ["${told.text} ${request.query.q|${told.id}}"], "all": "${request.json}"},
    }
    http.ok("mock-start", name="shop", routes=[{"path": "/${told.id}", "answer": answer}], **{"as": "shop"})
    body = {"json": {"a": ["$${x}"]}}
    expect = {"headers": {"X-Id": "7-1", "X-Late": "$${now}"}}
    first = http.ok("request", url="${shop.url}/7", body=body, expect=expect)
    assert json.loads(first.outputs["body"]) == {"${told.id}": ["one\ntwo ${now} 7"], "all": {"a": ["${x}"]}}
    again = http.ok("request", url="${shop.url}/7?q=$${y}", body=body)
    assert json.loads(again.outputs["body"])["${told.id}"] == ["one\ntwo ${now} ${y}"]
    header = {"routes": [{"path": "/", "answer": {"headers": {"X-Id": "${told.text}"}}}]}
    assert "routes[0].answer.headers.X-Id: expected one line" in http.failed("mock-start", **header).error
    http.ok("mock-stop", name="shop")


def test_a_mock_of_another_workdir_is_not(http: Extension, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Extension(http.peer, tmp_path / "other")
    url = other.ok("mock-start", name="shop", routes=ROUTES).outputs["url"]
    http.get(url + "/items/7", capture={"id": {"json": "$.id"}, "here": {"from": "url"}}, **{"as": "told"})
    assert "allowHosts" in http.failed("request", url="${told.here}").error
    other.ok("mock-stop", name="shop")


def test_a_mock_with_tls_is_believed_by_its_authority(http: Extension) -> None:
    http.ok("mock-start", name="safe", tls=True, routes=ROUTES, **{"as": "safe"})
    assert "certificate" in http.failed("request", url="${safe.url}/items/7").error
    http.get("${safe.url}/items/7", tls={"ca": "${safe.caFile}"}, expect={"status": 200})
    http.ok("mock-stop", name="safe")
