"""Run an external program of an operation until it exits or the deadline passes."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import ext_sdk
from ext_sdk.files import os_errors
from ext_sdk.process import Command, CommandNotFound, Output, ProcessError, Spawner, start_piped

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_BYTES = 4 * 1024 * 1024  # kept of each output
TICK = 0.05  # seconds between two checks of the deadline
GRACE = 0.5  # seconds between SIGTERM and SIGKILL at the deadline
LAST_SECONDS = 0.3  # for the exit status, after SIGKILL


class Ran(NamedTuple):
    """Result of a program.

    Attributes:
        code: exit code; None if a signal ended the program.
        status: `exit code 1`, `killed by SIGTERM`.
        in_time: False if the program was stopped at the deadline.
        complete: False if a part of stdout was discarded.
    """

    code: int | None
    status: str
    stdout: str
    stderr: str
    in_time: bool
    complete: bool


class Running:
    """A program in the workdir. It may outlive a call, but not the extension.

    Args:
        env: variables in addition to those of the extension and of the task.
        advice: how to install the program.
        limit: maximum number of bytes of stdout that are kept.
        data: standard input; default: none.

    Raises:
        ext_sdk.RequirementNotMet: the program is not installed.
        ext_sdk.OperationFailed: it can't be started.
    """

    def __init__(
        self,
        argv: Sequence[str],
        env: Mapping[str, str],
        context: ext_sdk.Context,
        advice: str = "",
        *,
        limit: int = MOST_BYTES,
        data: bytes | None = None,
    ) -> None:
        self._stdout, self._stderr = Output(limit), Output(MOST_BYTES)
        with ExitStack() as stack, os_errors(f"run {argv[0]} in", str(context.workdir)):
            directory = os.open(context.workdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, directory)
            command = Command(argv, env={**os.environ, **context.env, **env}, directory=directory, grace=GRACE)
            sinks = self._stdout.write, self._stderr.write
            try:
                self._child, self._pump = start_piped(context.extension_state(Spawner), command, *sinks, data=data)
            except CommandNotFound as error:
                raise ext_sdk.RequirementNotMet(error.name, advice) from error
            except (ProcessError, ValueError) as error:
                raise ext_sdk.OperationFailed(f"{argv[0]} could not be started", error=str(error)) from error

    def wait(self, deadline: ext_sdk.Deadline) -> bool:
        """Return True if the program ends before the deadline."""
        return self._pump.run(lambda: deadline.expired, TICK)

    def result(self) -> Ran:
        """Return the result; if the program still runs, its process tree is killed."""
        in_time = self._pump.done
        try:
            if not in_time:
                self._child.stop(grace=GRACE)
                last = ext_sdk.Deadline(GRACE + LAST_SECONDS)
                self._pump.run(lambda: last.expired, TICK)
        finally:
            self._pump.close()
            self._child.close()
        status = self._child.status
        return Ran(
            None if status is None else status.code,
            str(status or "unknown exit status"),
            self._stdout.text,
            self._stderr.text,
            in_time,
            complete=not self._stdout.lost,
        )


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    context: ext_sdk.Context,
    advice: str = "",
    *,
    limit: int = MOST_BYTES,
) -> Ran:
    """Run a program until it exits; at the deadline of the call, its process tree is killed. See Running."""
    running = Running(argv, env, context, advice, limit=limit)
    try:
        running.wait(context.deadline)
    finally:
        ran = running.result()
    return ran
