"""Controller of the HTTP worker process: starts it, returns the environment for the child, stops it.

    with recording(path, …) as controller:      or replaying(path, …)
        … start the child with controller.variables added to its environment …
        report = controller.finish()

`record` does all of this in `ext_recorder.record.recorder`; `replay` and `verify` run the real child on recorded
responses.
"""

from __future__ import annotations

import contextlib
import marshal
import os
import shutil
import signal
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Self

from ext_recorder.errors import RecorderError
from ext_recorder.record.note_queue import Report

from .inject import __path__ as _inject_path
from .inject.ext_recorder_agent.channel import SOCKET
from .worker_context import BUSY, INTERRUPTED, KUBECONFIG, WHOLE, Origin, WorkerContext, live

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from ext_recorder.messages.redaction import Redaction

    from .request_matching import RequestRules
    from .worker_context import WorkerOutcome

VARIABLE = "EXT_RECORDER_HTTP"  # for the agent: MODE:SEED:EPOCH:KINDS:FOLDER
LOADED = "loaded."  # followed by a process id: a file that the agent creates when it starts
KINDS = ("time", "uuid", "random", "secrets")  # of values that are replayed on request, see the agent's `determinism`
RANDOM = KINDS[2]
BACKLOG = 512  # connections that wait
_LONGEST = 70  # bytes of the path of the folder for temporary files, so that a socket in a folder there can be bound
FINISH_S = 60.0  # without progress with the remaining traffic and the end of the file
# After the end of the session until the recorder reports that it is not complete: on a terminal, and elsewhere.
QUIET_S, QUIET_ELSEWHERE_S = 3.0, 20.0
LOAD_S = 10.0  # until a child must have loaded the agent
PROBE_S = 0.005
NOT_LOADED = (
    "the child has not loaded the HTTP layer: it is not a Python program, or it was started with -I, -E or -S, or with"
    " an environment of its own"
)


class HttpControllerError(RecorderError):
    """The HTTP worker cannot run; str() is the cause and the remedy."""


class WorkerProcess:
    """Forked process that records or replays HTTP traffic; use it in a `with` block.

    Args:
        listener: socket that agents inside of children connect to.
        folder: of the session; removed at the end.
        work: runs in the process.
        sockets: further ones, which the process inherits.

    Attributes:
        seed, epoch, kinds: of the recording.
        traffic: as in the outcome of the worker.

    Raises:
        RecorderError: the worker cannot start.
    """

    def __init__(
        self,
        listener: socket.socket,
        folder: str,
        work: Callable[[WorkerContext], WorkerOutcome],
        sockets: Sequence[socket.socket] = (),
    ) -> None:
        self.folder = folder
        self._finished = False
        self.traffic: Mapping[str, tuple[tuple[int, ...], ...]] = {}
        seed, epoch = os.urandom(8).hex(), time.time_ns() - time.monotonic_ns()
        control, self._control = os.pipe()
        self._report, report = os.pipe()
        self._service = os.fork()
        if self._service == 0:
            os.close(self._control)
            os.close(self._report)
            context = WorkerContext(listener, control, folder, seed, epoch)
            live(work, context, report, sockets)
        for inherited in (listener, *sockets):
            inherited.close()
        os.close(control)
        os.close(report)
        ready = self._read()
        if ready is None or ready[0] != "ready":
            self.close()
            raise HttpControllerError(ready[1][0] if ready else "the HTTP worker process has ended")
        self.seed, self.epoch, self.kinds = ready[1][0] or seed, ready[1][1], ready[1][2]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def outcome(self, started: float, *, whole: bool, close: bool = True) -> tuple[str, list[str]] | None:
        """Stop the worker and return its outcome: "ok" or another word, and its lines. None: it has not reported one.

        Args:
            started: start of the session's cassette, on the monotonic clock.
            whole: the session was not interrupted; an interrupted recording keeps its name NAME.partial.
            close: remove the folder of the session.
        """
        with contextlib.suppress(BrokenPipeError):  # it has ended already, and reported the reason
            os.write(self._control, (WHOLE if whole else INTERRUPTED) + struct.pack("d", started))
        until = time.monotonic() + (QUIET_S if sys.stderr.isatty() else QUIET_ELSEWHERE_S)
        while (outcome := self._read()) is not None and outcome[0] == BUSY:
            if time.monotonic() > until:
                until += FINISH_S
                sys.stderr.write("ext-recorder: writing the recording; long bodies are searched for secrets first …\n")
                sys.stderr.flush()
        self._finished = outcome is not None
        if close:
            self.close()
        return outcome

    def close(self) -> None:
        """Stop the worker at any stage."""
        if self._service:
            os.close(self._control)
            os.close(self._report)
            if not self._finished:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._service, signal.SIGKILL)
            os.waitpid(self._service, 0)
            self._service = 0
            shutil.rmtree(self.folder, ignore_errors=True)

    def forget(self) -> None:
        """Release the worker in a forked copy of this process."""
        if self._service:
            os.close(self._control)
            os.close(self._report)
            self._service = 0

    def _read(self) -> tuple[str, list[str]] | None:
        """Return the next message of the worker."""
        from select import POLLIN, poll

        readable = poll()
        readable.register(self._report, POLLIN)
        size = self._exactly(readable, 4)
        body = self._exactly(readable, int.from_bytes(size, "little")) if size else b""
        if not body:
            return None
        kind, lines, self.traffic = marshal.loads(body)  # noqa: S302 - written by our own child process
        return str(kind), [str(line) for line in lines]

    def _exactly(self, readable: object, size: int) -> bytes:
        data = b""
        until = time.monotonic() + FINISH_S
        while len(data) < size:
            left = max(0.0, until - time.monotonic())
            piece = os.read(self._report, size - len(data)) if readable.poll(left * 1000) else b""  # type: ignore[attr-defined]
            if not piece:
                return b""
            data += piece
        return data


def open_session() -> tuple[str, socket.socket]:
    """Return a new private folder, and a socket in it that listens.

    The path of a socket may have 103 bytes (macOS), so the folder is in /tmp if that for temporary files has a long
    path.
    """
    is_long = len(os.fsencode(tempfile.gettempdir())) > _LONGEST
    folder = tempfile.mkdtemp(prefix="ext-recorder-", dir="/tmp" if is_long else None)  # noqa: S108 - it is private
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(os.path.join(folder, SOCKET))  # noqa: PTH118
    listener.listen(BACKLOG)
    return folder, listener


class HttpController(WorkerProcess):
    """Controller of the traffic of a Python child; use it in a `with` block.

    Attributes:
        variables: for the child's environment.

    Raises:
        RecorderError: the worker cannot start.
    """

    def __init__(self, mode: str, work: Callable[[WorkerContext], WorkerOutcome]) -> None:
        folder, listener = open_session()
        super().__init__(listener, folder, work)
        self.variables = {
            "PYTHONPATH": os.pathsep.join(
                [next(iter(_inject_path)), *filter(None, [os.environ.get("PYTHONPATH", "")])]
            ),
            VARIABLE: f"{mode}:{self.seed}:{self.epoch}:{self.kinds}:{folder}",
        }
        if RANDOM in self.kinds.split(",") and not os.environ.get("PYTHONHASHSEED"):
            self.variables["PYTHONHASHSEED"] = str(int(self.seed[:8], 16))
        if (Path(folder) / KUBECONFIG).exists():
            self.variables["KUBECONFIG"] = os.path.join(folder, KUBECONFIG)  # noqa: PTH118

    @property
    def loaded(self) -> bool:
        """Return True if a process of the child has loaded the agent."""
        return any(name.startswith(LOADED) for name in os.listdir(self.folder))  # noqa: PTH208

    def wait_loaded(self, is_over: Callable[[], bool]) -> None:
        """Wait until the child has loaded the agent. If it does not, end it before it receives anything.

        Args:
            is_over: returns True if the child has ended.

        Raises:
            HttpControllerError: the child has not loaded the agent before the deadline, or has ended.
        """
        until = time.monotonic() + LOAD_S
        while not self.loaded:
            if time.monotonic() > until or (is_over() and not self.loaded):
                raise HttpControllerError(f"{NOT_LOADED}; so it was ended, before it could use the network")
            time.sleep(PROBE_S)

    def finish(self, started: float = 0.0, *, whole: bool = True) -> Report:
        """Stop the worker after the child has ended.

        Args:
            started: start of the session's cassette, on the monotonic clock.
            whole: the session was not interrupted; an interrupted recording keeps its name NAME.partial.

        Returns:
            Result. `ok`: nothing was missing; `text`: lines to print; `warning`: lines to print in any case.
        """
        loaded = self.loaded
        outcome = self.outcome(started, whole=whole)
        if outcome is None:
            return Report(ok=False, text="the HTTP worker process exited without reporting a result")
        kind, output = outcome
        at = output.index("") if "" in output else 0  # remarks, an empty line, the other lines
        lines = [*([] if loaded else [NOT_LOADED]), *filter(None, output[at:])]
        return Report(ok=kind == "ok" and loaded, text="\n".join(lines), warning="\n".join(output[:at]))


def recording(
    path: Path,
    *,
    bind: Mapping[str, str],
    redaction: Redaction,
    version: str,
    cassette: Path | None = None,
    kinds: Sequence[str] = (),
) -> HttpController:
    """Record a child's HTTP traffic.

    Args:
        bind: `--bind`, name to live value.
        cassette: recording of stdio, which is complete when `finish` is called.
        kinds: values to record as well, of KINDS.

    Raises:
        RecorderError: the file cannot be written.
    """
    started = time.monotonic()

    def work(context: WorkerContext) -> WorkerOutcome:
        from .worker import record

        return record(context, path, bind, redaction, Origin(version, started, cassette, tuple(kinds)))

    return HttpController("record", work)


def replaying(
    path: Path,
    *,
    bind: Mapping[str, str],
    redaction: Redaction,
    matching: RequestRules | None = None,
    misses: list[str] | None = None,
) -> HttpController:
    """Respond to a child's HTTP requests from a file.

    Args:
        bind: `--bind`.
        redaction: secrets to redact in requests before they are compared.
        matching: the user's rules for equal requests.
        misses: in the worker process, receives a line for each request without a response, immediately.

    Raises:
        CassetteError: the file cannot be read.
    """

    def work(context: WorkerContext) -> WorkerOutcome:
        from .worker import replay

        return replay(context, path, bind, redaction, matching=matching, misses=misses)

    return HttpController("replay", work)
