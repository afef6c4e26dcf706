"""One connection to a live server: its socket, and the script of what is said on it."""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.sockets.address import receive, shut

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from ext_recorder.sockets.address import Address
    from ext_recorder.sockets.recorded import Connection

    from .script import Script

    # Told of what happens: in, out or open, and the bytes, or the value of a mark.
    LinkNote = Callable[[str, bytes | str], None]


class Link:
    """One connection.

    Args:
        recorded: what it was.
        script: what is said on it.
        note: told of all that happens.

    Attributes:
        number: of the recorded one.
        line: where that begins.
        script: as given.
        socket: None before it is made, and when it is over.
        rest: bytes that wait for the server to read them.
        opened: it was made, once.
        came: when it was first its turn.
    """

    def __init__(self, recorded: Connection, script: Script, note: LinkNote) -> None:
        self.number = recorded.number
        self.line = recorded.line
        self.script = script
        self.socket: socket.socket | None = None
        self.rest = memoryview(b"")
        self.opened = False
        self.came = 0.0
        self._note = note

    @property
    def position(self) -> int:
        """As that of a script."""
        return self.script.position if self.opened else self.line

    @property
    def idle(self) -> bool:
        """Whether all that was to be said is said."""
        return not self.rest and not self.script.outbox

    def open(self, address: Address) -> None:
        """Connect, and begin. Raises OSError."""
        self.socket = address.connect()
        self.opened = True
        self._note("open", "in")
        self.script.start(monotonic())

    def write(self) -> None:
        """Say what the server takes."""
        script = self.script
        while self.socket and (self.rest or script.outbox):
            if not self.rest:
                self._take(self.socket)
                continue
            try:
                self.rest = self.rest[self.socket.send(self.rest) :]
            except BlockingIOError:
                return
            except OSError:  # it is gone; what that means shows when nothing more can be read
                self.rest = memoryview(b"")
                script.outbox.clear()

    def _take(self, connection: socket.socket) -> None:
        each = self.script.take()
        if isinstance(each, bytes):
            self.rest = memoryview(each)
            self._note("in", each)
        elif each is None:
            self._note("in", b"")
            shut(connection)

    def read(self) -> None:
        """Take what the server says."""
        assert self.socket is not None
        data = receive(self.socket)
        if data is None:
            return
        self._note("out", data)
        if data:
            self.script.receive_data(data, monotonic())
        else:
            self.script.receive_eof(monotonic())
            self.close()

    def close(self) -> None:
        """It is over."""
        if self.socket:
            self.socket.close()
            self.socket = None
