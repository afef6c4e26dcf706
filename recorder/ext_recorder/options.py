"""Commands and their options as data, and the quick way to read a command line by them.

Two readers use these tables. `click` reads everything: it checks, explains, and says what is wrong. But importing it
takes as long as a whole answer from a cassette may, and hosts start `record` and `replay` for every task. So a command
line that is plainly right is read here, by the few lines of `read`; at the first doubt it returns None, and click has
the word.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
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

    def values(self, given: Values) -> Values:
        """Return all values: those given on the command line, those of the project file, and the defaults.

        Raises:
            UsageError: the project file cannot be used.
        """
        values = (
            self.defaults() | given | {GIVEN: tuple(option.name for option in self.options if option.name in given)}
        )
        if not self.project:
            return values
        from .project import located

        file = located(self, values)
        if file is None:
            return values
        from .settings import Settings

        return Settings(file).applied(self, values)

    def perform(self, given: Values) -> int:
        """Run the command, with what was given on the command line. Returns the exit code."""
        from .errors import UsageError

        values = self.values(given)
        try:
            return self.run(values)
        except UsageError as wrong:
            file = values["config"] if self.project and str(wrong).startswith("--") else ()
            raise UsageError(f"{wrong} (options come from {file[0]}, too)") if file else wrong from None


CONFIG = Option(
    "config",
    "Project file, instead of the nearest pyproject.toml or ext-recorder.toml; none disables it.",
    "FILE",
    key=False,
)


def read(command: Command, words: Sequence[str]) -> Values | None:
    """Return the values given in a command line; None if it is wrong, or more than this function can read.

    Understood are long options, `--name value` and `--name=value`, among the arguments, and a tail after `--`.

    Args:
        command: what the words belong to.
        words: the command line after the command's name.
    """
    values: Values = {}
    options = {f"--{option.name}": option for option in command.options}
    given: list[str] = []
    tail: tuple[str, ...] = ()
    rest = iter(words)
    for word in rest:
        if word == "--" and command.tail:
            tail = tuple(rest)
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            option = options.get(name)
            if option is None or not _take(values, option, value if equals else None, rest):
                return None
        elif word.startswith("-") or not word:
            return None
        else:
            given.append(word)
    single = len(command.arguments) - command.repeats
    enough = len(given) >= len(command.arguments) - command.optional or values.get(command.unless)
    if not enough or (len(given) > single and not command.repeats):
        return None
    values.update(dict.fromkeys(command.arguments, ()))
    values.update((name, (word,)) for name, word in zip(command.arguments[:single], given, strict=False))
    if command.repeats:
        values[command.arguments[-1]] = tuple(given[single:])
    if command.tail:
        values[command.tail] = tail
    return values


def _take(values: Values, option: Option, value: str | None, rest: Iterator[str]) -> bool:
    """Store an option's value, from the same word or the next one. False: this is not plainly right."""
    if not option.metavar:
        values[option.name] = ("",)
        return value is None
    if value is None:
        value = next(rest, "")
    if not value or value.startswith("-") or (option.choices and value not in option.choices):
        return False
    values[option.name] = (*values.get(option.name, ()), value) if option.many else (value,)
    return True
