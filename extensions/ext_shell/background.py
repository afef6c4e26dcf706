"""What `start`, `wait` and `stop` share."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

import ext_sdk
from ext_sdk.hints import hint

from .arguments import Name
from .attempt import bounded_grace
from .capture import capture_all
from .expectations import check_attempt, without_texts
from .outcome import Outcome
from .places import place_of
from .present import show
from .processes import Processes, Running

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_sdk.expect import Searcher

    from .arguments import Capture
    from .expectations import OutputExpectation
    from .processes import Process

AFTER_KILL = 2.0  # seconds after SIGKILL that an answer waits for what does not go
TICK = 0.05  # seconds between two looks at whether a call has to stop

ProcessName = Annotated[Name, Meta(description="Name of a process that `start` of this workdir started")]


def find(name: str, context: ext_sdk.Context) -> Process:
    """The process of this name and workdir. Raises OperationFailed, with the names that there are."""
    processes = context.state(Processes)
    process = processes.get(name)
    if process is not None:
        return process
    told = hint(name, processes.names(), none="none was started, or all were stopped")
    if other := context.extension_state(Running).named(name):
        told += f"; a process of this name is of {other.place}"
    text = f"name: expected a process that `start` started in {place_of(context)}, found {name!r}; {told}"
    raise ext_sdk.OperationFailed(f"there is no process {name!r}", error=text)


def end(process: Process, grace: float, deadline: ext_sdk.Deadline, number: int = signal.SIGTERM) -> None:
    """Send a signal to a whole process, SIGKILL after `grace` seconds at most, and wait for its end."""
    if process.ended:
        return
    grace = bounded_grace(grace, deadline)
    process.stop(number, grace)
    process.wait(min(grace + AFTER_KILL, deadline.remaining_for_result()))


def finish(
    process: Process,
    expect: OutputExpectation | None,
    captures: Mapping[str, Capture],
    context: ext_sdk.Context,
    searcher: Searcher,
    *,
    running: bool = False,
    any_end: bool = False,
    reason: str = "",
) -> Outcome:
    """Check what a process has done so far.

    Args:
        process: that process.
        expect: what must hold; None for nothing.
        captures: from its output.
        context: of the call.
        searcher: for regular expressions.
        running: it has not ended.
        any_end: see check_attempt.
        reason: why this is a failure whatever holds; "" if it is none.
    """
    attempt = process.attempt()
    streams = {"stdout": attempt.stdout.text, "stderr": attempt.stderr.text} if captures else {}
    captured = capture_all(captures, streams, context.secrets, searcher)
    checks = captured.failures
    if expect is not None:
        checks = check_attempt(expect, attempt, context, searcher, running=running, any_end=any_end) + checks
    return Outcome(
        f"{process.name}: {process.prepared.label}",
        attempt,
        without_texts(checks, captured.withheld),
        captured,
        limits=process.prepared.limits,
        context=context,
        extra=outputs_of(process) | {"running": running},
        reason=reason,
        running=running,
    )


def outputs_of(process: Process) -> dict[str, str | int | bool]:
    """The outputs that tell a process from others."""
    outputs: dict[str, str | int | bool] = {"name": process.name, "pid": process.pid, "logFile": str(process.log_path)}
    return outputs if process.port is None else outputs | {"port": process.port}


def excerpt(process: Process, context: ext_sdk.Context) -> str:
    """The ends of its outputs, for the text of a failure."""
    attempt = process.attempt()
    shown = {name: show(output, name, context).excerpt for name, output in attempt.outputs.items()}
    parts = [f"{name} ends with: {text}" for name, text in shown.items() if text]
    return "; ".join(parts) or "it wrote nothing"
