"""Results of commands: message, error text, outputs."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from msgspec import convert

from ext_sdk import NotKept, Result
from ext_sdk.capture import Captured
from ext_sdk.expect import Check
from ext_sdk.process import ExitStatus, Output
from ext_shell.result import RunResult
from ext_shell.rlimits import Limits
from ext_shell.runner import CommandRun
from tests.support.shell_contexts import ShellCall

if TYPE_CHECKING:
    from pathlib import Path

PASSED = Check(ok=True, what="to equal", expected="0", where="exitCode")
FAILED = Check(ok=False, what="to equal", expected="0", found="3", where="exitCode")


def output(text: str) -> Output:
    made = Output(1000)
    made.write(text.encode())
    return made


def result(
    workdir: Path,
    status: ExitStatus | None = None,
    *checks: Check,
    stdout: str = "",
    left: str = "",
    stuck: str = "",
    reason: str = "",
    notes: tuple[str, ...] = (),
    running: bool = False,
    captured: Captured | None = None,
) -> Result:
    run = CommandRun(status=status, stdout=output(stdout), stderr=output(""), seconds=2.0, left=left, stuck=stuck)
    made = RunResult(
        "make",
        run,
        list(checks),
        captured or Captured(),
        limits=convert({"memory": 5}, Limits),
        context=ShellCall(workdir).context,
        reason=reason,
        running=running,
    )
    for note in notes:
        made.note(note)
    return made.result()


def test_a_success_has_status_and_outputs(tmp_path: Path) -> None:
    made = result(tmp_path, ExitStatus(0), PASSED, stdout="hi\n")
    assert made.message == "make: exit code 0 after 2s, 1 check passed"
    assert made.error == ""
    assert made.outputs == {"exitCode": "0", "stdout": "hi\n", "stderr": "", "duration": "2s"}


def test_a_failure_has_checks_notes_limits_and_the_end_of_the_output(tmp_path: Path) -> None:
    made = result(tmp_path, ExitStatus(-signal.SIGKILL), FAILED, stdout="hi\n", notes=("try again",))
    assert made.message == "make: killed by SIGKILL after 2s: 1 of 1 check failed"
    assert made.outputs["signal"] == "SIGKILL"
    assert made.error == (
        "exitCode: expected to equal 0, got 3; try again; command: make; limits.memory of 5 may be too low; "
        "stdout ends with: hi"
    )


def test_a_reason_replaces_the_failed_checks(tmp_path: Path) -> None:
    made = result(tmp_path, ExitStatus(3), FAILED, reason="timed out")
    assert made.message == "make: exit code 3 after 2s: timed out"
    assert made.error == "timed out; command: make; no output"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"running": True}, "make: running for 2s"),
        ({}, "make: ended with an unknown status after 2s"),
        ({"stuck": "sleep(7)"}, "make: does not end after 2s: no"),
    ],
)
def test_without_a_status(given: dict[str, object], message: str, tmp_path: Path) -> None:
    made = result(tmp_path, None, **given)  # type: ignore[arg-type]
    assert made.message.startswith(message.partition(": no")[0])
    assert made.success is ("stuck" not in given)
    assert "stuck" not in given or "still running after SIGKILL: sleep(7)" in made.error


def test_processes_that_were_left_running_are_named(tmp_path: Path) -> None:
    note = "; stopped the processes that it left running: sleep(7) (use `start` for a background process)"
    assert result(tmp_path, ExitStatus(0), left="sleep(7)").message.endswith(note)
    assert result(tmp_path, ExitStatus(3), FAILED, left="sleep(7)").error.endswith(note)


def test_an_output_with_a_secret_that_cannot_be_redacted_is_withheld(tmp_path: Path) -> None:
    captured = Captured()
    captured.withheld.add("stdout")
    captured.values["id"] = "7"
    made = result(tmp_path, ExitStatus(0), stdout="pin x1", captured=captured)
    assert made.outputs["stdout"].startswith("[withheld: a secret was to be captured")
    assert isinstance(made.whole["stdout"], NotKept)
    assert made.outputs["id"] == "7"
