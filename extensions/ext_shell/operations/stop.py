"""Operation `stop`: end a background process."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.capture import check_names
from ext_sdk.expect import Searcher
from ext_shell.background import Processes, ProcessName, end, find, finish
from ext_shell.capture import RESERVED, Capture
from ext_shell.expectations import OutputExpectation, signal_number


class Stop(ext_sdk.Args):
    """What to stop, and how."""

    name: ProcessName
    signal: Annotated[str, Meta(description="For the process and all that it started")] = "SIGTERM"
    timeout: Annotated[ext_sdk.Duration, Meta(description="Until SIGKILL")] = ext_sdk.Duration.parse("5s")
    ignore_missing: Annotated[
        bool, Meta(description="A success if the process is missing, unless `expect` or `capture` is given")
    ] = False
    expect: Annotated[
        OutputExpectation | UnsetType,
        Meta(description="What must hold; any end is fine unless `exitCode` or `signal` is given"),
    ] = UNSET
    capture: Annotated[dict[str, Capture], Meta(description="Parts of its output that become outputs, by name")] = (
        field(default_factory=dict)
    )

    def __post_init__(self) -> None:
        signal_number(self.signal)


def stop(args: Stop, context: ext_sdk.Context) -> ext_sdk.Result:
    """Stop a process that `start` started, and all that it started; check, on request, how it ended and what it wrote.

    It gets SIGTERM, or another signal, and SIGKILL at the timeout. One that has ended before is a success too.
    """
    check_names(args.capture, RESERVED)
    processes = context.state(Processes)
    checked = args.expect is not UNSET or bool(args.capture)
    if args.ignore_missing and not checked and processes.get(args.name) is None:
        return ext_sdk.Result.ok(f"there is no process {args.name!r} to stop")
    process = find(args.name, context)
    end(process, context.deadline.remaining(), context.deadline, signal_number(args.signal))
    with Searcher() as searcher:
        expect = None if args.expect is UNSET else args.expect
        reason = "" if process.ended else "it did not end in spite of SIGKILL"
        outcome = finish(
            process,
            expect,
            args.capture,
            context,
            searcher,
            running=not process.ended,
            any_end=True,
            reason=reason,
        )
    if process.ended:
        processes.remove(process)
    return outcome.result()
