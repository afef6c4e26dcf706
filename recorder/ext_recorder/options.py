"""Commands and their options as data, and the quick way to read a command line by them.

Two readers use these tables. `click` reads everything: it checks, explains, and says what is wrong. But importing it
takes as long as a whole answer from a cassette may, and hosts start `record` and `replay` for every task. So a command
line that is plainly right is read here, by the few lines of `read`; at the first doubt it returns None, and click has
the word.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import TypeAlias

    # By name; an option that was not given has its default, a flag that was given has one empty text.
    Values: TypeAlias = dict[str, tuple[str, ...]]
    Run: TypeAlias = Callable[[Values], int]


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
    """

    __slots__ = ("choices", "default", "help", "many", "metavar", "name", "short")

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
    ) -> None:
        self.name = name
        self.help = help
        self.metavar = metavar
        self.choices = choices
        self.default = default
        self.many = many
        self.short = short


class Command:
    """One command.

    Args:
        name: as it is typed.
        summary: one line for the list of commands.
        text: paragraphs for `--help`; indented ones are kept as they are.
        run: does it; returns the exit code.
        arguments: names of what has to be given, in order.
        repeats: the last argument may be given several times.
        tail: the name of what stands behind `--`; "" for nothing.
        options: its options.
    """

    __slots__ = ("arguments", "name", "options", "repeats", "run", "summary", "tail", "text")

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
        options: tuple[Option, ...] = (),
    ) -> None:
        self.name = name
        self.summary = summary
        self.text = text
        self.run = run
        self.arguments = arguments
        self.repeats = repeats
        self.tail = tail
        self.options = options

    def defaults(self) -> Values:
        """The values when no option is given."""
        return {option.name: (option.default,) if option.default else () for option in self.options}


def read(command: Command, words: Sequence[str]) -> Values | None:
    """The values in a command line; None where it takes more to understand it, or where it is wrong.

    Understood are long options, `--name value` and `--name=value`, among the arguments, and a tail behind `--`.

    Args:
        command: what the words belong to.
        words: the command line after the command's name.
    """
    values = command.defaults()
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
    if len(given) < len(command.arguments) or (len(given) > single and not command.repeats):
        return None
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
    values[option.name] = (*values[option.name], value) if option.many else (value,)
    return True
