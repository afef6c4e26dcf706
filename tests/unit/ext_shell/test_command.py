"""Commands ready to run: argument lists, labels, directories, input."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from msgspec import convert

from ext_sdk import InvalidArgs, OperationFailed, RequirementNotMet
from ext_sdk.process import Spawner
from ext_shell.args import CommandArgs
from ext_shell.command import LABEL_LENGTH, LONGEST_SCRIPT, PreparedCommand, place_of
from ext_shell.config import ShellConfig
from tests.support.shell_contexts import ShellCall

if TYPE_CHECKING:
    from pathlib import Path


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
