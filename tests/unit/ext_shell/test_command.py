"""Commands ready to run: argument lists, labels, directories, input."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from msgspec import convert

from ext_sdk import InvalidArgs, OperationFailed, RequirementNotMet
from ext_sdk.process import Spawner
from ext_shell.args import CommandArgs
from ext_shell.command import LABEL_LENGTH, LONGEST_SCRIPT, PreparedCommand, place_of
from ext_shell.config import ShellConfig
from tests.support.ext_shell import HOST_ENV, TOKEN
from tests.support.shell_contexts import ShellCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.ext_shell import Extension


ALWAYS = {"PATH", "HOME", "TMPDIR", "LANG", "TZ", "TERM"}


def _environment(shell: Extension, **args: object) -> dict[str, str]:
    text = shell.ok("run", command=["env", "-0"], log=False, **args).outputs["stdout"]
    return dict(entry.split("=", 1) for entry in text.split("\0")[:-1])


def test_nothing_of_the_host_but_the_few_that_everything_needs(shell: Extension) -> None:
    env = _environment(shell)
    assert set(env) == ALWAYS
    assert env == {
        "PATH": HOST_ENV["PATH"],
        "HOME": "/nonexistent",
        "TMPDIR": "/tmp",
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
    }


def test_variables_are_let_through_by_name_and_by_pattern(shell: Extension) -> None:
    assert set(_environment(shell, passEnv=["PLAIN", "NOT_SET"])) == ALWAYS | {"PLAIN"}
    assert set(_environment(shell, passEnv=["PLAIN*"])) == ALWAYS | {"PLAIN", "PLAIN_2"}


def test_numbers_and_booleans_are_variables_as_json_writes_them(shell: Extension) -> None:
    env = _environment(shell, env={"PORT": 8080, "DEBUG": True, "RATE": 0.5, "BIG": 2**70, "TEXT": "1"})
    assert {name: env[name] for name in ("PORT", "DEBUG", "RATE", "BIG", "TEXT")} == {
        "PORT": "8080",
        "DEBUG": "true",
        "RATE": "0.5",
        "BIG": "1180591620717411303424",
        "TEXT": "1",
    }


def test_variables_of_the_operation_win_over_those_of_the_task(shell: Extension) -> None:
    command = {
        "command": ["bash", "-c", "echo $A $B $LANG $PLAIN"],
        "env": {"B": "op", "LANG": "C"},
        "passEnv": ["PLAIN"],
    }
    answer = shell.call("run", command, env={"A": "task", "B": "task", "PLAIN": "task"})
    assert answer.outputs["stdout"] == "task op C visible\n"


def test_the_configuration_adds_variables_for_all(fresh: Callable[..., Extension]) -> None:
    shell = fresh(config={"passEnv": ["PLAIN"], "env": {"A": "config", "B": "config"}})
    answer = shell.call("run", {"command": ["bash", "-c", "echo $A $B $PLAIN"], "env": {"B": "op"}})
    assert answer.outputs["stdout"] == "config op visible\n"


def test_a_secret_that_was_let_through_is_hidden_wherever_it_comes_back(shell: Extension) -> None:
    script = "echo $API_TOKEN; echo -n $API_TOKEN | base64; echo -n $API_TOKEN | xxd -p >&2 || true; seq 10000; exit 1"
    answer = shell.failed("run", script=script, passEnv=["API_TOKEN"])
    text = repr(answer.raw) + repr(answer.logs) + Path(answer.outputs["stdoutFile"]).read_text()
    assert TOKEN not in text
    assert "c2VzYW1lLW9wZW5zLTQy" not in text
    assert TOKEN.encode().hex() not in text
    assert "[redacted:env.API_TOKEN" in answer.outputs["stdout"]


def test_secrets_in_variables_of_the_operation_are_hidden_by_their_names(shell: Extension) -> None:
    answer = shell.ok("run", command=["env"], env={"DB_PASSWORD": "rosebud-1941", "COLOR": "burgundy-red"})
    assert "rosebud-1941" not in repr(answer.raw) + repr(answer.logs)
    assert "COLOR=burgundy-red" in answer.outputs["stdout"]


def test_secrets_of_the_task_are_hidden_too(shell: Extension) -> None:
    answer = shell.call("run", {"command": ["env"]}, env={"SESSION_TOKEN": "rosebud-1942"})
    assert "rosebud-1942" not in repr(answer.raw) + repr(answer.logs)


def test_further_secrets_are_named_by_the_configuration(fresh: Callable[..., Extension]) -> None:
    shell = fresh({"HARMLESS_NAME": "rosebud-1943"}, {"secrets": ["HARMLESS_NAME"]})
    answer = shell.ok("run", command=["env"], passEnv=["HARMLESS*"])
    assert "rosebud-1943" not in repr(answer.raw) + repr(answer.logs)


def test_a_secret_of_several_lines_is_hidden_line_by_line(shell: Extension) -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END PRIVATE KEY-----\n"
    answer = shell.ok(
        "run", script='echo "$TLS_PRIVATE_KEY" | sed -n 2p; echo "$TLS_PRIVATE_KEY"', env={"TLS_PRIVATE_KEY": key}
    )
    for part in ("MIIEvQIBADANBgkq", "hkiG9w0BAQEFAASC"):
        assert part not in repr(answer.raw) + repr(answer.logs)


def output_of(call: ShellCall, **given: object) -> str:
    """Run a command and return its standard output."""
    chunks: list[bytes] = []
    spawner = Spawner()
    try:
        command = PreparedCommand(convert(given, CommandArgs), call.context, {"EXTRA": "1"})
        child, pump = command.start(spawner, chunks.append, chunks.append)
        pump.run(lambda: False, 1.0)
        pump.close()
        child.close()
    finally:
        spawner.close()
    return b"".join(chunks).decode()


def label_of(call: ShellCall, **given: object) -> str:
    return PreparedCommand(convert(given, CommandArgs), call.context).label


def test_a_script_runs_in_the_configured_shell(tmp_path: Path) -> None:
    call = ShellCall(tmp_path, ShellConfig(shell="sh"))
    assert output_of(call, script="echo $0 $EXTRA") == "sh 1\n"
    assert output_of(call, script="echo $0", shell="bash") == "bash\n"


def test_a_command_reads_a_text_or_a_file_or_nothing(tmp_path: Path) -> None:
    (tmp_path / "input").write_text("from a file")
    call = ShellCall(tmp_path)
    assert output_of(call, command=["cat"], stdin="a text") == "a text"
    assert output_of(call, command=["cat"], stdinFile="input") == "from a file"
    assert output_of(call, command=["cat"]) == ""


def test_a_command_runs_in_a_directory_of_the_workdir(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    call = ShellCall(tmp_path)
    assert output_of(call, command=["pwd", "-P"], cwd="sub").strip() == os.path.realpath(tmp_path / "sub")
    with pytest.raises(OperationFailed, match="cannot run in 'missing'") as failure:
        output_of(call, command=["pwd"], cwd="missing")
    assert "an earlier step must create it" in failure.value.error


def test_a_program_that_is_missing_is_a_failure_and_a_shell_a_requirement(tmp_path: Path) -> None:
    call = ShellCall(tmp_path)
    with pytest.raises(OperationFailed, match="command not found: no-such-program"):
        output_of(call, command=["no-such-program"])
    with pytest.raises(RequirementNotMet, match="bash"):
        output_of(call, script="true", env={"PATH": "/nonexistent"})


def test_a_label_is_short_printable_and_without_secrets(tmp_path: Path) -> None:
    call = ShellCall(tmp_path)
    assert label_of(call, command=["echo", "a b", "opensesame-77"]) == "echo 'a b' [redacted:TOKEN#1]"
    assert label_of(call, script="echo a\n\n  exit 3") == "bash script 'echo a exit 3'"
    long = label_of(call, command=["echo", "x" * 200])
    assert (len(long), long[-1]) == (LABEL_LENGTH, "…")
    assert "\\x07" in label_of(call, command=["echo", "\x07"])


def test_what_no_program_can_be_given_is_refused(tmp_path: Path) -> None:
    call = ShellCall(tmp_path)
    with pytest.raises(InvalidArgs, match="the name of the program is empty"):
        label_of(call, command=[""])
    with pytest.raises(InvalidArgs, match="write it to a file"):
        label_of(call, script="x" * (LONGEST_SCRIPT + 1))


def test_a_place_has_its_scope(tmp_path: Path) -> None:
    call = ShellCall(tmp_path)
    assert place_of(call.context) == str(tmp_path)
    call.context.scope = "one"
    assert place_of(call.context) == f"scope 'one' of {tmp_path}"
