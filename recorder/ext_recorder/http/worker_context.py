"""Context of the forked HTTP worker process: its resources, and the outcome that it reports."""

from __future__ import annotations

import contextlib
import marshal
import os
import select
import struct
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ext_recorder.errors import RecorderError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping, Sequence
    from typing import NoReturn

# How a session has ended, on the recorder's pipe.
WHOLE, INTERRUPTED = b"\0", b"\1"
KUBECONFIG = "kubeconfig"  # in the folder of the session
ADDED = "recorded: "  # begin of the line about new requests
BUSY = "busy"  # report of a worker that proceeds
BUSY_S = 1.0  # between two of these reports


class Origin(NamedTuple):
    """Origin of a recording.

    Attributes:
        version: of the recorder.
        started: start of the file's clock, on the monotonic clock.
        cassette: recording of stdio; None if stdio is not recorded.
        kinds: values of the child that are recorded, see `determinism` in the agent.
    """

    version: str
    started: float
    cassette: Path | None
    kinds: tuple[str, ...] = ()


class WorkerOutcome(NamedTuple):
    """Outcome of a worker's session.

    Attributes:
        ok: nothing was missing.
        lines: to print; if `ok`, only on a terminal.
        remarks: to print in any case.
        traffic: of each endpoint: the recorded one, the replayed one, and that of clients that do not run; as tuples.
    """

    ok: bool
    lines: list[str]
    remarks: Sequence[str] = ()
    traffic: Mapping[str, tuple[tuple[int, ...], ...]] = {}


class WorkerContext:
    """Resources of a worker.

    Attributes:
        listener: socket that children connect to.
        control: pipe that reports the end of the session.
        folder: of the session.
        seed: of a new recording.
        epoch: nanoseconds from 1970 to the zero of the monotonic clock.
        ready: called when children may connect, with the seed of the recording, its epoch (0 if it has none), and the
            kinds of values that it contains.
        busy: called to report that the worker proceeds, so that the recorder does not stop it.
    """

    __slots__ = ("_reported", "busy", "control", "epoch", "folder", "listener", "ready", "seed")

    def __init__(self, listener: socket.socket, control: int, folder: str, seed: str, epoch: int) -> None:
        self.listener = listener
        self.control = control
        self.folder = folder
        self.seed = seed
        self.epoch = epoch
        self.ready: Callable[[str, int, Sequence[str]], None] = lambda seed, epoch, kinds: None
        self.busy: Callable[[], None] = lambda: None
        self._reported = 0.0

    def proceed(self) -> None:
        """Report progress after the end of the session, at most once in BUSY_S."""
        now = time.monotonic()
        if now - self._reported > BUSY_S:
            self._reported = now
            if select.select([self.control], [], [], 0)[0]:
                self.busy()

    def offset(self, origin: float) -> float:
        """Return the seconds from a time on the monotonic clock to the start of the cassette, after the session."""
        started = os.read(self.control, 8)
        return struct.unpack("d", started)[0] - origin if len(started) == 8 else 0.0


def live(
    work: Callable[[WorkerContext], WorkerOutcome],
    context: WorkerContext,
    report: int,
    sockets: Sequence[socket.socket] = (),
) -> NoReturn:
    """Run the worker process.

    Args:
        report: pipe for the outcome.
        sockets: that stay open, besides that of the context.
    """
    from ext_recorder.record.writer_process import detach_writer

    def send(kind: str, lines: list[str], traffic: dict[str, tuple[tuple[int, ...], ...]] | None = None) -> None:
        body = marshal.dumps((kind, lines, traffic or {}), 2)
        with contextlib.suppress(OSError):
            os.write(report, len(body).to_bytes(4, "little") + body)

    try:
        kept = {context.listener.fileno(), context.control, report, *(each.fileno() for each in sockets)}
        detach_writer(kept, nice=False)  # children wait for it
        context.ready = lambda seed, epoch, kinds: send("ready", [seed, str(epoch), ",".join(kinds)])
        context.busy = lambda: send(BUSY, [])
        outcome = work(context)
        send("ok" if outcome.ok else "failed", [*outcome.remarks, "", *outcome.lines], dict(outcome.traffic))
    except (RecorderError, OSError) as error:
        send("error", [str(error)])
    except Exception as error:  # noqa: BLE001 - the recorder reports it
        trace = error.__traceback__
        while trace and trace.tb_next:
            trace = trace.tb_next
        place = f"{Path(trace.tb_frame.f_code.co_filename).name}:{trace.tb_lineno}" if trace else "?"
        send("error", [f"internal error, please report it with this line: {type(error).__name__} in {place}"])
    finally:
        os._exit(0)
