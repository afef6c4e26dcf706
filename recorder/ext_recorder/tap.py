"""The tap: bytes between host and child, forwarded first and noted second.

One thread and one poll(): no event loop, no locks, nothing that understands messages. A chunk is written on in the turn
in which it was read, whatever it is, and then noted as (seconds, stream, bytes). Where a reader does not keep up, we
hold the one chunk and read no more of that stream, as a full pipe would; the other streams go on.
"""

from __future__ import annotations

import os
from functools import partial
from select import POLLIN, POLLOUT, poll
from signal import SIGCHLD
from time import monotonic

from .child import way_of_ending
from .outlets import Outlet, host_outlet, pipe_outlet, release, tell
from .signals import signal_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .child import Child
    from .notes import Notes
    from .signals import Signals

# The most that is read at once. A Linux pipe holds as much, so that one read empties it.
CHUNK_BYTES = 65_536
# When nothing comes for so long the wire is idle: time to hand over what was noted. Less than a tick of the kernel,
# 4 ms, costs a timer interrupt of its own, and that shows in every tenth round trip.
IDLE_MS = 5
# Notes are handed over at the latest when they weigh this much. It takes some 400 µs, so it should not be in every
# hundredth round trip.
BATCH_BYTES = 524_288
# What a note weighs beside its bytes.
NOTE_BYTES = 256
# The scribe may be behind by so much; then the wire waits for it, so that memory stays bounded.
QUEUE_BYTES = 16_777_216
# How often to ask, while the wire waits, whether the scribe is still at work.
STALL_CHECK_MS = 1_000
# What is taken from a stream after the child's end. Its pipe can't hold more.
DRAIN_BYTES = 1_048_576
# Instead of a number of bytes written: there is no reader any more.
NO_READER = -1


class Stream:
    """One direction of the wire.

    Attributes:
        name: "in", "out" or "err", as the child sees it.
        source: the file to read.
        close_source: lets its writer see that nobody reads.
        outlet: where the bytes go.
        held: what was read and could not be written yet.
        listening: whether the source is polled.
        ended: nothing more will come; to be closed once `held` is written.
    """

    __slots__ = ("close_source", "ended", "held", "listening", "name", "outlet", "source")

    def __init__(self, name: str, source: int, close_source: Callable[[int], None], outlet: Outlet) -> None:
        self.name = name
        self.source = source
        self.close_source = close_source
        self.outlet = outlet
        self.held = b""
        self.listening = False
        self.ended = False


class Tap:
    """The wire of one child, from start to exit.

    Args:
        child: the running child.
        signals: where the host's signals arrive.
        notes: takes what is seen.
        stderr: the host's standard error; it stays open to the end, for us to say something.
    """

    def __init__(self, child: Child, signals: Signals, notes: Notes, stderr: Outlet) -> None:
        self._child = child
        self._signals = signals
        self._notes = notes
        self._stderr = stderr
        self._started = monotonic()
        self._poll = poll()
        self._patience = signals.patience  # ms that poll() may wait when there is nothing to hand over
        self._running = True
        self._paused = False
        self._status: int | None = None
        # What every turn of the loop asks: is this file to be forwarded, and where to? If not, what else is to be done?
        self._streams: dict[int, tuple[Stream, Callable[[bytes], int]]] = {}
        self._others: dict[int, Callable[[int], None]] = {}
        self._watch(signals.fd, POLLIN, self._on_signals)
        if notes.on:
            self._watch(notes.report, POLLIN, self._on_report)
        self._open(Stream("in", 0, release, pipe_outlet(child.stdin)))
        self._open(Stream("out", child.stdout, os.close, host_outlet(1)))
        self._open(Stream("err", child.stderr, os.close, stderr))

    def run(self) -> int:
        """Forward until the child has ended, and note that. Returns its wait status."""
        self._forward()
        for stream, _ in list(self._streams.values()):
            self._drain(stream)
        assert self._status is not None  # `_running` ends by it
        self._note("exit", way_of_ending(self._status))
        return self._status

    def _forward(self) -> None:
        """The loop that every byte passes through. A round trip takes two turns."""
        wait, read, clock, started = self._poll.poll, os.read, monotonic, self._started
        streams, fresh = self._streams, self._notes.fresh
        weight = 0
        while self._running:
            ready = wait(IDLE_MS if fresh else self._patience)
            now = clock() - started
            for fd, event in ready:
                if fd not in streams:
                    self._on_other(fd, event)
                    continue
                stream, send = streams[fd]
                try:
                    data = read(fd, CHUNK_BYTES)
                except BlockingIOError:  # a terminal has other readers too
                    continue
                except OSError:  # hung up or reset: as good as ended
                    data = b""
                try:
                    sent = send(data)
                except BlockingIOError:
                    sent = 0
                except OSError:
                    sent = NO_READER
                fresh.append((now, stream.name, data))
                weight += len(data) + NOTE_BYTES
                if sent != len(data) or not data:
                    self._on_odd(stream, data, sent)
            if not ready or weight > BATCH_BYTES:
                self._hand_over()
                weight = 0

    # --- Streams ------------------------------------------------------------------------------------------------------

    def _open(self, stream: Stream) -> None:
        self._streams[stream.source] = (stream, stream.outlet.send)
        self._listen(stream, on=True)
        # No event is asked for: poll() tells in any case that the reader is gone, before anything is lost by writing.
        self._watch(stream.outlet.fd, 0, partial(self._on_outlet, stream))

    def _listen(self, stream: Stream, *, on: bool) -> None:
        if on and not stream.listening:
            self._poll.register(stream.source, POLLIN)
        elif stream.listening and not on:
            self._poll.unregister(stream.source)
        stream.listening = on

    def _close(self, stream: Stream) -> None:
        self._listen(stream, on=False)
        del self._streams[stream.source]
        self._unwatch(stream.outlet.fd)
        stream.close_source(stream.source)
        if stream.outlet is not self._stderr:
            stream.outlet.close()
        if self._status is not None and not self._streams:
            self._running = False  # ends what lingers

    def _on_odd(self, stream: Stream, data: bytes, sent: int) -> None:
        """The stream has ended, nobody reads it any more, or not all could be written."""
        if not data or sent == NO_READER:
            self._close(stream)
            return
        stream.held = data[sent:]
        self._listen(stream, on=False)
        self._poll.modify(stream.outlet.fd, POLLOUT)

    def _on_outlet(self, stream: Stream, event: int) -> None:
        if event == POLLOUT:
            self._push(stream)
        else:
            self._close(stream)  # there is no reader any more

    def _push(self, stream: Stream) -> None:
        """Write what is held; when all of it is gone, go on as before."""
        try:
            sent = stream.outlet.send(stream.held)
        except BlockingIOError:
            sent = 0
        except OSError:
            self._close(stream)
            return
        stream.held = stream.held[sent:]
        self._poll.modify(stream.outlet.fd, POLLOUT if stream.held else 0)
        if not stream.held and stream.ended:
            self._close(stream)
        elif not stream.held:
            self._listen(stream, on=not self._paused)

    # --- Everything else that can happen ------------------------------------------------------------------------------

    def _watch(self, fd: int, events: int, act: Callable[[int], None]) -> None:
        self._others[fd] = act
        self._poll.register(fd, events)

    def _unwatch(self, fd: int) -> None:
        if self._others.pop(fd, None):
            self._poll.unregister(fd)

    def _on_other(self, fd: int, event: int) -> None:
        if fd in self._others:  # else it was closed earlier in this turn
            self._others[fd](event)

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
        self._notes.fresh.append((monotonic() - self._started, kind, what))

    def _hand_over(self) -> None:
        """The wire is idle, or enough was noted."""
        if self._signals.patience is not None:
            self._on_signals(0)
        notes = self._notes
        notes.hand_over()
        if notes.backlog:
            self._watch(notes.pipe, POLLOUT, self._on_room)
        if notes.backlog > QUEUE_BYTES:
            self._pause(on=True)
        if self._paused and notes.stalled():
            self._stop_recording()

    def _on_room(self, _event: int) -> None:
        """The scribe takes more."""
        notes = self._notes
        notes.write()
        if not notes.backlog:
            self._unwatch(notes.pipe)
        if self._paused and notes.backlog < QUEUE_BYTES // 2:
            self._pause(on=False)

    def _pause(self, *, on: bool) -> None:
        self._paused = on
        self._patience = STALL_CHECK_MS if on else self._signals.patience
        for stream, _ in self._streams.values():
            self._listen(stream, on=not on and not stream.held)

    def _on_report(self, _event: int) -> None:
        """The scribe speaks when it is done. Now is too early for that."""
        self._stop_recording()

    def _stop_recording(self) -> None:
        notes = self._notes
        self._unwatch(notes.report)
        self._unwatch(notes.pipe)
        tell(self._stderr, notes.stop().text)
        self._pause(on=False)

    # --- The end ------------------------------------------------------------------------------------------------------

    def _drain(self, stream: Stream) -> None:
        """Take what the child has left in its pipe."""
        if stream.name == "in":
            self._close(stream)
            return
        self._listen(stream, on=False)
        os.set_blocking(stream.source, False)
        taken = 0
        while taken < DRAIN_BYTES and not stream.ended:
            try:
                data = os.read(stream.source, CHUNK_BYTES)
            except BlockingIOError:  # a process that the child has started could still write here
                break
            self._notes.fresh.append((monotonic() - self._started, stream.name, data))
            stream.held += data
            stream.ended = not data
            taken += len(data)
        self._push(stream)

    def linger(self) -> None:
        """Where somebody still needs it, leave a process behind that goes on forwarding, unrecorded.

        A process that the child has started may still write to the child's output: without us, the host would read it.
        And what the host has not yet read of the child's output would be in a pipe, there to be read after the exit.
        """
        if not self._streams or _fork():
            return
        self._unwatch(self._signals.fd)
        self._unwatch(self._notes.report)
        self._unwatch(self._notes.pipe)
        self._signals.close()
        self._notes.forget()
        self._pause(on=False)
        self._running = True
        self._forward()
        os._exit(0)


def _fork() -> bool:
    """Whether to go on as the process that was there before, be it because there can't be another."""
    try:
        return os.fork() != 0
    except OSError:
        return True
