"""Operation `stop`: stop a background process."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.capture import check_names
from ext_sdk.expect import Searcher
from ext_sdk.process import CommandExpectation, signal_number
from ext_shell.background import Processes, ProcessName, find_process, result_of, stop_process
from ext_shell.result import RESERVED, Capture


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
