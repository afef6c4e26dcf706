"""Commands and their options as data, and the quick way to read a command line by them.

Two readers use these tables. `click` reads everything: it checks, explains, and says what is wrong. But importing it
takes as long as a whole answer from a cassette may, and hosts start `record` and `replay` for every task. So a command
line that is plainly right is read here, by the few lines of `read`; at the first doubt it returns None, and click has
the word.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import TypeAlias

    # By name; a flag that is set has one empty text. A reader of command lines returns what was given; a command gets
    # all names, with the values of the project file and the defaults.
    Values: TypeAlias = dict[str, tuple[str, ...]]
    Run: TypeAlias = Callable[[Values], int]

GIVEN = "--"  # among the values of a command: the names of the options that the command line has


class Option:
    """One option.

    Args:
        name: without its dashes; also the key of its values.
        help: one line for `--help`.
        metavar: what its value is called; "" for a flag, which has none.
        choices: the values it may have; () for any.
        default: its value when it is not given; "" for none.
        many: it may be given several times.
        short: a second name, one letter.
        key: it may be set in a project file, under the same name.
        replaces: values on the command line replace those of a project file; by default those of `many` are added.
        table: turn a table in a project file, the value or an entry of a list, into texts as a command line has them;
            raise ValueError with the cause if it is wrong. Of an option NAME=… a table is NAME and its values anyway.
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
        name: as it is typed.
        summary: one line for the list of commands.
        text: paragraphs for `--help`; indented ones are kept as they are.
        run: does it; returns the exit code.
        arguments: names of what has to be given, in order.
        repeats: the last argument may be given several times.
        unless: the name of an option that takes the place of the arguments; "" for none.
        tail: the name of what stands after `--`; "" for nothing.
        options: its options; those that read a project file have `--config` too.
        optional: the last argument may be omitted; the project file has `cassettes` in its place.
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
