"""Commands that cannot outlive their extension: one call that runs a command, its checks, and the parts for more.

`context.run([...])` runs a command to its end and returns a `CommandRun`; `check_command` checks that against a
`CommandExpectation`. For commands that outlive a call, `start_piped` starts a `Command` by a `Spawner` and returns a
`Child`: its process tree, under a supervisor. A `Pump` moves its input and output in the thread that waits for it;
`Output` keeps the output in bounded memory.
"""

from __future__ import annotations

import os
import shlex
import signal
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import UNSET, Meta, UnsetType

from ext_sdk.core.process.child import (
    Child,
    CommandNotFound,
    CommandNotStarted,
    ExitStatus,
    ProcessError,
    SupervisionLost,
    signal_name,
)
from ext_sdk.core.process.output import LineSplitter, Output, Pump, Sink, start_piped
from ext_sdk.core.process.spawner import Command, Spawner, find_executable
from ext_sdk.core.text import cut

from .duration import Duration
from .expect import Check, Expectation, Integer, Text, check_integer, check_text
from .files import Workdir
from .result import InvalidArgs, OperationFailed, RequirementNotMet

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence
    from pathlib import Path

    from .expect import Searcher
    from .expect.check import Redact
    from .polling import Deadline

__all__ = [
    "Child",
    "Command",
    "CommandExpectation",
    "CommandNotFound",
    "CommandNotStarted",
    "CommandRun",
    "ExitStatus",
    "LineSplitter",
    "Output",
    "ProcessError",
    "Pump",
    "Sink",
    "Spawner",
    "SupervisionLost",
    "base_environment",
    "bounded_grace",
    "check_command",
    "find_executable",
    "open_directory",
    "run_in",
    "run_started",
    "signal_name",
    "signal_number",
    "start_piped",
]

TICK = 0.05  # seconds between two checks of the deadline
KILL_WAIT = 0.45  # seconds to wait for the end of processes after SIGKILL
RESERVE = 0.2  # seconds between the last SIGKILL and the time from which on the result of the call is lost
STOP_GRACE = 0.5  # maximum seconds between SIGTERM and SIGKILL when the extension itself shuts down
GRACE = 1.0  # seconds between SIGTERM and SIGKILL of a command of `run_in`
LABEL_LENGTH = 80  # characters of a command that messages show
# Enough to enter a directory; on other systems than Linux it has to be readable, too.
_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
EXCERPT = 1000  # characters of the end of an output that the text of a failure shows

# Variables that every command gets. It gets no others of the extension's environment, which holds the host's API keys.
# A task must have the same result everywhere, so language and time zone are fixed; a variable of the task can set both.
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR")
FIXED = {"LANG": "C.UTF-8", "TZ": "UTC", "TERM": "dumb"}
DEFAULTS = {"PATH": os.defpath, "HOME": "/", "TMPDIR": "/tmp"}  # noqa: S108 - as POSIX defines it


def base_environment() -> dict[str, str]:
    """Return the variables that every command gets."""
    own = os.environ
    return FIXED | {
        name: own.get(name, DEFAULTS.get(name, "")) for name in INHERITED if name in own or name in DEFAULTS
    }


class CommandRun(NamedTuple):
    """Result of one run of a command.

    Attributes:
        status: exit status; None if it is unknown.
        stdout: standard output; `stdout.text` is its text.
        stderr: standard error.
        timed_out: True if it was stopped at the deadline.
        stopped: True if it was stopped because the extension shuts down.
        left: names of the processes that it left behind, and that were stopped; "" if there were none.
        stuck: names of the processes that still exist after SIGKILL; "" if there are none.
    """

    status: ExitStatus | None
    stdout: Output
    stderr: Output
    seconds: float
    timed_out: bool = False
    stopped: bool = False
    left: str = ""
    stuck: str = ""

    @property
    def exit_code(self) -> int | None:
        """Return the exit code; None if a signal ended the command."""
        return None if self.status is None else self.status.code

    @property
    def duration(self) -> Duration:
        """Return the time from start to end, in whole milliseconds, at least one."""
        return Duration(max(1, round(self.seconds * 1000)) * 1_000_000)

    @property
    def outputs(self) -> dict[str, Output]:
        """Return standard output and standard error by name."""
        return {"stdout": self.stdout, "stderr": self.stderr}


def bounded_grace(grace: float, deadline: Deadline) -> float:
    """Return the seconds between SIGTERM and SIGKILL, so that there is time left to return a result."""
    return max(0.0, min(grace, deadline.remaining_for_result() - RESERVE))


def run_started(
    child: Child, pump: Pump, outputs: Mapping[str, Output], *, grace: float, deadline: Deadline
) -> CommandRun:
    """Wait until a command that was just started exits, or stop all its processes at the deadline; then close both.

    Args:
        outputs: `stdout` and `stderr`, which the pump fills.
        grace: seconds between SIGTERM and SIGKILL.
    """
    began = time.monotonic()
    ended = by_shutdown = False
    try:
        ended = pump.run(lambda: deadline.expired, TICK)
        if not ended:
            by_shutdown = deadline.stopped.is_set()
            pump.step(0)  # reads an exit that was reported just before
            ended = child.status is not None
            seconds = min(grace, STOP_GRACE) if by_shutdown else bounded_grace(grace, deadline)
            child.stop(grace=seconds)
            give_up = time.monotonic() + seconds + KILL_WAIT
            pump.run(lambda: time.monotonic() > give_up, TICK)
    finally:
        pump.close()
        child.close()
    return CommandRun(
        status=child.status,
        stdout=outputs["stdout"],
        stderr=outputs["stderr"],
        seconds=time.monotonic() - began,
        timed_out=not ended and not by_shutdown,
        stopped=not ended and by_shutdown,
        left=child.left,
        stuck="" if child.gone else child.stuck or "processes of its tree",
    )


def open_directory(workdir: Workdir, cwd: str) -> int:
    """Open the directory that a command runs in.

    Raises:
        PathEscapes: it is not in the working directory.
        OperationFailed: it does not exist or is not a directory.
    """
    try:
        return workdir.open(cwd, _SEARCH)
    except OSError as error:
        raise OperationFailed(
            f"cannot run in {cwd!r}",
            error=f"cwd: expected a directory in {workdir.root}, found {cwd!r}: {error.strerror}; "
            "an earlier step must create it",
        ) from error


def run_in(
    workdir: Path,
    command: Sequence[str],
    *,
    spawner: Spawner,
    deadline: Deadline,
    redact: Redact,
    log: Callable[[str], object],
    cwd: str,
    env: Mapping[str, str],
    stdin: str | bytes | None,
    exit_codes: Collection[int] | None,
    output_limit: int,
    limits: Mapping[int, int],
) -> CommandRun:
    """Run a command to its end; see Context.run.

    Args:
        env: its complete environment.
        redact: redacts texts of failures.
        log: receives one line with the end of the command.
    """
    # Redacted before it is shortened: half a secret would not be recognized.
    label = cut(redact(shlex.join(command)), LABEL_LENGTH)
    outputs = {name: Output(output_limit) for name in ("stdout", "stderr")}
    try:
        with ExitStack() as stack:
            directory = open_directory(Workdir(workdir), cwd)
            stack.callback(os.close, directory)
            prepared = Command(
                command,
                env=env,
                directory=directory,
                limits={number: (limit, limit) for number, limit in limits.items()},
                grace=GRACE,
            )
            child, pump = start_piped(
                spawner,
                prepared,
                outputs["stdout"].write,
                outputs["stderr"].write,
                data=stdin.encode("utf-8", "surrogatepass") if isinstance(stdin, str) else stdin,
            )
    except CommandNotFound as error:
        raise RequirementNotMet(error.name, f"searched {error.path!r}; install it") from error
    except ProcessError as error:
        raise OperationFailed(f"{label} could not be started", error=str(error)) from error
    except ValueError as error:
        raise InvalidArgs("", f"{label}: {error}") from error
    except OSError as error:  # no more descriptors, no memory
        text = f"the system refused a resource that is needed to start it: {error.strerror or error}"
        raise OperationFailed(f"{label} could not be started", error=text) from error
    run = run_started(child, pump, outputs, grace=GRACE, deadline=deadline)
    how = "unknown exit status" if run.status is None else str(run.status)
    log(f"{label}: {how} after {run.duration}")
    if run.timed_out or run.stopped:
        how = "the extension is shutting down" if run.stopped else f"it did not end within {run.duration}"
    elif exit_codes is None or (run.exit_code is not None and run.exit_code in exit_codes):
        return run
    texts = {name: redact(output.text).strip() for name, output in run.outputs.items()}
    ends = [
        f"{name} ends with:\n{text if len(text) <= EXCERPT else f'… {text[-EXCERPT:].lstrip()}'}"
        for name, text in texts.items()
        if text
    ]
    raise OperationFailed(f"{label}: {how}", error="\n".join([f"{label}: {how}", *(ends or ["it wrote no output"])]))


# --- Checks ----------------------------------------------------------------------------------------------------------


class CommandExpectation(Expectation):
    """Expected exit and output of a command; all given members must hold."""

    exit_code: Annotated[Integer | UnsetType, Meta(description='Exit code: 0, [0, 1], "nonzero", {"lt": 3}')] = UNSET
    signal: Annotated[str | UnsetType, Meta(description="Signal that killed the command, such as SIGTERM")] = UNSET
    stdout: Annotated[Text | UnsetType, Meta(description="Standard output: a text that it equals, or an object")] = (
        UNSET
    )
    stderr: Annotated[Text | UnsetType, Meta(description="Standard error: a text that it equals, or an object")] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        if self.signal is not UNSET:
            if self.exit_code is not UNSET:
                raise ValueError("expected one of exitCode and signal: a command that a signal kills has no exit code")
            signal_number(self.signal)


def signal_number(name: str) -> int:
    """Return the number of `SIGTERM`, `TERM` or `term`. Raises ValueError for an unknown signal."""
    full = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    try:
        return signal.Signals[full].value
    except KeyError:
        raise ValueError(f"expected the name of a signal, such as SIGTERM, found {name!r:.40}") from None


def check_command(
    expectation: CommandExpectation,
    run: CommandRun,
    *,
    redact: Redact = str,
    searcher: Searcher | None = None,
    workdir: Path | None = None,
    running: bool = False,
    any_end: bool = False,
) -> list[Check]:
    """Check exit and output of a command; exit code 0 is expected unless the expectation names another end.

    Args:
        redact: redacts the parts of the output that failures show: `context.secrets.redact`.
        searcher, workdir: see check_text.
        running: the command still runs, so its exit status is unknown.
        any_end: exit code 0 is not the default, because the command is still running or was stopped.
    """
    checks: list[Check] = []
    status = run.status
    unknown = "it is still running" if running else "its exit status is unknown, its supervisor was killed"
    found = unknown if status is None else str(status)
    if isinstance(expectation.signal, str):
        number = signal_number(expectation.signal)
        ok = status is not None and status.signal == number
        checks.append(Check(ok, "to be killed by", signal.Signals(number).name, found, where="the command"))
    elif expectation.exit_code is not UNSET or not any_end:
        expected = 0 if expectation.exit_code is UNSET else expectation.exit_code
        code = None if status is None else status.code
        checks += check_integer(expected, code or 0, where="exitCode")
        if code is None:
            none = f"none ({found})"
            checks = [Check(False, one.what, one.expected, none, where="exitCode") for one in checks]  # noqa: FBT003
    for name, output in run.outputs.items():
        text: Text | UnsetType = getattr(expectation, name)
        if not isinstance(text, UnsetType):
            checks += check_text(text, output.text, where=name, searcher=searcher, redact=redact, workdir=workdir)
            if output.lost:
                kept = f"{output.size} bytes, of which {output.lost} were not kept (outputLimit)"
                checks.append(Check.failed("to be checked completely", kept, where=name))
    return checks
