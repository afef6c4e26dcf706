"""Parameters, notifications, results and addresses of the server."""

from __future__ import annotations

import json
import os
import threading
from contextlib import ExitStack
from typing import TYPE_CHECKING, cast

import pytest

from ext_host import waza_evals, waza_server
from ext_host.files import HostError
from ext_host.runner import Event
from ext_host.waza_evals import Executors, Outcome
from ext_host.waza_server import (
    Channel,
    Client,
    Options,
    Params,
    Service,
    Wakeup,
    listening,
    messages_of,
    plain,
    result_of,
)
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.core.wire.jsonrpc import Notification

if TYPE_CHECKING:
    from pathlib import Path


def test_parameters_are_read_by_all_their_names() -> None:
    params = Params({"dir": "evals", "run_id": None, "verbose": True, "other": 1})
    assert (params.text("directory"), params.optional_text("model"), params.flag("verbose")) == ("evals", "", True)
    for value, name in (([], ""), ({"runId": 1}, "runId"), ({"runId": ""}, "runId"), ({}, "runId")):
        with pytest.raises(RpcError, match="Invalid params"):
            Params(value).text(name)


def test_unknown_parameters_are_named() -> None:
    params = Params({"dirctory": "evals"})
    with pytest.raises(RpcError) as error:
        params.text("directory")
    assert error.value.data == {
        "errors": ["missing required parameter: directory; unknown parameter 'dirctory'; did you mean 'directory'?"]
    }
    assert Params({"dir": "a"}).unknown(["directory"]) == []


@pytest.mark.parametrize(
    ("event", "methods", "verbose"),
    [
        (Event("run_start", total=2), ["eval.progress"], ["eval.progress"]),
        (Event("task_start", "a", number=1), ["eval.progress", "eval.log"], ["eval.progress", "eval.log"]),
        (Event("task_complete", "a", number=1, status="failed", message="x"), *2 * [["eval.log", "eval.progress"]]),
        (Event("agent_output", "a", message="text"), [], ["eval.log"]),
        (Event("agent_output", "a", message="\n"), [], []),
        (Event("phase", "a", phase="setup"), [], ["eval.log"]),
        (Event("step", "a", phase="setup", status="passed"), [], ["eval.log"]),
        (Event("step", "a", phase="setup", status="failed"), ["eval.log"], ["eval.log"]),
        (Event("log", "a", level="debug", message="x"), [], ["eval.log"]),
        (Event("log", "a", level="warn", message="x"), ["eval.log"], ["eval.log"]),
    ],
)
def test_an_event_becomes_notifications(event: Event, methods: list[str], verbose: list[str]) -> None:
    assert [method for method, _ in messages_of(event, verbose=False)] == methods
    assert [method for method, _ in messages_of(event, verbose=True)] == verbose


def test_errors_count_as_failed_and_skipped_tasks_as_neither() -> None:
    outcomes = [
        Outcome("a", "passed"),
        Outcome("b", "error", "why"),
        Outcome("c", "cancelled"),
        Outcome("d", "skipped"),
    ]
    result = result_of(outcomes)
    assert [result[name] for name in ("total", "passed", "failed", "skipped", "passRate")] == [4, 1, 2, 1, 0.25]
    assert result["tasks"][1] == {"id": "b", "status": "error", "durationMs": 0, "error": "why"}  # type: ignore[index]
    assert result_of([])["passRate"] == 0.0


def test_a_client_that_does_not_read_is_given_up() -> None:
    with ExitStack() as stack:
        reader, writer = os.pipe()
        stack.callback(os.close, reader)
        stack.callback(os.close, writer)
        wakeup = Wakeup(stack)
        channel = Channel(writer, wakeup)
        channel.timeout = 0.0
        channel.send(Notification("eval.log", {"message": "x" * 1_000_000}))
        assert channel.gone.is_set()
        assert os.read(wakeup.descriptor, 1) == b"\0"
        channel.send(Notification("eval.log", {}))  # returns at once


def answers(folder: Path, *requests: tuple[str, dict[str, object]]) -> list[dict[str, object]]:
    """Return what a client with these requests gets, the notifications included."""
    ended = threading.Event()
    for name in ("in", "out"):
        (folder / name).touch()
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        for id, (method, params) in enumerate(requests)
    ]
    (folder / "in").write_text("\n".join(lines))
    with (folder / "in").open() as source, (folder / "out").open("w") as target:
        Client(Service(Options(Executors({}))), source.fileno(), target.fileno()).start(ended.set)
        assert ended.wait(60)
    return [json.loads(line) for line in (folder / "out").read_text().splitlines()]


def test_a_defect_is_an_internal_error_and_the_session_continues(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waza_server, "find_evals", lambda _: 1 / 0)
    first, second = answers(tmp_path, ("eval.list", {"directory": str(tmp_path)}), ("run.status", {"runId": "x"}))
    error = cast("dict[str, object]", first["error"])
    assert (error["code"], error["message"]) == (-32603, "Internal error")
    assert "ZeroDivisionError: division by zero (" in str(error["data"])
    assert cast("dict[str, object]", second["error"])["code"] == -32602


def test_numbers_that_json_does_not_have_are_texts() -> None:
    value = {"a": [float("nan"), float("-inf"), 1.5, None], "b": {"c": True}}
    assert plain(value) == {"a": ["nan", "-inf", 1.5, None], "b": {"c": True}}


def test_limits_are_errors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waza_server, "MOST_RUNS", 0)
    monkeypatch.setattr(waza_server, "LONGEST_LINE", 1000)
    monkeypatch.setattr(waza_evals, "MOST_FOLDERS", 1)
    (tmp_path / "sub").mkdir()
    (tmp_path / "eval.yaml").write_text("name: n\nskill: s\ntasks: [task.yaml]\n")
    (tmp_path / "task.yaml").write_text("id: a\ninputs: {prompt: p}\n")
    found = answers(
        tmp_path,
        ("eval.run", {"path": str(tmp_path / "eval.yaml")}),
        ("eval.list", {"directory": str(tmp_path)}),
        ("eval.list", {"directory": "x" * 200_000}),
        ("eval.list", {"directory": "y" * 200_000}),
    )
    errors = [cast("dict[str, object]", answer["error"]) for answer in found]
    assert [error["code"] for error in errors] == [-32002, -32602, -32600, -32600]
    assert "0 runs are running already" in str(errors[0]["data"])
    assert "name a folder below this one" in str(errors[1]["data"])
    assert "at most 1,000 bytes" in str(errors[2]["data"])


def test_only_addresses_of_loopback_are_accepted() -> None:
    with ExitStack() as stack:
        for address in ("localhost:0", "127.0.0.1:0"):
            assert listening(stack, address, allow_remote=False)
        assert listening(stack, "0.0.0.0:0", allow_remote=True)
        for address in ("0.0.0.0:0", "[::]:0", ":0", "localhost", "localhost:70000", "localhost:x"):
            with pytest.raises(HostError, match="--tcp"):
                listening(stack, address, allow_remote=False)
