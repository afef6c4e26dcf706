"""Programs in the background: each with a log, none of them outliving whoever started it."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Self

from ext_sdk.core.process.spawner import Command, Spawner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path
    from types import TracebackType

    from ext_sdk.core.process.child import Child

POLL_SECONDS = 0.05
STOP_SECONDS = 10.0  # for SIGKILL to take effect on a busy machine
LOG_BYTES = 4000  # of a log's end, in an error


class ProgramEnded(Exception):
    """A program that should run does not, or one that should succeed did not."""


class NotReady(Exception):
    """A program runs, and does not do its work in time."""


def last_lines(path: Path, count: int = 8) -> str:
    """The end of a log; a text that says so where there is nothing in it."""
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - LOG_BYTES))
        lines = log.read().decode(errors="replace").splitlines()[-count:]
    return "\n".join(lines) or "(it said nothing)"


class Processes:
    """Named programs under supervision. Closing this, or the death of this process, ends them and all they started.

    Args:
        directory: where they run.
        logs: folder of NAME.log, with what each of them says.
    """

    def __init__(self, directory: Path, logs: Path) -> None:
        self._directory = directory
        self._logs = logs
        self._spawner = Spawner()
        self._children: dict[str, Child] = {}

    def log(self, name: str) -> Path:
        """Where a program's output goes."""
        return self._logs / f"{name}.log"

    def start(self, name: str, argv: Sequence[str], env: Mapping[str, str], *, grace: float = 0.0) -> None:
        """Start a program; its output is added to its log.

        Args:
            name: for `stop`, the log and messages.
            argv: the command.
            env: all of its environment.
            grace: seconds between SIGTERM and SIGKILL when it has to end.
        """
        self._logs.mkdir(parents=True, exist_ok=True)
        directory = os.open(self._directory, os.O_RDONLY)
        nothing = os.open(os.devnull, os.O_RDWR)
        log = os.open(self.log(name), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            command = Command(argv, env=env, directory=directory, grace=grace)
            self._children[name] = self._spawner.spawn(command, stdin=nothing, stdout=log, stderr=log)
        finally:
            for descriptor in (directory, nothing, log):
                os.close(descriptor)

    def check(self) -> None:
        """Fail if any program has ended.

        Raises:
            ProgramEnded: with how, and its last words.
        """
        for name, child in self._children.items():
            child.update()
            if child.gone or child.status is not None:
                raise ProgramEnded(self._ending(name, child))

    def run(self, name: str, argv: Sequence[str], env: Mapping[str, str], tick: Callable[[], None]) -> None:
        """Run a program to its end.

        Args:
            name: of its log.
            argv: the command.
            env: all of its environment.
            tick: called about once a second while it runs.

        Raises:
            ProgramEnded: it failed.
        """
        self.start(name, argv, env, grace=1.0)
        child = self._children[name]
        while not child.wait(1.0):
            tick()
        if child.status is None or child.status.code != 0:
            raise ProgramEnded(self._ending(name, child))
        del self._children[name]
        child.close()

    def wait_until(self, missing: Callable[[], str], timeout: float) -> None:
        """Wait until a check finds nothing missing, while all programs run.

        Args:
            missing: what is not there yet; "" when all is.
            timeout: in seconds.

        Raises:
            NotReady: with what was missing to the end.
            ProgramEnded: a program ended meanwhile.
        """
        until = time.monotonic() + timeout
        while what := missing():
            self.check()
            if time.monotonic() > until:
                raise NotReady(f"not ready within {timeout:g} s: {what}; logs: {self._logs}")
            time.sleep(POLL_SECONDS)

    def stop(self, name: str, number: int = signal.SIGKILL, grace: float = 0.0) -> None:
        """End a program with all it started, and wait until nothing of it is left.

        Args:
            name: of the program.
            number: the signal to begin with.
            grace: seconds until SIGKILL.
        """
        child = self._children.pop(name)
        child.stop(number, grace)
        gone = child.wait(grace + STOP_SECONDS)
        child.close()
        if not gone:
            raise ProgramEnded(f"{name} (process {child.pid}) does not end, even by SIGKILL")

    def close(self) -> None:
        """End all of them, the last one first."""
        children = list(reversed(self._children.values()))
        self._children.clear()
        for child in children:
            child.stop(signal.SIGKILL, 0)
        for child in children:
            child.wait(STOP_SECONDS)
            child.close()
        self._spawner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _ending(self, name: str, child: Child) -> str:
        how = child.status or "its supervisor was killed"
        return f"{name} has ended: {how}. The end of {self.log(name)}:\n{last_lines(self.log(name))}"
