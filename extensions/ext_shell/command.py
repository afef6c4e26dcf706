"""Commands ready to be run: arguments, shell, working directory, standard input, environment."""

from __future__ import annotations

import os
import shlex
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from msgspec import UNSET

import ext_sdk
from ext_sdk import OperationFailed
from ext_sdk.files import os_errors
from ext_sdk.process import Command, CommandNotFound, CommandNotStarted, ProcessError, Pump, Spawner
from ext_shell.files.common import workdir_for

from .command_environment import hide_secrets, make_environment
from .config import config_of
from .rlimits import as_rlimits

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ext_sdk import Context
    from ext_sdk.process import Child, Sink

    from .args import CommandArgs
    from .rlimits import Limits


# Scripts stop at the first command that fails, where the shell can do that; no start-up file of the user is read.
SHELLS: dict[str, tuple[str, ...]] = {
    "bash": ("bash", "--noprofile", "--norc", "-euo", "pipefail", "-c"),
    "sh": ("sh", "-eu", "-c"),
    "dash": ("dash", "-eu", "-c"),
    "zsh": ("zsh", "-f", "-euo", "pipefail", "-c"),
    "ksh": ("ksh", "-euo", "pipefail", "-c"),
    "fish": ("fish", "--no-config", "-c"),
    "pwsh": ("pwsh", "-NoProfile", "-NonInteractive", "-Command"),
    "python3": ("python3", "-c"),
}

LONGEST_SCRIPT = 128 * 1024 - 1  # bytes; Linux takes no longer argument
LAST_GRACE = 2.0  # seconds, at most, between SIGTERM and SIGKILL once the extension has gone
LABEL_LENGTH = 80  # characters of a command that messages show


class Prepared:
    """A command that can be started, any number of times.

    Attributes:
        label: the command as messages show it.
        limits: those that hold for it, for explanations.
        grace: seconds between SIGTERM and SIGKILL.
    """

    __slots__ = ("_args", "_argv", "_context", "_env", "_rlimits", "grace", "label", "limits")

    def __init__(self, args: CommandArgs, context: ext_sdk.Context, extra_env: dict[str, str] | None = None) -> None:
        config = config_of(context)
        self._args = args
        self._argv = _argv(args, config.shell)
        self._env = make_environment(config, context.env, args.pass_env, {**args.env, **(extra_env or {})})
        self._context = context
        self.limits: Limits = args.limits.merged(config.limits)
        self._rlimits = as_rlimits(self.limits)
        self.grace = args.kill_after.seconds
        hide_secrets(self._env, config.secrets, context.secrets)
        self.label = _label(args, config.shell, context.secrets)

    def start(self, spawner: Spawner, stdout: Sink, stderr: Sink, *, keep: bool = False) -> tuple[Child, Pump]:
        """Start it, with its output going to the sinks.

        Args:
            spawner: supervises it.
            stdout: takes the bytes of its standard output.
            stderr: takes those of its standard error.
            keep: see ext_sdk.process.Command.

        Raises:
            InvalidArgs: something that no program can be given; a path that leaves the workdir.
            OperationFailed: it can't be started.
            RequirementNotMet: there is no such shell.
        """
        with ExitStack() as ours, _told():
            directory = _closing(ours, open_directory(self._context, self._args.cwd))
            data, stdin, feed = self._input(ours)
            out_reader, out_writer = os.pipe()
            err_reader, err_writer = os.pipe()
            for descriptor in (out_writer, err_writer):
                _closing(ours, descriptor)
            theirs = ours.enter_context(ExitStack())  # closed here, unless the pump takes them
            for descriptor in (out_reader, err_reader, *([] if feed is None else [feed])):
                _closing(theirs, descriptor)
            command = Command(
                self._argv,
                env=self._env,
                directory=directory,
                limits=self._rlimits,
                umask=None if self._args.umask is UNSET else int(self._args.umask, 8),
                grace=min(self.grace, LAST_GRACE),
                keep=keep,
            )
            child = self._spawn(spawner, command, stdin, out_writer, err_writer)
            theirs.pop_all()
            return child, Pump(child, {out_reader: stdout, err_reader: stderr}, stdin=feed, data=data)

    def _input(self, ours: ExitStack) -> tuple[bytes, int, int | None]:
        """Return the text to feed, the descriptor for the command, and the one to feed it by."""
        if self._args.stdin_file is not UNSET:
            return b"", _closing(ours, open_input(self._context, self._args.stdin_file)), None
        if self._args.stdin is UNSET:
            return b"", _closing(ours, os.open(os.devnull, os.O_RDONLY)), None
        reader, writer = os.pipe()
        return self._args.stdin.encode("utf-8", "surrogatepass"), _closing(ours, reader), writer

    def _spawn(self, spawner: Spawner, command: Command, stdin: int, stdout: int, stderr: int) -> Child:
        try:
            return spawner.spawn(command, stdin=stdin, stdout=stdout, stderr=stderr)
        except CommandNotFound as error:
            if self._args.command is UNSET:
                raise ext_sdk.RequirementNotMet(
                    error.name, f"the shell of this script; searched {error.path!r}"
                ) from error
            advice = "; install it, set env.PATH, or name it with a slash (./x), which starts from cwd"
            raise ext_sdk.OperationFailed(f"command not found: {error.name}", error=f"{error}{advice}") from error
        except CommandNotStarted as error:
            where = f"; command: {self.label}; cwd: {self._args.cwd!r}"
            raise ext_sdk.OperationFailed(f"{error.name} could not be started", error=f"{error}{where}") from error
        except ProcessError as error:
            raise ext_sdk.OperationFailed(f"{self.label} could not be started", error=str(error)) from error
        except ValueError as error:
            raise ext_sdk.InvalidArgs("", str(error)) from error


@contextmanager
def _told() -> Iterator[None]:
    """Tell what the system refuses on the way to a command: no descriptors, no memory."""
    try:
        yield
    except OSError as error:
        text = f"the system refused what is needed to start it: {error.strerror or error}"
        raise ext_sdk.OperationFailed("the command could not be started", error=text) from error


def _closing(stack: ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor


def _argv(args: CommandArgs, default_shell: str) -> list[str]:
    if args.command is not UNSET:
        if not args.command[0]:
            raise ext_sdk.InvalidArgs("command", "the name of the program is empty")
        return args.command
    script = "" if args.script is UNSET else args.script
    size = len(script.encode("utf-8", "surrogatepass"))
    if size > LONGEST_SCRIPT:
        raise ext_sdk.InvalidArgs(
            "script",
            f"expected at most {LONGEST_SCRIPT} bytes, found {size}; write it to a file (write-file) and run that",
        )
    return [*SHELLS[_shell(args, default_shell)], script]


def _shell(args: CommandArgs, default_shell: str) -> str:
    return default_shell if args.shell is UNSET else args.shell


def _label(args: CommandArgs, default_shell: str, secrets: ext_sdk.Secrets) -> str:
    """The command for messages. Secrets are taken out before it is cut: half of one would not be recognized."""
    if args.command is not UNSET:
        return _shortened(secrets.redact(shlex.join(args.command)))
    script = "" if args.script is UNSET else args.script
    return f"{_shell(args, default_shell)} script {_shortened(secrets.redact(' '.join(script.split())))!r}"


def _shortened(text: str) -> str:
    text = "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text[: LABEL_LENGTH + 1]
    )
    return text if len(text) <= LABEL_LENGTH else f"{text[: LABEL_LENGTH - 1]}…"


# Enough to enter a directory; elsewhere than on Linux it has to be readable as well.
_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


def open_directory(context: Context, cwd: str) -> int:
    """Open the directory to run in: in the workdir, or one that make-temp gave.

    Raises:
        PathEscapes: it is somewhere else.
        OperationFailed: it is not there, or no directory.
    """
    workdir = workdir_for(context, cwd)
    try:
        return workdir.open(cwd, _SEARCH)
    except OSError as error:
        raise OperationFailed(
            f"can't run in {cwd!r}",
            error=f"cwd: expected a directory in {workdir.root}, found {cwd!r}: {error.strerror}; "
            "an earlier step has to make it",
        ) from error


def place_of(context: Context) -> str:
    """Return the workdir of a call, with its scope if there is one, for messages."""
    return f"scope {context.scope!r} of {context.workdir}" if context.scope else str(context.workdir)


def open_input(context: Context, path: str) -> int:
    """Open a file that a command reads. Raises OperationFailed where that is not possible."""
    with os_errors("read", path), workdir_for(context, path).open_regular(path) as file:
        return os.dup(file.fileno())
