"""Network redirect on replay: every connection leads to the recorder, and nothing reaches the network.

A socket that connects gets a connection to the recorder under the same descriptor. The recorder sends the bytes of the
recorded server, so timeouts, select and event loops work as usual. Traffic that was not recorded is refused here.
"""

from __future__ import annotations

import os
from errno import EINPROGRESS

from .call_context import current
from .channel import HELLO, connected, frame, receive, shown
from .connections import Connection, Connections, Hellos, text_of
from .errors import NOT_RECORDED, exception, not_permitted

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from typing import Any, cast

    from .channel import Channel, Event
    from .clock import RecordedClock
    from .errors import Failure


class NetworkRedirect:
    """Connects sockets to the recorder instead of the network.

    Attributes:
        hellos: ClientHellos of TLS in memory buffers.
    """

    def __init__(self, channel: Channel, times: RecordedClock) -> None:
        self.connections = Connections()
        self.hellos = Hellos()
        self.step = times.step
        self._channel = channel
        self._folder = times.folder

    def connect(self, sock: socket.socket, address: object) -> None:
        """Replace a connection by one to the recorder. Raises OSError, as recorded."""
        self.step()
        name = self.connections.name_of(address)
        line = connected(self._folder)
        try:
            line.sendall(frame({"k": "connect", "host": name, "address": shown(address), "call": current()}))
            response = receive(line)
            failure = response.get("error")
            failed = 0  # errno of a recorded failure, on a socket that does not wait
            if sock.gettimeout() == 0 and isinstance(failure, dict) and failure.get("type") != NOT_RECORDED:
                errno = failure.get("errno")
                failed = errno if isinstance(errno, int) else 0
            if not failed:
                raise_failure(response)
            number = response.get("c")
            os.dup2(line.fileno(), sock.fileno(), inheritable=False)
            os.set_blocking(sock.fileno(), sock.gettimeout() is None)
        finally:
            line.close()
        connection = Connection(number if isinstance(number, int) else 0, address, name, current())
        self.connections.by_fd[sock.fileno()] = connection
        if failed:  # an event loop reads it as SO_ERROR, when the socket is writable
            connection.failed = failed
            raise BlockingIOError(EINPROGRESS, os.strerror(EINPROGRESS))

    def before_sending(self, connection: Connection) -> None:
        """Report the call that uses the connection, if it has changed."""
        if connection.call != current():
            connection.call = current()
            self._channel.ask({"k": "call", "c": connection.id, "call": connection.call})

    def ended(self, fd: int) -> None:
        """Raise the error that ended the recorded connection, unless the server closed it."""
        connection = self.connections.by_fd.get(fd)
        if connection is not None:
            raise_failure(self._channel.ask({"k": "why", "c": connection.id}))

    def secure(self, fd: int, name: object) -> Event:
        """Start the replacement of TLS on a connection. Raises ssl.SSLError, as recorded."""
        connection = self.connections.by_fd.get(fd)
        if connection is None:
            return {}
        properties = self._channel.ask({"k": "tls", "c": connection.id, "name": text_of(name), "call": current()})
        raise_failure(properties)
        connection.tls = True
        return properties

    def secure_within(self, connection: Connection, tls: Any) -> bytes:
        """Make an `ssl` object that encrypts in memory buffers pass on plain text.

        Args:
            connection: connection over which its ClientHello would be sent.

        Returns:
            Bytes to send instead of the ClientHello. The recorder sends them back, which completes the handshake.
        """
        question = {"k": "tls", "c": connection.id, "name": tls.server_hostname, "call": current()}
        tls._properties = self._channel.ask(question)
        connection.tls, connection.within = True, tls
        return HELLO

    def resolve(self, name: str) -> list[str]:
        """Return the recorded addresses of a host. Raises socket.gaierror."""
        response = self._channel.ask({"k": "resolve", "host": name, "call": current()})
        raise_failure(response)
        recorded = response.get("addresses")
        addresses = [str(address) for address in recorded] if isinstance(recorded, list) else []
        for address in addresses:
            self.connections.named(name, address)
        return addresses

    def refuse(self, what: str) -> PermissionError:
        """Return the error for traffic that cannot have been recorded."""
        response = self._channel.ask({"k": "refused", "what": what, "call": current()})
        return not_permitted(str(response.get("text", what)))


def raise_failure(response: Event) -> None:
    """Raise the error in a response, if it has one."""
    failure = response.get("error")
    if isinstance(failure, dict):
        if TYPE_CHECKING:
            failure = cast("Failure", failure)
        raise exception(failure)
