"""Operations `start`, `wait` and `stop` of background processes."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.capture import check_names
from ext_sdk.expect import Searcher
from ext_sdk.long_outputs import RedactingFile
from ext_sdk.polling import attempts_until, exponential
from ext_sdk.process import (
    CommandExpectation,
    Spawner,
    signal_number,
)
from ext_shell.args import Name, OutputArgs, Port, Ready
from ext_shell.background import (
    Process,
    Processes,
    ProcessName,
    RunningProcesses,
    find_process,
    output_ends,
    outputs_of,
    result_of,
    stop_process,
)
from ext_shell.command import PreparedCommand, place_of
from ext_shell.config import ShellConfig
from ext_shell.expectations import DEFAULT
from ext_shell.readiness import FileExists, HttpResponds, NotReadyYet, PortOpen, await_ready, conditions_of
from ext_shell.result import RESERVED, Capture
from ext_shell.rlimits import size_in_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_shell.readiness import Condition

# Range of `auto`. Systems assign ports from 32768 on to clients (IANA: from 49152 on), so one of those could be taken
# before the process opens it; ports from 30000 on are the node ports of Kubernetes.
AUTO_PORTS = range(20_000, 30_000)
MOST_TRIES = 100


class Start(OutputArgs):
    """Arguments of `start`."""

    name: Annotated[Name, Meta(description="Name for `wait` and `stop` in this working directory")]
    port: Annotated[
        Port | Literal["auto"] | UnsetType,
        Meta(description="TCP port, passed as variable PORT and output `port`; auto: a free port of this machine"),
    ] = UNSET
    ready: Annotated[
        Ready | UnsetType, Meta(description="Conditions to wait for; if omitted, the program only has to start")
    ] = UNSET
    timeout: Annotated[
        ext_sdk.Duration,
        Meta(
            description="Time until it must be ready; then the operation stops it and fails, unless `onTimeout` is ok"
        ),
    ] = ext_sdk.Duration.parse("20s")
    on_timeout: ext_sdk.OnTimeout = "fail"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.on_timeout == "ok" and self.ready is UNSET:
            raise ValueError("`onTimeout` requires `ready`: without it, this operation does not wait")


def start(args: Start, context: ext_sdk.Context) -> ext_sdk.Result:
    """Start a command or a script in the background, and wait until it is ready.

    It is stopped, with all processes that it started, by `stop` or when the extension exits, even if that is killed.
    The operation fails if it exits before it is ready. For work that takes longer than the host's time limit for a
    call, use `start`, then `wait`; for a process that may be ready later, `onTimeout: ok`, then `wait` with `for:
    ready`. Tasks that share a directory share process names unless each has a `scope`.
    """
    port = _free_port() if args.port == "auto" else None if args.port is UNSET else args.port
    chosen = frozenset({"port"} if args.port == "auto" else ())
    process = _process(args, context, port)
    with Searcher() as searcher:
        conditions = [] if process.ready is None else conditions_of(process.ready, process, context, searcher)
        processes = context.state(Processes)
        processes.refuse_running(args.name)
        _refuse_taken(process, conditions, context)
        keep = process.ready is not None and process.ready.exit is not UNSET
        processes.start(process, context.extension_state(Spawner), keep=keep)
        context.extension_state(RunningProcesses).add(process)
        try:
            await_ready(process, conditions, context, log=args.log)
        except BaseException as error:
            late = isinstance(error, NotReadyYet) and not context.deadline.stopped.is_set()
            if isinstance(error, NotReadyYet) and late and args.on_timeout == "ok":
                pending = ext_sdk.Result.failed(
                    f"{error.message}; it continues to run: `wait` for it with `for: ready`",
                    outputs=outputs_of(process),
                )
                pending.chosen = chosen
                return ext_sdk.conclude_wait(pending, args.on_timeout, timed_out=True, last_seen=error.missing)
            over = process.ended if process.kept else process.exited
            stopped = "" if over else "it was stopped"
            stop_process(process, process.command.grace, context.deadline)
            processes.remove(process)
            if isinstance(error, ext_sdk.OperationFailed):
                ends = output_ends(process, context)
                stopped += "; with `onTimeout: ok`, `wait` can wait for it longer" if late else ""
                text = "\n".join(
                    filter(
                        None, [error.error, stopped, process.command.advice, f"command: {process.command.label}", ends]
                    )
                )
                outputs = outputs_of(process) | {"done": False}
                raise ext_sdk.OperationFailed(error.message, error=text, outputs=outputs) from error
            raise
    ready = "" if process.ready is None else f", ready after {process.so_far().duration}"
    message = f"started {args.name}: {process.command.label} (pid {process.pid}){ready}"
    return ext_sdk.Result.ok(message, outputs=outputs_of(process) | {"done": True}, chosen=chosen)


def _process(args: Start, context: ext_sdk.Context, port: int | None) -> Process:
    """Return the process, and create its log file."""
    command = PreparedCommand(args, context, {} if port is None else {"PORT": str(port)})
    limit = size_in_bytes(context.config_as(ShellConfig).output_limit)
    try:
        log_path = context.artifact(f"{args.name}.log")
    except OSError as error:
        message = f"could not write {args.name + '.log'!r}"
        reason = f"{message}: {error.strerror or error}: {error.filename!r}; configure another directory as `artifacts`"
        raise ext_sdk.OperationFailed(message, error=reason) from error
    return Process(
        args.name,
        command,
        log=RedactingFile(log_path, context.secrets, limit),
        log_path=log_path,
        output_limit=limit,
        place=place_of(context),
        port=port,
        ready=None if args.ready is UNSET else args.ready,
    )


def _free_port() -> int:
    """Return a port that is free now; only a process that requests this very port can take it before the command."""
    for _ in range(MOST_TRIES):
        port = AUTO_PORTS[int.from_bytes(os.urandom(4)) % len(AUTO_PORTS)]
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a port in TIME_WAIT is free
            try:
                probe.bind(("", port))
            except OSError:
                continue
        return port
    raise ext_sdk.OperationFailed(
        "no free port", error=f"port: expected a free one, found none in {MOST_TRIES} of {AUTO_PORTS}"
    )


def _refuse_taken(process: Process, conditions: Sequence[Condition], context: ext_sdk.Context) -> None:
    """Raise OperationFailed if a port or file exists before the process, which would look ready at once."""
    own = [] if process.port is None else [PortOpen(process.port)]
    for condition in (*own, *conditions):
        if not (taken := condition.taken()):
            continue
        if isinstance(condition, FileExists):
            text = f"ready.file: expected {taken} not to exist before {process.name!r} starts; `remove` it first"
            raise ext_sdk.OperationFailed(f"{taken} already exists", error=text)
        assert isinstance(condition, PortOpen | HttpResponds)
        holder = context.extension_state(RunningProcesses).at_port(condition.port)
        owner = f"{holder.name!r} of {holder.place} (pid {holder.pid})" if holder else "another process of this machine"
        raise ext_sdk.OperationFailed(
            f"{taken} is taken",
            error=f"expected {taken} to be free before {process.name!r} starts, found that it accepts connections of "
            f"{owner}; stop that process, or use `port: auto`",
        )


PAUSE = 0.05  # seconds between two checks whether a process has ended, or the wait was stopped


class Wait(ext_sdk.Args):
    """Arguments of `wait`."""

    name: ProcessName
    for_: Annotated[
        Literal["exit", "ready"] | Ready,
        Meta(
            description="exit, the default: the end of the process; ready: the conditions of its `start`; or other "
            "conditions"
        ),
    ] = field(default="exit", name="for")
    timeout: Annotated[
        ext_sdk.Duration,
        Meta(description="Maximum wait. Work that takes longer than the host's time limit for a call needs several"),
    ] = ext_sdk.Duration.parse("25s")
    on_timeout: ext_sdk.OnTimeout = "fail"
    expect: Annotated[
        CommandExpectation | UnsetType,
        Meta(description="Expected exit and output; at its end exit code 0 unless `exitCode` or `signal` is given"),
    ] = UNSET
    capture: Annotated[dict[str, Capture], Meta(description="Parts of its output that become outputs, by name")] = (
        field(default_factory=dict)
    )


def wait(args: Wait, context: ext_sdk.Context) -> ext_sdk.Result:
    """Wait until a process that `start` started has ended, and check its result; or until it meets other conditions.

    Outputs are those of `run`, for all output so far. For work that takes longer than the host's time limit for a call
    (about 30 s), wait several times, with `onTimeout: ok` for all but the last.
    """
    check_names(args.capture, RESERVED)
    process, deadline = find_process(args.name, context), context.deadline
    expect = args.expect
    with Searcher() as searcher:
        if args.for_ == "exit":
            for _ in attempts_until(deadline, exponential(PAUSE, PAUSE), wait=process.wait, jitter=0.0):
                if process.exited if process.kept else process.ended:
                    if expect is UNSET:
                        expect = DEFAULT
                    ended = result_of(process, expect, args.capture, context, searcher).result()
                    return ext_sdk.conclude_wait(ended, args.on_timeout, timed_out=False, done=True)
            stopped = deadline.stopped.is_set()
            reason = "the wait ended because the extension is shutting down"
            if not stopped:
                reason = f"it is still running after {process.so_far().duration}"
                if args.on_timeout == "fail":
                    reason += "; wait again, or use `stop`; `onTimeout: ok` makes this wait a success"
            late = result_of(process, UNSET, {}, context, searcher, running=True, reason=reason).result()
            return ext_sdk.conclude_wait(late, args.on_timeout, timed_out=not stopped)
        ready = args.for_ if isinstance(args.for_, Ready) else process.ready
        if ready is None:
            text = f"{args.name!r} was started without `ready`; give the conditions here: {{port: 80}}"
            raise ext_sdk.InvalidArgs("for", text)
        try:
            await_ready(process, conditions_of(ready, process, context, searcher), context)
        except NotReadyYet as error:
            outputs = outputs_of(process) | {"running": not process.exited}
            late = ext_sdk.Result.failed(error.message, error=error.error, outputs=outputs)
            timed_out = not deadline.stopped.is_set()
            return ext_sdk.conclude_wait(late, args.on_timeout, timed_out=timed_out, last_seen=error.missing)
        running = not process.exited
        met = result_of(process, expect, args.capture, context, searcher, running=running, any_end=True).result()
        return ext_sdk.conclude_wait(met, args.on_timeout, timed_out=False, done=True)


class Stop(ext_sdk.Args):
    """Arguments of `stop`."""

    name: ProcessName
    signal: Annotated[str, Meta(description="Signal for the process and all processes that it started")] = "SIGTERM"
    timeout: Annotated[ext_sdk.Duration, Meta(description="Time until SIGKILL")] = ext_sdk.Duration.parse("5s")
    ignore_missing: Annotated[
        bool, Meta(description="Succeed if the process does not exist, unless `expect` or `capture` is given")
    ] = False
    expect: Annotated[
        CommandExpectation | UnsetType,
        Meta(description="Expected exit and output; any exit is accepted unless `exitCode` or `signal` is given"),
    ] = UNSET
    capture: Annotated[dict[str, Capture], Meta(description="Parts of its output that become outputs, by name")] = (
        field(default_factory=dict)
    )

    def __post_init__(self) -> None:
        signal_number(self.signal)


def stop(args: Stop, context: ext_sdk.Context) -> ext_sdk.Result:
    """Stop a process that `start` started, and all processes that it started; optionally check its exit and output.

    It gets SIGTERM, or another signal, and SIGKILL at the timeout. A process that has already ended is a success, too.
    """
    check_names(args.capture, RESERVED)
    processes = context.state(Processes)
    checked = args.expect is not UNSET or bool(args.capture)
    if args.ignore_missing and not checked and processes.get(args.name) is None:
        return ext_sdk.Result.ok(f"process {args.name!r} does not exist")
    process = find_process(args.name, context)
    stop_process(process, context.deadline.remaining(), context.deadline, signal_number(args.signal))
    running, reason = not process.ended, "" if process.ended else "it is still running after SIGKILL"
    with Searcher() as searcher:
        result = result_of(
            process, args.expect, args.capture, context, searcher, running=running, any_end=True, reason=reason
        )
    if process.ended:
        processes.remove(process)
    return result.result()
