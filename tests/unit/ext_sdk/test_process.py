"""Commands of an operation: `context.run`, and the checks of what they did."""

from __future__ import annotations

import resource
import sys
from typing import TYPE_CHECKING

import pytest
from msgspec import convert

import ext_sdk
from ext_sdk import OperationFailed
from ext_sdk.process import CommandExpectation, CommandRun, ExitStatus, Output, check_command
from ext_sdk.server.validation import decode
from tests.support.shell_contexts import ShellCall, shell_call

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[ShellCall]:
    with shell_call(tmp_path) as call:
        yield call


def sh(script: str) -> list[str]:
    return ["sh", "-c", script]


def test_a_command_gets_its_directory_its_input_and_few_variables(
    probe: ShellCall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "inside").mkdir()
    monkeypatch.setenv("OF_THE_HOST", "not passed")
    probe.context.env = {"OF_THE_TASK": "passed"}
    script = 'pwd; cat; echo "$OF_THE_HOST$OF_THE_TASK$MORE$TZ"'
    run = probe.context.run(sh(script), cwd="inside", stdin="typed\n", env={"MORE": "+"})
    assert run.stdout.text == f"{tmp_path.resolve()}/inside\ntyped\npassed+UTC\n"
    assert (run.exit_code, run.stderr.text) == (0, "")
    assert probe.messages[-1].startswith("sh -c")


def test_another_exit_code_fails_with_the_end_of_the_output_and_without_secrets(probe: ShellCall) -> None:
    with pytest.raises(OperationFailed) as caught:
        probe.context.run(sh("seq 1000; echo user:$PASSWORD >&2; exit 3"), env={"PASSWORD": "correct-horse"})
    assert caught.value.message == "sh -c 'seq 1000; echo user:$PASSWORD >&2; exit 3': exit code 3"
    assert "stdout ends with:\n… " in caught.value.error
    assert caught.value.error.endswith("999\n1000\nstderr ends with:\nuser:[redacted:env.PASSWORD#1]")


@pytest.mark.parametrize("accepted", [(0, 1), None])
def test_exit_codes_that_are_no_failure_can_be_named(probe: ShellCall, accepted: tuple[int, ...] | None) -> None:
    assert probe.context.run(sh("exit 1"), exit_codes=accepted).exit_code == 1


def test_a_command_is_stopped_at_its_timeout(probe: ShellCall) -> None:
    with pytest.raises(OperationFailed, match=r"sleep 600: it did not end within \S+s"):
        probe.context.run(["sleep", "600"], timeout=0.05)


def test_a_limit_applies(probe: ShellCall) -> None:
    run = probe.context.run(sh("ulimit -n"), limits={resource.RLIMIT_NOFILE: 20})
    assert run.stdout.text == "20\n"


def test_more_output_than_the_limit_is_not_checked_completely(probe: ShellCall) -> None:
    run = probe.context.run([sys.executable, "-c", "print('a' * 100_000)"], output_limit=10)
    checks = check_command(CommandExpectation(stdout="a"), run)
    assert any("were not kept" in str(check) for check in checks)


@pytest.mark.parametrize(
    ("command", "cwd", "error"),
    [
        (["no-such-program"], ".", "required command not found in PATH: no-such-program"),
        (["true"], "..", "not a path inside the working directory"),
        (["true"], "missing", "expected a directory in"),
        (["./not-there"], ".", "can't start './not-there'"),
        (["echo", "\0"], ".", "NUL character"),
    ],
)
def test_a_command_that_cannot_run_is_refused(probe: ShellCall, command: list[str], cwd: str, error: str) -> None:
    with pytest.raises(ext_sdk.result.ExtensionError) as caught:
        probe.context.run(command, cwd=cwd)
    assert error in f"{caught.value} {getattr(caught.value, 'error', '')}"


def ended(status: int | None, stdout: str = "") -> CommandRun:
    output = Output(1000)
    output.write(stdout.encode())
    return CommandRun(None if status is None else ExitStatus(status), output, Output(1000), seconds=1.0)


@pytest.mark.parametrize(
    ("expected", "run", "failed"),
    [
        ({"stdout": "hi"}, ended(0, "hi\n"), []),
        ({"stdout": "hi"}, ended(1, "hi\n"), ["exitCode"]),
        ({"exitCode": "nonzero"}, ended(2), []),
        ({"exitCode": "nonzero"}, ended(-9), ["none (killed by SIGKILL)"]),
        ({"signal": "kill"}, ended(-9), []),
        ({"signal": "TERM"}, ended(0), ["to be killed by SIGTERM"]),
        ({"stderr": {"empty": True}}, ended(None), ["its exit status is unknown"]),
    ],
)
def test_a_run_is_checked(probe: ShellCall, expected: dict[str, object], run: CommandRun, failed: list[str]) -> None:
    checks = check_command(convert(expected, CommandExpectation, dec_hook=decode), run)
    texts = [str(check) for check in checks if not check.ok]
    assert len(texts) == len(failed)
    assert all(part in text for part, text in zip(failed, texts, strict=True))
