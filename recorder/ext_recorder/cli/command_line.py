"""Command lines: the fast parser, and running a command with its values.

click parses any command line, and explains what is wrong with it. Importing click takes as long as replaying a whole
session may, and hosts start `record` and `replay` for every task. So `read` parses a command line that is plainly
correct; in all other cases it returns None, and click parses it (see `click_app`).
"""

from __future__ import annotations

from . import GIVEN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from . import Command, Option, Values


def read(command: Command, words: Sequence[str]) -> Values | None:
    """Return the values given in a command line; None if it is wrong, or too complex for this function.

    Supported are long options, `--name value` and `--name=value`, among the arguments, and a tail after `--`.

    Args:
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
    """Store an option's value, from the same word or the next one. Return False if it is not plainly correct."""
    if not option.metavar:
        values[option.name] = ("",)
        return value is None
    if value is None:
        value = next(rest, "")
    if not value or value.startswith("-") or (option.choices and value not in option.choices):
        return False
    values[option.name] = (*values.get(option.name, ()), value) if option.many else (value,)
    return True


def resolve_values(command: Command, given: Values) -> Values:
    """Return all values: those given on the command line, those of the project file, and the defaults.

    Raises:
        UsageError: the project file cannot be used.
    """
    names = tuple(option.name for option in command.options if option.name in given)
    values = command.defaults() | given | {GIVEN: names}
    if not command.project:
        return values
    from .project_file import located

    file = located(command, values)
    if file is None:
        return values
    from .settings import Settings

    return Settings(file).applied(command, values)


def run_command(command: Command, given: Values) -> int:
    """Run a command with the values of a command line. Return the exit code."""
    from ext_recorder.errors import UsageError

    values = resolve_values(command, given)
    try:
        return command.run(values)
    except UsageError as error:
        if not command.project or not values["config"] or not str(error).startswith("--"):
            raise
        from .project_file import NO_FILE

        file = values["config"][0]
        raise error if file == NO_FILE else UsageError(f"{error} (options come from {file}, too)") from None
