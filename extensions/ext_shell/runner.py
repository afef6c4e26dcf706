"""Run of one command to its end, or to its deadline, with its output as log notifications."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

from ext_sdk import Duration
from ext_sdk.core.text import cut
from ext_sdk.process import LineSplitter, Output

from .config import ShellConfig
from .rlimits import size_in_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    import ext_sdk
    from ext_sdk.process import ExitStatus, Spawner

    from .command import PreparedCommand


TICK = 0.05  # seconds between two checks of the deadline
KILL_WAIT = 0.45  # seconds to wait for the end of processes after SIGKILL
RESERVE = 0.2  # seconds between the last SIGKILL and the time from which on the result of the call is lost
STOP_GRACE = 0.5  # maximum seconds between SIGTERM and SIGKILL when the extension itself shuts down
LOGGED_AT_ONCE = 100  # lines; so the log of a short run is complete, and the same each time
LOG_INTERVAL = 1.0  # seconds between two further lines
LOGGED_LENGTH = 2000  # characters of a line


class LineLog:
    """Log of the lines of an output: the first hundred, then one per second, and the number of omitted lines.

    Args:
        secrets: redacted before a line is cut.
        stream: stdout or stderr; None logs nothing.
    """

    def __init__(self, log: ext_sdk.Log, secrets: ext_sdk.Secrets, stream: str | None) -> None:
        self._log = log
        self._secrets = secrets
        self._stream = stream
        self._lines = LineSplitter()
        self._count = 0
        self._next = 0.0
        self._skipped = 0

    def feed(self, data: bytes) -> None:
        """Log the lines that further data completes."""
        if self._stream and self._omits_next():
            self._skipped += self._lines.skip(data)
        elif self._stream:
            self._send(self._lines.feed(data))

    def finish(self) -> None:
        """Log the last line, if it has no end, and the number of omitted lines."""
        if self._stream:
            self._send(self._lines.finish())
        if self._skipped:
            self._log.info(f"{self._skipped} lines of {self._stream} were not logged", stream=self._stream)

    def _omits_next(self) -> bool:
        """Return True if the next line is omitted."""
        return self._count >= LOGGED_AT_ONCE and time.monotonic() < self._next

    def _send(self, lines: list[str]) -> None:
        """Log complete lines, and count those to omit."""
        for line in lines:
            if self._omits_next():
                self._skipped += 1
                continue
            self._count += 1
            self._next = time.monotonic() + LOG_INTERVAL
            text = self._secrets.redact(line)
            self._log.info(cut(text, LOGGED_LENGTH), stream=self._stream)


class CommandRun(NamedTuple):
    """Result of one run of a command.

    Attributes:
        status: exit status; None if it is unknown.
        timed_out: True if it was stopped at the deadline.
        stopped: True if it was stopped because the extension shuts down.
        left: names of the processes that it left behind, and that were stopped; "" if there were none.
        stuck: names of the processes that still exist after SIGKILL; "" if there are none.
    """

    status: ExitStatus | None
    stdout: Output
    stderr: Output
    seconds: float
    timed_out: bool = False
    stopped: bool = False
    left: str = ""
    stuck: str = ""

    @property
    def duration(self) -> Duration:
        """Return the time from start to end, in whole milliseconds, at least one."""
        return Duration(max(1, round(self.seconds * 1000)) * 1_000_000)

    @property
    def outputs(self) -> dict[str, Output]:
        """Return standard output and standard error by name."""
        return {"stdout": self.stdout, "stderr": self.stderr}


def run_command(
    command: PreparedCommand, spawner: Spawner, context: ext_sdk.Context, deadline: ext_sdk.Deadline, *, log: bool
) -> CommandRun:
    """Run a command until it exits, or stop all its processes at the deadline.

    Args:
        log: whether to send lines of its output as log notifications.

    Raises:
        Those of PreparedCommand.start.
    """
    limit = size_in_bytes(context.config_as(ShellConfig).output_limit)
    outputs = {name: Output(limit) for name in ("stdout", "stderr")}
    logs = {name: LineLog(context.log, context.secrets, name if log else None) for name in outputs}

    def sink(name: str) -> Callable[[bytes], None]:
        def receive(data: bytes) -> None:
            outputs[name].write(data)
            logs[name].feed(data)

        return receive

    child, pump = command.start(spawner, sink("stdout"), sink("stderr"))
    began = time.monotonic()
    ended = by_shutdown = False
    try:
        ended = pump.run(lambda: deadline.expired, TICK)
        if not ended:
            by_shutdown = deadline.stopped.is_set()
            pump.step(0)  # reads an exit that was reported just before
            ended = child.status is not None
            grace = min(command.grace, STOP_GRACE) if by_shutdown else bounded_grace(command.grace, deadline)
            child.stop(grace=grace)
            give_up = time.monotonic() + grace + KILL_WAIT
            pump.run(lambda: time.monotonic() > give_up, TICK)
    finally:
        pump.close()
        child.close()
    for line_log in logs.values():
        line_log.finish()
    return CommandRun(
        status=child.status,
        **outputs,
        seconds=time.monotonic() - began,
        timed_out=not ended and not by_shutdown,
        stopped=not ended and by_shutdown,
        left=child.left,
        stuck="" if child.gone else child.stuck or "processes of its tree",
    )


def bounded_grace(grace: float, deadline: ext_sdk.Deadline) -> float:
    """Return the seconds between SIGTERM and SIGKILL, so that there is time left to return a result."""
    return max(0.0, min(grace, deadline.remaining_for_result() - RESERVE))
