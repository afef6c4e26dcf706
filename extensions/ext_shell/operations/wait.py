"""Operation `wait`: wait until a background process is ready or has ended."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk.capture import check_names
from ext_sdk.expect import Searcher
from ext_sdk.polling import attempts_until, exponential
from ext_sdk.process import CommandExpectation  # noqa: TC001 - msgspec reads it
from ext_shell.args import Ready
from ext_shell.background import ProcessName, find_process, outputs_of, result_of
from ext_shell.expectations import DEFAULT
from ext_shell.readiness import NotReadyYet, await_ready, conditions_of
from ext_shell.result import RESERVED, Capture

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
