"""Command line: commands and options as data, which the fast parser and, for help and errors, click read.

Commands are in `commands`, options of several commands in `options`. A command line that the fast parser reads never
imports click: hosts start `record` and `replay` for every task.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    # By name; a flag that is set has one empty text. A parser returns the values given on the command line; a command
    # gets all names, with the values of the project file and the defaults.
    Values: TypeAlias = dict[str, tuple[str, ...]]
    Run: TypeAlias = Callable[[Values], int]

GIVEN = "--"  # key of a command's values: the names of the options that the command line has


class Option:
    """One option.

    Args:
        name: without dashes; also the key of its values.
        help: one line for `--help`.
        metavar: name of its value in the help; "" for a flag.
        choices: allowed values; () for any.
        default: value if it is not given; "" for none.
        many: it may be given several times.
        short: second name, one letter.
        key: it may be set in a project file, under the same name.
        replaces: values on the command line replace those of a project file; by default those of `many` are added.
        table: convert a table in a project file, the value or an entry of a list, to texts as on a command line;
            raise ValueError with the cause if it is wrong. Options NAME=… accept a table of names and values anyway.
        check: raise UsageError if a value is wrong; called for values of a project file, to report their line.
    """

    __slots__ = ("check", "choices", "default", "help", "key", "many", "metavar", "name", "replaces", "short", "table")

    def __init__(
        self,
        name: str,
        help: str,
        metavar: str = "",
        *,
        choices: tuple[str, ...] = (),
        default: str = "",
        many: bool = False,
        short: str = "",
        key: bool = True,
        replaces: bool = False,
        table: Callable[[dict[str, object]], Iterable[str]] | None = None,
        check: Callable[[str], object] | None = None,
    ) -> None:
        self.name = name
        self.help = help
        self.metavar = metavar
        self.choices = choices
        self.default = default
        self.many = many
        self.short = short
        self.key = key
        self.replaces = replaces
        self.table = table
        self.check = check


class Command:
    """One command.

    Args:
        summary: one line for the list of commands.
        text: paragraphs for `--help`; indented ones are not rewrapped.
        run: entry function; returns the exit code.
        arguments: names of the required arguments, in order.
        repeats: the last argument may be given several times.
        unless: name of an option that replaces the arguments; "" for none.
        tail: name of the arguments after `--`; "" for none.
        options: its options; commands that read a project file have `--config` too.
        optional: the last argument may be omitted; `cassettes` of the project file replaces it.
        project: it reads the project file of its cassettes.
    """

    __slots__ = (
        "arguments", "name", "optional", "options", "project", "repeats", "run", "summary", "tail", "text", "unless",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        summary: str,
        text: str,
        run: Run,
        *,
        arguments: tuple[str, ...],
        repeats: bool = False,
        tail: str = "",
        unless: str = "",
        options: tuple[Option, ...] = (),
        optional: bool = False,
        project: bool = True,
    ) -> None:
        self.name = name
        self.summary = summary
        self.text = text
        self.run = run
        self.arguments = arguments
        self.repeats = repeats
        self.tail = tail
        self.unless = unless
        self.options = (*options, CONFIG) if project else options
        self.optional = optional
        self.project = project

    def defaults(self) -> Values:
        """Return the values of a command line without options."""
        return {option.name: (option.default,) if option.default else () for option in self.options}


CONFIG = Option(
    "config",
    "Project file, instead of the nearest pyproject.toml or ext-recorder.toml; none disables it.",
    "FILE",
    key=False,
)
