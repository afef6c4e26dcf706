"""Background processes: one registry for each working directory and scope, and how operations find and stop them."""

from __future__ import annotations

import signal
import threading
import time
import weakref
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, UnsetType

import ext_sdk
from ext_sdk.core.text import suggest
from ext_sdk.process import CommandRun, Output, bounded_grace

from .args import Name
from .command import place_of
from .expectations import check_run, withhold_streams
from .result import RunResult, capture_streams, end_of, show

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ext_sdk.expect import Searcher
    from ext_sdk.long_outputs import RedactingFile
    from ext_sdk.process import Child, CommandExpectation, ExitStatus, Pump, Spawner

    from .args import Ready
    from .command import PreparedCommand
    from .result import Capture


STREAMS = ("stdout", "stderr")
CLOSING_GRACE = 1.0  # seconds between SIGTERM and SIGKILL when the extension shuts down
CLOSING_TIME = 2.0  # seconds in which all processes must have ended then
AFTER_KILL = 2.0  # seconds after SIGKILL that a response waits for processes that do not end
STEP = 1.0  # seconds; the pump wakes up by itself when there is something to do
ProcessName = Annotated[Name, Meta(description="Name of a process that `start` started in this working directory")]


class Process:
    """Background command with its output and its log. A thread moves its output until all of its processes have ended.

    Attributes:
        name: by which operations find it.
        place: where that name is valid: the working directory, and the scope if there is one.
        log_path: file with its output, without secrets.
        port: TCP port that was assigned to it, or None.
        ready: conditions that its `start` waited for, or None.
        kept: True if processes that the command leaves behind are not stopped, but are part of this process.
        status: exit status of the command itself; None while it runs, or while it has unread output.
    """

    def __init__(
        self,
        name: str,
        command: PreparedCommand,
        *,
        log: RedactingFile,
        log_path: Path,
        output_limit: int,
        place: str,
        port: int | None = None,
        ready: Ready | None = None,
    ) -> None:
        self.name = name
        self.place = place
        self.command = command
        self.log_path = log_path
        self.port = port
        self.ready = ready
        self._log: RedactingFile | None = log
        self._limit = output_limit
        self._lock = threading.Lock()  # guards the outputs
        self._outputs = {stream: Output(output_limit) for stream in STREAMS}
        self._ended = threading.Event()
        self._seconds = 0.0
        self.kept = False
        self.status: ExitStatus | None = None
        self._began = 0.0
        self._child: Child | None = None

    def start(self, spawner: Spawner, *, keep: bool) -> None:
        """Start the command. Raises as PreparedCommand.start."""
        child, pump = self.command.start(spawner, self._sink("stdout"), self._sink("stderr"), keep=keep)
        self._child = child
        self.kept = keep
        self._began = time.monotonic()
        threading.Thread(target=self._pump, args=(child, pump), daemon=True, name=f"pump {self.name}").start()

    @property
    def pid(self) -> int:
        """Return the process id of the command."""
        return self._started.pid

    @property
    def ports(self) -> tuple[int, ...]:
        """Return the ports that its `start` named."""
        ready_port = None if self.ready is None or isinstance(self.ready.port, UnsetType) else self.ready.port
        return tuple(port for port in (self.port, ready_port) if port is not None and not isinstance(port, bool))

    @property
    def exited(self) -> bool:
        """Return True if the command itself has exited, and all its output has been read."""
        return self.status is not None or self._ended.is_set()

    @property
    def ended(self) -> bool:
        """Return True if all processes of it have ended, and all output has been read."""
        return self._ended.is_set()

    def stop(self, number: int, grace: float) -> None:
        """Send a signal to all its processes, and SIGKILL after `grace` seconds."""
        self._started.stop(number, grace)

    def wait(self, seconds: float) -> bool:
        """Wait until all its processes have ended. Return True if that is so."""
        return self._ended.wait(seconds)

    def written_since(self, stream: str, offset: int) -> tuple[bytes, int]:
        """Return the output of a stream from an offset on, and the offset of the next byte; see Output.since."""
        with self._lock:
            return self._outputs[stream].since(offset)

    def so_far(self) -> CommandRun:
        """Return a copy of the outputs, and the exit status, at this time."""
        child = self._started
        with self._lock:
            outputs = {stream: output.copy() for stream, output in self._outputs.items()}
        seconds = self._seconds if self._ended.is_set() else time.monotonic() - self._began
        return CommandRun(
            status=child.status if self.exited else None,
            stdout=outputs["stdout"],
            stderr=outputs["stderr"],
            seconds=seconds,
            left=child.left,
            stuck=child.stuck,
        )

    @property
    def _started(self) -> Child:
        if self._child is None:
            raise RuntimeError("the process was not started")
        return self._child

    def _sink(self, stream: str) -> Callable[[bytes], None]:
        def receive(data: bytes) -> None:
            try:
                if self._log:
                    self._log.write(stream, data)  # first, so that a line that ends a wait is in the file
            except OSError:  # the disk is full: the process continues without its log
                self._log = None
            with self._lock:
                self._outputs[stream].write(data)

        return receive

    def _pump(self, child: Child, pump: Pump) -> None:
        while not pump.done:
            # The report of an exit overtakes output: the status counts once nothing is left to be read before it.
            read = pump.step(STEP if child.status is None or self.status is not None else 0)
            if not read and child.status is not None:
                self.status = child.status
        self._seconds = time.monotonic() - self._began
        self.status = child.status
        try:
            if self._log:
                self._log.close()
        except OSError:
            self._log = None
        self._ended.set()
        child.close()


class RunningProcesses:
    """Running processes of the entire extension, to name the owner of a name or a port in a failure."""

    def __init__(self) -> None:
        self._processes: weakref.WeakSet[Process] = weakref.WeakSet()
        self._lock = threading.Lock()

    def add(self, process: Process) -> None:
        """Register a process that was started."""
        with self._lock:
            self._processes.add(process)

    def named(self, name: str) -> Process | None:
        """Return a running process of this name, of any place."""
        with self._lock:
            return next((process for process in self._processes if not process.ended and process.name == name), None)

    def at_port(self, port: int) -> Process | None:
        """Return the running process that was started for a port."""
        with self._lock:
            return next((process for process in self._processes if not process.ended and port in process.ports), None)


class Processes:
    """Background processes of one working directory and scope, by name. Thread-safe."""

    def __init__(self) -> None:
        self._processes: dict[str, Process] = {}
        self._lock = threading.Lock()
        self._closed = False

    def start(self, process: Process, spawner: Spawner, *, keep: bool) -> None:
        """Start and register a process; it replaces an ended process of its name.

        Raises:
            OperationFailed: a process of its name is running, or the extension shuts down; and as Process.start.
        """
        with self._lock:
            self._refuse_running(process.name)
            if self._closed:
                raise ext_sdk.OperationFailed("the extension is shutting down and starts no more processes")
            process.start(spawner, keep=keep)
            self._processes[process.name] = process

    def refuse_running(self, name: str) -> None:
        """Raise OperationFailed if a process of this name is running."""
        with self._lock:
            self._refuse_running(name)

    def _refuse_running(self, name: str) -> None:
        other = self._processes.get(name)
        if other and not other.ended:
            raise ext_sdk.OperationFailed(
                f"process {name!r} is already running",
                error=f"name: expected one that no process of {other.place} has, found {name!r}: a previous `start` "
                f"ran {other.command.label} under it (pid {other.pid}, {other.so_far().duration} ago); stop that "
                "process first, choose another name, or give each task that shares this directory a `scope`",
            )

    def get(self, name: str) -> Process | None:
        """Return the process of this name, running or not."""
        with self._lock:
            return self._processes.get(name)

    def names(self) -> list[str]:
        """Return all names, sorted."""
        with self._lock:
            return sorted(self._processes)

    def remove(self, process: Process) -> None:
        """Forget a process."""
        with self._lock:
            if self._processes.get(process.name) is process:
                del self._processes[process.name]

    def close(self) -> None:
        """Stop all processes at the same time."""
        with self._lock:
            self._closed = True
            processes, self._processes = list(self._processes.values()), {}
        for process in processes:
            process.stop(signal.SIGTERM, CLOSING_GRACE)
        until = time.monotonic() + CLOSING_TIME
        for process in processes:
            process.wait(max(0.0, until - time.monotonic()))


def find_process(name: str, context: ext_sdk.Context) -> Process:
    """Return the process of this name in the working directory and scope of a call.

    Raises:
        OperationFailed: it does not exist; the error suggests names that do.
    """
    processes = context.state(Processes)
    process = processes.get(name)
    if process is not None:
        return process
    suggestion = suggest(name, processes.names(), none="none was started, or all were stopped")
    if other := context.extension_state(RunningProcesses).named(name):
        suggestion += f"; a process of this name belongs to {other.place}"
    text = f"name: expected a process that `start` started in {place_of(context)}, found {name!r}; {suggestion}"
    raise ext_sdk.OperationFailed(f"process {name!r} does not exist", error=text)


def stop_process(process: Process, grace: float, deadline: ext_sdk.Deadline, number: int = signal.SIGTERM) -> None:
    """Send a signal to all processes of it, SIGKILL after at most `grace` seconds, and wait for their end."""
    if process.ended:
        return
    grace = bounded_grace(grace, deadline)
    process.stop(number, grace)
    process.wait(min(grace + AFTER_KILL, deadline.remaining_for_result()))


def result_of(
    process: Process,
    expect: CommandExpectation | UnsetType,
    captures: Mapping[str, Capture],
    context: ext_sdk.Context,
    searcher: Searcher,
    *,
    running: bool = False,
    any_end: bool = False,
    reason: str = "",
) -> RunResult:
    """Check a process at this time, and capture values from its output.

    Args:
        any_end: see check_run.
        reason: why the operation failed, whatever the checks are; "" if only they decide.
    """
    run = process.so_far()
    captured = capture_streams(captures, run, context, searcher)
    checks = captured.failures
    if not isinstance(expect, UnsetType):
        checks = check_run(expect, run, context, searcher, running=running, any_end=any_end) + checks
    result = RunResult(
        f"{process.name}: {process.command.label}",
        run,
        withhold_streams(checks, captured.withheld),
        captured,
        limits=process.command.limits,
        context=context,
        extra=outputs_of(process) | {"running": running},
        reason=reason,
        running=running,
    )
    if process.command.advice:
        result.note(process.command.advice)
    return result


def outputs_of(process: Process) -> dict[str, str | int | bool]:
    """Return the outputs that identify a process."""
    outputs: dict[str, str | int | bool] = {"name": process.name, "pid": process.pid, "logFile": str(process.log_path)}
    return outputs if process.port is None else outputs | {"port": process.port}


def output_ends(process: Process, context: ext_sdk.Context) -> str:
    """Return the ends of its outputs, for the text of a failure."""
    ends = [end_of(show(output, name, context), name) for name, output in process.so_far().outputs.items()]
    return "\n".join(filter(None, ends)) or "no output"
