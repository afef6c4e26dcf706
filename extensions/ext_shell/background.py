"""Background processes: a registry for each workdir and scope, and how operations find and end them."""

from __future__ import annotations

import signal
import threading
import time
import weakref
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, UnsetType

import ext_sdk
from ext_sdk.core.text import suggest
from ext_sdk.process import Output

from .args import Name
from .capture import capture_streams
from .command import place_of
from .expectations import check_attempt, redact_streams
from .output_excerpt import end_of, show
from .result import RunResult
from .runner import CommandRun, bounded_grace

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ext_sdk.core.redaction.streams import RedactingFile
    from ext_sdk.expect import Searcher
    from ext_sdk.process import Child, ExitStatus, Pump, Spawner

    from .capture import Capture
    from .command import Prepared
    from .expectations import OutputExpectation
    from .readiness import Ready


STREAMS = ("stdout", "stderr")
CLOSING_GRACE = 1.0  # seconds between SIGTERM and SIGKILL when the extension ends
CLOSING_TIME = 2.0  # seconds in which all must have ended then
STEP = 1.0  # seconds; the pump wakes up by itself when there is something to do


class Process:
    """A command in the background, its output and its log. A thread moves its bytes until nothing of it is left.

    Attributes:
        name: by which operations find it.
        place: where that name counts: the workdir, and the scope if there is one.
        prepared: the command.
        log_path: where its output is written, without secrets.
        port: that it was given, or None.
        ready: what was waited for when it was started, or None.
        kept: what it leaves running goes on, so that its own end is not the end of all.
        status: how the command itself ended; None while it runs, or while there is output of it to be read.
    """

    def __init__(
        self,
        name: str,
        prepared: Prepared,
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
        self.prepared = prepared
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
        self._begun = 0.0
        self._child: Child | None = None

    def start(self, spawner: Spawner, *, keep: bool) -> None:
        """Start it; see Prepared.start for what is raised."""
        child, pump = self.prepared.start(spawner, self._sink("stdout"), self._sink("stderr"), keep=keep)
        self._child = child
        self.kept = keep
        self._begun = time.monotonic()
        threading.Thread(target=self._work, args=(child, pump), daemon=True, name=f"pump {self.name}").start()

    @property
    def pid(self) -> int:
        """The command's process id."""
        return self._started.pid

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports that its `start` named."""
        of_ready = None if self.ready is None or isinstance(self.ready.port, UnsetType) else self.ready.port
        return tuple(port for port in (self.port, of_ready) if port is not None and not isinstance(port, bool))

    @property
    def exited(self) -> bool:
        """Whether the command itself has ended, and all that it wrote has been read."""
        return self.status is not None or self._ended.is_set()

    @property
    def ended(self) -> bool:
        """Whether nothing of it is left, and all its output has been read."""
        return self._ended.is_set()

    def stop(self, number: int, grace: float) -> None:
        """Send a signal to all of it, and SIGKILL after `grace` seconds."""
        self._started.stop(number, grace)

    def wait(self, seconds: float) -> bool:
        """Wait until nothing of it is left. Returns whether that is so."""
        return self._ended.wait(seconds)

    def written_since(self, stream: str, offset: int) -> tuple[bytes, int]:
        """What it wrote on a stream from an offset on, and the offset of what comes next; see Output.since."""
        with self._lock:
            return self._outputs[stream].since(offset)

    def attempt(self) -> CommandRun:
        """What it has done so far."""
        child = self._started
        with self._lock:
            outputs = {stream: output.copy() for stream, output in self._outputs.items()}
        seconds = self._seconds if self._ended.is_set() else time.monotonic() - self._begun
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
        def take(data: bytes) -> None:
            self._write_log(stream, data)  # first: what somebody waited for is in the file then
            with self._lock:
                self._outputs[stream].write(data)

        return take

    def _write_log(self, stream: str, data: bytes) -> None:
        try:
            if self._log:
                self._log.write(stream, data)
        except OSError:  # no space: the process goes on without its log
            self._log = None

    def _work(self, child: Child, pump: Pump) -> None:
        while not pump.done:
            # Reports overtake bytes: an end is told when there is nothing left to be read of what was before it.
            read = pump.step(STEP if child.status is None or self.status is not None else 0)
            if not read and child.status is not None:
                self.status = child.status
        self._seconds = time.monotonic() - self._begun
        self.status = child.status
        try:
            if self._log:
                self._log.close()
        except OSError:
            self._log = None
        self._ended.set()
        child.close()


class Running:
    """All processes of this extension, to say in a failure which of them has a name or a port."""

    def __init__(self) -> None:
        self._processes: weakref.WeakSet[Process] = weakref.WeakSet()
        self._lock = threading.Lock()

    def add(self, process: Process) -> None:
        """Register a process that was started."""
        with self._lock:
            self._processes.add(process)

    def named(self, name: str) -> Process | None:
        """Return a process of this name, of whatever place, that has not ended."""
        with self._lock:
            return next((each for each in self._processes if not each.ended and each.name == name), None)

    def at_port(self, port: int) -> Process | None:
        """Return the process that was started for a port and has not ended."""
        with self._lock:
            return next((each for each in self._processes if not each.ended and port in each.ports), None)


class Processes:
    """The background processes of one workdir, by name."""

    def __init__(self) -> None:
        self._processes: dict[str, Process] = {}
        self._lock = threading.Lock()
        self._closed = False

    def start(self, process: Process, spawner: Spawner, *, keep: bool) -> None:
        """Start a process and register it; what had its name and has ended is forgotten.

        Raises:
            OperationFailed: one of its name still runs, or the extension ends; and what Process.start raises.
        """
        with self._lock:
            self._refuse_running(process.name)
            if self._closed:
                raise ext_sdk.OperationFailed("the extension was told to end and starts nothing more")
            process.start(spawner, keep=keep)
            self._processes[process.name] = process

    def refuse_running(self, name: str) -> None:
        """Raise OperationFailed if a process of this name runs."""
        with self._lock:
            self._refuse_running(name)

    def _refuse_running(self, name: str) -> None:
        other = self._processes.get(name)
        if other and not other.ended:
            raise ext_sdk.OperationFailed(
                f"process {name!r} runs already",
                error=f"name: expected one that no process of {other.place} has, found {name!r}: a previous `start` "
                f"ran {other.prepared.label} under it (pid {other.pid}, {other.attempt().duration} ago); stop that one "
                "first, choose another name, or give each task that shares this folder a `scope`",
            )

    def get(self, name: str) -> Process | None:
        """The process of this name."""
        with self._lock:
            return self._processes.get(name)

    def names(self) -> list[str]:
        """All names, sorted."""
        with self._lock:
            return sorted(self._processes)

    def remove(self, process: Process) -> None:
        """Forget a process."""
        with self._lock:
            if self._processes.get(process.name) is process:
                del self._processes[process.name]

    def close(self) -> None:
        """Stop all of them, side by side."""
        with self._lock:
            self._closed = True
            processes, self._processes = list(self._processes.values()), {}
        for process in processes:
            process.stop(signal.SIGTERM, CLOSING_GRACE)
        until = time.monotonic() + CLOSING_TIME
        for process in processes:
            process.wait(max(0.0, until - time.monotonic()))


AFTER_KILL = 2.0  # seconds after SIGKILL that an answer waits for what does not go
TICK = 0.05  # seconds between two looks at whether a call has to stop
ProcessName = Annotated[Name, Meta(description="Name of a process that `start` of this workdir started")]


def find(name: str, context: ext_sdk.Context) -> Process:
    """The process of this name and workdir. Raises OperationFailed, with the names that there are."""
    processes = context.state(Processes)
    process = processes.get(name)
    if process is not None:
        return process
    told = suggest(name, processes.names(), none="none was started, or all were stopped")
    if other := context.extension_state(Running).named(name):
        told += f"; a process of this name is of {other.place}"
    text = f"name: expected a process that `start` started in {place_of(context)}, found {name!r}; {told}"
    raise ext_sdk.OperationFailed(f"there is no process {name!r}", error=text)


def end(process: Process, grace: float, deadline: ext_sdk.Deadline, number: int = signal.SIGTERM) -> None:
    """Send a signal to a whole process, SIGKILL after `grace` seconds at most, and wait for its end."""
    if process.ended:
        return
    grace = bounded_grace(grace, deadline)
    process.stop(number, grace)
    process.wait(min(grace + AFTER_KILL, deadline.remaining_for_result()))


def finish(
    process: Process,
    expect: OutputExpectation | None,
    captures: Mapping[str, Capture],
    context: ext_sdk.Context,
    searcher: Searcher,
    *,
    running: bool = False,
    any_end: bool = False,
    reason: str = "",
) -> RunResult:
    """Check what a process has done so far.

    Args:
        process: that process.
        expect: what must hold; None for nothing.
        captures: from its output.
        context: of the call.
        searcher: for regular expressions.
        running: it has not ended.
        any_end: see check_attempt.
        reason: why this is a failure whatever holds; "" if it is none.
    """
    attempt = process.attempt()
    captured = capture_streams(captures, attempt, context, searcher)
    checks = captured.failures
    if expect is not None:
        checks = check_attempt(expect, attempt, context, searcher, running=running, any_end=any_end) + checks
    return RunResult(
        f"{process.name}: {process.prepared.label}",
        attempt,
        redact_streams(checks, captured.withheld),
        captured,
        limits=process.prepared.limits,
        context=context,
        extra=outputs_of(process) | {"running": running},
        reason=reason,
        running=running,
    )


def outputs_of(process: Process) -> dict[str, str | int | bool]:
    """The outputs that tell a process from others."""
    outputs: dict[str, str | int | bool] = {"name": process.name, "pid": process.pid, "logFile": str(process.log_path)}
    return outputs if process.port is None else outputs | {"port": process.port}


def excerpt(process: Process, context: ext_sdk.Context) -> str:
    """The ends of its outputs, for the text of a failure."""
    attempt = process.attempt()
    shown = {name: end_of(show(output, name, context)) for name, output in attempt.outputs.items()}
    parts = [f"{name} ends with: {text}" for name, text in shown.items() if text]
    return "; ".join(parts) or "it wrote nothing"
