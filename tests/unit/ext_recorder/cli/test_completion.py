"""Completion in bash, zsh and fish, by these shells themselves."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cli.commands import COMMANDS
from tests.support.host import PATIENCE_S
from tests.support.player_host import cassette
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from pathlib import Path

EVENTS = "- {t: 0, in: 'x'}\n- {t: 1, out: 'x'}"
# The line, and what it is completed to, in any shell.
LINES: list[tuple[str, set[str]]] = [
    ("", set(COMMANDS)),
    ("sc", {"scrub"}),
    ("record --fr", {"--framing"}),
    ("record --mode n", {"none", "new_episodes"}),
    ("record --mode=n", {"none", "new_episodes"}),
    ("record --protocol kaiak-", {"kaiak-head"}),
    ("lint --sh", {"--shard"}),
    ("lint -", {"--json", "--junit", "--shard", "--jobs", "--config", "--max-age", "-h", "--help"}),
    ("lint --", {"--json", "--junit", "--shard", "--jobs", "--config", "--max-age", "--help"}),
    ("convert --from mcp-c", {"mcp-cassette", "mcp-cassette-ts"}),
    ("convert --from=mcp-c", {"mcp-cassette", "mcp-cassette-ts"}),
    ("convert --to ", {"cassette", "har", "jsonl"}),
    ("convert --protocol w", {"waza", "waza-go"}),
    ("convert --protocol=w", {"waza", "waza-go"}),
    ("replay se", {"session one.yaml", "sessions/"}),
    ("show sessions/t", {"sessions/two.yml"}),
    ("verify sessions/two.yml s", {"session one.yaml", "sessions/"}),
    ("recover k", {"killed.yaml.partial"}),
    ("record new.yaml ", {"--"}),
    ("record new.yaml -- ext-sh", {"ext-shell"}),
    ("verify a.yaml b.yaml -- ext-sh", {"ext-shell"}),
    ("completion f", {"fish"}),
]
# Print what bash would insert, or offer, for each argument, and a form feed.
BASH = """
eval "$(ext-recorder completion bash)"
shopt -s progcomp
compopt() { options+=("$@"); }
for line; do
    options=() COMPREPLY=() COMP_LINE="ext-recorder $line"
    read -ra COMP_WORDS <<< "${COMP_LINE//=/ = }"
    [[ $COMP_LINE == *' ' ]] && COMP_WORDS+=('')
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _ext_recorder_completion ext-recorder
    printf '%s\\n' "${COMPREPLY[@]}"
    [[ ${options[*]} == *plusdirs* ]] && compgen -d -S / -- "${COMP_WORDS[COMP_CWORD]}"
    printf '\\f'
done
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where completion is asked for: cassettes, what is none, and a program in PATH."""
    (tmp_path / "sessions").mkdir()
    for name in ("session one.yaml", "sessions/two.yml", "killed.yaml.partial"):
        cassette(tmp_path / name, EVENTS, protocol="raw")
    (tmp_path / "service.yaml").write_text("kind: Service\n")
    (tmp_path / "sessions.txt").write_text("")
    (tmp_path / "programs").mkdir()
    for name, command in (("ext-recorder", RECORDER), ("ext-shell", ("true",))):
        script = tmp_path / "programs" / name
        script.write_text(f'#!/bin/sh\nexec {" ".join(command)} "$@"\n')
        script.chmod(0o755)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    path = os.pathsep.join([str(folder / "programs"), "/usr/bin", "/bin"])
    home = str(folder / "home")
    return {"PATH": path, "HOME": home, "XDG_CONFIG_HOME": home, "XDG_DATA_HOME": home, "TERM": "dumb", "LC_ALL": "C"}


def shell(name: str) -> str:
    found = shutil.which(name)
    if not found:
        pytest.skip(f"there is no {name} here")
    return found


def said(folder: Path, *command: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_bash_completes(folder: Path) -> None:
    lines = [line for line, _ in LINES]
    *completed, end = said(folder, shell("bash"), "--norc", "-c", BASH, "bash", *lines).split("\f")
    assert [set(found.splitlines()) for found in completed] == [expected for _, expected in LINES]
    assert end == ""


def test_fish_completes(folder: Path) -> None:
    completions = "".join(f"complete -C 'ext-recorder {line}'; printf '\\f';" for line, _ in LINES)
    script = f"ext-recorder completion fish | source; {completions}"
    *completed, _ = said(folder, shell("fish"), "--no-config", "-c", script).split("\f")
    for found, (line, expected) in zip(completed, LINES, strict=True):
        words = {word.partition("\t")[0] for word in found.splitlines()}
        if "=" in line:
            words = {word.partition("=")[2] for word in words}
        assert words == expected - {"--"}, line  # which fish does not offer


def typed(folder: Path, command: list[str], keys: bytes, until: bytes) -> bytes:
    """What a shell on a terminal shows, up to a text, when keys are typed at its prompt."""
    child, terminal = pty.fork()
    if not child:
        os.chdir(folder)
        os.execve(command[0], command, environment(folder) | {"PS1": "ready> ", "COLUMNS": "400"})
    shown = b""
    waiting = [(b"ready> ", keys)]
    deadline = time.monotonic() + PATIENCE_S
    try:
        while until not in shown:
            assert select.select([terminal], [], [], max(0.0, deadline - time.monotonic()))[0], shown
            shown += os.read(terminal, 4096)
            if waiting and waiting[0][0] in shown:
                os.write(terminal, waiting.pop()[1])
    finally:
        os.close(terminal)
        os.kill(child, 9)
        os.waitpid(child, 0)
    return shown


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rep", "<replay><>"),
        ("record --mode ne", "<record><--mode><new_episodes><>"),
        ("convert --from mcp-r", "<convert><--from><mcp-rec><>"),
        ("convert --protocol=js", "<convert><--protocol=jsonrpc><>"),
        ("show sessions/t", "<show><sessions/two.yml><>"),
        ("show session\\ o", "<show><session one.yaml><>"),
        ("verify x.yaml -- ext-sh", "<verify><x.yaml><--><ext-shell><>"),
    ],
)
@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_the_tab_key_completes_in_a_terminal(folder: Path, name: str, line: str, expected: str) -> None:
    setup = {"bash": "", "zsh": "autoload -U compinit; compinit -u -D\n"}[name]
    arguments = {"bash": ["--norc", "--noprofile", "-i"], "zsh": ["-f", "-i"]}[name]
    (folder / "setup").write_text(
        f'{setup}eval "$(ext-recorder completion {name})"\nspell() {{ printf "<%s>" "$@"; }}\n'
    )
    # The program is not run: what the shell made of the line is spelled instead.
    (folder / "run").write_text("")
    keys = f". ./setup\next-recorder() {{ spell \"$@\"; echo '<>'; }}\next-recorder {line}\t\n".encode()
    shown = typed(folder, [shell(name), *arguments], keys, b"<>\r\n" if expected.endswith("<>") else expected.encode())
    assert expected.encode() in re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]", b"", shown)


def test_a_shell_that_is_not_known_is_told_with_those_that_are(folder: Path) -> None:
    done = subprocess.run([*RECORDER, "completion", "tcsh"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2,
        "ext-recorder: completion tcsh: expected one of bash, zsh, fish\n",
    )


def test_a_variable_that_no_shell_has_set_is_told() -> None:
    for text in ("bash_complete", "tcsh_complete", "yes"):
        variables = {**os.environ, "_EXT_RECORDER_COMPLETE": text}
        done = subprocess.run(RECORDER, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert f"_EXT_RECORDER_COMPLETE is set to {text}: it is for shells" in done.stderr


def test_the_variable_of_completion_leaves_commands_as_they_are(folder: Path) -> None:
    variables = {
        **os.environ,
        "_EXT_RECORDER_COMPLETE": "bash_complete",
        "COMP_WORDS": "ext-recorder ",
        "COMP_CWORD": "1",
    }
    done = subprocess.run([*RECORDER, "--version"], env=variables, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("ext-recorder, version")


def test_record_and_replay_import_nothing_of_it() -> None:
    code = (
        "import sys; from ext_recorder.cli.commands import COMMANDS; from ext_recorder import __main__;"
        "COMMANDS['record'], COMMANDS['replay'];"
        "assert not {'click', 'ext_recorder.cli.completion', 'ext_recorder.cli.commands.setup'}"
        " & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
