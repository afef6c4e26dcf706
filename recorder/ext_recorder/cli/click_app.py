"""Command line with click, for help and for errors in a command line. Built from the tables in `commands`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from ext_recorder.errors import UsageError
from ext_sdk.core import __version__

from .command_line import run_command
from .commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from click.shell_completion import CompletionItem

    from . import Command, Option, Values

    Complete: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem[str]]]

_WIDTH = 100  # most columns of the help
_BEHIND = " Write the recorded command, with its options, after `--`."
_COMPLETE = "_EXT_RECORDER_COMPLETE"  # set by a shell that completes a command line
_ABOUT = """\
Record sessions of any child process, on stdio or sockets, and replay them without the child.

\b
  ext-recorder record session.yaml -- ext-shell     run ext-shell and record the session
  ext-recorder show session.yaml                    print the session
  ext-recorder replay session.yaml                  replay it in place of ext-shell

Exit codes: record exits with the code of the command, or with 126 or 127 if the command cannot be run. replay exits
with the code of the recorded child, or with 3 if the session differed from the recorded one. Code 2 means a wrong
command line, or a file that cannot be read or written.
"""


def run(words: Sequence[str]) -> int:
    """Run a command line. Return its exit code.

    Raises:
        UsageError: the command line is wrong.
        RecorderError: from the command.
    """
    instruction = os.environ.get(_COMPLETE)
    if instruction and not words:
        from .completion import answer

        click.echo(answer(instruction, group()), nl=False)
        return 0
    try:
        code = group().main(
            list(words) or ["--help"], prog_name="ext-recorder", standalone_mode=False, complete_var="-"
        )
    except click.Abort:
        raise KeyboardInterrupt from None
    except click.UsageError as wrong:
        program = wrong.ctx.command_path if wrong.ctx else " ".join(["ext-recorder", *words[:1]])
        command = COMMANDS.get(wrong.ctx.info_name or "") if wrong.ctx else None
        hint = _BEHIND if isinstance(wrong, click.NoSuchOption) and command and command.tail else ""
        message = wrong.format_message()
        raise UsageError(f"{message}{'' if message[-1] in '.?' else '.'}{hint} See: {program} --help") from None
    except click.ClickException as wrong:
        raise UsageError(wrong.format_message()) from None
    return code if isinstance(code, int) else 0


def parsed(command: Command, words: Sequence[str]) -> Values | None:
    """Return the values given in a command line, as click reads it; None if it is wrong. Runs nothing."""
    try:
        context = _command(command).make_context(command.name, list(words))
    except click.ClickException:
        return None
    return _given(command, context)


def group() -> click.Group:
    """Return the program as a click group."""
    program = _InOrder(
        "ext-recorder",
        commands=[_command(command) for command in COMMANDS.values()],
        help=_ABOUT,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": _WIDTH},
    )
    return click.version_option(__version__, prog_name="ext-recorder")(program)


def _command(command: Command) -> click.Command:
    def callback(**_values: str | bool | tuple[str, ...] | None) -> int:
        return run_command(command, _given(command, click.get_current_context()))

    arguments = []
    for name in command.arguments:
        is_last = name == command.arguments[-1]
        repeats = command.repeats and is_last
        optional = bool(command.unless) or (command.optional and is_last)
        metavar = f"{name}…" if repeats else name
        arguments.append(
            click.Argument(
                [_key(name)],
                metavar=f"[{metavar}]" if optional else metavar,
                nargs=-1 if repeats else 1,
                required=not optional,
                shell_complete=_completes(name),
            )
        )
    if command.tail and not command.repeats and not command.unless:
        arguments.append(
            click.Argument(
                [_key(command.tail)],
                nargs=-1,
                metavar=f"[-- {command.tail}…]",
                shell_complete=_completes(command.tail),
            )
        )
    paragraphs = [command.summary, *command.text.strip("\n").split("\n\n")]
    kind = _Repeating if command.tail and (command.repeats or command.unless) else click.Command
    result = kind(
        command.name,
        params=[*arguments, *(_option(option) for option in command.options)],
        callback=callback,
        # click rewraps paragraphs without \b, so the examples are marked with it.
        help="\n\n".join(f"\b\n{text}" if text.startswith(" ") else text for text in paragraphs),
        short_help=command.summary,
        options_metavar="[OPTIONS]",
    )
    if isinstance(result, _Repeating):
        result.tail = command.tail
        result.extra = bool(command.unless)
    return result


class _InOrder(click.Group):
    """Group that lists commands in the order of their table: the most frequent ones first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


class _Repeating(click.Command):
    """Command with a tail whose other arguments vary in number, too: click supports one such argument only."""

    tail = ""
    extra = False  # without `--`, the tail begins after the arguments

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        at = args.index("--") if "--" in args else len(args)
        ctx.params[_key(self.tail)] = tuple(args[at + 1 :])
        ctx.allow_extra_args = self.extra and at == len(args)
        rest = super().parse_args(ctx, args[:at])
        if rest:
            ctx.params[_key(self.tail)] = tuple(rest)
        return rest

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), f"[-- {self.tail}…]"]

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem[str]]:
        from .completion import completions

        return [*super().shell_complete(ctx, incomplete), *completions(self.tail, incomplete)]


class _OneOf(click.Choice[str]):
    """Choice whose errors have the form of all other options."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        if value in self.choices:
            return value
        option = param.opts[0] if param else ""
        raise click.UsageError(f"{option} {value}: expected one of {', '.join(self.choices)}.", ctx)


def _option(option: Option) -> click.Option:
    names = [_key(option.name), f"--{option.name}", *([f"-{option.short}"] if option.short else [])]
    if not option.metavar:
        return click.Option(names, is_flag=True, help=option.help)
    return click.Option(
        names,
        type=_OneOf(option.choices) if option.choices else click.STRING,
        metavar=None if option.choices else option.metavar,
        multiple=option.many,
        default=option.default or None,
        show_default=bool(option.default),
        help=option.help,
        shell_complete=None if option.choices else _completes(option.metavar),
    )


def _completes(metavar: str) -> Complete:
    """Return the completion function of values with this metavar; its imports are delayed until a shell calls it."""

    def complete(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem[str]]:
        from .completion import completions

        return completions(metavar, incomplete)

    return complete


def _key(name: str) -> str:
    """Return the name under which click passes a value to the callback."""
    return name.lower().replace("-", "_")


def _given(command: Command, context: click.Context) -> Values:
    """Return the same values as `command_line.read`: arguments, and the options that the command line has."""
    names = [*command.arguments, *([command.tail] if command.tail else [])]
    names += [
        option.name
        for option in command.options
        if context.get_parameter_source(_key(option.name)) is click.core.ParameterSource.COMMANDLINE
    ]
    values: Values = {}
    for name in names:
        value: str | bool | tuple[str, ...] | None = context.params[_key(name)]
        if isinstance(value, tuple):
            values[name] = value
        elif isinstance(value, bool):
            values[name] = ("",) if value else ()
        else:
            values[name] = () if value is None else (value,)
    return values
