"""Run of one command to its end, or to its deadline, with its output as log notifications."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ext_sdk.core.text import cut
from ext_sdk.process import LineSplitter, Output, run_started

from .config import ShellConfig
from .rlimits import size_in_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    import ext_sdk
    from ext_sdk.process import CommandRun, Spawner

    from .command import PreparedCommand


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
    run = run_started(child, pump, outputs, grace=command.grace, deadline=deadline)
    for line_log in logs.values():
        line_log.finish()
    return run
