"""Mocks and requests of one workdir: a mock's address, which is an output, may be asked without being allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.ext_http import Extension

if TYPE_CHECKING:
    from pathlib import Path

ROUTES = [{"path": "/items/{id}", "answer": {"json": {"id": "${request.path.id}"}}}]


def test_a_mock_of_the_workdir_is_asked_by_its_output(http: Extension) -> None:
    http.ok("mock-start", name="shop", routes=ROUTES, **{"as": "shop"})
    http.ok("wait", url="${shop.url}/items/7", expect={"body": {"jsonEquals": {"id": "7"}}})
    http.ok("mock-verify", name="shop", calls=[{"path": "/items/7", "exactly": 1}])
    http.ok("mock-stop", name="shop")
    assert "allowHosts" in http.failed("request", url="${shop.url}/items/7").error


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
