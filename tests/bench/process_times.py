"""From the start of a process to its first line or its end, and what it holds in memory by then."""

from __future__ import annotations

import fcntl
import os
import signal
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

from tests.bench.harness import Bench, BenchError, pinned

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

READ_BYTES = 1_048_576  # a manifest is 38 KB, and reading it in small pieces would be most of what is measured
PAGE_BYTES = 4096  # the smallest pipe that Linux has


class Spawned:
    """A process with a pipe on its stdin and one on its stdout. A context manager: at its end there is no such process.

    Args:
        bench: says where it runs.
        command: its argv.
        pipe_bytes: what its stdout takes before it has to wait; 0 for what is usual.
    """

    def __init__(self, bench: Bench, command: Sequence[str], pipe_bytes: int = 0) -> None:
        child_in, self._stdin = os.pipe()
        self._stdout, child_out = os.pipe()
        if pipe_bytes and hasattr(fcntl, "F_SETPIPE_SZ"):
            fcntl.fcntl(child_out, fcntl.F_SETPIPE_SZ, pipe_bytes)
        files: list[tuple[int, int, int] | tuple[int, int, str, int, int]] = [
            (os.POSIX_SPAWN_DUP2, child_in, 0),
            (os.POSIX_SPAWN_DUP2, child_out, 1),
            (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
        ]
        self._command = command
        with pinned(bench.one_core):
            self.started = perf_counter()
            self._pid = os.posix_spawn(command[0], list(command), bench.environment, file_actions=files)
        os.close(child_in)
        os.close(child_out)
        self._running = True

    def send(self, line: bytes) -> None:
        """Write to its stdin what fits into the pipe. One that has ended already is found by `receive`."""
        with suppress(BrokenPipeError):
            os.write(self._stdin, line)

    def receive(self) -> bytes:
        """What it says next. Raises BenchError at its end."""
        data = os.read(self._stdout, READ_BYTES)
        if not data:
            raise BenchError(f"{self._command[0]} ended without a word")
        return data

    def memory_kib(self) -> int:
        """What it has in memory; 0 where a system does not tell."""
        return _memory_kib(self._pid, "VmRSS")

    def wait(self) -> float:
        """Wait for its end. Returns seconds from its start to its end. Raises BenchError for a failure."""
        while os.read(self._stdout, READ_BYTES):
            pass
        _, status = os.waitpid(self._pid, 0)
        took = perf_counter() - self.started
        self._running = False
        if status:
            raise BenchError(f"{' '.join(self._command)}: exit code {os.waitstatus_to_exitcode(status)}, expected 0")
        return took

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        """End it: what was to be seen was seen."""
        if self._running:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._stdin)
        os.close(self._stdout)


def _memory_kib(pid: int, name: str) -> int:
    """A line of /proc/PID/status; 0 where there is no such thing."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{name}:")), 0)


def seconds_to_line(bench: Bench, command: Sequence[str], request: bytes, expected: bytes) -> float:
    """From the start of a process to its first whole line, the answer to a request that was there from the start.

    Raises:
        BenchError: the line does not begin as expected.
    """
    with Spawned(bench, command) as process:
        process.send(request)
        line = process.receive()
        while not line.endswith(b"\n"):
            line += process.receive()
        took = perf_counter() - process.started
    if not line.startswith(expected):
        raise BenchError(f"{' '.join(command)}: expected {expected!r}, found {line[: len(expected)]!r}")
    return took


def seconds_to_exit(bench: Bench, command: Sequence[str]) -> float:
    """From the start of a process to its end."""
    with Spawned(bench, command) as process:
        return process.wait()


def cpu_to_exit(bench: Bench, command: Sequence[str]) -> float:
    """Seconds of processor time of a process, user and system."""
    with pinned(bench.two_cores):
        pid = os.posix_spawn(command[0], list(command), bench.environment)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise BenchError(f"{' '.join(command)}: exit code {os.waitstatus_to_exitcode(status)}, expected 0")
    return usage.ru_utime + usage.ru_stime


def memory_at_line(bench: Bench, command: Sequence[str], request: bytes) -> int:
    """KiB that a process has in memory when it writes its first line, which must be longer than two pages.

    The pipe takes one page, so that the process stands there, waiting for room, while it is looked at.
    """
    with Spawned(bench, command, PAGE_BYTES) as process:
        process.send(request)
        process.receive()
        return process.memory_kib()
