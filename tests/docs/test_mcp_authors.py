"""The commands of docs/for-mcp-authors.md work with the official SDK for Python."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.docs.pages import ROOT, agrees, blocks, commands
from tests.docs.running import run
from tests.support.program_packages import python_packages

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

LIMIT_SECONDS = 120
SET_UP = ("pip install", "cp -r")


def test_all_commands_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(python_packages()))
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = shutil.copytree(ROOT / "docs" / "examples" / "notes", tmp_path / "notes")
    page = [block for block in blocks() if block.page == "docs/for-mcp-authors.md" and "not-run" in block.flags]
    lines = [command for block in page for command in commands(block) if not command.text.startswith(SET_UP)]
    assert len(lines) > 15
    try:
        for command in lines:
            done = run(["bash", "-o", "pipefail", "-c", command.text], folder, LIMIT_SECONDS)
            assert done.returncode == 0, f"{command.text}\n{done.stdout}"
            if command.output:
                assert agrees(command.output, done.stdout), f"{command.text}\n{done.stdout}"
    finally:
        for file in folder.glob("*.pid"):
            with suppress(ProcessLookupError):
                os.kill(int(file.read_text()), signal.SIGTERM)
