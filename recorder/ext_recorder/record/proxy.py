"""Proxy between host and child: three streams, and one poll() for all of them.

If a reader is slow, the proxy holds one chunk and stops reading that stream, as a full pipe would; the other streams
continue.
"""

from __future__ import annotations

import os
from functools import partial
from select import POLLIN, POLLOUT, poll
from signal import SIGCHLD
from time import monotonic

from ext_recorder.posix.child import exit_status
from ext_recorder.posix.output import host_outlet, pipe_outlet, release, write_message
from ext_recorder.posix.signals import signal_name

from .note_queue import BATCH_BYTES, FILES, NOTE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.posix.child import Child
    from ext_recorder.posix.output import OutputSink
    from ext_recorder.posix.signals import Signals
    from ext_recorder.replay.workspace import WorkspaceTracker

    from .note_queue import NoteQueue


# In the place of a number of bytes written: the reader has closed the file.
NO_READER = -1


class ProxyStream:
    """One direction of the session.

    Args:
        name: "in", "out" or "err", as the child sees it.
        source: file to read.
        close_source: closes the source, so that its writer gets an error.
        outlet: destination of the bytes.
        close_outlet: closes the destination, so that its reader gets the end of file.

    Attributes:
        label: the name as the journal has it.
        held: bytes that were read and could not be written yet.
        listening: the source is polled.
        ended: the source has ended; the destination is closed once `held` is written.
    """

    __slots__ = ("close_outlet", "close_source", "ended", "held", "label", "listening", "name", "outlet", "source")

    def __init__(
        self,
        name: str,
        source: int,
        close_source: Callable[[int], None],
        outlet: OutputSink,
        close_outlet: Callable[[], None],
    ) -> None:
        self.name = name
        self.label = name.encode()
        self.source = source
        self.close_source = close_source
        self.outlet = outlet
        self.close_outlet = close_outlet
        self.held = b""
        self.listening = False
        self.ended = False


class PollSet:
    """The open streams, and whatever else is waited for.

    Attributes:
        poll: waits for all of it.
        streams: by the file that is read: the stream, and what writes its bytes. Asked in every turn of the loop.
        paused: nothing is read.
        on_last_closed: called when no stream is open any more.
    """

    def __init__(self) -> None:
        self.poll = poll()
        self.streams: dict[int, tuple[ProxyStream, Callable[[bytes], int]]] = {}
        self.on_last_closed: Callable[[], None] | None = None
        self._others: dict[int, Callable[[int], None]] = {}
        self.paused = False

    def open(self, stream: ProxyStream) -> None:
        """Begin to forward a stream."""
        self.streams[stream.source] = (stream, stream.outlet.send)
        self._listen(stream, on=True)
        # No event is asked for: poll() tells in any case that the reader is gone, before anything is lost by writing.
        self.watch(stream.outlet.fd, 0, partial(self._on_outlet, stream))

    def close(self, stream: ProxyStream) -> None:
        """End a stream on both sides; what is held is lost."""
        self._listen(stream, on=False)
        del self.streams[stream.source]
        self.unwatch(stream.outlet.fd)
        stream.close_source(stream.source)
        stream.close_outlet()
        if not self.streams and self.on_last_closed:
            self.on_last_closed()

    def wrote(self, stream: ProxyStream, data: bytes, sent: int) -> None:
        """Handle a chunk that was not forwarded: the end of input, a closed reader, or a partial write.

        Args:
            stream: whose it is.
            data: the chunk; b"" at the end of the stream.
            sent: how many bytes were written, or NO_READER.
        """
        if not data or sent == NO_READER:
            self.close(stream)
            return
        stream.held = data[sent:]
        self._listen(stream, on=False)
        self.poll.modify(stream.outlet.fd, POLLOUT)

    def push(self, stream: ProxyStream) -> None:
        """Write the held bytes. When all are written, continue the stream, or close it if its source has ended."""
        try:
            sent = stream.outlet.send(stream.held)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.close(stream)
            return
        stream.held = stream.held[sent:]
        if not stream.held and stream.ended:
            self.close(stream)
            return
        self.poll.modify(stream.outlet.fd, POLLOUT if stream.held else 0)
        self._listen(stream, on=not stream.held and not self.paused)

    def pause(self, *, on: bool) -> None:
        """Stop or continue reading all streams."""
        self.paused = on
        for stream, _ in self.streams.values():
            self._listen(stream, on=not stream.held and not on)

    def watch(self, fd: int, events: int, act: Callable[[int], None]) -> None:
        """Call `act` with the events that poll() returns for another file."""
        self._others[fd] = act
        self.poll.register(fd, events)

    def unwatch(self, fd: int) -> None:
        """Stop watching a file. Does nothing if the file is not watched."""
        if self._others.pop(fd, None):
            self.poll.unregister(fd)

    def act(self, fd: int, event: int) -> None:
        """Handle a file that is not the source of a stream."""
        if fd in self._others:  # else it was closed before, in the same turn
            self._others[fd](event)

    def _listen(self, stream: ProxyStream, *, on: bool) -> None:
        if on and not stream.listening:
            self.poll.register(stream.source, POLLIN)
        elif stream.listening and not on:
            self.poll.unregister(stream.source)
        stream.listening = on

    def _on_outlet(self, stream: ProxyStream, event: int) -> None:
        if event == POLLOUT:
            self.push(stream)
        else:
            self.close(stream)  # the reader has closed the file


# Most bytes of one read: the size of a Linux pipe, so that one read empties it.
CHUNK_BYTES = 65_536

# After this time without input, the notes are sent to the writer process. A time below a tick of the kernel, 4 ms,
# would cost an additional timer interrupt, which is visible in every tenth round trip.
IDLE_MS = 5

# While the session is busy, notes are sent only if one of them has this age, in seconds, or if small chunks have filled
# the journal: sending takes time, and a large message would have to wait.
LAG_S = 0.25

# Most bytes that may wait for the writer process: a message of 20 MB and its echo. Then the session waits as well, so
# that memory stays bounded.
QUEUE_BYTES = 44_040_192

# Time between checks of the writer process while the session waits for it.
STALL_CHECK_MS = 1_000

# What is taken from a stream after the child's end. Its pipe can't hold more.
DRAIN_BYTES = 1_048_576
_HOST = 0  # standard input
_UNRECORDED = "what it writes is passed on, but not recorded"


class StdioProxy:
    """The wire of one child, from start to exit.

    Args:
        child: the running child.
        signals: where the host's signals arrive.
        notes: takes what is seen.
        stderr: the host's standard error; it stays open to the end, for us to say something.
        workspaces: notes the files that the child changes; None if they are not recorded.

    Attributes:
        started: the moment on the monotonic clock that is 0 in the cassette.
    """

    def __init__(
        self,
        child: Child,
        signals: Signals,
        queue: NoteQueue,
        stderr: OutputSink,
        workspaces: WorkspaceTracker | None = None,
    ) -> None:
        self._child = child
        self._signals = signals
        self._queue = queue
        self._stderr = stderr
        self.started = monotonic()
        self._workspaces = workspaces
        if workspaces:
            workspaces.keep = self._keep_files
        self._patience = signals.patience  # ms that poll() may wait when there is nothing to hand over
        self._running = True
        self._lingers = False  # after the child's exit, while nothing was reported of it
        self._status: int | None = None
        self._weight = 0  # of what was left when notes were handed over last
        self._wire = wire = PollSet()
        wire.watch(signals.fd, POLLIN, self.on_signals)
        wire.watch(queue.report, POLLIN, self._on_report)
        self.open_streams(child)

    def open_streams(self, child: Child) -> None:
        """Begin to forward the child's standard files; a proxy of sockets forwards others."""
        out = host_outlet(1)
        into = pipe_outlet(child.stdin)
        self._wire.open(ProxyStream("in", _HOST, release, into, into.close))
        self._wire.open(ProxyStream("out", child.stdout, os.close, out, out.close))
        self._wire.open(ProxyStream("err", child.stderr, os.close, self._stderr, leave_open))

    def say(self, data: bytes) -> None:
        """Forward input that the host sent before the child was started. To be called once, before `run`."""
        stream, _ = self._wire.streams[_HOST]
        self._queue.keep(0.0, stream.name, data)
        stream.held = data
        self._wire.push(stream)

    def run(self) -> int:
        """Forward until the child has ended, and note that. Returns its wait status."""
        self._forward()
        for stream, _ in list(self._wire.streams.values()):
            if stream.name.startswith("in"):
                self._wire.close(stream)
                continue
            os.set_blocking(stream.source, False)
            taken = 0  # of what the child has left in its pipe
            while taken < DRAIN_BYTES and not stream.ended:
                try:
                    data = os.read(stream.source, CHUNK_BYTES)
                except BlockingIOError:  # a process that the child has started could still write here
                    break
                if self._workspaces:
                    self._workspaces.observe(stream.name, data)
                self._queue.keep(monotonic() - self.started, stream.name, data)
                stream.held += data
                stream.ended = not data
                taken += len(data)
            self._wire.push(stream)
        if self._workspaces:
            self._workspaces.note()
        assert self._status is not None  # `_running` ends by it
        self._note("exit", exit_status(self._status))
        return self._status

    def _forward(self) -> None:
        """Forward and note every byte. A round trip takes two turns of this loop."""
        wait, clock, started = self._wire.poll.poll, monotonic, self.started
        read = self._read if self._workspaces else os.read
        wire, streams, queue, fresh = self._wire, self._wire.streams, self._queue, self._queue.fresh
        write_down, data = queue.journal.add, b""
        weight = 0  # of what is fresh, as far as it is bytes
        eager = False  # the wire is idle, and there is more to hand over
        while self._running:
            ready = wait(0 if eager else IDLE_MS if fresh and not queue.backlog else self._patience)
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
                fresh.append((now, stream.name, write_down(now, stream.label, data)))
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
                weight = self.hand_over(weight)
                eager = not ready and weight > 0 and not queue.backlog

    def _read(self, fd: int, size: int) -> bytes:
        """Read a source, and note the files that have changed before its bytes are forwarded."""
        data = os.read(fd, size)
        if self._workspaces:
            self._workspaces.observe(self._wire.streams[fd][0].name, data)
        return data

    def _presses(self, now: float, weight: int, size: int) -> bool:
        """Return True if a busy session has to wait while notes are sent.

        Args:
            now: the time in the recording.
            weight: of what was noted, in bytes.
            size: bytes of the last chunk.
        """
        queue = self._queue
        if now - queue.fresh[0][0] > LAG_S or weight > QUEUE_BYTES:
            return True
        return queue.on and queue.journal.is_long and size < CHUNK_BYTES

    # --- Signals ------------------------------------------------------------------------------------------------------

    def on_signals(self, _event: int) -> None:
        for number, known_to_child in self._signals.take():
            if not self._running:
                continue
            if number == SIGCHLD:
                self._status = self._child.poll()
                self._running = self._status is None
            else:
                if not known_to_child:
                    self._child.send(number)
                self._note("signal", signal_name(number))

    # --- The recording ------------------------------------------------------------------------------------------------

    def _keep_files(self, changes: bytes) -> None:
        queue = self._queue
        queue.keep(monotonic() - self.started, FILES, changes)
        if queue.journal.full and queue.on and not self._wire.paused:  # a kill would lose them, and what follows
            queue.drain()

    def _note(self, kind: str, what: int | str) -> None:
        self._queue.keep(monotonic() - self.started, kind, what)

    def _tell_unrecorded(self) -> None:
        """Report output of a process that the child has started, once."""
        if any(isinstance(what, (bytes, memoryview)) and what for _, _, what in self._queue.fresh):
            self._lingers = False
            write_message(self._stderr, f"a process that the command started writes after its exit; {_UNRECORDED}")

    def hand_over(self, weight: int) -> int:
        """Send notes: the session is idle, or the notes are old or many.

        Args:
            weight: of what was noted, in bytes.

        Returns:
            What is left of it.
        """
        if self._lingers:
            self._tell_unrecorded()
        if self._signals.patience is not None:
            self.on_signals(0)
        queue = self._queue
        if queue.fresh and not queue.backlog:
            weight = max(weight - queue.flush(), 1)
            if not queue.fresh:
                weight = 0
        if queue.backlog:
            self._wire.watch(queue.pipe, POLLOUT, self._on_room)
        self._weight = weight
        self._balance()
        if self._wire.paused and queue.stalled():
            self._stop_recording()
        return weight

    def _on_room(self, _event: int) -> None:
        """Write to the writer process, which can take more."""
        queue = self._queue
        queue.write()
        if not queue.backlog:
            self._wire.unwatch(queue.pipe)
        self._balance()

    def _balance(self) -> None:
        """Pause forwarding while too much waits for the writer process."""
        waiting = self._weight + self._queue.backlog
        if self._wire.paused and waiting < QUEUE_BYTES // 2:
            self._pause(on=False)
        elif not self._wire.paused and waiting > QUEUE_BYTES:
            self._pause(on=True)

    def _pause(self, *, on: bool) -> None:
        self._patience = STALL_CHECK_MS if on else self._signals.patience
        self._wire.pause(on=on)

    def _on_report(self, _event: int) -> None:
        """Stop recording: the writer process reports at its end, which is too early now."""
        self._stop_recording()

    def _stop_recording(self) -> None:
        queue = self._queue
        self._wire.unwatch(queue.report)
        self._wire.unwatch(queue.pipe)
        write_message(self._stderr, queue.stop().text)
        self._pause(on=False)

    # --- The end ------------------------------------------------------------------------------------------------------

    def linger(self) -> None:
        """Fork a process that continues to forward, unrecorded, if a reader still needs it.

        A process that the child has started may still write to the child's output: without us, the host would read it.
        And what the host has not yet read of the child's output would be in a pipe, there to be read after the exit.
        """
        wire = self._wire
        try:
            if not wire.streams or os.fork() != 0:
                return
        except OSError:  # it cannot be forked: this process continues as the original one
            return
        for fd in (self._signals.fd, self._queue.report, self._queue.pipe):
            wire.unwatch(fd)
        self._signals.close()
        self._queue.forget()
        self._queue.fresh.clear()
        if all(stream.outlet is not self._stderr for stream, _ in wire.streams.values()):
            if any(stream.name == "out" and not stream.ended for stream, _ in wire.streams.values()):
                write_message(self._stderr, f"a process that the command started still has its output; {_UNRECORDED}")
            self._stderr.close()  # a reader that waits for its end does not have to wait for this process
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
    """Do nothing: standard error stays open for our own messages."""
