"""Child process under supervision: at the end, all processes that it started are stopped."""

from __future__ import annotations

import os
import signal
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING

from ext_recorder.errors import RecorderError
from ext_sdk.core.process.child import ProcessError
from ext_sdk.core.process.spawner import Command

from .channel import ByteChannel

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path
    from typing import Self

    from ext_sdk.core.process.spawner import Spawner

STOP_GRACE_S = 2.0  # between SIGTERM and SIGKILL
GONE_S = 10.0  # maximum wait for the end of killed processes


class SupervisedChild:
    """Child on pipes. A context manager, which stops it.

    Args:
        environment: all of its variables.
        stdout, stderr: descriptors for its output; None for pipes.

    Attributes:
        channel: standard input and output; without output if `stdout` was given.
        errors: standard error; without output if `stderr` was given.

    Raises:
        RecorderError: the child cannot be started.
    """

    def __init__(
        self,
        spawner: Spawner,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: Path | str,
        *,
        stdout: int | None = None,
        stderr: int | None = None,
    ) -> None:
        with ExitStack() as ours, ExitStack() as theirs:
            directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            theirs.callback(os.close, directory)
            stdin, sink = os.pipe()
            source, out = os.pipe() if stdout is None else (-1, stdout)
            errors, err = os.pipe() if stderr is None else (-1, stderr)
            for descriptor in {stdin, out, err} - {stdout, stderr}:
                theirs.callback(os.close, descriptor)
            for descriptor in {source, errors} - {-1}:
                ours.callback(os.close, descriptor)
            self.channel = ByteChannel(source, sink, partial(os.close, sink))
            ours.callback(self.channel.end)
            self.errors = ByteChannel(errors)
            launch = Command(command, env=environment, directory=directory, grace=STOP_GRACE_S)
            try:
                self.process = spawner.spawn(launch, stdin=stdin, stdout=out, stderr=err)
            except (ProcessError, ValueError) as failure:
                raise RecorderError(str(failure)) from failure
            self._files = ours.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the child with all processes that it started."""
        if not self.process.wait(0):
            self.stop()
            self.process.wait(GONE_S)
        self._files.close()
        self.process.close()

    def stop(self) -> None:
        """Begin to stop it: SIGTERM for all processes, and SIGKILL after `STOP_GRACE_S`."""
        self.process.stop(signal.SIGTERM, STOP_GRACE_S)

    def has_exited(self) -> bool:
        """Return True if the child has exited; processes that it started may still run."""
        self.process.update()
        return self.process.status is not None
