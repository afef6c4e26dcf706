"""The gevals protocol on the wire of an extension that runs as a process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.host import ExtensionHost, execute, request

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def peer() -> Iterator[ExtensionHost]:
    with ExtensionHost() as peer:
        yield peer


def test_a_session_goes_from_initialize_to_shutdown(peer: ExtensionHost) -> None:
    manifest = peer.initialize()["result"]
    assert isinstance(manifest, dict)
    assert (manifest["name"], manifest["version"], manifest["protocolVersion"]) == ("probe", "1.2.3", "0.0.1")
    assert manifest["requires"] == [{"command": "sh"}]
    assert peer.result("echo", {"text": "hi"}) == {
        "success": True,
        "message": "hi",
        "outputs": {"text": "hi", "length": "2", "empty": "false"},
    }
    assert peer.call("shutdown", {}) == {"jsonrpc": "2.0", "id": 3, "result": {}}
    assert peer.rest() == []
    assert peer.exit_code() == 0


def test_logs_come_before_their_result_in_their_order(peer: ExtensionHost) -> None:
    peer.send(execute(1, "log", {"text": "x"}))
    logs = [peer.message() for _ in range(4)]
    assert [log["method"] for log in logs] == ["log"] * 4
    assert [log["params"] for log in logs] == [
        {"level": "debug", "message": "one", "data": {"text": "x"}},
        {"level": "info", "message": "two"},
        {"level": "warn", "message": "three", "data": {"path": "/x", "number": 1, "nan": "nan"}},
        {"level": "error", "message": "four"},
    ]
    assert all("id" not in log for log in logs)
    assert peer.message()["result"] == {"success": True, "message": "five"}


def test_nothing_is_answered_after_the_shutdown(peer: ExtensionHost) -> None:
    peer.send(request(1, "shutdown"), execute(2, "echo"), b"not JSON\n")
    assert [answer["id"] for answer in peer.rest()] == [1]
    assert peer.exit_code() == 0


def test_an_unknown_method_is_answered_with_the_nearest_one(peer: ExtensionHost) -> None:
    for method, advice in (
        ("exekute", "did you mean 'execute'?"),
        ("x" * 100, "known are initialize, execute, shutdown"),
    ):
        error = {"code": -32601, "message": f"unknown method: {method[:80]}; {advice}"}
        assert peer.call(method)["error"] == error


def test_a_shutdown_that_wants_no_answer_ends_the_extension(peer: ExtensionHost) -> None:
    peer.send({"jsonrpc": "2.0", "method": "shutdown"})
    assert peer.rest() == []
    assert peer.exit_code() == 0
