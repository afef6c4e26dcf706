"""While recording: a copy of all that goes over connections, in plain text, for the recorder.

The methods of `socket.socket` and `ssl.SSLSocket` are what every client library comes down to (http.client, urllib3,
requests, httpx, …), whatever it does above. So here is one place for all of them, in which nothing is held back and
nothing is read that the child does not read: a body that it does not want to the end is not read to the end.
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
    """Sees what happens on sockets.

    Args:
        channel: to the recorder.
        times: of the calls.

    Attributes:
        hellos: ClientHellos of TLS within memory.
    """

    def __init__(self, channel: Channel, times: RecordedClock) -> None:
        self.connections = Connections()
        self.hellos = Hellos()
        self._channel = channel
        self.times = times
        self._now = times.real

    def tell(self, kind: str, told: Told, data: bytes | bytearray | memoryview = b"") -> None:
        """Tell the recorder, with the time and the call."""
        self._channel.send({"k": kind, "t": self._now(), "call": current(), **self.times.told(), **told}, data)

    def flush(self) -> None:
        """Tell what is left to be told, at the end of the process."""
        told = self.times.told()
        if told.get("wall") or (self._channel.open and told["ns"]):
            self._channel.send({"k": "times", **told})

    def problem(self, text: str) -> None:
        """Tell what can't be recorded."""
        self.tell("problem", {"text": text})

    # --- What happens ------------------------------------------------------------------------------------------------

    def opened(self, sock: socket.socket, address: object) -> None:
        """A socket is connected, or soon will be."""
        fd = sock.fileno()
        self.closed(fd)
        name = self.connections.name_of(address)
        made = Connection(self.connections.number(), address, name, current())
        self.connections.by_fd[fd] = made
        self.tell("open", {"c": made.id, "host": name, "address": shown(address)})
        self.times.step()

    def refused(self, address: object, error: BaseException) -> None:
        """There is no connection to be had."""
        name = self.connections.name_of(address)
        self.tell("refused", {"host": name, "address": shown(address), "error": described(error)})

    def sent(self, fd: int, data: bytes | bytearray | memoryview) -> None:
        """Bytes have gone out."""
        found = self.connections.by_fd.get(fd)
        if found is not None:
            self.passed_out(found, None, data)

    def passed_out(self, found: Connection, within: object, data: bytes | bytearray | memoryview) -> None:
        """Bytes have been handed over by the child.

        Args:
            found: the connection.
            within: the `ssl.SSLObject` that took them; None: the socket.
            data: the bytes, which are encrypted if another object is above that one.
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
        """Bytes have come in; none: the other side has ended."""
        found = self.connections.by_fd.get(fd)
        if found is not None:
            self.passed_in(found, None, data)

    def passed_in(self, found: Connection, within: object, data: bytes | bytearray | memoryview) -> None:
        """Bytes have been handed to the child; none: the other side has ended. Arguments as of `passed_out`."""
        if found.within is not within:
            if len(data):
                return
            if not found.tls:
                self.not_secured(found, ConnectionResetError())
                return
        self.tell("in", {"c": found.id}, data)
        self.times.step()

    def failed(self, fd: int, error: BaseException) -> None:
        """A read or a write has failed."""
        found = self.connections.by_fd.get(fd)
        if found is not None:
            self.broken(found, error)

    def broken(self, found: Connection, error: BaseException) -> None:
        """A read or a write on a connection has failed."""
        if found.within is not None and not found.tls:
            self.not_secured(found, error)
            return
        self.tell("error", {"c": found.id, "error": described(error)})
        self.times.step()

    def closed(self, fd: int) -> None:
        """A socket is closed, or was, unseen."""
        found = self.connections.by_fd.pop(fd, None)
        if found is not None:
            if found.within is not None and not found.tls:
                self.tell("tls-refused", {"c": found.id, "error": GAVE_UP})
            self.ended(found)

    def ended(self, found: Connection) -> None:
        """The child is done with a connection."""
        self.tell("close", {"c": found.id})

    def secured(self, found: Connection, tls: ssl.SSLSocket | ssl.SSLObject) -> None:
        """A connection is in TLS now."""
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
        """There was a connection, but no trust."""
        found.tls = True  # as far as it will get
        self.tell("tls-refused", {"c": found.id, "error": described(error)})
