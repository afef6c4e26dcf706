"""`wait`: for the end of a process, or for what it does meanwhile."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.ext_shell import Extension


@pytest.fixture(autouse=True)
def _stop_all(shell: Extension) -> Iterator[None]:
    yield
    shell.call("stop", {"name": "job", "ignoreMissing": True, "timeout": "100ms"})


def _start(shell: Extension, script: str, **args: object) -> None:
    shell.ok("start", name="job", script=script, **args)


def test_the_end_of_a_process_has_the_outputs_of_a_run(shell: Extension) -> None:
    _start(shell, "echo out; echo err >&2")
    answer = shell.ok("wait", name="job")
    assert {name: answer.outputs[name] for name in ("exitCode", "stdout", "stderr", "running")} == {
        "exitCode": "0",
        "stdout": "out\n",
        "stderr": "err\n",
        "running": "false",
    }
    assert answer.message.startswith("job: bash script 'echo out; echo err >&2': exit code 0 after ")


def test_a_failure_of_the_process_is_one_of_the_wait(shell: Extension) -> None:
    _start(shell, "echo no luck; exit 3")
    answer = shell.failed("wait", name="job")
    assert "exitCode: expected to equal 0, got 3" in answer.error
    assert "stdout ends with: no luck" in answer.error


def test_expectations_and_captures_are_those_of_a_run(shell: Extension) -> None:
    _start(shell, "echo id=42; exit 3")
    expect = {"exitCode": 3, "stdout": {"contains": "id"}}
    answer = shell.ok("wait", name="job", expect=expect, capture={"id": {"regex": "=(.*)"}})
    assert answer.outputs["id"] == "42"
    assert "2 checks passed" in answer.message
    assert "stdout: expected to equal" in shell.failed("wait", name="job", expect={"exitCode": 3, "stdout": "x"}).error


def test_what_has_ended_can_be_waited_for_again(shell: Extension) -> None:
    _start(shell, "echo once")
    assert shell.ok("wait", name="job").outputs["stdout"] == "once\n"
    assert shell.ok("wait", name="job").outputs["stdout"] == "once\n"


def test_a_process_that_still_runs_is_a_failure_that_says_what_to_do(shell: Extension) -> None:
    _start(shell, "echo so far; sleep 3600", ready={"logLine": "so far"})
    answer = shell.failed("wait", name="job", timeout="200ms")
    assert "it is still running after" in answer.error
    assert "wait again" in answer.error
    assert "onTimeout: ok" in answer.error
    assert answer.outputs["running"] == "true"
    assert answer.outputs["stdout"] == "so far\n"
    assert "exitCode" not in answer.outputs


def test_long_work_is_a_start_and_several_waits(shell: Extension) -> None:
    os.mkfifo(shell.workdir / "go")
    _start(shell, "read -r line <go; echo $line")
    first = shell.ok("wait", name="job", timeout="100ms", onTimeout="ok")
    assert first.outputs["running"] == "true"
    assert "it is still running after" in first.message
    (shell.workdir / "go").write_text("finished\n")
    last = shell.ok("wait", name="job")
    assert last.outputs["running"] == "false"
    assert last.outputs["stdout"] == "finished\n"


def test_expectations_are_about_the_end_and_wait_for_it(shell: Extension) -> None:
    os.mkfifo(shell.workdir / "go")
    _start(shell, "read -r line <go; echo $line; exit 3")
    expect = {"exitCode": 3, "stdout": "end"}
    first = shell.ok("wait", name="job", timeout="1ms", onTimeout="ok", expect=expect, capture={"last": {}})
    assert (first.outputs["done"], first.outputs["running"]) == ("false", "true")
    assert first.message.startswith("Not done yet: job: ")
    (shell.workdir / "go").write_text("end\n")
    last = shell.ok("wait", name="job", onTimeout="ok", expect=expect, capture={"last": {}})
    assert (last.outputs["done"], last.outputs["last"]) == ("true", "end")
    failed = shell.failed("wait", name="job", onTimeout="ok")
    assert failed.outputs["done"] == "true"


def test_conditions_may_be_met_in_a_later_step_but_not_after_the_end(shell: Extension) -> None:
    os.mkfifo(shell.workdir / "go")
    _start(shell, "read -r line <go; exit 4")
    wait = {"name": "job", "for": {"file": "never"}, "onTimeout": "ok"}
    assert shell.ok("wait", timeout="1ms", **wait).outputs["done"] == "false"
    (shell.workdir / "go").write_text("end\n")
    assert "it ended before it was ready" in shell.failed("wait", **wait).error


def test_a_wait_may_be_for_other_conditions(shell: Extension) -> None:
    os.mkfifo(shell.workdir / "go")
    _start(shell, "read -r line <go; echo $line; touch file; sleep 3600")
    (shell.workdir / "go").write_text("next\n")
    answer = shell.ok("wait", name="job", **{"for": {"logLine": "^next$", "file": "file"}})
    assert answer.outputs["running"] == "true"


def test_a_line_that_was_written_before_the_wait_counts(shell: Extension) -> None:
    _start(shell, "echo early; touch up; sleep 3600", ready={"file": "up"})
    shell.ok("wait", name="job", **{"for": {"logLine": "early"}})


def test_a_wait_for_readiness_is_for_what_start_waited_for(shell: Extension) -> None:
    _start(shell, "echo up; sleep 3600", ready={"logLine": "up"})
    shell.ok("wait", name="job", **{"for": "ready"})


def test_a_condition_that_does_not_come_is_a_failure_and_the_process_goes_on(shell: Extension) -> None:
    _start(shell, "sleep 3600")
    answer = shell.failed("wait", name="job", timeout="200ms", **{"for": {"file": "never"}})
    assert "waited for the file 'never'" in answer.error
    assert shell.ok("wait", name="job", timeout="1ms", onTimeout="ok").outputs["running"] == "true"


def test_a_condition_of_a_process_that_has_ended_fails_at_once(shell: Extension) -> None:
    _start(shell, "exit 4")
    answer = shell.failed("wait", name="job", timeout="1h", **{"for": {"file": "never"}})
    assert "it ended before it was ready: exit code 4" in answer.error


def test_output_so_far_can_be_checked(shell: Extension) -> None:
    _start(shell, "echo one; echo two; sleep 3600")
    wait = {"name": "job", "for": {"logLine": "two"}}
    shell.ok("wait", **wait, expect={"stdout": "one\ntwo"})
    assert "got none (it is still running)" in shell.failed("wait", **wait, expect={"exitCode": 0}).error


def test_an_unknown_name_is_a_failure_with_the_nearest_known_one(shell: Extension) -> None:
    assert "none was started" in shell.failed("wait", name="jb").error
    _start(shell, "sleep 3600")
    assert "did you mean 'job'?" in shell.failed("wait", name="jb").error
    assert "known are job" in shell.failed("wait", name="zzzzzz").error


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"for": "ever"}, "for"),
        ({"for": "ready"}, "was started without `ready`"),
        ({"for": {}}, "no condition is given"),
        ({"expect": {}}, "this checks nothing"),
        ({"capture": {"pid": {}}}, "capture.pid: another output has this name"),
    ],
)
def test_wrong_arguments_are_refused(args: dict[str, object], said: str, shell: Extension) -> None:
    _start(shell, "sleep 3600")
    assert said in shell.refused("wait", name="job", **args)


def test_several_calls_may_wait_for_one_process(shell: Extension) -> None:
    os.mkfifo(shell.workdir / "go")
    _start(shell, "read -r line <go; echo $line")
    ids = [shell.send("wait", {"name": "job"}) for _ in range(3)]
    (shell.workdir / "go").write_text("all\n")
    assert [shell.answer(id).outputs["stdout"] for id in ids] == ["all\n"] * 3
