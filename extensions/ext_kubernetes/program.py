"""Run a program that an operation needs, to its end or to that of its time."""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import ext_sdk
from ext_sdk.files import os_errors
from ext_sdk.process import Command, CommandNotFound, Output, ProcessError, Pump, Spawner

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_BYTES = 4 * 1024 * 1024  # of each output that are kept
TICK = 0.05  # seconds between two looks at whether the call has to stop
GRACE = 0.5  # seconds between SIGTERM and SIGKILL at the deadline
PATIENCE = 0.3  # seconds after SIGKILL that an answer waits


class Ran(NamedTuple):
    """What a program did.

    Attributes:
        code: its exit code; None where a signal ended it.
        how: `exit code 1`, `killed by SIGTERM`.
        stdout, stderr: what it wrote.
        in_time: it ended by itself.
        whole: all of stdout was kept.
    """

    code: int | None
    how: str
    stdout: str
    stderr: str
    in_time: bool
    whole: bool


def run(
    argv: Sequence[str],
    env: Mapping[str, str],
    context: ext_sdk.Context,
    advice: str = "",
    *,
    limit: int = MOST_BYTES,
) -> Ran:
    """Run a program in the workdir, with nothing to read; at the deadline, its whole tree is ended.

    Args:
        argv: its name and its arguments.
        env: variables beside those of the extension and of the task.
        context: of the call.
        advice: how to get the program.
        limit: bytes of stdout that are kept.

    Raises:
        ext_sdk.RequirementNotMet: there is no such program.
        ext_sdk.OperationFailed: it can't be started.
    """
    outputs = {"stdout": Output(limit), "stderr": Output(MOST_BYTES)}
    with ExitStack() as ours, os_errors(f"run {argv[0]} in", str(context.workdir)):
        directory = _closing(ours, os.open(context.workdir, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        stdin = _closing(ours, os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
        readers, writers = zip(os.pipe(), os.pipe(), strict=True)
        for descriptor in writers:
            _closing(ours, descriptor)
        theirs = ours.enter_context(ExitStack())  # closed here, unless the pump takes them
        for descriptor in readers:
            _closing(theirs, descriptor)
        variables = {**os.environ, **context.env, **env}
        command = Command(argv, env=variables, directory=directory, grace=GRACE)
        try:
            child = context.extension_state(Spawner).spawn(command, stdin=stdin, stdout=writers[0], stderr=writers[1])
        except CommandNotFound as error:
            raise ext_sdk.RequirementNotMet(error.name, advice) from error
        except (ProcessError, ValueError) as error:
            raise ext_sdk.OperationFailed(f"{argv[0]} could not be started", error=str(error)) from error
        theirs.pop_all()
    pump = Pump(child, {readers[0]: outputs["stdout"].write, readers[1]: outputs["stderr"].write})
    try:
        in_time = pump.run(lambda: context.deadline.expired, TICK)
        if not in_time:
            child.stop(grace=GRACE)
            last = ext_sdk.Deadline(GRACE + PATIENCE)
            pump.run(lambda: last.expired, TICK)
    finally:
        pump.close()
        child.close()
    code = None if child.status is None else child.status.code
    how, stdout = str(child.status or "no known end"), outputs["stdout"]
    return Ran(code, how, stdout.text, outputs["stderr"].text, in_time, whole=not stdout.lost)


def _closing(stack: ExitStack, descriptor: int) -> int:
    stack.callback(os.close, descriptor)
    return descriptor
