"""Project files of the recorder, and command lines that use them."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from ext_recorder.cli import click_app
from ext_recorder.cli.command_line import read, resolve_values
from ext_recorder.cli.commands import COMMANDS
from tests.support.host import PATIENCE_S
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from pathlib import Path

    from ext_recorder.cli import Values


def values(name: str, *words: str) -> Values:
    """Return the values of a command line, with those of the project file."""
    given = read(COMMANDS[name], words)
    assert given is not None
    assert given == click_app.parsed(COMMANDS[name], words)
    return resolve_values(COMMANDS[name], given)


def write(project: Path, text: str, name: str = "pyproject.toml") -> Path:
    """Write a project file. Return its path."""
    file = project / name
    file.write_text(text, "utf-8")
    return file


def call(*words: str, cwd: Path | str = "/", stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Run ext-recorder."""
    done = subprocess.run(
        [*RECORDER, *words], input=stdin, capture_output=True, timeout=PATIENCE_S, check=False, cwd=cwd
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())
