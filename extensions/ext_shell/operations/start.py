"""Operation `start`: start a background process and wait until it is ready."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk.core.redaction.streams import RedactingFile
from ext_sdk.expect import Searcher
from ext_sdk.process import Spawner
from ext_shell.args import Name, OutputArgs, Port, Ready
from ext_shell.background import Process, Processes, RunningProcesses, output_ends, outputs_of, stop_process
from ext_shell.command import PreparedCommand, place_of
from ext_shell.config import ShellConfig
from ext_shell.readiness import FileExists, HttpResponds, NotReadyYet, PortOpen, await_ready, conditions_of
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
