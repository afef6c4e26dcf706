"""Completion in shells: commands, options, choices, cassettes, and the program after `--`.

Scripts and protocol are those of click, except for bash, where folders are offered in addition to cassettes and the
value after `--name=` is a word of its own. The script starts `ext-recorder` without arguments, and passes the words to
complete in its environment.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from ext_recorder.batch.selection import HEAD_BYTES, SUFFIXES, begins_a_cassette
from ext_recorder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
        """Return the completions of a word.

        Args:
            args: the words before it.
            incomplete: the beginning of it.
        """
        if _TAIL in args:
            return _program(incomplete) if args[-1] == _TAIL else [_files(incomplete)]
        option, equals, value = incomplete.partition("=")
        if not equals or not option.startswith(_TAIL):
            return super().get_completions(args, incomplete)
        found = super().get_completions([*args, option], value)
        return [CompletionItem(f"{option}={each.value}", each.type) for each in found if each.type == "plain"]


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
        UsageError: nothing asks like this.
    """
    shell, _, what = instruction.partition("_")
    if what == "source":
        return script(shell, program)
    if what != "complete" or shell not in SHELLS or not {"COMP_WORDS", "COMP_CWORD"} <= os.environ.keys():
        raise UsageError(f"{VARIABLE} is set to {instruction}: it is for shells; see: {PROGRAM} completion --help")
    return SHELLS[shell](program, {}, PROGRAM, VARIABLE).complete() + "\n"


def completions(metavar: str, incomplete: str) -> Items:
    """Return the completions of a value with this metavar."""
    complete = _BY_METAVAR.get(metavar)
    return complete(incomplete) if complete else []


def _cassettes(incomplete: str) -> Items:
    """Cassettes in the folder that was typed, and folders."""
    return [*_named(incomplete, SUFFIXES, _is_cassette), CompletionItem(incomplete, "dir")]


def _partials(incomplete: str) -> Items:
    return [*_named(incomplete, (_PARTIAL,), _is_cassette), CompletionItem(incomplete, "dir")]


def _folder(incomplete: str) -> Items:
    return [CompletionItem(incomplete, "dir")]


def _files(incomplete: str) -> CompletionItem[str]:
    return CompletionItem(incomplete, "file")


def _program(incomplete: str) -> Items:
    """Programs in PATH; a file where a folder was typed, or nothing."""
    if not incomplete or "/" in incomplete:
        return [_files(incomplete)]
    return [CompletionItem(name) for name in sorted(set(_programs(incomplete)))]


def _programs(start: str) -> Iterator[str]:
    for folder in os.get_exec_path():
        try:
            files = list(Path(folder or ".").iterdir())
        except OSError:
            continue
        yield from (file.name for file in files if file.name.startswith(start) and os.access(file, os.X_OK))


def _named(incomplete: str, suffixes: tuple[str, ...], fits: Callable[[Path], bool]) -> Iterator[CompletionItem[str]]:
    typed, name = os.path.split(incomplete)
    folder = Path(typed or ".").expanduser()
    try:
        files = sorted(folder.iterdir())
    except OSError:
        return
    for file in files:
        if file.name.startswith(name) and file.name.endswith(suffixes) and fits(file):
            yield CompletionItem(os.path.join(typed, file.name))  # noqa: PTH118 - as it was typed: ./ stays


def _is_cassette(file: Path) -> bool:
    try:
        with file.open("rb") as opened:
            return begins_a_cassette(opened.read(HEAD_BYTES))
    except OSError:
        return False


def _shells(incomplete: str) -> Items:
    return [CompletionItem(name) for name in SHELLS if name.startswith(incomplete)]


_BY_METAVAR: dict[str, Callable[[str], Items]] = {
    "CASSETTE": _cassettes,
    "A": _cassettes,
    "B": _cassettes,
    "PARTIAL": _partials,
    "FILE": lambda incomplete: [_files(incomplete)],
    "FOLDER": _folder,
    "COMMAND": lambda incomplete: [CompletionItem(_TAIL)] if not incomplete else [],
    "SHELL": _shells,
}
