"""Results of commands: message, error text, outputs."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import convert

from ext_sdk import NotKept, Result
from ext_sdk.capture import Captured
from ext_sdk.expect import Check
from ext_sdk.process import CommandRun, ExitStatus, Output
from ext_shell.result import RunResult
from ext_shell.rlimits import Limits
from tests.support.shell_contexts import ShellCall

if TYPE_CHECKING:
    from tests.support.ext_shell import Extension


TEXT = 'version 1.20\\nid=0042\\n  {"n": 9007199254740993, "s": "x y", "l": [1, 2.0], "z": null}  \\nlast\\n'

FOUND: list[tuple[dict[str, object], str]] = [
    ({"regex": r"version (\S+)"}, "1.20"),
    ({"regex": r"id=\d+"}, "id=0042"),
    ({"regex": r"(?P<key>\w+)=(?P<value>\d+)", "group": "value"}, "0042"),
    ({"regex": r"(\w+)=(\d+)", "group": 2}, "0042"),
    ({"regex": r"(\w+)=(\d+)", "group": 0}, "id=0042"),
    ({"line": 1}, "version 1.20"),
    ({"line": -1}, "last"),
    ({"line": 3, "trim": False}, '  {"n": 9007199254740993, "s": "x y", "l": [1, 2.0], "z": null}  '),
    ({}, 'version 1.20\nid=0042\n  {"n": 9007199254740993, "s": "x y", "l": [1, 2.0], "z": null}  \nlast'),
    ({"regex": "no such thing", "default": "none"}, "none"),
    ({"from": "stderr"}, "err"),
]

NOT_FOUND: list[tuple[dict[str, object], str]] = [
    ({"regex": "no such thing"}, "nothing in stdout that matches 'no such thing'"),
    ({"regex": "version", "group": 3}, "no group 3"),
    ({"regex": "(x)?version"}, "no text in group 1"),
    ({"line": 9}, "no line 9 in stdout, which has 4"),
    ({"line": -9}, "no line -9"),
    ({"json": "$.n"}, "stdout is not JSON"),
]

JSON: list[tuple[str, str]] = [
    ("$.n", "9007199254740993"),
    ("$.s", "x y"),
    ("$.l", "[1,2.0]"),
    ("$.l[0]", "1"),
    ("$.z", "null"),
]


@pytest.mark.parametrize(("capture", "value"), FOUND)
def test_a_part_of_the_output_becomes_an_output(capture: dict[str, object], value: str, shell: Extension) -> None:
    answer = shell.ok("run", script=f"printf '{TEXT}'; echo err >&2", capture={"part": capture})
    assert answer.outputs["part"] == value


@pytest.mark.parametrize(("capture", "said"), NOT_FOUND)
def test_a_part_that_is_not_there_is_a_failure(capture: dict[str, object], said: str, shell: Extension) -> None:
    answer = shell.failed("run", script=f"printf '{TEXT}'", capture={"part": capture})
    assert f"capture part: expected to be found, got {said}" in answer.error
    assert "part" not in answer.outputs


@pytest.mark.parametrize(("path", "value"), JSON)
def test_values_of_json_keep_their_spelling(path: str, value: str, shell: Extension) -> None:
    script = 'sed -n 3p <<<"$TEXT"'
    text = TEXT.replace("\\n", "\n")
    assert shell.ok("run", script=script, env={"TEXT": text}, capture={"v": {"json": path}}).outputs["v"] == value


@pytest.mark.parametrize(("path", "said"), [("$.no", "0 values at '$.no'"), ("$.l[*]", "2 values at '$.l[*]'")])
def test_a_path_that_does_not_lead_to_one_value_is_a_failure(path: str, said: str, shell: Extension) -> None:
    text = TEXT.replace("\\n", "\n")
    answer = shell.failed("run", script='sed -n 3p <<<"$TEXT"', env={"TEXT": text}, capture={"v": {"json": path}})
    assert said in answer.error


@pytest.mark.parametrize(
    ("capture", "said"),
    [
        ({"exitCode": {}}, "capture.exitCode: another output has this name"),
        ({"a.b": {}}, "expected a name of 1 to 100 characters without dots"),
        ({"": {}}, "expected a name of 1 to 100 characters without dots"),
        ({"v": {"regex": "x", "line": 1}}, "expected one of regex, json and line, found regex and line"),
        ({"v": {"line": 0}}, "line: expected a number other than 0"),
        ({"v": {"group": 1}}, "`group` requires `regex`"),
        ({"v": {"from": "stdin"}}, "capture"),
        ({"v": {"regx": "x"}}, "unknown argument 'regx'"),
        ({"v": {"regex": "("}}, "is not a regular expression"),
        ({"v": {"json": "n"}}, "json: 'n' is not a JSONPath (RFC 9535)"),
    ],
)
def test_captures_that_cannot_be_are_refused(capture: object, said: str, shell: Extension) -> None:
    assert said in shell.refused("run", command=["true"], capture=capture)


def test_captured_values_reach_later_steps_of_the_workdir(shell: Extension) -> None:
    shell.ok("run", command=["echo", "id=42"], capture={"id": {"regex": "id=(.*)"}}, **{"as": "made"})
    assert shell.ok("run", command=["echo", "${made.id}"]).outputs["stdout"] == "42\n"
    assert (
        shell.ok("run", script="cat; echo $ID", stdin="${made.id},", env={"ID": "${made.id}"}).outputs["stdout"]
        == "42,42\n"
    )


SECRET = "opensesame-77"
CAPTURE = {"token": {"regex": "token=(.*)", "secret": True}}


class TestSecrets:
    def test_a_secret_is_for_later_steps_alone(self, shell: Extension) -> None:
        answer = shell.ok("run", command=["echo", f"token={SECRET}1"], capture=CAPTURE, **{"as": "login"})
        # The command line is the test's own; what counts is where else the value is.
        assert "token" not in answer.outputs
        assert SECRET not in repr(answer.raw)
        later = shell.ok("run", script='test "$TOKEN" = opensesame-771 && echo same', env={"TOKEN": "${login.token}"})
        assert later.outputs["stdout"] == "same\n"

    def test_a_secret_is_hidden_in_everything_from_then_on(self, shell: Extension) -> None:
        shell.ok("run", script=f"echo token={SECRET}2", capture=CAPTURE, **{"as": "login"})
        answer = shell.failed("run", command=["bash", "-c", "echo $1; echo $1 | base64; exit 1", "-", "${login.token}"])
        assert f"{SECRET}2" not in repr(answer.raw)
        assert "b3BlbnNlc2FtZS03NzI" not in repr(answer.raw)
        assert "[redacted:" in answer.outputs["stdout"]

    def test_no_line_is_logged_before_a_secret_is_known(self, shell: Extension) -> None:
        answer = shell.ok("run", script=f"echo token={SECRET}3; echo more", capture=CAPTURE)
        assert answer.log_messages == []

    def test_a_secret_is_hidden_in_files_of_long_outputs(self, shell: Extension) -> None:
        script = f"seq 20000; echo token={SECRET}4; seq 20000"
        answer = shell.ok("run", script=script, capture=CAPTURE)
        data = Path(answer.outputs["stdoutFile"]).read_text()
        assert f"{SECRET}4" not in data
        assert "token=[redacted:" in data

    def test_a_secret_that_is_not_found_withholds_the_output_it_may_be_in(self, shell: Extension) -> None:
        script = f"echo tokn={SECRET}5; echo visible >&2; exit 3"
        answer = shell.failed("run", script=script, capture=CAPTURE, expect={"stdout": "x"})
        assert SECRET not in "".join([answer.error.partition("\ncommand: ")[0], *answer.outputs.values()])
        assert "withheld" in answer.outputs["stdout"]
        assert answer.outputs["stderr"] == "visible\n"
        assert "capture token: expected to be found" in answer.error

    def test_a_secret_too_short_to_be_hidden_withholds_the_output_it_is_in(self, shell: Extension) -> None:
        answer = shell.ok("run", script="echo 'token=x1'", capture=CAPTURE, **{"as": "pin"})
        assert "withheld" in answer.outputs["stdout"]
        assert shell.ok("run", command=["test", "${pin.token}", "=", "x1"]).success

    def test_a_failed_check_does_not_show_half_a_secret(self, shell: Extension) -> None:
        """Texts are cut for messages; what is cut first is not recognized as secret any more."""
        padding = "x" * 150
        script = f"printf '%s' '{padding}token={SECRET}6-and-much-more' {padding}{padding}"
        answer = shell.failed(
            "run",
            script=script,
            capture={"token": {"regex": "token=(.*?more)", "secret": True}},
            expect={"stdout": {"startsWith": "y"}},
        )
        assert "stdout: expected to start with" in answer.error
        assert SECRET not in answer.error.partition("\ncommand: ")[0]


def test_a_pattern_that_never_ends_is_a_failure_and_does_not_hang(shell: Extension) -> None:
    answer = shell.failed("run", command=["echo", "a" * 40 + "b"], capture={"v": {"regex": "^(a+)+$"}})
    assert "took longer than" in answer.error


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
        "exitCode: expected to equal 0, got 3\ntry again\nlimits.memory of 5 may be too low\ncommand: make\n"
        "stdout ends with: hi"
    )


def test_a_reason_replaces_the_failed_checks(tmp_path: Path) -> None:
    made = result(tmp_path, ExitStatus(3), FAILED, reason="timed out")
    assert made.message == "make: exit code 3 after 2s: timed out"
    assert made.error == "timed out\ncommand: make\nno output"


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
    note = "stopped the processes that it left running: sleep(7) (use `start` for a background process)"
    assert result(tmp_path, ExitStatus(0), left="sleep(7)").message.endswith(f"; {note}")
    assert result(tmp_path, ExitStatus(3), FAILED, left="sleep(7)").error.endswith(f"command: make\n{note}\nno output")


def test_an_output_with_a_secret_that_cannot_be_redacted_is_withheld(tmp_path: Path) -> None:
    captured = Captured()
    captured.withheld.add("stdout")
    captured.values["id"] = "7"
    made = result(tmp_path, ExitStatus(0), stdout="pin x1", captured=captured)
    assert made.outputs["stdout"].startswith("[withheld: a secret was to be captured")
    assert isinstance(made.whole["stdout"], NotKept)
    assert made.outputs["id"] == "7"
