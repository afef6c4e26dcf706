"""`run`: parts of the output as outputs, for later steps; secret ones for later steps alone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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
        assert SECRET not in "".join([answer.error.partition("; command: ")[0], *answer.outputs.values()])
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
        assert SECRET not in answer.error.partition("; command: ")[0]


def test_a_pattern_that_never_ends_is_a_failure_and_does_not_hang(shell: Extension) -> None:
    answer = shell.failed("run", command=["echo", "a" * 40 + "b"], capture={"v": {"regex": "^(a+)+$"}})
    assert "took longer than" in answer.error
