"""`run`: again until what is expected holds, within one deadline, and not when it can't come true any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.ext_shell import Extension

COUNT = "n=$(($(cat n 2>/dev/null || echo 0) + 1)); echo $n | tee n; "
QUICK = {"interval": "1ms"}


def test_a_command_is_run_until_what_is_expected_holds(shell: Extension) -> None:
    answer = shell.ok("run", script=COUNT + "test $n = 3", retry=QUICK)
    assert answer.outputs["attempts"] == "3"
    assert answer.outputs["stdout"] == "3\n"


def test_any_expectation_can_be_waited_for(shell: Extension) -> None:
    answer = shell.ok("run", script=COUNT, retry=QUICK, expect={"stdout": "4", "files": {"n": {"content": "4"}}})
    assert answer.outputs["attempts"] == "4"


def test_what_is_captured_comes_from_the_last_attempt(shell: Extension) -> None:
    answer = shell.ok("run", script=COUNT, retry=QUICK, expect={"stdout": "2"}, capture={"n": {}})
    assert answer.outputs["n"] == "2"


def test_a_capture_can_be_waited_for(shell: Extension) -> None:
    answer = shell.ok("run", script=COUNT, retry=QUICK, capture={"n": {"regex": "[3-9]"}})
    assert answer.outputs["n"] == "3"


def test_the_first_success_is_not_repeated(shell: Extension) -> None:
    assert shell.ok("run", script=COUNT, retry=QUICK).outputs["attempts"] == "1"


def test_attempts_can_be_limited(shell: Extension) -> None:
    answer = shell.failed("run", script=COUNT + "exit 9", retry={**QUICK, "attempts": 3})
    assert answer.outputs["attempts"] == "3"
    assert answer.outputs["stdout"] == "3\n"
    assert "exitCode: expected to equal 0, got 9" in answer.error
    assert "gave up after 3 attempts: this is the number of attempts that `retry` allows" in answer.error


def test_there_is_one_deadline_for_all_attempts(shell: Extension) -> None:
    answer = shell.failed("run", script="exit 9", retry={"interval": "1ms", "backoff": 2}, timeout="4s")
    assert int(answer.outputs["attempts"]) > 1
    assert "no time is left for another attempt" in answer.error
    assert "exitCode: expected to equal 0, got 9" in answer.error


def test_no_attempt_is_made_that_could_not_end_in_time(shell: Extension) -> None:
    answer = shell.failed("run", script=COUNT + "exit 9", retry={"interval": "1h", "maxInterval": "1h"}, timeout="60s")
    assert answer.outputs["attempts"] == "1"
    assert "gave up after 1 attempt: no time is left for another attempt" in answer.error


def test_an_attempt_can_have_a_timeout_of_its_own(shell: Extension) -> None:
    script = COUNT + "test $n -ge 2 || sleep 3600"
    answer = shell.ok("run", script=script, retry={**QUICK, "attemptTimeout": "3s"})
    assert answer.outputs["attempts"] == "2"


def test_an_attempt_that_never_ends_in_its_time_is_a_failure_that_says_so(shell: Extension) -> None:
    retry = {**QUICK, "attemptTimeout": "200ms", "attempts": 2}
    answer = shell.failed("run", command=["sleep", "3600"], retry=retry)
    assert "it did not end within attemptTimeout (200ms)" in answer.error
    assert answer.outputs["attempts"] == "2"


def test_an_attempt_that_the_time_for_all_cuts_short_names_that_time(shell: Extension) -> None:
    script = COUNT + "test $n -lt 2 || exec sleep 3600; exit 9"
    answer = shell.failed("run", script=script, retry={**QUICK, "attemptTimeout": "1h"}, timeout="3s")
    assert "timed out: attempt 2 did not end within `timeout` (3s) for all attempts and was stopped" in answer.error
    assert "the previous attempt failed: exitCode: expected to equal 0, got 9" in answer.error
    assert "exit code" not in answer.message


def test_attempts_may_continue_in_the_next_step(shell: Extension) -> None:
    often = {"interval": "1h", "maxInterval": "1h"}
    first = shell.ok("run", script=COUNT + "test $n = 2", retry=often, onTimeout="ok")
    assert (first.outputs["attempts"], first.outputs["done"]) == ("1", "false")
    assert first.message.startswith("Not done yet: ")
    assert first.message.endswith("; last seen: exitCode: expected to equal 0, got 1")
    second = shell.ok("run", script=COUNT + "test $n = 2", retry=often, onTimeout="ok")
    assert (second.outputs["stdout"], second.outputs["done"]) == ("2\n", "true")


def test_an_attempt_that_the_time_for_all_cuts_short_may_be_repeated_in_the_next_step(shell: Extension) -> None:
    script = COUNT + "test $n -lt 2 || exec sleep 3600; exit 9"
    retry = {**QUICK, "attempts": 2}
    answer = shell.ok("run", script=script, retry=retry, timeout="3s", onTimeout="ok")
    assert answer.outputs["done"] == "false"
    assert "attempt 2 did not end within `timeout` (3s) for all attempts" in answer.message
    assert answer.message.endswith("; last seen: exitCode: expected to equal 0, got 9")


@pytest.mark.parametrize(
    "retry",
    [{"fatalExitCode": 9}, {"fatalOutput": "^1"}, {"attempts": 1}, {"attempts": 1, "attemptTimeout": "1ms"}],
)
def test_only_lack_of_time_is_left_to_the_next_step(retry: dict[str, object], shell: Extension) -> None:
    answer = shell.failed("run", script=COUNT + "exit 9", retry=QUICK | retry, onTimeout="ok")
    assert answer.outputs["done"] == "false"
    assert "gave up after 1 attempt" in answer.error


def test_one_attempt_alone_does_not_continue(shell: Extension) -> None:
    assert "`onTimeout` requires `retry`; for longer work use `start`" in (
        shell.refused("run", command=["true"], onTimeout="ok")
    )
    assert "capture.done: another output has this name" in shell.refused("run", command=["true"], capture={"done": {}})
    assert "done" not in shell.ok("run", command=["true"]).outputs


@pytest.mark.parametrize("fatal", [{"fatalExitCode": 2}, {"fatalExitCode": [1, 2]}, {"fatalOutput": "(?i)FATAL"}])
def test_what_cannot_come_true_any_more_ends_it(fatal: dict[str, object], shell: Extension) -> None:
    script = COUNT + "if test $n = 2; then echo fatal: no >&2; exit 2; fi; exit 9"
    answer = shell.failed("run", script=script, retry={**QUICK, **fatal})
    assert answer.outputs["attempts"] == "2"
    assert "gave up after 2 attempts" in answer.error
    assert "fatal" in answer.error.partition("gave up")[2]


@pytest.mark.parametrize(
    "args",
    [
        {"command": ["no-such-command"]},
        {"command": ["true"], "cwd": ".."},
        {"command": ["true"], "expect": {"files": {"/etc/passwd": {"exists": True}}}},
    ],
)
def test_what_waiting_does_not_mend_fails_at_once(args: dict[str, object], shell: Extension) -> None:
    answer = shell.failed("run", **args, retry={"interval": "1h", "maxInterval": "1h"})
    assert "attempts" not in answer.outputs


@pytest.mark.parametrize(
    ("retry", "said"),
    [
        ({"attempts": 0}, "retry.attempts: expected an integer >= 1"),
        ({"interval": "-1s"}, "interval: expected a duration of 0s or more"),
        ({"backoff": 0.5}, "retry.backoff: expected a number >= 1"),
        ({"attemptTimeout": "0s"}, "attemptTimeout: expected a duration over 0"),
        ({"fatalOutput": "("}, "is not a regular expression"),
        ({"until": "ok"}, "unknown argument 'until'"),
    ],
)
def test_wrong_retries_are_refused(retry: object, said: str, shell: Extension) -> None:
    assert said in shell.refused("run", command=["true"], retry=retry)


def test_a_pattern_of_fatal_output_that_never_ends_is_fatal(shell: Extension) -> None:
    retry = {**QUICK, "fatalOutput": "^(a+)+$"}
    answer = shell.failed("run", command=["bash", "-c", "echo $0; exit 1", "a" * 40 + "b"], retry=retry)
    assert "fatalOutput: " in answer.error
    assert answer.outputs["attempts"] == "1"
