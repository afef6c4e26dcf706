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


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    context: ext_sdk.Context,
    advice: str = "",
    *,
    limit: int = MOST_BYTES,
) -> Ran:
    """Run a program in the workdir, without input; at the deadline, its process tree is killed.

    Args:
        env: variables in addition to those of the extension and of the task.
        advice: how to install the program.
        limit: maximum number of bytes of stdout that are kept.

    Raises:
        ext_sdk.RequirementNotMet: the program is not installed.
        ext_sdk.OperationFailed: it can't be started.
    """
    outputs = {"stdout": Output(limit), "stderr": Output(MOST_BYTES)}
    with ExitStack() as stack, os_errors(f"run {argv[0]} in", str(context.workdir)):
        directory = os.open(context.workdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        stack.callback(os.close, directory)
        command = Command(argv, env={**os.environ, **context.env, **env}, directory=directory, grace=GRACE)
        sinks = outputs["stdout"].write, outputs["stderr"].write
        try:
            child, pump = start_piped(context.extension_state(Spawner), command, *sinks)
        except CommandNotFound as error:
            raise ext_sdk.RequirementNotMet(error.name, advice) from error
        except (ProcessError, ValueError) as error:
            raise ext_sdk.OperationFailed(f"{argv[0]} could not be started", error=str(error)) from error
    try:
        in_time = pump.run(lambda: context.deadline.expired, TICK)
        if not in_time:
            child.stop(grace=GRACE)
            last = ext_sdk.Deadline(GRACE + LAST_SECONDS)
            pump.run(lambda: last.expired, TICK)
    finally:
        pump.close()
        child.close()
    code = None if child.status is None else child.status.code
    status, stdout = str(child.status or "unknown exit status"), outputs["stdout"]
    return Ran(code, status, stdout.text, outputs["stderr"].text, in_time, complete=not stdout.lost)
