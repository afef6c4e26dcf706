"""The tap: bytes between host and child, forwarded in the turn in which they were read.

One thread and one poll(): no event loop, no locks, nothing that understands messages. A chunk is noted as (seconds,
stream, bytes), in memory that outlives this process, and written on in the same turn, whatever it is.
"""

from __future__ import annotations

import os
from select import POLLIN, POLLOUT
from signal import SIGCHLD
from time import monotonic

from .child import way_of_ending
from .notes import BATCH_BYTES, NOTE_BYTES
from .outlets import host_outlet, pipe_outlet, release, tell
from .signals import signal_name
from .wire import NO_READER, Stream, Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .child import Child
    from .notes import Notes
    from .outlets import Outlet
    from .signals import Signals

# The most that is read at once. A Linux pipe holds as much, so that one read empties it.
CHUNK_BYTES = 65_536
# When nothing comes for so long, the wire is idle: time to hand over what was noted. Less than a tick of the kernel,
# 4 ms, costs a timer interrupt of its own, and that shows in every tenth round trip.
IDLE_MS = 5
# While the wire is busy notes are handed over only when one of them is so old, in seconds, or when small chunks have
# filled the journal: it takes time that a large message would have to wait.
LAG_S = 0.25
# So much may wait here for the scribe, a message of 20 MB and its echo; then the wire waits too, so that memory stays
# bounded.
QUEUE_BYTES = 44_040_192
# How often to ask, while the wire waits, whether the scribe is still at work.
STALL_CHECK_MS = 1_000
# What is taken from a stream after the child's end. Its pipe can't hold more.
DRAIN_BYTES = 1_048_576


_HOST = 0  # standard input
_UNRECORDED = "what it writes is passed on, but not recorded"


class Tap:
    """The wire of one child, from start to exit.

    Args:
        child: the running child.
        signals: where the host's signals arrive.
        notes: takes what is seen.
        stderr: the host's standard error; it stays open to the end, for us to say something.

    Attributes:
        started: the moment on the monotonic clock that is 0 in the cassette.
    """

    def __init__(self, child: Child, signals: Signals, notes: Notes, stderr: Outlet) -> None:
        self._child = child
        self._signals = signals
        self._notes = notes
        self._stderr = stderr
        self.started = monotonic()
        self._patience = signals.patience  # ms that poll() may wait when there is nothing to hand over
        self._running = True
        self._lingers = False  # after the child's exit, while nothing was reported of it
        self._status: int | None = None
        self._weight = 0  # of what was left when notes were handed over last
        self._wire = wire = Wire()
        wire.watch(signals.fd, POLLIN, self._on_signals)
        wire.watch(notes.report, POLLIN, self._on_report)
        self._open(child)

    def _open(self, child: Child) -> None:
        """Begin to forward the child's standard files."""
        out = host_outlet(1)
        into = pipe_outlet(child.stdin)
        self._wire.open(Stream("in", _HOST, release, into, into.close))
        self._wire.open(Stream("out", child.stdout, os.close, out, out.close))
        self._wire.open(Stream("err", child.stderr, os.close, self._stderr, leave_open))

    def say(self, data: bytes) -> None:
        """Pass on what the host had said before the child was there. To be called once, before `run`."""
        stream, _ = self._wire.streams[_HOST]
        self._notes.keep(0.0, stream.name, data)
        stream.held = data
        self._wire.push(stream)

    def run(self) -> int:
        """Forward until the child has ended, and note that. Returns its wait status."""
        self._forward()
        for stream, _ in list(self._wire.streams.values()):
            self._drain(stream)
        assert self._status is not None  # `_running` ends by it
        self._note("exit", way_of_ending(self._status))
        return self._status

    def _forward(self) -> None:
        """The loop that every byte passes through. A round trip takes two turns."""
        wait, read, clock, started = self._wire.poll.poll, os.read, monotonic, self.started
        wire, streams, notes, fresh = self._wire, self._wire.streams, self._notes, self._notes.fresh
        write_down, data = notes.journal.add, b""
        weight = 0  # of what is fresh, as far as it is bytes
        eager = False  # the wire is idle, and there is more to hand over
        while self._running:
            ready = wait(0 if eager else IDLE_MS if fresh and not notes.backlog else self._patience)
            now = clock() - started
            for fd, event in ready:
                if fd not in streams:
                    wire.act(fd, event)
                    continue
                stream, send = streams[fd]
                try:
                    data = read(fd, CHUNK_BYTES)
                except BlockingIOError:  # a terminal has other readers too
                    continue
                except OSError:  # hung up or reset: as good as ended
                    data = b""
                name = stream.name
                fresh.append((now, name, data))
                write_down(now, name, data)
                try:
                    sent = send(data)
                except BlockingIOError:
                    sent = 0
                except OSError:
                    sent = NO_READER
                weight += len(data) + NOTE_BYTES
                if sent != len(data) or not data:
                    wire.wrote(stream, data, sent)
            if not ready or (weight > BATCH_BYTES and self._presses(now, weight, len(data))):
                weight = self._hand_over(weight)
                eager = not ready and weight > 0 and not notes.backlog

    def _presses(self, now: float, weight: int, size: int) -> bool:
        """Return whether a busy wire has to wait for a batch of notes.

        Args:
            now: the time in the recording.
            weight: of what was noted, in bytes.
            size: bytes of the last chunk.
        """
        notes = self._notes
        if now - notes.fresh[0][0] > LAG_S or weight > QUEUE_BYTES:
            return True
        return notes.on and notes.journal.full and size < CHUNK_BYTES

    # --- Signals ------------------------------------------------------------------------------------------------------

    def _on_signals(self, _event: int) -> None:
        for number, known_to_child in self._signals.take():
            if number == SIGCHLD:
                self._on_child()
            elif self._running:
                if not known_to_child:
                    self._child.send(number)
                self._note("signal", signal_name(number))

    def _on_child(self) -> None:
        if self._running:
            self._status = self._child.poll()
            self._running = self._status is None

    # --- The recording ------------------------------------------------------------------------------------------------

    def _note(self, kind: str, what: int | str) -> None:
        self._notes.keep(monotonic() - self.started, kind, what)

    def _tell_unrecorded(self) -> None:
        """Report output of a process that the child has started, once."""
        if any(isinstance(what, bytes) and what for _, _, what in self._notes.fresh):
            self._lingers = False
            tell(self._stderr, f"a process that the command started writes after its exit; {_UNRECORDED}")

    def _hand_over(self, weight: int) -> int:
        """The wire is idle, or what was noted is old or much.

        Args:
            weight: of what was noted, in bytes.

        Returns:
            What is left of it.
        """
        if self._lingers:
            self._tell_unrecorded()
        if self._signals.patience is not None:
            self._on_signals(0)
        notes = self._notes
        if notes.fresh and not notes.backlog:
            weight = max(weight - notes.hand_over(), 1)
            if not notes.fresh:
                weight = 0
        if notes.backlog:
            self._wire.watch(notes.pipe, POLLOUT, self._on_room)
        self._weight = weight
        self._balance()
        if self._wire.paused and notes.stalled():
            self._stop_recording()
        return weight

    def _on_room(self, _event: int) -> None:
        """The scribe takes more."""
        notes = self._notes
        notes.write()
        if not notes.backlog:
            self._wire.unwatch(notes.pipe)
        self._balance()

    def _balance(self) -> None:
        """Let the wire wait while too much waits for the scribe."""
        waiting = self._weight + self._notes.backlog
        if self._wire.paused and waiting < QUEUE_BYTES // 2:
            self._pause(on=False)
        elif not self._wire.paused and waiting > QUEUE_BYTES:
            self._pause(on=True)

    def _pause(self, *, on: bool) -> None:
        self._patience = STALL_CHECK_MS if on else self._signals.patience
        self._wire.pause(on=on)

    def _on_report(self, _event: int) -> None:
        """The scribe speaks when it is done. Now is too early for that."""
        self._stop_recording()

    def _stop_recording(self) -> None:
        notes = self._notes
        self._wire.unwatch(notes.report)
        self._wire.unwatch(notes.pipe)
        tell(self._stderr, notes.stop().text)
        self._pause(on=False)

    # --- The end ------------------------------------------------------------------------------------------------------

    def _drain(self, stream: Stream) -> None:
        """Take what the child has left in its pipe."""
        if stream.name.startswith("in"):
            self._wire.close(stream)
            return
        os.set_blocking(stream.source, False)
        taken = 0
        while taken < DRAIN_BYTES and not stream.ended:
            try:
                data = os.read(stream.source, CHUNK_BYTES)
            except BlockingIOError:  # a process that the child has started could still write here
                break
            self._notes.keep(monotonic() - self.started, stream.name, data)
            stream.held += data
            stream.ended = not data
            taken += len(data)
        self._wire.push(stream)

    def linger(self) -> None:
        """Where somebody still needs it, leave a process behind that goes on forwarding, unrecorded.

        A process that the child has started may still write to the child's output: without us, the host would read it.
        And what the host has not yet read of the child's output would be in a pipe, there to be read after the exit.
        """
        wire = self._wire
        if not wire.streams or _fork():
            return
        for fd in (self._signals.fd, self._notes.report, self._notes.pipe):
            wire.unwatch(fd)
        self._signals.close()
        self._notes.forget()
        self._notes.fresh.clear()
        if all(stream.outlet is not self._stderr for stream, _ in wire.streams.values()):
            if any(stream.name == "out" and not stream.ended for stream, _ in wire.streams.values()):
                tell(self._stderr, f"a process that the command started still has its output; {_UNRECORDED}")
            self._stderr.close()  # whoever waits for its end need not wait for us
        else:
            self._lingers = True
        self._pause(on=False)
        wire.on_last_closed = self._stop
        self._running = True
        self._forward()
        if self._lingers:
            self._tell_unrecorded()
        os._exit(0)

    def _stop(self) -> None:
        self._running = False


def leave_open() -> None:
    """Standard error: we may have to say something yet."""


def _fork() -> bool:
    """Whether to go on as the process that was there before, be it because there can't be another."""
    try:
        return os.fork() != 0
    except OSError:
        return True
