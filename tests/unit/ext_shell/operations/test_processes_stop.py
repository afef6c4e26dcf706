"""`stop`: the end of a process and of all that it started."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.ext_shell import Extension
    from tests.support.process_tracker import ProcessTracker


def test_a_process_gets_sigterm_and_all_that_it_started_too(shell: Extension, tracker: ProcessTracker) -> None:
    script = f"{tracker.hold}; sleep 3600 & (setsid sleep 3600 &); echo up; wait"
    shell.ok("start", name="web", script=script, ready={"logLine": "up"})
    answer = shell.ok("stop", name="web")
    assert answer.outputs["signal"] == "SIGTERM"
    assert answer.outputs["stdout"] == "up\n"
    assert answer.outputs["running"] == "false"
    assert not tracker.left(0)


def test_another_signal_can_be_sent_and_the_end_be_checked(shell: Extension) -> None:
    script = "trap 'echo bye; exit 7' INT; echo up; while :; do sleep 0.01; done"
    shell.ok("start", name="web", script=script, ready={"logLine": "up"})
    answer = shell.ok("stop", name="web", signal="int", expect={"exitCode": 7})
    assert answer.outputs["stdout"] == "up\nbye\n"
    assert "1 check passed" in answer.message


def test_an_end_that_was_not_expected_is_a_failure_but_an_end(shell: Extension, tracker: ProcessTracker) -> None:
    shell.ok("start", name="web", script=f"{tracker.hold}; echo up; sleep 3600", ready={"logLine": "up"})
    answer = shell.failed("stop", name="web", expect={"exitCode": 0})
    assert "exitCode: expected to equal 0, got none (killed by SIGTERM)" in answer.error
    assert not tracker.left(0)


def test_what_ignores_the_signal_is_killed_at_the_timeout(shell: Extension, tracker: ProcessTracker) -> None:
    script = f"{tracker.hold}; trap '' TERM; echo up; while :; do sleep 3600; done"
    shell.ok("start", name="web", script=script, ready={"logLine": "up"})
    assert shell.ok("stop", name="web", timeout="100ms").outputs["signal"] == "SIGKILL"
    assert not tracker.left(0)


def test_a_process_that_has_ended_by_itself_is_a_success(shell: Extension) -> None:
    shell.ok("start", name="web", script="exit 3")
    shell.ok("wait", name="web", expect={"exitCode": 3})
    assert shell.ok("stop", name="web").outputs["exitCode"] == "3"


def test_what_it_wrote_is_checked_and_captured_as_by_run(shell: Extension) -> None:
    script = "trap 'echo bye >&2; exit 0' TERM; echo id=42; while :; do sleep 0.01; done"
    shell.ok("start", name="web", script=script, ready={"logLine": "id"})
    expect = {"exitCode": 0, "stdout": "id=42", "stderr": {"contains": "bye"}}
    answer = shell.ok("stop", name="web", expect=expect, capture={"id": {"regex": "=(.*)"}})
    assert answer.outputs["id"] == "42"
    assert "3 checks passed" in answer.message


def test_any_end_is_fine_for_a_check_of_the_output(shell: Extension) -> None:
    shell.ok("start", name="web", script="echo up; sleep 3600", ready={"logLine": "up"})
    answer = shell.ok("stop", name="web", expect={"stdout": "up"})
    assert answer.outputs["signal"] == "SIGTERM"
    assert "1 check passed" in answer.message


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"expect": {"stdout": {"contains": "down"}}}, 'stdout: expected to contain "down", got "up'),
        ({"capture": {"id": {"regex": "id=(.*)"}}}, "capture id: expected to be found"),
    ],
)
def test_output_that_was_not_expected_is_a_failure_but_an_end(
    args: dict[str, object], said: str, shell: Extension
) -> None:
    shell.ok("start", name="web", script="echo up; sleep 3600", ready={"logLine": "up"})
    assert said in shell.failed("stop", name="web", **args).error
    assert "does not exist" in shell.failed("stop", name="web").message


def test_a_stopped_process_is_forgotten(shell: Extension) -> None:
    shell.ok("start", name="web", command=["sleep", "3600"])
    shell.ok("stop", name="web")
    assert "process 'web' does not exist" in shell.failed("stop", name="web").message
    assert shell.ok("stop", name="web", ignoreMissing=True).success


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"signal": "SIGNOTHING"}, "expected the name of a signal"),
        ({"expect": {}}, "this checks nothing"),
        ({"expect": {"stdout": {}}}, "this checks nothing"),
        ({"expect": {"files": {"a": {"exists": True}}}}, "unknown argument 'files'"),
        ({"capture": {"pid": {}}}, "capture.pid: another output has this name"),
        ({"timeout": "soon"}, "timeout"),
    ],
)
def test_wrong_arguments_are_refused(args: dict[str, object], said: str, shell: Extension) -> None:
    assert said in shell.refused("stop", name="web", **args)
