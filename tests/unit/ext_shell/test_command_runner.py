"""One run of a command: exit, deadline, shutdown, log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import convert

from ext_sdk import Deadline
from ext_sdk.process import RESERVE, CommandRun, Spawner, bounded_grace
from ext_shell.args import CommandArgs
from ext_shell.command import PreparedCommand, run_command
from tests.support.shell_contexts import ShellCall

if TYPE_CHECKING:
    from pathlib import Path


def run(call: ShellCall, deadline: Deadline, script: str, *, log: bool = False) -> CommandRun:
    spawner = Spawner()
    try:
        command = PreparedCommand(convert({"script": script}, CommandArgs), call.context)
        return run_command(command, spawner, call.context, deadline, log=log)
    finally:
        spawner.close()


def test_a_run_has_status_and_outputs(tmp_path: Path) -> None:
    call = ShellCall(tmp_path)
    result = run(call, call.context.deadline, "echo out; echo err >&2; exit 3", log=True)
    assert result.status is not None
    assert result.status.code == 3
    assert {name: output.text for name, output in result.outputs.items()} == {"stdout": "out\n", "stderr": "err\n"}
    assert (result.timed_out, result.stopped, result.left, result.stuck) == (False, False, "", "")
    assert result.duration.seconds > 0
    assert sorted(call.messages) == ["err", "out"]


def test_a_command_is_stopped_at_the_deadline(tmp_path: Path) -> None:
    call = ShellCall(tmp_path)
    result = run(call, Deadline(0.0), "sleep 3600")
    assert (result.timed_out, result.stopped) == (True, False)
    assert result.status is not None
    assert result.status.signal_name == "SIGTERM"
    assert call.messages == []


def test_a_command_is_stopped_when_the_extension_shuts_down(tmp_path: Path) -> None:
    call = ShellCall(tmp_path)
    call.context.deadline.stopped.set()
    result = run(call, call.context.deadline, "sleep 3600")
    assert (result.timed_out, result.stopped) == (False, True)


def test_the_time_before_sigkill_leaves_time_for_a_result() -> None:
    assert bounded_grace(5.0, Deadline(0)) == 5.0
    assert 0.9 - RESERVE <= bounded_grace(5.0, Deadline(0, latest=1.0)) <= 1.0 - RESERVE
    assert bounded_grace(5.0, Deadline(0, latest=0.1)) == 0.0
