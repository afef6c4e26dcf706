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
from ext_shell.args import Name, OutputArgs
from ext_shell.background import Process, Processes, Running, end, excerpt, outputs_of
from ext_shell.command import Prepared, place_of
from ext_shell.config import config_of
from ext_shell.readiness import FileExists, HttpResponds, Port, PortOpen, Ready, await_ready, conditions_of
from ext_shell.rlimits import size_in_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_shell.readiness import Condition


# Where `auto` looks for a port. Systems give out those from 32768 on to whoever asks for any (IANA: from 49152 on), so
# one from there could be taken before the process opens it; from 30000 on Kubernetes has its node ports.
AUTO_PORTS = range(20_000, 30_000)
MOST_TRIES = 100


class Start(OutputArgs):
    """What to start in the background, and when it is ready."""

    name: Annotated[Name, Meta(description="By which `wait` and `stop` of this workdir find it")]
    port: Annotated[
        Port | Literal["auto"] | UnsetType,
        Meta(description="A TCP port for it, as variable PORT and output `port`; auto: a free one of this machine"),
    ] = UNSET
    ready: Annotated[
        Ready | UnsetType, Meta(description="Wait until all of this holds; if left out, until the program runs")
    ] = UNSET
    timeout: Annotated[ext_sdk.Duration, Meta(description="Until it must be ready; then it is stopped")] = (
        ext_sdk.Duration.parse("20s")
    )


def start(args: Start, context: ext_sdk.Context) -> ext_sdk.Result:
    """Start a command, or a script, that goes on in the background, and wait until it is ready.

    It is stopped, with all that it started, by `stop` and when the extension ends, however that ends. It may not end
    before it is ready. This is also the way for work that takes longer than a call may: `start`, then `wait`. Tasks
    that share a folder share the names of processes, unless each gives a `scope`.
    """
    port = _chosen(args.port)
    process = _process(args, context, port)
    with Searcher() as searcher:
        conditions = [] if process.ready is None else conditions_of(process.ready, process, context, searcher)
        processes = context.state(Processes)
        processes.refuse_running(args.name)
        _refuse_taken(process, conditions, context)
        keep = process.ready is not None and process.ready.exit is not UNSET
        processes.start(process, context.extension_state(Spawner), keep=keep)
        context.extension_state(Running).add(process)
        try:
            await_ready(process, conditions, context, log=args.log)
        except BaseException as error:
            end(process, process.prepared.grace, context.deadline)
            processes.remove(process)
            if isinstance(error, ext_sdk.OperationFailed):
                raise _explained(error, process, context) from error
            raise
    ready = "" if process.ready is None else f", ready after {process.attempt().duration}"
    message = f"started {args.name}: {process.prepared.label} (pid {process.pid}){ready}"
    return ext_sdk.Result.ok(message, outputs=outputs_of(process))


def _process(args: Start, context: ext_sdk.Context, port: int | None) -> Process:
    prepared = Prepared(args, context, {} if port is None else {"PORT": str(port)})
    limit = size_in_bytes(config_of(context).output_limit)
    try:
        log_path = context.artifact(f"{args.name}.log")
    except OSError as error:
        message = f"could not write {args.name + '.log'!r}"
        reason = f"{message}: {error.strerror or error}: {error.filename!r}; configure another directory as `artifacts`"
        raise ext_sdk.OperationFailed(message, error=reason) from error
    return Process(
        args.name,
        prepared,
        log=RedactingFile(log_path, context.secrets, limit),
        log_path=log_path,
        output_limit=limit,
        place=place_of(context),
        port=port,
        ready=None if args.ready is UNSET else args.ready,
    )


def _chosen(port: int | str | UnsetType) -> int | None:
    if port is UNSET:
        return None
    return port if isinstance(port, int) else _free_port()


def _free_port() -> int:
    """A port that is free now; others may take it before the process does, but only who wants this very one."""
    for _ in range(MOST_TRIES):
        port = AUTO_PORTS[int.from_bytes(os.urandom(4)) % len(AUTO_PORTS)]
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # one that was in use a moment ago will do
            try:
                probe.bind(("", port))
            except OSError:
                continue
        return port
    raise ext_sdk.OperationFailed(
        "no port is free", error=f"port: expected a free one, found none in {MOST_TRIES} of {AUTO_PORTS}"
    )


def _refuse_taken(process: Process, conditions: Sequence[Condition], context: ext_sdk.Context) -> None:
    """Raise OperationFailed if a port or file is there before the process: another one would be taken for it."""
    own = [] if process.port is None else [PortOpen(process.port)]
    for condition in (*own, *conditions):
        if not (taken := condition.taken()):
            continue
        if isinstance(condition, FileExists):
            text = f"ready.file: expected {taken} not to exist before {process.name!r} starts; `remove` it first"
            raise ext_sdk.OperationFailed(f"{taken} exists already", error=text)
        assert isinstance(condition, PortOpen | HttpResponds)
        holder = context.extension_state(Running).at_port(condition.port)
        has = f"{holder.name!r} of {holder.place} (pid {holder.pid})" if holder else "another process of this machine"
        raise ext_sdk.OperationFailed(
            f"{taken} is taken",
            error=f"expected {taken} to be free before {process.name!r} starts, found that it takes connections: "
            f"{has} has it; stop that one, or use `port: auto`",
        )


def _explained(failure: ext_sdk.OperationFailed, process: Process, context: ext_sdk.Context) -> ext_sdk.OperationFailed:
    shown = excerpt(process, context)
    error = f"{failure.error}; it was stopped; command: {process.prepared.label}; {shown}"
    return ext_sdk.OperationFailed(failure.message, error=error, outputs=outputs_of(process))
