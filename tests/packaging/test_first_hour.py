"""The first hour of a newcomer: README's commands in an empty folder, with nothing but Python or the executable."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.docs.pages import ROOT, Block, Command, agrees, blocks, commands

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.packaging.artefacts import Shipped

PAGE = [block for block in blocks() if block.page == "README.md"]
CONSOLE = [block for block in PAGE if block.kind == "console"]
WITH_PYTHON, WITHOUT_PYTHON, *REST = CONSOLE
FILES = [block for block in PAGE if block.kind == "yaml"]
PYTHON = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
EXECUTABLE = os.environ.get("GEVALS_EXECUTABLE", "")
LIMIT_SECONDS = 300
MARK = "\036"


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """Return a folder to be the PATH: the programs of the system, without Python, and without those of this project."""
    folder = tmp_path / "tools"
    folder.mkdir()
    for program in (*Path("/usr/bin").iterdir(), *Path("/bin").iterdir()):
        if not re.match(r"python|pip|ext-|gevals", program.name) and not (folder / program.name).is_symlink():
            (folder / program.name).symlink_to(program)
    return folder


@pytest.fixture
def index(shipped: Shipped, tmp_path: Path) -> Path:
    """Return a folder with the wheel, whose dependencies are those of the environment of the tests."""
    folder = tmp_path / "index"
    folder.mkdir()
    wheel = shutil.copy(shipped.wheel, folder)
    with zipfile.ZipFile(wheel, "a") as archive:
        archive.writestr("dependencies.pth", sysconfig.get_path("purelib") + "\n")
    return folder


def run_the_page(shown: list[Block], folder: Path, tools: Path, **variables: str) -> Iterator[tuple[Command, str, int]]:
    """Run the commands of blocks in one shell, in an empty folder; yield each with its output and exit code."""
    home = folder / "home"
    here = folder / "empty"
    for path in (home, here):
        path.mkdir(exist_ok=True)
    for block in FILES:
        name = Path(block.flags[0].partition("=")[2]).name
        assert f"as `{name}`:\n\n```{block.info}" in (ROOT / "README.md").read_text()
        (here / name).write_text(block.text)
    typed = [command for block in shown for command in commands(block)]
    script = "".join(f"{command.text}\nprintf '{MARK}%s{MARK}' $?\n" for command in typed)
    done = subprocess.run(
        [tools / "sh", "-c", script],
        cwd=here,
        env={"PATH": str(tools), "HOME": str(home), "TMPDIR": str(folder), "SHELL": "/bin/sh", **variables},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )
    printed = re.findall(rf"(.*?){MARK}(\d+){MARK}", done.stdout, re.DOTALL)
    assert len(printed) == len(typed), done.stdout
    yield from ((command, output, int(code)) for command, (output, code) in zip(typed, printed, strict=True))


def check(results: Iterator[tuple[Command, str, int]]) -> None:
    """Check that all commands succeeded, with the output that the page shows."""
    for command, output, code in results:
        assert code == 0, f"{command.text}\n{output}"
        if command.output:
            assert agrees(command.output, output), f"{command.text}\n{output}"


@pytest.mark.skipif(not PYTHON.exists(), reason="needs the interpreter that this environment was made from")
def test_with_nothing_but_python_the_page_leads_to_a_task_and_a_recording(
    tmp_path: Path, tools: Path, index: Path
) -> None:
    (tools / "python3").write_text(f'#!/bin/sh\nexec "{PYTHON}" "$@"\n')
    (tools / "python3").chmod(0o755)
    local = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "PIP_NO_DEPS": "1", "PIP_QUIET": "1"}
    check(run_the_page([WITH_PYTHON, *REST], tmp_path, tools, **local))
    assert (tmp_path / "empty" / "venv" / "bin" / "ext-host").exists()
    assert "<html" in (tmp_path / "empty" / "greeting.html").read_text()


@pytest.mark.skipif(
    not EXECUTABLE, reason="GEVALS_EXECUTABLE does not name an executable; `make test-executable` builds one"
)
def test_with_nothing_but_the_executable_the_page_leads_to_a_task_and_a_recording(tmp_path: Path, tools: Path) -> None:
    (tmp_path / "empty").mkdir()
    shutil.copy(EXECUTABLE, tmp_path / "empty")
    check(run_the_page([WITHOUT_PYTHON, *REST], tmp_path, tools))
    assert "<html" in (tmp_path / "empty" / "greeting.html").read_text()


def test_the_page_installs_with_python_first_and_then_without() -> None:
    assert "pip install gevals-extensions" in WITH_PYTHON.text
    assert "../gevals-extensions" in WITHOUT_PYTHON.text
    assert not any("not-run" in block.flags for block in CONSOLE)
