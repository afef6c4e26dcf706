"""Commands ready to run: arguments, shell, working directory, standard input, environment, limits.

`run_command` runs one to its end, or to its deadline, with its output as log notifications.
"""

from __future__ import annotations

import fnmatch
import os
import shlex
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from msgspec import UNSET

import ext_sdk
from ext_sdk.args import scalar_text
from ext_sdk.core.redaction.secret_names import secret_variables
from ext_sdk.core.text import cut
from ext_sdk.files import os_errors
from ext_sdk.process import (
    Command,
    CommandNotFound,
    CommandNotStarted,
    LineSplitter,
    Output,
    ProcessError,
    Pump,
    Spawner,
    base_environment,
    open_directory,
    run_started,
    start_piped,
)

from .config import ShellConfig
from .files import workdir_for
from .rlimits import as_rlimits, size_in_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ext_sdk import Secrets
    from ext_sdk.args import Scalar
    from ext_sdk.process import Child, CommandRun, Sink, Spawner

    from .args import CommandArgs
    from .rlimits import Limits

SHORTEST_LINE = 8  # characters of a line of a secret that is redacted by itself
_WILDCARDS = frozenset("*?[")


def make_environment(
    config: ShellConfig, task: Mapping[str, str], pass_env: Iterable[str], env: Mapping[str, Scalar]
) -> dict[str, str]:
    """Return the environment of a command: the fixed variables, overridden by configuration, task and operation.

    Args:
        task: `context.env` of the call.
        pass_env: names or patterns of further variables of this process's environment.
    """
    own = os.environ
    environment = base_environment()
    environment |= _passed(own, config.pass_env) | _texts(config.env)
    environment |= dict(task)
    environment |= _passed(own, pass_env) | _texts(env)
    return environment


def _texts(values: Mapping[str, Scalar]) -> dict[str, str]:
    return {name: scalar_text(value) for name, value in values.items()}


def hide_secrets(env: Mapping[str, str], names: Iterable[str], secrets: Secrets) -> None:
    """Register the values of secret variables for redaction: by the words in their names, and by the given names.

    A value of several lines is also redacted line by line, because logs are written line by line.
    """
    values = secret_variables(env)
    values |= {f"env.{name}": value for name in names if (value := env.get(name) or os.environ.get(name))}
    for name, value in values.items():
        secrets.add(name, value)
        lines = [line.strip() for line in value.splitlines()]
        for line in lines if len(lines) > 1 else ():
            if len(line) >= SHORTEST_LINE and not line.startswith("-----"):  # "-----BEGIN …" is not secret
                secrets.add(name, line)


def _passed(own: Mapping[str, str], patterns: Iterable[str]) -> dict[str, str]:
    """Return the variables whose names match."""
    passed: dict[str, str] = {}
    for pattern in patterns:
        if _WILDCARDS & set(pattern):
            passed |= {name: value for name, value in own.items() if fnmatch.fnmatchcase(name, pattern)}
        elif pattern in own:
            passed[pattern] = own[pattern]
    return passed


# Scripts stop at the first command that fails, if the shell supports that; no start-up file of the user is read.
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

NOT_SHELLS = frozenset({"pwsh", "python3"})  # for which `${NAME.key}` is not an error
LONGEST_SCRIPT = 128 * 1024 - 1  # bytes; Linux accepts no longer argument
LAST_GRACE = 2.0  # maximum seconds between SIGTERM and SIGKILL after the extension has exited
LABEL_LENGTH = 80  # characters of a command that messages show


class PreparedCommand:
    """Command that can be started any number of times.

    Attributes:
        label: the command as messages show it.
        limits: its resource limits, for explanations.
        grace: seconds between SIGTERM and SIGKILL.
        advice: of a script with references, which are not replaced; "" for others.
    """

    __slots__ = ("_args", "_argv", "_context", "_env", "_rlimits", "advice", "grace", "label", "limits")

    def __init__(self, args: CommandArgs, context: ext_sdk.Context, extra_env: dict[str, str] | None = None) -> None:
        config = context.config_as(ShellConfig)
        self._args = args
        shell = config.shell if args.shell is UNSET else args.shell
        self._argv = _argv(args, shell)
        self._env = make_environment(config, context.env, args.pass_env, {**args.env, **(extra_env or {})})
        self._context = context
        self.limits: Limits = args.limits.merged(config.limits)
        self._rlimits = as_rlimits(self.limits)
        self.grace = args.kill_after.seconds
        hide_secrets(self._env, config.secrets, context.secrets)
        # Redacted before it is shortened: half a secret would not be recognized.
        if args.command is not UNSET:
            self.label = _shortened(context.secrets.redact(shlex.join(args.command)))
            self.advice = ""
        else:
            script = context.secrets.redact(" ".join(self._argv[-1].split()))
            self.label = f"{shell} script {_shortened(script)!r}"
            found = context.references_in(self._argv[-1])
            self.advice = ""
            if found:
                self.advice = (
                    f"script: {found[0]} is not replaced in scripts; pass the value in `env`, such as "
                    f"{{VALUE: {found[0]!r}}}, and read the variable VALUE"
                )
            if found and shell in NOT_SHELLS:
                context.log.warn(self.advice)

    def start(self, spawner: Spawner, stdout: Sink, stderr: Sink, *, keep: bool = False) -> tuple[Child, Pump]:
        """Start the command. The pump passes its output to the sinks.

        Args:
            keep: see ext_sdk.process.Command.

        Raises:
            InvalidArgs: a value that no program can be given, or a path that leaves the working directory.
            OperationFailed: the command cannot be started.
            RequirementNotMet: the shell is not installed.
        """
        args = self._args
        try:
            with ExitStack() as stack:
                directory = open_directory(workdir_for(self._context, args.cwd), args.cwd)
                stack.callback(os.close, directory)
                stdin = data = None
                if args.stdin_file is not UNSET:
                    stdin = open_input(self._context, args.stdin_file)
                    stack.callback(os.close, stdin)
                elif args.stdin is not UNSET:
                    data = args.stdin.encode("utf-8", "surrogatepass")
                command = Command(
                    self._argv,
                    env=self._env,
                    directory=directory,
                    limits=self._rlimits,
                    umask=None if args.umask is UNSET else int(args.umask, 8),
                    grace=min(self.grace, LAST_GRACE),
                    keep=keep,
                )
                return start_piped(spawner, command, stdout, stderr, stdin=stdin, data=data)
        except CommandNotFound as error:
            if args.command is UNSET:
                shell = f"the shell of this script; searched {error.path!r}"
                raise ext_sdk.RequirementNotMet(error.name, shell) from error
            advice = "; install it, set env.PATH, or name it with a slash (./x), which starts from cwd"
            raise ext_sdk.OperationFailed(f"command not found: {error.name}", error=f"{error}{advice}") from error
        except CommandNotStarted as error:
            where = f"; command: {self.label}; cwd: {args.cwd!r}"
            raise ext_sdk.OperationFailed(f"{error.name} could not be started", error=f"{error}{where}") from error
        except ProcessError as error:
            raise ext_sdk.OperationFailed(f"{self.label} could not be started", error=str(error)) from error
        except ValueError as error:
            raise ext_sdk.InvalidArgs("", str(error)) from error
        except OSError as error:  # no more descriptors, no memory
            text = f"the system refused a resource that is needed to start it: {error.strerror or error}"
            raise ext_sdk.OperationFailed("the command could not be started", error=text) from error


def _argv(args: CommandArgs, shell: str) -> list[str]:
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
    return [*SHELLS[shell], script]


def _shortened(text: str) -> str:
    text = "".join(
        character if character.isprintable() else repr(character)[1:-1] for character in text[: LABEL_LENGTH + 1]
    )
    return text if len(text) <= LABEL_LENGTH else f"{text[: LABEL_LENGTH - 1]}…"


def open_input(context: ext_sdk.Context, path: str) -> int:
    """Open a regular file for standard input. Raises OperationFailed if that is not possible."""
    with os_errors("read", path), workdir_for(context, path).open_regular(path) as file:
        return os.dup(file.fileno())


def place_of(context: ext_sdk.Context) -> str:
    """Return the working directory of a call, with its scope if there is one, for messages."""
    return f"scope {context.scope!r} of {context.workdir}" if context.scope else str(context.workdir)


LOGGED_AT_ONCE = 100  # lines; so the log of a short run is complete, and the same each time
LOG_INTERVAL = 1.0  # seconds between two further lines
LOGGED_LENGTH = 2000  # characters of a line


class LineLog:
    """Log of the lines of an output: the first hundred, then one per second, and the number of omitted lines.

    Args:
        secrets: redacted before a line is cut.
        stream: stdout or stderr; None logs nothing.
    """

    def __init__(self, log: ext_sdk.Log, secrets: ext_sdk.Secrets, stream: str | None) -> None:
        self._log = log
        self._secrets = secrets
        self._stream = stream
        self._lines = LineSplitter()
        self._count = 0
        self._next = 0.0
        self._skipped = 0

    def feed(self, data: bytes) -> None:
        """Log the lines that further data completes."""
        if self._stream and self._omits_next():
            self._skipped += self._lines.skip(data)
        elif self._stream:
            self._send(self._lines.feed(data))

    def finish(self) -> None:
        """Log the last line, if it has no end, and the number of omitted lines."""
        if self._stream:
            self._send(self._lines.finish())
        if self._skipped:
            self._log.info(f"{self._skipped} lines of {self._stream} were not logged", stream=self._stream)

    def _omits_next(self) -> bool:
        """Return True if the next line is omitted."""
        return self._count >= LOGGED_AT_ONCE and time.monotonic() < self._next

    def _send(self, lines: list[str]) -> None:
        """Log complete lines, and count those to omit."""
        for line in lines:
            if self._omits_next():
                self._skipped += 1
                continue
            self._count += 1
            self._next = time.monotonic() + LOG_INTERVAL
            text = self._secrets.redact(line)
            self._log.info(cut(text, LOGGED_LENGTH), stream=self._stream)


def run_command(
    command: PreparedCommand, spawner: Spawner, context: ext_sdk.Context, deadline: ext_sdk.Deadline, *, log: bool
) -> CommandRun:
    """Run a command until it exits, or stop all its processes at the deadline.

    Args:
        log: whether to send lines of its output as log notifications.

    Raises:
        Those of PreparedCommand.start.
    """
    limit = size_in_bytes(context.config_as(ShellConfig).output_limit)
    outputs = {name: Output(limit) for name in ("stdout", "stderr")}
    logs = {name: LineLog(context.log, context.secrets, name if log else None) for name in outputs}

    def sink(name: str) -> Callable[[bytes], None]:
        def receive(data: bytes) -> None:
            outputs[name].write(data)
            logs[name].feed(data)

        return receive

    child, pump = command.start(spawner, sink("stdout"), sink("stderr"))
    run = run_started(child, pump, outputs, grace=command.grace, deadline=deadline)
    for line_log in logs.values():
        line_log.finish()
    return run
