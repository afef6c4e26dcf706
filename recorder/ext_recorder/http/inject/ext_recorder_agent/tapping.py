"""While recording: a copy of all that goes over connections, in plain text, for the recorder.

The methods of `socket.socket` and `ssl.SSLSocket` are what every client library comes down to (http.client, urllib3,
requests, httpx, …), whatever it does above. So here is one place for all of them, in which nothing is held back and
nothing is read that the child does not read: a body that it does not want to the end is not read to the end.
"""

from __future__ import annotations

from base64 import b64encode

from .calls import current
from .channel import shown
from .connections import Connection, Connections
from .errors import described
from .tapped import patch_names, patch_sockets

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    import ssl
    from collections.abc import Callable
    from types import ModuleType

    from .channel import Channel, Told
    from .clock import Times


class Tap:
    """Sees what happens on sockets.

    Args:
        channel: to the recorder.
        times: of the calls.
    """

    def __init__(self, channel: Channel, times: Times) -> None:
        self.connections = Connections()
        self._channel = channel
        self.times = times
        self._now = times.real

    def tell(self, kind: str, told: Told, data: bytes | bytearray | memoryview = b"") -> None:
        """Tell the recorder, with the time and the call."""
        self._channel.send({"k": kind, "t": self._now(), "call": current(), "ns": self.times.kept(), **told}, data)

    def flush(self) -> None:
        """Tell what is left to be told, at the end of the process."""
        if self._channel.open and (kept := self.times.kept()):
            self._channel.send({"k": "times", "ns": kept})

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
        if found is not None and len(data):
            self.tell("out", {"c": found.id}, data)
            self.times.step()

    def received(self, fd: int, data: bytes | bytearray | memoryview) -> None:
        """Bytes have come in; none: the other side has ended."""
        found = self.connections.by_fd.get(fd)
        if found is not None:
            self.tell("in", {"c": found.id}, data)
            self.times.step()

    def failed(self, fd: int, error: BaseException) -> None:
        """A read or a write has failed."""
        found = self.connections.by_fd.get(fd)
        if found is not None:
            self.tell("error", {"c": found.id, "error": described(error)})
            self.times.step()

    def closed(self, fd: int) -> None:
        """A socket is closed, or was, unseen."""
        found = self.connections.by_fd.pop(fd, None)
        if found is not None:
            self.tell("close", {"c": found.id})

    def secured(self, sock: ssl.SSLSocket) -> None:
        """A connection is in TLS now."""
        found = self.connections.by_fd.get(sock.fileno())
        if found is None:
            return
        found.tls = True
        certificate = sock.getpeercert(binary_form=True)
        told = {
            "c": found.id,
            "version": sock.version() or "",
            "alpn": sock.selected_alpn_protocol() or "",
            "certificate": b64encode(certificate).decode() if certificate else "",
        }
        self.tell("tls", told)

    def not_secured(self, sock: ssl.SSLSocket, error: BaseException) -> None:
        """There was a connection, but no trust."""
        found = self.connections.by_fd.get(sock.fileno())
        if found is not None:
            self.tell("tls-refused", {"c": found.id, "error": described(error)})


def install(module: ModuleType, channel: Channel, times: Times) -> Callable[[ModuleType], None]:
    """Patch `socket`. Returns what patches `ssl`, which imports `socket` and is there later."""
    import atexit

    tap = Tap(channel, times)
    atexit.register(tap.flush)
    patch_names(module, tap)
    patch_sockets(module, tap)

    def tls(found: ModuleType) -> None:
        from .tapped_tls import patch_tls

        patch_tls(found, tap)

    return tls
