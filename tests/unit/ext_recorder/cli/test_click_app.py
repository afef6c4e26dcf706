"""The command line with click: help, and errors in words."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from ext_recorder import __main__ as entry
from ext_recorder.cli import click_app
from ext_recorder.cli.commands import COMMANDS
from ext_sdk.core.stdio import EXIT_NO_READER
from tests.support.host import PATIENCE_S
from tests.support.recorder_process import ECHO, RECORDER, run

if TYPE_CHECKING:
    from pathlib import Path


def call(*words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*RECORDER, *words], input=stdin, capture_output=True, timeout=PATIENCE_S, check=False)


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_help_of_a_command_names_all_it_takes_and_shows_examples(name: str) -> None:
    done = call(name, "--help")
    text = done.stdout.decode()
    assert (done.returncode, done.stderr) == (0, b"")
    command = COMMANDS[name]
    for word in (*command.arguments, *(f"--{option.name}" for option in command.options)):
        assert word in text
    assert f"    ext-recorder {name} " in text


@pytest.mark.parametrize("name", list(COMMANDS))
def test_the_examples_in_the_help_are_plainly_right(name: str) -> None:
    command = COMMANDS[name]
    lines = [line.split() for line in command.text.splitlines() if line.startswith("    ext-recorder ")]
    assert lines
    for _, called, *words in lines:
        assert called == name
        assert click_app.parsed(command, words) is not None


def test_help_without_a_command_lists_the_commands() -> None:
    for words in ([], ["--help"], ["-h"]):
        done = call(*words)
        assert (done.returncode, done.stderr) == (0, b"")
        for command in COMMANDS.values():
            assert f"\n  {command.name} " in done.stdout.decode()


def test_the_version_is_that_of_the_distribution() -> None:
    from ext_sdk.core import __version__

    assert call("--version").stdout == f"ext-recorder, version {__version__}\n".encode()


WRONG = [
    (["reco"], "No such command 'reco'"),
    (["record"], "expected a cassette: record CASSETTE -- COMMAND…, or record --dir"),
    (["record", "c.yaml", "ls", "-l"], "Write the recorded command, with its options, after `--`"),
    (["record", "c.yaml", "--framing", "morse", "--", "ls"], "--framing morse: expected one of ndjson, content"),
    (["record", "c.yaml", "--framing"], "requires an argument. See: ext-recorder record --help"),
    (["record", "c.yaml"], "expected the command to record after `--`"),
    (["record", "c.yaml", "--bind", "x", "--", "ls"], "--bind 'x': expected NAME=PATH"),
    (["replay", "missing.yaml"], "missing.yaml: no such file"),
    (["replay", "."], ".: can't be read: Is a directory"),
    (["replay", "--speed", "fast", "missing.yaml"], "--speed fast: expected max, or a number"),
    (["show", "missing.yaml"], "missing.yaml: no such file"),
    (
        ["replay", "zip://a.yaml::b.zip"],
        "zip://a.yaml::b.zip: no such file (a cassette must be a local file; download it first)",
    ),
    (["replay", "a.yaml", "--connect=tcp:1"], "--connect tcp:1: replay does not connect to a server"),
    (["record", "--dir", "sessions", "c.yaml", "--", "ls"], "--dir sessions: expected no CASSETTE (c.yaml)"),
    (["record", "--dir", "sessions", "--mode", "none", "--", "ls"], "--mode none replays, and --dir names a new"),
    (["record", "--dir", "sessions"], "expected the command to record after `--`"),
    (["record", "{time}.yaml", "--mode=new_episodes", "--", "ls"], "--mode new_episodes replays, and {time}.yaml"),
    (["record", "--dir", "/dev/null", "--", "ls"], "--dir /dev/null: expected a folder, found a file"),
    (["record", "--mode=all", "/dev/null", "--", "ls"], "/dev/null: expected a file to write, found a device"),
    (["replay", "--passed", "2", "c.yaml", "--", "ls"], "--passed 2: expected the number of arguments after `--`"),
    (["show", "--colour", "x"], "No such option '--colour'"),
    (["show", "a.yaml", "b.yaml"], "Got unexpected extra argument (b.yaml). See: ext-recorder show --help"),
    (["scrub", "--secrets", "none.txt", "."], "--secrets none.txt: cannot be read: No such file or directory"),
    (["recover", "a.yaml.partial"], "a.yaml.partial: no such file; a killed recorder leaves NAME.partial next to NAME"),
    (["recover", "missing.yaml"], "missing.yaml: no such file; a killed recorder leaves NAME.partial next to NAME"),
    (["shim", "s", "c.yaml", "--", "no-such-command"], "the command 'no-such-command' does not exist"),
    (["shim", "s", "c.yaml", "--mode", "all"], "--mode all records: expected the command after `--`"),
    (["shim", "s", "c.yaml", "--mode", "twice"], "--mode twice: expected one of once, none, new_episodes, all"),
]


@pytest.mark.parametrize(("words", "says"), WRONG)
def test_what_is_wrong_is_said_in_one_line_and_nothing_is_made(
    words: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = call(*words)
    message = done.stderr.decode()
    assert done.returncode == 2
    assert message.startswith("ext-recorder: ")
    assert message.count("\n") == 1
    assert says in message
    assert list(tmp_path.iterdir()) == []


def test_a_fault_of_ours_is_no_traceback(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    def fail(_words: object) -> int:
        raise ZeroDivisionError("surprise")

    monkeypatch.setattr(entry, "run", fail)
    assert entry.main() == entry.EXIT_INTERNAL
    message = capfd.readouterr().err
    assert message.startswith("ext-recorder: internal error, please report it")
    assert "ZeroDivisionError: surprise" in message
    assert message.count("\n") == 1


def test_show_ends_quietly_when_nobody_reads_on(cassette: Path) -> None:
    run(cassette, ECHO, stdin=b"".join(b'{"line":%d}\n' % number for number in range(5_000)))
    shown = subprocess.Popen([*RECORDER, "show", str(cassette)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert shown.stdout is not None
    assert shown.stderr is not None
    shown.stdout.readline()
    shown.stdout.close()
    assert shown.stderr.read() == b""
    assert shown.wait(PATIENCE_S) == EXIT_NO_READER
    shown.stderr.close()
