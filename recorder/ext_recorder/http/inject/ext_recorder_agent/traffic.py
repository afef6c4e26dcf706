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

    from .channel import Channel, Told
    from .clock import RecordedClock
    from .errors import Failure


GAVE_UP: Failure = {"type": "GaveUp", "errno": None, "message": "the child did not wait for the end of the handshake"}


class TrafficReporter:
    """Reports events on sockets.

    Args:
        channel: to the recorder.
        times: clocks of the calls.

    Attributes:
        hellos: ClientHellos of TLS in memory buffers.
    """

    def __init__(self, channel: Channel, times: RecordedClock) -> None:
        self.connections = Connections()
        self.hellos = Hellos()
        self._channel = channel
        self.times = times
        self._now = times.real

    def tell(self, kind: str, told: Told, data: bytes | bytearray | memoryview = b"") -> None:
        """Send an event to the recorder, with its time and call."""
        self._channel.send({"k": kind, "t": self._now(), "call": current(), **self.times.told(), **told}, data)

    def flush(self) -> None:
        """Send the remaining readings, at the end of the process."""
        told = self.times.told()
        if told.get("wall") or (self._channel.open and told["ns"]):
            self._channel.send({"k": "times", **told})

    def problem(self, text: str) -> None:
        """Report traffic that can't be recorded."""
        self.tell("problem", {"text": text})

    # --- What happens ------------------------------------------------------------------------------------------------

    def opened(self, sock: socket.socket, address: object) -> None:
        """Report that a socket is connected or connecting."""
        fd = sock.fileno()
        self.closed(fd)
        name = self.connections.name_of(address)
        made = Connection(self.connections.number(), address, name, current())
        self.connections.by_fd[fd] = made
        self.tell("open", {"c": made.id, "host": name, "address": shown(address)})
        self.times.step()

    def refused(self, address: object, error: BaseException) -> None:
        """Report a failed connection."""
        name = self.connections.name_of(address)
        self.tell("refused", {"host": name, "address": shown(address), "error": described(error)})

    def sent(self, fd: int, data: bytes | bytearray | memoryview) -> None:
        """Report bytes sent."""
        found = self.connections.by_fd.get(fd)
        if found is not None:
            self.passed_out(found, None, data)

    def passed_out(self, found: Connection, within: object, data: bytes | bytearray | memoryview) -> None:
        """Report bytes that the child has written.

        Args:
            found: the connection.
            within: the `ssl.SSLObject` that accepted them; None for the socket.
            data: the bytes; encrypted, if another object is above that one.
        """
        if found.within is not within or not len(data):
            return
        above: Any = self.hellos.sender(data)
        if above is not None:
            found.within, found.tls, above._recorded = above, False, found
            return
        self.tell("out", {"c": found.id}, data)
        self.times.step()

    def received(self, fd: int, data: bytes | bytearray | memoryview) -> None:
        """Report bytes received; none if the peer has closed the connection."""
        found = self.connections.by_fd.get(fd)
        if found is not None:
            self.passed_in(found, None, data)

    def passed_in(self, found: Connection, within: object, data: bytes | bytearray | memoryview) -> None:
        """Report bytes that the child has read; none if the peer has closed. Arguments as of `passed_out`."""
        if found.within is not within:
            if len(data):
                return
            if not found.tls:
                self.not_secured(found, ConnectionResetError())
                return
        self.tell("in", {"c": found.id}, data)
        self.times.step()

    def failed(self, fd: int, error: BaseException) -> None:
        """Report a failed read or write on a socket."""
        found = self.connections.by_fd.get(fd)
        if found is not None:
            self.broken(found, error)

    def broken(self, found: Connection, error: BaseException) -> None:
        """Report a failed read or write on a connection."""
        if found.within is not None and not found.tls:
            self.not_secured(found, error)
            return
        self.tell("error", {"c": found.id, "error": described(error)})
        self.times.step()

    def closed(self, fd: int) -> None:
        """Report that a socket was closed."""
        found = self.connections.by_fd.pop(fd, None)
        if found is not None:
            if found.within is not None and not found.tls:
                self.tell("tls-refused", {"c": found.id, "error": GAVE_UP})
            self.ended(found)

    def ended(self, found: Connection) -> None:
        """Report that the child has finished with a connection."""
        self.tell("close", {"c": found.id})

    def secured(self, found: Connection, tls: ssl.SSLSocket | ssl.SSLObject) -> None:
        """Report that a connection uses TLS."""
        found.tls = True
        certificate = tls.getpeercert(binary_form=True)
        told = {
            "c": found.id,
            "version": tls.version() or "",
            "alpn": tls.selected_alpn_protocol() or "",
            "certificate": b64encode(certificate).decode() if certificate else "",
        }
        self.tell("tls", told)

    def not_secured(self, found: Connection, error: BaseException) -> None:
        """Report a failed TLS handshake."""
        found.tls = True  # as far as it will get
        self.tell("tls-refused", {"c": found.id, "error": described(error)})
