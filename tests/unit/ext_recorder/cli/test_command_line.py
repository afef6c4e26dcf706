"""The fast parser, which agrees with click, and the modules that a command imports."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cli import click_app
from ext_recorder.cli.command_line import read
from ext_recorder.cli.commands import COMMANDS
from tests.support.host import PATIENCE_S
from tests.support.project_files import call, write
from tests.support.recorder_process import ECHO, run

if TYPE_CHECKING:
    from pathlib import Path


# (command, words): what people type, what they mistype, and the borders of what the quick reader takes on itself.
LINES = [
    ("record", ["c.yaml", "--", "cmd"]),
    ("record", ["c.yaml", "--", "cmd", "--mode", "x", "--", "-l"]),
    ("record", ["--mode", "all", "c.yaml", "--", "cmd"]),
    ("record", ["c.yaml", "--mode=all", "--bind", "a=/b/c", "--bind=d=/e/f", "--", "cmd"]),
    ("record", ["c.yaml", "--mode", "once", "--mode", "none"]),
    ("record", ["--framing", "uint32", "--protocol=raw", "c.yaml", "--", "cmd", ""]),
    ("record", ["c.yaml", "--"]),
    ("record", ["c.yaml"]),
    ("record", ["--dir", "sessions", "--", "cmd", "-x"]),
    ("record", ["--dir=sessions", "--mode", "all", "--", "cmd"]),
    ("record", ["--mode=all", "--", "cmd"]),
    ("record", ["c.yaml", "cmd"]),
    ("record", ["c.yaml", "cmd", "-x"]),
    ("record", ["--", "c.yaml", "cmd"]),
    ("record", ["c.yaml", "--framing", "morse", "--", "cmd"]),
    ("record", ["c.yaml", "--framing", "--", "cmd"]),
    ("record", ["c.yaml", "--framing"]),
    ("record", ["c.yaml", "--fram", "uint32", "--", "cmd"]),
    ("record", []),
    ("record", ["", "--", "cmd"]),
    ("replay", ["c.yaml", "--order", "any", "--ignore", "/a", "--ignore=/b"]),
    ("replay", ["c.yaml", "d.yaml"]),
    ("replay", ["c.yaml", "--"]),
    ("replay", ["--speed", "-1", "c.yaml"]),
    ("replay", ["--speed", "max", "c.yaml"]),
    ("replay", ["--bind=", "c.yaml"]),
    ("show", ["c.yaml", "--raw", "--json"]),
    ("show", ["c.yaml", "--raw=yes"]),
    ("recover", ["c.yaml.partial", "-o", "d.yaml", "--force"]),
    ("recover", ["c.yaml.partial", "--output", "d.yaml"]),
    ("shim", ["file", "c.yaml", "--force", "--", "cmd"]),
    ("shim", ["file"]),
]


@pytest.mark.parametrize(("name", "words"), LINES)
def test_the_quick_reader_says_what_click_says_or_nothing(name: str, words: list[str]) -> None:
    quick = read(COMMANDS[name], words)
    assert quick is None or quick == click_app.parsed(COMMANDS[name], words)


def test_the_quick_reader_takes_what_hosts_and_shims_use() -> None:
    for name, words in LINES[:6]:
        assert read(COMMANDS[name], words) is not None


def test_a_wrong_value_names_the_option_and_the_file_that_it_may_come_from(project: Path) -> None:
    file = write(project, 'jobs = "all"', "ext-recorder.toml")
    (project / "a.yaml").touch()
    done = call("lint", str(project / "a.yaml"))
    expected = "--jobs all: expected a number, such as 4; by default one for each core"
    assert done.stderr == f"ext-recorder: {expected} (options come from {file}, too)\n"
    assert done.returncode == 2
    done = call("lint", "--config=none", "--jobs=all", str(project / "a.yaml"))
    assert done.stderr == f"ext-recorder: {expected}\n"


def test_recording_and_replaying_import_neither_click_nor_yaml_nor_anything_slow(tmp_path: Path) -> None:
    cassette = tmp_path / "session.yaml"
    run(cassette, ECHO, stdin=b"{}\n")
    program = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from ext_recorder import __main__ as entry\n"
        "sys.argv, listed = sys.argv[1:], open(sys.argv[1], 'w')\n"
        "entry.main()\n"
        "print(*set(sys.modules) - before, file=listed)"
    )
    listed = tmp_path / "modules"
    command = [sys.executable, "-P", "-c", program, str(listed), "replay", str(cassette)]
    done = subprocess.run(command, input=b"{}\n", capture_output=True, timeout=PATIENCE_S, check=True)
    assert done.stdout == b"{}\n"
    loaded = set(listed.read_text().split())
    assert "ext_recorder.replay.replay" in loaded
    assert not loaded & {"click", "yaml", "re", "json", "subprocess", "threading", "asyncio", "typing", "dataclasses"}


def test_the_recorder_forks_before_it_imports_anything_slow() -> None:
    program = (
        "import sys\nbefore = set(sys.modules)\nimport ext_recorder.record.recorder\nprint(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", program], capture_output=True, timeout=PATIENCE_S, check=True)
    loaded = set(done.stdout.decode().split())
    assert "ext_recorder.record.proxy" in loaded
    slow = {
        "click",
        "yaml",
        "re",
        "json",
        "pathlib",
        "subprocess",
        "threading",
        "asyncio",
        "ext_sdk.core.redaction.redactor",
    }
    assert not loaded & slow
