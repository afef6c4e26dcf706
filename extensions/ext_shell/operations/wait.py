"""Operation `wait`: wait for a background process to be ready or to end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.capture import check_names
from ext_sdk.expect import Searcher
from ext_shell.background import TICK, ProcessName, find, finish
from ext_shell.capture import RESERVED, Capture
from ext_shell.expectations import DEFAULT, OutputExpectation
from ext_shell.readiness import Ready, await_ready, conditions_of

if TYPE_CHECKING:
    from ext_shell.background import Process


class Wait(ext_sdk.Args):
    """What to wait for."""

    name: ProcessName
    for_: Annotated[
        Literal["exit", "ready"] | Ready,
        Meta(description="exit: its end, the default; ready: what its `start` waited for; or other conditions"),
    ] = field(default="exit", name="for")
    timeout: Annotated[
        ext_sdk.Duration,
        Meta(description="How long. Work that takes longer than the host's time for a call takes several waits"),
    ] = ext_sdk.Duration.parse("25s")
    allow_running: Annotated[
        bool,
        Meta(
            description="A success, with output `running`, if it still runs at the timeout and `expect` holds of its "
            "output so far: for all waits but the last"
        ),
    ] = False
    expect: Annotated[
        OutputExpectation | UnsetType,
        Meta(description="What must hold; of its end: exit code 0 unless `exitCode` or `signal` is given"),
    ] = UNSET
    capture: Annotated[dict[str, Capture], Meta(description="Parts of its output that become outputs, by name")] = (
        field(default_factory=dict)
    )


def wait(args: Wait, context: ext_sdk.Context) -> ext_sdk.Result:
    """Wait for the end of a process that `start` started, and check what it did; or until it is ready for something.

    Outputs are those of `run`, of all that it wrote so far. For work that takes longer than the host's time for a call
    (some 30 s), wait several times, with `allowRunning` for all but the last.
    """
    check_names(args.capture, RESERVED)
    process = find(args.name, context)
    with Searcher() as searcher:
        if args.for_ != "exit":
            return _until_ready(args, process, context, searcher)
        if not _until_end(process, context):
            return _still_running(args, process, context, searcher)
        expect = DEFAULT if args.expect is UNSET else args.expect
        return finish(process, expect, args.capture, context, searcher).result()


def _until_end(process: Process, context: ext_sdk.Context) -> bool:
    while not process.exited if process.kept else not process.ended:
        if context.deadline.expired:
            return False
        process.wait(min(TICK, context.deadline.remaining()))
    return True


def _until_ready(args: Wait, process: Process, context: ext_sdk.Context, searcher: Searcher) -> ext_sdk.Result:
    ready = args.for_ if isinstance(args.for_, Ready) else process.ready
    if ready is None:
        text = (
            f"{args.name!r} was started without `ready`, so there is nothing to wait for; say here what: {{port: 80}}"
        )
        raise ext_sdk.InvalidArgs("for", text)
    await_ready(process, conditions_of(ready, process, context, searcher), context)
    expect = None if args.expect is UNSET else args.expect
    running = not process.exited
    return finish(process, expect, args.capture, context, searcher, running=running, any_end=True).result()


def _still_running(args: Wait, process: Process, context: ext_sdk.Context, searcher: Searcher) -> ext_sdk.Result:
    reason = (
        ""
        if args.allow_running
        else (
            f"it still runs after {process.attempt().duration}; wait again, or use `stop`; "
            "allowRunning makes this wait a success"
        )
    )
    if context.deadline.stopped.is_set():
        reason = "the wait ended because the extension was told to end"
    if reason:
        return finish(process, None, {}, context, searcher, running=True, reason=reason).result()
    expect = None if args.expect is UNSET else args.expect
    return finish(process, expect, args.capture, context, searcher, running=True, any_end=True).result()
