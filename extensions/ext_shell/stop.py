"""`stop`: the end of a process in the background."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk.expect import Searcher

from .background import ProcessName, end, find, finish
from .expectations import EndExpectation, signal_number
from .processes import Processes


class Stop(ext_sdk.Args):
    """What to stop, and how."""

    name: ProcessName
    signal: Annotated[str, Meta(description="For the process and all that it started")] = "SIGTERM"
    timeout: Annotated[ext_sdk.Duration, Meta(description="Until SIGKILL")] = ext_sdk.Duration.parse("5s")
    ignore_missing: Annotated[bool, Meta(description="A success if there is no such process")] = False
    expect: Annotated[
        EndExpectation | UnsetType, Meta(description="How it must have ended; any end is fine if left out")
    ] = UNSET

    def __post_init__(self) -> None:
        signal_number(self.signal)


def stop(args: Stop, context: ext_sdk.Context) -> ext_sdk.Result:
    """Stop a process that `start` started, and all that it started; check, on request, how it ended and what it wrote.

    It gets SIGTERM, or another signal, and SIGKILL at the timeout. One that has ended before is a success too.
    """
    processes = context.state(Processes)
    if args.ignore_missing and processes.get(args.name) is None:
        return ext_sdk.Result.ok(f"there is no process {args.name!r} to stop")
    process = find(args.name, context)
    end(process, context.deadline.remaining(), signal_number(args.signal))
    with Searcher() as searcher:
        expect = None if args.expect is UNSET else args.expect
        outcome = finish(process, expect, {}, context, searcher, running=not process.ended)
    if process.ended:
        processes.remove(process)
    return outcome.result()
