"""A connection that reads and writes without blocking, plain or with TLS, within the event loop."""

from __future__ import annotations

import socket
import ssl
import struct
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from ext_recorder.http.event_loop import READ, WRITE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.http.event_loop import EventLoop

READ_BYTES = 262_144
MOST_READS = 8  # in one turn, so that one connection does not delay the others
MOST_PENDING_BYTES = 1_048_576  # queued for a peer that does not read; its source pauses above
MOST_SOURCES = 64  # queued iterators
LINGER_S = 2.0  # until a peer that has received the end has closed its side
PIECE_GAP_S = 0.001  # between two pieces that must not be read as one
HELLO = 0x16  # first byte of TLS


class StreamHandler(Protocol):
    """Receiver of the events of a stream."""

    def received(self, stream: Stream, data: bytes, /) -> None:
        """Process data of the peer."""

    def ended(self, stream: Stream, error: OSError | None, /) -> None:
        """Process the end of what the peer sends. The stream is closed if there is an error."""

    def secured(self, stream: Stream, error: OSError | None, /) -> None:
        """Process the end of a TLS handshake. The stream is closed if there is an error."""

    def drained(self, stream: Stream, /) -> None:
        """Continue to write: little is queued."""


class Stream:
    """A connection.

    Args:
        sock: connected.

    Attributes:
        handler: receives the events.
        closed: it is closed.
        sock: plain, or that of TLS.
        on_first_byte: is called once with the next byte, before it is read.
    """

    def __init__(self, loop: EventLoop, sock: socket.socket, handler: StreamHandler) -> None:
        self.handler = handler
        self.closed = False
        self.on_first_byte: Callable[[int], None] | None = None
        self.sock = sock
        self._loop = loop
        self._pending: deque[bytes | memoryview] = deque()
        self._size = 0
        self._sources: deque[Iterator[bytes]] = deque()
        self._apart = False
        self._in_gap = False
        self._ending = False
        self._resets = False
        self._lingers = False
        self._paused = False
        self._handshake = False
        self._needs = 0  # events that TLS waits for
        sock.settimeout(0)
        with suppress(OSError):  # a Unix socket
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._fd = sock.fileno()
        self._events = READ
        loop.watch(self._fd, READ, self._on_ready)

    @property
    def is_full(self) -> bool:
        """Return True if the peer does not read what is queued."""
        return self._size > MOST_PENDING_BYTES or len(self._sources) > MOST_SOURCES

    @property
    def is_ended(self) -> bool:
        """Return True if everything was sent after `end`, or the connection is closed."""
        return self.closed or self._lingers

    @property
    def tls(self) -> ssl.SSLSocket | None:
        """Return the socket of TLS; None without TLS."""
        return self.sock if isinstance(self.sock, ssl.SSLSocket) else None

    # --- Writing -----------------------------------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Send bytes, at once if the peer reads."""
        if self.closed or not data:
            return
        if self._sources:
            self._sources.append(iter((data,)))
            return
        if self._pending or self._handshake:
            self._pending.append(data)
            self._size += len(data)
            return
        rest = self._send(data)
        if rest is not None and len(rest):
            self._pending.append(rest)
            self._size += len(rest)
        self._update()

    def stream(self, source: Iterator[bytes], *, end: bool, apart: bool = False) -> None:
        """Send the pieces of an iterator as the peer reads them.

        Args:
            end: close the connection afterwards.
            apart: send the pieces at different moments, so that the peer does not read two of them as one.
        """
        self._sources.append(source)
        self._ending = self._ending or end
        self._apart = apart
        self._push()

    def end(self) -> None:
        """Close the connection after everything was sent."""
        self._ending = True
        self._push()

    def reset_at_end(self) -> None:
        """Close the connection with "connection reset" after everything was sent."""
        self._resets = True
        self.end()

    def reset(self) -> None:
        """Close the connection so that the peer gets "connection reset"."""
        with suppress(OSError):
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        """Close the connection at once."""
        if not self.closed:
            self.closed = True
            self._loop.unwatch(self._fd)
            self._pending.clear()
            self._sources.clear()
            self.sock.close()

    def _send(self, data: bytes | memoryview) -> memoryview | None:
        """Return what was not sent; None if the connection has failed."""
        view = memoryview(data)
        self._needs &= ~WRITE
        while view:
            try:
                view = view[self.sock.send(view) :]
            except (BlockingIOError, ssl.SSLWantWriteError):
                break
            except ssl.SSLWantReadError:
                break
            except OSError:
                # The peer does not read any more. What it has sent is still read; that ends the connection.
                self._pending.clear()
                self._sources.clear()
                self._size = 0
                return None
        return view

    def _push(self) -> None:
        """Send what is queued, as far as the peer reads it; then close, if that was all."""
        while not self.closed and not self._handshake:
            if self._pending:
                data = self._pending.popleft()
                self._size -= len(data)
                if rest := self._send(data):
                    self._pending.appendleft(rest)
                    self._size += len(rest)
                    break
            elif not self._sources or self._in_gap:
                break
            elif (piece := next(self._sources[0], None)) is None:
                self._sources.popleft()
            elif piece:
                self._pending.append(piece)
                self._size += len(piece)
                if self._apart:
                    self._in_gap = True
                    self._loop.after(PIECE_GAP_S, self._end_gap)
        if self._ending and not self._pending and not self._sources and not self._handshake:
            self._finish()
        else:
            self._update()

    def _end_gap(self) -> None:
        self._in_gap = False
        self._push()

    def _finish(self) -> None:
        """Announce the end, and close when the peer has closed: a reset would destroy what it has not read yet."""
        if self.closed or self._lingers:
            return
        if self._resets:
            self.reset()
            return
        self._lingers = True
        with suppress(OSError, ValueError):
            if (tls := self.tls) is not None:
                tls.unwrap()
        with suppress(OSError):
            socket.socket.shutdown(self.sock, socket.SHUT_WR)
        self._loop.after(LINGER_S, self.close)
        self.resume()

    # --- Reading -----------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Do not read until `resume`."""
        self._paused = True
        self._update()

    def resume(self) -> None:
        """Read again."""
        if self._paused and not self.closed:
            self._paused = False
            self._update()
            if (tls := self.tls) is not None and tls.pending():
                self._loop.post(self._read)

    def _update(self) -> None:
        if self.closed:
            return
        events = self._needs
        if not self._paused and not self._handshake:
            events |= READ
        if (self._pending or (self._sources and not self._in_gap)) and not self._handshake:
            events |= WRITE
        if events != self._events:
            self._events = events
            self._loop.rewatch(self._fd, events, self._on_ready)

    def _on_ready(self, events: int) -> None:
        if self._handshake:
            self._shake()
            return
        if events & WRITE:
            was_full = self.is_full
            self._push()
            if was_full and not self.is_full and not self.closed:
                self.handler.drained(self)
        if events & READ and not self.closed and not self._paused:
            byte = b""
            if self.on_first_byte is not None:
                with suppress(OSError):  # of a failed connection, which the next line reads
                    byte = self.sock.recv(1, socket.MSG_PEEK)
            if byte and self.on_first_byte is not None:
                begin, self.on_first_byte = self.on_first_byte, None
                begin(byte[0])
            else:
                self._read()

    def _read(self) -> None:
        for _ in range(MOST_READS):
            if self.closed or self._paused or self._handshake:
                return
            data = self._receive()
            if data is None:
                return
            if not data:
                if self._lingers:
                    self.close()
                else:
                    self.pause()
                    self.handler.ended(self, None)
                return
            if not self._lingers:
                self.handler.received(self, data)
            if len(data) < READ_BYTES and self.tls is None:
                return
        if not self.closed and (tls := self.tls) is not None and tls.pending():
            self._loop.post(self._read)

    def _receive(self) -> bytes | None:
        """Return data; none at the end of the connection, None if there is none yet, or the connection has failed."""
        try:
            return self.sock.recv(READ_BYTES)
        except (BlockingIOError, ssl.SSLWantReadError):
            return None
        except ssl.SSLWantWriteError:
            self._needs |= WRITE
            self._update()
            return None
        except OSError as error:
            self.close()
            if not self._lingers:
                self.handler.ended(self, error)
            return None

    # --- TLS ---------------------------------------------------------------------------------------------------------

    def start_tls(self, context: ssl.SSLContext, *, server: bool, name: str = "") -> None:
        """Begin a TLS handshake; `secured` of the handler is called at its end.

        Args:
            server: act as the server.
            name: of the server, for a client.
        """
        self._loop.unwatch(self._fd)
        self._events = 0
        self.sock = context.wrap_socket(
            self.sock,
            server_side=server,
            server_hostname=name or None,
            do_handshake_on_connect=False,
            suppress_ragged_eofs=False,
        )
        self._fd = self.sock.fileno()
        self._handshake = True
        self._shake()

    def _shake(self) -> None:
        assert isinstance(self.sock, ssl.SSLSocket)
        try:
            self.sock.do_handshake()
        except ssl.SSLWantReadError:
            self._needs = READ
        except ssl.SSLWantWriteError:
            self._needs = WRITE
        except OSError as error:
            self._handshake = False
            self.close()
            self.handler.secured(self, error)
            return
        else:
            self._handshake = False
            self._needs = 0
            self.handler.secured(self, None)
            if not self.closed:
                self._push()
                self._loop.post(self._read)  # data may have come with the handshake
            return
        self._update()
