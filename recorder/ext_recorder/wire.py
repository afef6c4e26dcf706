"""The wire: three streams between host and child, and the one poll() that watches them.

Where a reader does not keep up, we hold the one chunk and read no more of that stream, as a full pipe would; the other
streams go on.
"""

from __future__ import annotations

from functools import partial
from select import POLLIN, POLLOUT, poll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from .outlets import Outlet

# Instead of a number of bytes written: there is no reader any more.
NO_READER = -1


class Stream:
    """One direction of the wire.

    Args:
        name: "in", "out" or "err", as the child sees it.
        source: the file to read.
        close_source: lets its writer see that nobody reads.
        outlet: where the bytes go.
        close_outlet: lets its reader see that nothing more comes.

    Attributes:
        held: what was read and could not be written yet.
        listening: whether the source is polled.
        ended: nothing more will come; to be closed once `held` is written.
    """

    __slots__ = ("close_outlet", "close_source", "ended", "held", "listening", "name", "outlet", "source")

    def __init__(
        self,
        name: str,
        source: int,
        close_source: Callable[[int], None],
        outlet: Outlet,
        close_outlet: Callable[[], None],
    ) -> None:
        self.name = name
        self.source = source
        self.close_source = close_source
        self.outlet = outlet
        self.close_outlet = close_outlet
        self.held = b""
        self.listening = False
        self.ended = False


class Wire:
    """The open streams, and whatever else is waited for.

    Attributes:
        poll: waits for all of it.
        streams: by the file that is read: the stream, and what writes its bytes. Asked in every turn of the loop.
        paused: nothing is read.
        on_last_closed: called when no stream is open any more.
    """

    def __init__(self) -> None:
        self.poll = poll()
        self.streams: dict[int, tuple[Stream, Callable[[bytes], int]]] = {}
        self.on_last_closed: Callable[[], None] | None = None
        self._others: dict[int, Callable[[int], None]] = {}
        self.paused = False

    def open(self, stream: Stream) -> None:
        """Begin to forward a stream."""
        self.streams[stream.source] = (stream, stream.outlet.send)
        self._listen(stream, on=True)
        # No event is asked for: poll() tells in any case that the reader is gone, before anything is lost by writing.
        self.watch(stream.outlet.fd, 0, partial(self._on_outlet, stream))

    def close(self, stream: Stream) -> None:
        """End a stream on both sides; what is held is lost."""
        self._listen(stream, on=False)
        del self.streams[stream.source]
        self.unwatch(stream.outlet.fd)
        stream.close_source(stream.source)
        stream.close_outlet()
        if not self.streams and self.on_last_closed:
            self.on_last_closed()

    def wrote(self, stream: Stream, data: bytes, sent: int) -> None:
        """After a chunk that did not just pass: it was the end, nobody reads it, or not all could be written.

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

    def push(self, stream: Stream) -> None:
        """Write what is held. When all of it is gone, the stream goes on, or ends if it has ended."""
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
        """Read nothing, or go on reading."""
        self.paused = on
        for stream, _ in self.streams.values():
            self._listen(stream, on=not stream.held and not on)

    def watch(self, fd: int, events: int, act: Callable[[int], None]) -> None:
        """Call `act` with what poll() says of another file."""
        self._others[fd] = act
        self.poll.register(fd, events)

    def unwatch(self, fd: int) -> None:
        """No longer. Harmless for a file that is not watched."""
        if self._others.pop(fd, None):
            self.poll.unregister(fd)

    def act(self, fd: int, event: int) -> None:
        """Do what is to be done for a file that is no stream's source."""
        if fd in self._others:  # else it was closed earlier in this turn
            self._others[fd](event)

    def _listen(self, stream: Stream, *, on: bool) -> None:
        if on and not stream.listening:
            self.poll.register(stream.source, POLLIN)
        elif stream.listening and not on:
            self.poll.unregister(stream.source)
        stream.listening = on

    def _on_outlet(self, stream: Stream, event: int) -> None:
        if event == POLLOUT:
            self.push(stream)
        else:
            self.close(stream)  # there is no reader any more
