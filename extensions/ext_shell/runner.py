"""One run of a command to its end, under a supervisor, with its deadline."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ext_sdk import Duration
from ext_sdk.process import Output

from .config import config_of
from .output_excerpt import LineLog
from .rlimits import size_in_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    import ext_sdk
    from ext_sdk.process import Child, ExitStatus, Pump, Spawner

    from .command import Prepared


TICK = 0.05  # seconds between two looks at whether the call has to stop
PATIENCE = 0.45  # seconds after SIGKILL that an answer waits
RESERVE = 0.2  # seconds between the last SIGKILL and the moment from which the result of the call is lost
STOP_GRACE = 0.5  # seconds, at most, between SIGTERM and SIGKILL when the extension itself has to end


class CommandRun:
    """What a command did.

    Attributes:
        status: how it ended; None where nobody knows.
        stdout: what it wrote.
        stderr: what it wrote there.
        duration: from start to end, in whole milliseconds, at least one.
        timed_out: it was stopped because its time was up.
        stopped: it was stopped because the extension ends.
        left: names of processes that it left behind, which were stopped; "" for none.
        stuck: names of processes that are still there after SIGKILL; "" for none.
    """

    __slots__ = ("duration", "left", "status", "stderr", "stdout", "stopped", "stuck", "timed_out")

    def __init__(
        self,
        *,
        status: ExitStatus | None,
        stdout: Output,
        stderr: Output,
        seconds: float,
        timed_out: bool = False,
        stopped: bool = False,
        left: str = "",
        stuck: str = "",
    ) -> None:
        self.status = status
        self.stdout = stdout
        self.stderr = stderr
        self.duration = Duration(max(1, round(seconds * 1000)) * 1_000_000)
        self.timed_out = timed_out
        self.stopped = stopped
        self.left = left
        self.stuck = stuck

    @property
    def outputs(self) -> dict[str, Output]:
        """Both, by name."""
        return {"stdout": self.stdout, "stderr": self.stderr}


def run_command(
    prepared: Prepared, spawner: Spawner, context: ext_sdk.Context, deadline: ext_sdk.Deadline, *, log: bool
) -> CommandRun:
    """Run a command until it ends, or stop its whole tree at the deadline.

    Args:
        prepared: what to run.
        spawner: supervises it.
        context: of the call.
        deadline: of this attempt.
        log: whether to log lines of its output.

    Raises:
        As Prepared.start.
    """
    limit = size_in_bytes(config_of(context).output_limit)
    outputs = {name: Output(limit) for name in ("stdout", "stderr")}
    logs = {name: LineLog(context.log, context.secrets, name if log else None) for name in outputs}

    def sink(name: str) -> Callable[[bytes], None]:
        def take(data: bytes) -> None:
            outputs[name].write(data)
            logs[name].feed(data)

        return take

    child, pump = prepared.start(spawner, sink("stdout"), sink("stderr"))
    begun = time.monotonic()
    try:
        stopped_by = _run(child, pump, prepared.grace, deadline)
    finally:
        pump.close()
        child.close()
    for each in logs.values():
        each.finish()
    return CommandRun(
        status=child.status,
        **outputs,
        seconds=time.monotonic() - begun,
        timed_out=stopped_by == "deadline",
        stopped=stopped_by == "end",
        left=child.left,
        stuck="" if child.gone else child.stuck or "processes of its tree",
    )


def _run(child: Child, pump: Pump, grace: float, deadline: ext_sdk.Deadline) -> str:
    """Run to the end; return what stopped it: "", "deadline" or "end" (of the extension)."""
    if pump.run(lambda: deadline.expired, TICK):
        return ""
    stopped_by = "end" if deadline.stopped.is_set() else "deadline"
    pump.step(0)  # takes in the end that may have been reported meanwhile
    ended = child.status is not None
    grace = min(grace, STOP_GRACE) if stopped_by == "end" else bounded_grace(grace, deadline)
    child.stop(grace=grace)
    give_up = time.monotonic() + grace + PATIENCE
    pump.run(lambda: time.monotonic() > give_up, TICK)
    return "" if ended else stopped_by


def bounded_grace(grace: float, deadline: ext_sdk.Deadline) -> float:
    """Return the seconds between SIGTERM and SIGKILL, no more than leave time to return a result."""
    return max(0.0, min(grace, deadline.remaining_for_result() - RESERVE))
