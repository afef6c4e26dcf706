"""Server of the HTTP worker process: one thread with one poll loop for all connections of the child's processes.

It is forked before the child starts, detaches as the writer process does, and ends with its recorder.
"""

from __future__ import annotations

import fcntl
import json
import os
import termios
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from .event_loop import READ, WRITE
from .inject.ext_recorder_agent.channel import HEAD

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from .event_loop import EventLoop

READ_BYTES = 262_144
READ_CHECK_S = 0.0003  # between two checks whether a child has read a piece
SILENCE_S = 0.3  # without data from processes that continue after the session
MOST_PENDING = 1_048_576  # bytes queued for a child that does not read


class ChildConnection:
    """Connection of a child: carries frames, or, once it replaces one of the child's connections, plain bytes.

    Attributes:
        number: of the connection.
        raw: it replaces a connection, so received bytes are not frames any more.
    """

    def __init__(self, number: int, sock: socket.socket) -> None:
        self.number = number
        self.sock = sock
        self.raw = False
        self.received = bytearray()
        self._pending: deque[bytes] = deque()
        self._source: Iterator[bytes] | None = None
        self._ending = False
        self._piecewise = False
        self.waits = False  # for the child to have read a piece, before the next one
        self.closed = False

    def write(self, data: bytes) -> None:
        """Send bytes as soon as the child reads."""
        if data:
            self._pending.append(data)

    def stream(self, source: Iterator[bytes], *, end: bool, piecewise: bool = False) -> None:
        """Send the pieces of an iterator as the child reads them.

        Args:
            end: close the connection afterwards.
            piecewise: send a piece only when the previous one has been read, so that two are never read as one.
        """
        self._source = source
        self._ending = end
        self._piecewise = piecewise

    def answer(self, response: dict[str, object]) -> None:
        """Send a frame."""
        line = json.dumps(response).encode()
        self.write(HEAD.pack(len(line), 0) + line)

    @property
    def wants_to_write(self) -> bool:
        """Return True if there is anything to send."""
        return not self.waits and (bool(self._pending) or self._source is not None or self._ending)

    def push(self) -> bool:
        """Send what the socket accepts. Return False if the connection has ended."""
        while True:
            self.waits = self._piecewise and self._source is not None and not self._pending and self._unread() > 0
            if self.waits:
                return True
            while not self._pending and self._source is not None:
                piece = next(self._source, None)
                if piece is None:
                    self._source = None
                elif piece:
                    self._pending.append(piece)
            if not self._pending:
                return not self._ending
            data = self._pending[0]
            try:
                sent = self.sock.send(data)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if sent == len(data):
                self._pending.popleft()
            else:
                self._pending[0] = data[sent:]

    def _unread(self) -> int:
        """Return the number of bytes sent and not yet read, as Linux reports it; 0 if there are none."""
        try:
            return int.from_bytes(fcntl.ioctl(self.sock, termios.TIOCOUTQ, bytes(4)), "little")
        except OSError:
            return 0


class MessageHandler(Protocol):
    """Handler of frames and bytes from children."""

    def frame(self, peer: ChildConnection, event: dict[str, object], data: bytes, /) -> None:
        """Process a report or a question of a child."""

    def data(self, peer: ChildConnection, data: bytes) -> None:
        """Process bytes on a connection that replaces one of the child's."""

    def gone(self, peer: ChildConnection) -> None:
        """Process the end of a connection."""


def serve(
    loop: EventLoop,
    listener: socket.socket,
    control: int,
    handler: MessageHandler,
    stop: Callable[[EventLoop], None] | None = None,
) -> bytes:
    """Serve children until the recorder ends the session and everything sent before has been read.

    Args:
        control: pipe from the recorder: WHOLE or INTERRUPTED at the end, closed if the recorder was killed.
        stop: is called at the end, and stops a process that reports like a child.

    Returns:
        Bytes that the recorder has sent; b"" if it was killed.
    """
    children = _Children(loop, listener, control, handler)
    while not children.is_over:
        loop.turn(None)
    if stop is not None:
        stop(loop)
    while children.peers and loop.turn(SILENCE_S):
        pass
    for peer in list(children.peers.values()):
        children.close(peer)
    loop.drain()
    return children.received


class _Children:
    """Connections of the agents inside of children."""

    def __init__(self, loop: EventLoop, listener: socket.socket, control: int, handler: MessageHandler) -> None:
        self._loop = loop
        self._listener = listener
        self._control = control
        self._handler = handler
        self._count = 0
        self.peers: dict[int, ChildConnection] = {}
        self.is_over = False
        self.received = b""  # from the recorder
        listener.settimeout(0)
        loop.watch(listener.fileno(), READ, self._on_child)
        loop.watch(control, READ, self._on_control)

    def _on_child(self, _events: int) -> None:
        with suppress(OSError):
            sock, _ = self._listener.accept()
            sock.settimeout(0)
            self._count += 1
            peer = self.peers[sock.fileno()] = ChildConnection(self._count, sock)
            self._loop.watch(sock.fileno(), READ, lambda events: self._serve(peer, events))

    def _on_control(self, _events: int) -> None:
        self.received = os.read(self._control, 1)
        self.is_over = True
        self._loop.unwatch(self._control)

    def _serve(self, peer: ChildConnection, events: int) -> None:
        if peer.closed:
            return
        is_open = self._read(peer) if events & READ else True
        if not is_open or ((peer.wants_to_write or peer.waits) and not peer.push()):
            self.close(peer)
            return
        if peer.waits:
            self._loop.after(READ_CHECK_S, lambda: self._serve(peer, 0))
        events = READ | (WRITE if peer.wants_to_write else 0)
        self._loop.rewatch(peer.sock.fileno(), events, lambda events: self._serve(peer, events))

    def _read(self, peer: ChildConnection) -> bool:
        try:
            data = peer.sock.recv(READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if peer.raw and data:
            self._handler.data(peer, data)
            return True
        received = peer.received
        received += data
        while len(received) >= HEAD.size:
            length, size = HEAD.unpack_from(received)
            end = HEAD.size + length + size
            if len(received) < end:
                break
            event = json.loads(received[HEAD.size : HEAD.size + length])
            payload = bytes(received[HEAD.size + length : end])
            del received[:end]
            self._handler.frame(peer, event if isinstance(event, dict) else {}, payload)
        return bool(data)

    def close(self, peer: ChildConnection) -> None:
        """Close a connection."""
        peer.closed = True
        self._loop.unwatch(peer.sock.fileno())
        self.peers.pop(peer.sock.fileno(), None)
        peer.sock.close()
        self._handler.gone(peer)
