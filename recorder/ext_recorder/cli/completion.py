"""Completion in shells: commands, options, choices, cassettes, and the program after `--`.

Scripts and protocol are those of click, except for bash, which offers folders in addition to cassettes and splits the
value after `--name=` from its name. The script starts `ext-recorder` without arguments, and passes the words to
complete in its environment.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from ext_recorder.batch.selection import HEAD_BYTES, SUFFIXES, begins_a_cassette
from ext_recorder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import TypeAlias

    import click

    Items: TypeAlias = list[CompletionItem[str]]

PROGRAM = "ext-recorder"
VARIABLE = "_EXT_RECORDER_COMPLETE"  # as click names it
_PARTIAL = ".partial"
_TAIL = "--"
_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' completion type value
    for completion in $(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" %(complete_var)s=bash_complete "$1")
    do
        IFS=, read -r type value <<< "$completion"
        case $type in
            plain) COMPREPLY+=("$value") ;;
            dir) compopt -o filenames -o plusdirs ;;
            file) compopt -o filenames -o default ;;
        esac
    done
}
complete -o nosort -F %(complete_func)s %(prog_name)s
"""


class _Words(ShellComplete):
    """Completion of words that click does not complete: `--name=value`, and the program after `--`."""

    def get_completions(self, args: list[str], incomplete: str) -> Items:
        """Return the completions of a word."""
        if _TAIL in args:
            if args[-1] != _TAIL or not incomplete or "/" in incomplete:
                return [CompletionItem(incomplete, "file")]
            programs: set[str] = set()
            for folder in os.get_exec_path():
                with suppress(OSError):
                    files = [file for file in Path(folder or ".").iterdir() if file.name.startswith(incomplete)]
                    programs.update(file.name for file in files if os.access(file, os.X_OK))
            return [CompletionItem(name) for name in sorted(programs)]
        option, equals, value = incomplete.partition("=")
        if not equals or not option.startswith(_TAIL):
            return super().get_completions(args, incomplete)
        items = super().get_completions([*args, option], value)
        return [CompletionItem(f"{option}={item.value}", item.type) for item in items if item.type == "plain"]


class Bash(BashComplete, _Words):
    """Completion for bash."""

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        """Return the arguments and the incomplete word. Bash splits `--name=value` in three words."""
        args, incomplete = super().get_completion_args()
        if incomplete == "=":
            incomplete = ""
        return [word for word in args if word != "="], incomplete


class Zsh(ZshComplete, _Words):
    """Completion for zsh."""


class Fish(FishComplete, _Words):
    """Completion for fish."""


SHELLS: dict[str, type[ShellComplete]] = {"bash": Bash, "zsh": Zsh, "fish": Fish}


def script(shell: str, program: click.Command) -> str:
    """Return the completion script of a shell. Raises UsageError for an unknown shell."""
    if shell not in SHELLS:
        raise UsageError(f"completion {shell}: expected one of {', '.join(SHELLS)}")
    return SHELLS[shell](program, {}, PROGRAM, VARIABLE).source()


def answer(instruction: str, program: click.Command) -> str:
    """Return the response to a shell that requests completions.

    Args:
        instruction: "bash_complete" and the like; the words are in the environment.
        program: ext-recorder.

    Raises:
        UsageError: it is not the instruction of a shell.
    """
    shell, _, what = instruction.partition("_")
    if what == "source":
        return script(shell, program)
    if what != "complete" or shell not in SHELLS or not {"COMP_WORDS", "COMP_CWORD"} <= os.environ.keys():
        raise UsageError(f"{VARIABLE} is set to {instruction}: it is for shells; see: {PROGRAM} completion --help")
    return SHELLS[shell](program, {}, PROGRAM, VARIABLE).complete() + "\n"


def completions(metavar: str, incomplete: str) -> Items:
    """Return the completions of a value with this metavar."""
    if metavar in {"CASSETTE", "A", "B"}:
        return [*_cassettes(incomplete, SUFFIXES), CompletionItem(incomplete, "dir")]
    if metavar == "PARTIAL":
        return [*_cassettes(incomplete, (_PARTIAL,)), CompletionItem(incomplete, "dir")]
    if metavar == "FILE":
        return [CompletionItem(incomplete, "file")]
    if metavar == "FOLDER":
        return [CompletionItem(incomplete, "dir")]
    if metavar == "COMMAND" and not incomplete:
        return [CompletionItem(_TAIL)]
    return [CompletionItem(name) for name in SHELLS if metavar == "SHELL" and name.startswith(incomplete)]


def _cassettes(incomplete: str, suffixes: tuple[str, ...]) -> Iterator[CompletionItem[str]]:
    """Yield the cassettes with these suffixes in the folder that was typed."""
    typed, name = os.path.split(incomplete)
    folder = Path(typed or ".").expanduser()
    try:
        files = sorted(folder.iterdir())
    except OSError:
        return
    for path in files:
        if path.name.startswith(name) and path.name.endswith(suffixes):
            with suppress(OSError), path.open("rb") as file:
                if begins_a_cassette(file.read(HEAD_BYTES)):
                    yield CompletionItem(os.path.join(typed, path.name))  # noqa: PTH118 - as it was typed: ./ stays
