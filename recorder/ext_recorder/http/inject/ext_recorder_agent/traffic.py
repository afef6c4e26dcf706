"""Traffic reporter for recording: sends a copy of all data on connections, in plain text, to the recorder.

All client libraries (http.client, urllib3, requests, httpx, …) use the methods of `socket.socket` and `ssl.SSLSocket`,
so these are patched. Nothing is delayed, and nothing is read that the child does not read: a body that the child leaves
unread stays unread.
"""

from __future__ import annotations

from base64 import b64encode

from .call_context import current
from .channel import shown
from .connections import Connection, Connections, Hellos
from .errors import described

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    import ssl
    from typing import Any

    from .channel import Channel, Event
    from .clock import RecordedClock
    from .errors import Failure


GAVE_UP: Failure = {"type": "GaveUp", "errno": None, "message": "the child did not wait for the end of the handshake"}


class TrafficReporter:
    """Reports events on sockets.

    Attributes:
        hellos: ClientHellos of TLS in memory buffers.
    """

    def __init__(self, channel: Channel, times: RecordedClock) -> None:
        self.connections = Connections()
        self.hellos = Hellos()
        self._channel = channel
        self.times = times
        self._now = times.real

    def report(self, kind: str, event: Event, data: bytes | bytearray | memoryview = b"") -> None:
        """Send an event to the recorder, with its time and call."""
        self._channel.send({"k": kind, "t": self._now(), "call": current(), **self.times.unsent(), **event}, data)

    def flush(self) -> None:
        """Send the remaining readings, at the end of the process."""
        readings = self.times.unsent()
        if readings.get("wall") or (self._channel.open and readings["ns"]):
            self._channel.send({"k": "times", **readings})

    def problem(self, text: str) -> None:
        """Report traffic that cannot be recorded."""
        self.report("problem", {"text": text})

    # --- Events of connections ---------------------------------------------------------------------------------------

    def opened(self, sock: socket.socket, address: object) -> None:
        """Report that a socket is connected or connecting."""
        fd = sock.fileno()
        self.closed(fd)
        name = self.connections.name_of(address)
        connection = Connection(self.connections.number(), address, name, current())
        self.connections.by_fd[fd] = connection
        self.report("open", {"c": connection.id, "host": name, "address": shown(address)})
        self.times.step()

    def refused(self, address: object, error: BaseException) -> None:
        """Report a failed connection."""
        name = self.connections.name_of(address)
        self.report("refused", {"host": name, "address": shown(address), "error": described(error)})

    def sent(self, fd: int, data: bytes | bytearray | memoryview) -> None:
        """Report bytes sent."""
        connection = self.connections.by_fd.get(fd)
        if connection is not None:
            self.passed_out(connection, None, data)

    def passed_out(self, connection: Connection, within: object, data: bytes | bytearray | memoryview) -> None:
        """Report bytes that the child has written.

        Args:
            within: the `ssl.SSLObject` that accepted them; None for the socket.
            data: the bytes; encrypted, if another object is above that one.
        """
        if connection.within is not within or not len(data):
            return
        above: Any = self.hellos.sender(data)
        if above is not None:
            connection.within, connection.tls, above._recorded = above, False, connection
            return
        self.report("out", {"c": connection.id}, data)
        self.times.step()

    def received(self, fd: int, data: bytes | bytearray | memoryview) -> None:
        """Report bytes received; none if the peer has closed the connection."""
        connection = self.connections.by_fd.get(fd)
        if connection is not None:
            self.passed_in(connection, None, data)

    def passed_in(self, connection: Connection, within: object, data: bytes | bytearray | memoryview) -> None:
        """Report bytes that the child has read; none if the peer has closed. Arguments as of `passed_out`."""
        if connection.within is not within:
            if len(data):
                return
            if not connection.tls:
                self.not_secured(connection, ConnectionResetError())
                return
        self.report("in", {"c": connection.id}, data)
        self.times.step()

    def failed(self, fd: int, error: BaseException) -> None:
        """Report a failed read or write on a socket."""
        connection = self.connections.by_fd.get(fd)
        if connection is not None:
            self.broken(connection, error)

    def broken(self, connection: Connection, error: BaseException) -> None:
        """Report a failed read or write on a connection."""
        if connection.within is not None and not connection.tls:
            self.not_secured(connection, error)
            return
        self.report("error", {"c": connection.id, "error": described(error)})
        self.times.step()

    def closed(self, fd: int) -> None:
        """Report that a socket was closed."""
        connection = self.connections.by_fd.pop(fd, None)
        if connection is not None:
            if connection.within is not None and not connection.tls:
                self.report("tls-refused", {"c": connection.id, "error": GAVE_UP})
            self.ended(connection)

    def ended(self, connection: Connection) -> None:
        """Report that the child has finished with a connection."""
        self.report("close", {"c": connection.id})

    def secured(self, connection: Connection, tls: ssl.SSLSocket | ssl.SSLObject) -> None:
        """Report that a connection uses TLS."""
        connection.tls = True
        certificate = tls.getpeercert(binary_form=True)
        properties = {
            "c": connection.id,
            "version": tls.version() or "",
            "alpn": tls.selected_alpn_protocol() or "",
            "certificate": b64encode(certificate).decode() if certificate else "",
        }
        self.report("tls", properties)

    def not_secured(self, connection: Connection, error: BaseException) -> None:
        """Report a failed TLS handshake."""
        connection.tls = True  # no further handshake follows
        self.report("tls-refused", {"c": connection.id, "error": described(error)})
