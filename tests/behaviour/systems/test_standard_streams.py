"""All programs with standard streams that are closed, or that are on a full disk: one line, and never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.host import PATIENCE_S
from tests.support.host_tasks import Tasks
from tests.support.recorder_process import ECHO, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

MODULES = {
    "ext-shell": "ext_shell",
    "ext-http": "ext_http",
    "ext-kubernetes": "ext_kubernetes",
    "ext-host": "ext_host",
    "ext-sdk": "ext_sdk.new",
    "ext-recorder": "ext_recorder",
    "gevals-extensions": "gevals_extensions",
}
CALL = json.dumps({"command": ["echo", "hi"]})
OUTPUTS = [
    *((program, "--help") for program in MODULES),
    *((program, "--version") for program in MODULES),
    ("ext-shell", "call", "run", CALL),
    ("ext-shell", "--manifest"),
    ("ext-recorder", "show", "session.yaml"),
    ("ext-recorder", "stats", "session.yaml"),
    ("ext-recorder", "lint", "session.yaml"),
    ("ext-recorder", "show", "--help"),
    ("ext-host", "schema"),
]
CLOSED = "standard output: closed; redirect it to a file or a pipe, or to /dev/null if it is not needed\n"
FULL = "standard output: No space left on device; free space there, or redirect it to another file\n"
needs_full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")  # noqa: PTH110


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run(tmp_path / "session.yaml", ECHO, stdin=b'{"line":1}\n')
    return tmp_path


def redirected(folder: Path, words: Sequence[str], redirections: str, stdin: bytes = b"") -> tuple[int, str, str]:
    program, *rest = words
    command = ["sh", "-c", f'exec "$@" {redirections}', "sh", sys.executable, "-P", "-m", MODULES[program], *rest]
    done = subprocess.run(command, input=stdin, capture_output=True, cwd=folder, timeout=PATIENCE_S, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


@pytest.mark.parametrize("words", OUTPUTS, ids=lambda words: " ".join(words)[:40])
@pytest.mark.parametrize(
    ("redirections", "message"), [(">&-", CLOSED), pytest.param(">/dev/full", FULL, marks=needs_full)]
)
def test_output_that_cannot_be_written_is_one_line_and_exit_code_2(
    folder: Path, words: Sequence[str], redirections: str, message: str
) -> None:
    code, out, errors = redirected(folder, words, redirections)
    assert (code, out) == (2, "")
    assert errors.removeprefix("info: hi stream=stdout\n") == f"{words[0]}: {message}"  # the log of `run`


@pytest.mark.parametrize("words", OUTPUTS, ids=lambda words: " ".join(words)[:40])
@pytest.mark.parametrize("redirections", ["<&-", "2>&-", "<&- 2>&-"])
def test_a_program_that_only_writes_output_needs_no_other_stream(
    folder: Path, words: Sequence[str], redirections: str
) -> None:
    expected = redirected(folder, words, "")
    found = redirected(folder, words, redirections)
    assert (found[0], bool(found[1]), "Traceback" in found[2]) == (expected[0], True, False)


@pytest.mark.parametrize("redirections", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("program", MODULES)
def test_a_wrong_command_line_is_the_same_error_with_any_closed_stream(
    folder: Path, program: str, redirections: str
) -> None:
    code, _, errors = redirected(folder, (program, "--no-such-option"), redirections)
    _, _, expected = redirected(folder, (program, "--no-such-option"), "")
    assert (code, errors) == (2, "" if "2>&-" in redirections else expected)
    assert program in expected
    assert "Traceback" not in expected


@pytest.mark.parametrize("protocol", [(), ("serve", "--protocol", "mcp"), ("serve", "--protocol", "pi")])
@pytest.mark.parametrize("program", ["ext-shell", "ext-http", "ext-kubernetes"])
def test_an_extension_whose_responses_cannot_be_read_does_not_serve(
    folder: Path, program: str, protocol: Sequence[str]
) -> None:
    code, _, errors = redirected(folder, (program, *protocol), ">&-", b'{"jsonrpc":"2.0","id":1,"method":"x"}\n')
    assert code == 2
    assert errors.endswith(f": {CLOSED}")
    assert errors.count("\n") == 1


@pytest.mark.parametrize("redirections", [">&-", pytest.param(">/dev/full", marks=needs_full)])
def test_a_run_of_tasks_goes_on_without_its_output_and_is_reported(tmp_path: Path, redirections: str) -> None:
    tasks = Tasks(tmp_path)
    tasks.task("setup: [{x.ok: {}}]\nverify: [{x.ok: {}}]\ncleanup: [{script: {inline: touch cleaned}}]", "good")
    words = ("ext-host", "run", "good.yaml", "--agent=none", f"--extension=x={tasks.command}", "--junit=report.xml")
    code, _, errors = redirected(tasks.folder, words, redirections)
    assert code == 2
    assert errors == f"ext-host: {CLOSED if redirections == '>&-' else FULL}"
    assert (tasks.folder / "cleaned").exists()
    assert 'failures="0"' in (tasks.folder / "report.xml").read_text()
