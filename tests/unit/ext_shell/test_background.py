"""Background processes: registry, start, stop, results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import UNSET, convert

from ext_sdk import OperationFailed
from ext_sdk.context import Place
from ext_sdk.expect import Searcher
from ext_sdk.long_outputs import RedactingFile
from ext_sdk.process import Spawner
from ext_shell.args import CommandArgs
from ext_shell.background import (
    Process,
    Processes,
    RunningProcesses,
    find_process,
    output_ends,
    outputs_of,
    result_of,
    stop_process,
)
from ext_shell.command import PreparedCommand
from tests.support.shell_contexts import ShellCall, shell_call

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def call(tmp_path: Path) -> Iterator[ShellCall]:
    with shell_call(tmp_path) as made:
        yield made


def process(call: ShellCall, script: str, name: str = "web", port: int | None = None) -> Process:
    """A process that was not started."""
    path = call.context.artifact(f"{name}.log")
    return Process(
        name,
        PreparedCommand(convert({"script": script}, CommandArgs), call.context),
        log=RedactingFile(path, call.context.secrets, 1000),
        log_path=path,
        output_limit=1000,
        place=str(call.context.workdir),
        port=port,
    )


def started(call: ShellCall, script: str, name: str = "web", port: int | None = None) -> Process:
    """A process that was started and registered."""
    made = process(call, script, name, port)
    call.context.state(Processes).start(made, call.context.extension_state(Spawner), keep=False)
    call.context.extension_state(RunningProcesses).add(made)
    return made


def test_a_process_has_its_output_and_its_log(call: ShellCall) -> None:
    web = started(call, "echo up; echo opensesame-77 >&2; exit 3")
    assert web.wait(60)
    assert (web.exited, web.ended) == (True, True)
    run = web.so_far()
    assert run.status is not None
    assert (run.status.code, run.stdout.text) == (3, "up\n")
    assert web.written_since("stdout", 1) == (b"p\n", 3)
    assert "up\n" in web.log_path.read_text()
    assert "opensesame" not in web.log_path.read_text()
    assert output_ends(web, call.context).startswith("stdout ends with: up\nstderr ends with: [redacted")


def test_a_name_is_of_one_running_process(call: ShellCall) -> None:
    web = started(call, "sleep 3600")
    assert find_process("web", call.context) is web
    with pytest.raises(OperationFailed, match="process 'web' is already running") as failure:
        call.context.state(Processes).refuse_running("web")
    assert f"(pid {web.pid}, " in failure.value.error
    stop_process(web, 60.0, call.context.deadline)
    assert web.ended
    again = started(call, "true")
    assert find_process("web", call.context) is again
    call.context.state(Processes).remove(web)
    assert call.context.state(Processes).names() == ["web"]


def test_a_process_that_does_not_exist_has_suggestions(call: ShellCall) -> None:
    with pytest.raises(OperationFailed, match="process 'web' does not exist") as failure:
        find_process("web", call.context)
    assert "none was started, or all were stopped" in failure.value.error
    started(call, "sleep 3600", "webs")
    with pytest.raises(OperationFailed) as failure:
        find_process("web", call.context)
    assert "did you mean 'webs'?" in failure.value.error
    call.context.scope, call.context.place = "other", Place.of(call.context.workdir, "other")
    with pytest.raises(OperationFailed) as failure:
        find_process("webs", call.context)
    assert f"a process of this name belongs to {call.context.workdir}" in failure.value.error


def test_the_owner_of_a_port_is_known_while_it_runs(call: ShellCall) -> None:
    web = started(call, "sleep 3600", port=20_001)
    running = call.context.extension_state(RunningProcesses)
    assert (running.at_port(20_001), running.at_port(20_002)) == (web, None)
    assert outputs_of(web) == {"name": "web", "pid": web.pid, "logFile": str(web.log_path), "port": 20_001}
    stop_process(web, 60.0, call.context.deadline)
    assert running.at_port(20_001) is None


def test_all_processes_are_stopped_at_the_end(call: ShellCall) -> None:
    web, db = started(call, "sleep 3600"), started(call, "sleep 3600", "db")
    processes = call.context.state(Processes)
    processes.close()
    assert (web.ended, db.ended, processes.names()) == (True, True, [])
    with pytest.raises(OperationFailed, match="shutting down"):
        processes.start(process(call, "true"), call.context.extension_state(Spawner), keep=False)


def test_a_result_is_of_the_output_so_far(call: ShellCall) -> None:
    web = started(call, "echo up; exit 3")
    assert web.wait(60)
    with Searcher() as searcher:
        result = result_of(web, UNSET, {}, call.context, searcher).result()
        failed = result_of(web, UNSET, {}, call.context, searcher, reason="it is late").result()
    assert (result.success, result.outputs["exitCode"], result.outputs["stdout"]) == (True, "3", "up\n")
    assert not failed.success
    assert failed.error.startswith("it is late\ncommand: web: bash script ")


def test_a_process_that_was_not_started_has_no_pid(call: ShellCall) -> None:
    with pytest.raises(RuntimeError, match="was not started"):
        assert process(call, "true").pid
