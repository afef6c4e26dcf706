"""Socket addresses of the form tcp:HOST:PORT and unix:PATH."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from pathlib import Path

from ext_recorder.errors import UsageError

BACKLOG = 128  # connections that wait to be accepted
READ_BYTES = 65_536
CONNECT_S = 5.0  # seconds until an attempt to connect fails


class Address:
    """Address of a socket.

    Attributes:
        place: argument of `socket.bind` and `socket.connect`.
    """

    __slots__ = ("family", "place")

    def __init__(self, family: socket.AddressFamily, place: str | tuple[str, int]) -> None:
        self.family = family
        self.place = place

    @classmethod
    def parse(cls, text: str, option: str) -> Address:
        """Parse an address.

        Args:
            text: "tcp:127.0.0.1:4711", "tcp:[::1]:4711", "tcp:4711" (loopback), "unix:/run/x.sock".
            option: the option with this value, for messages.

        Raises:
            UsageError: the text is not an address.
        """
        kind, _, rest = text.partition(":")
        if kind == "unix" and rest:
            return cls(socket.AF_UNIX, rest)
        host, _, port = rest.rpartition(":")
        if kind == "tcp" and port.isascii() and port.isdigit() and int(port) < 65_536:
            if host.startswith("[") and host.endswith("]"):
                return cls(socket.AF_INET6, (host[1:-1], int(port)))
            if ":" not in host:
                return cls(socket.AF_INET, (host or "127.0.0.1", int(port)))
        example, url = "tcp:127.0.0.1:4711", "http://127.0.0.1:8000/mcp"
        if option == "--listen":
            example, url = "tcp:127.0.0.1:0 for any free port", "http://127.0.0.1:0/mcp"
        problem = f"expected tcp:HOST:PORT or unix:PATH, such as {example}; or a URL for MCP, such as {url}"
        raise UsageError(f"{option} {text}: {problem}")

    def connect(self) -> socket.socket:
        """Connect to the address. Raises OSError."""
        connection = socket.socket(self.family, socket.SOCK_STREAM)
        connection.settimeout(CONNECT_S)
        try:
            connection.connect(self.place)
            if self.family != socket.AF_UNIX and connection.getsockname() == connection.getpeername():
                # If nothing listens on a port, TCP may choose it as the local port and connect the client to itself.
                raise ConnectionRefusedError(errno.ECONNREFUSED, os.strerror(errno.ECONNREFUSED))
        except BaseException:
            connection.close()
            raise
        tune(connection)
        return connection

    def listen(self) -> Listener:
        """Listen at the address. Raises UsageError if that fails."""
        server = socket.socket(self.family, socket.SOCK_STREAM)
        try:
            if self.family != socket.AF_UNIX:
                server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                server.bind(self.place)
            else:
                path = str(self.place)
                if Path(path).is_socket():
                    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
                        if probe.connect_ex(path) == errno.ECONNREFUSED:  # its server has exited
                            Path(path).unlink()
                before = os.umask(0o177)  # other users may not connect
                try:
                    server.bind(path)
                finally:
                    os.umask(before)
            server.listen(BACKLOG)
        except OSError as error:
            server.close()
            advice = _IN_USE if error.errno == errno.EADDRINUSE else ""
            raise UsageError(f"cannot listen at {self}: {error.strerror or error}{advice}") from None
        server.settimeout(0.0)
        return Listener(server, Address(self.family, server.getsockname()))

    def __str__(self) -> str:
        if isinstance(self.place, str):
            return f"unix:{self.place}"
        host, port = self.place[:2]
        return f"tcp:[{host}]:{port}" if ":" in host else f"tcp:{host}:{port}"


_IN_USE = "; end the process that listens there, or choose another address (tcp:HOST:0 is any free port)"


class Listener:
    """Listening socket.

    Attributes:
        fd: file descriptor, readable when a client waits.
        address: its address, with the port that the system has chosen.
    """

    def __init__(self, server: socket.socket, address: Address) -> None:
        self._server = server
        self.fd = server.fileno()
        self.address = address

    def accept(self) -> socket.socket | None:
        """Return the connection of the next client, non-blocking; None if the client has disconnected."""
        try:
            client, _ = self._server.accept()
        except OSError:
            return None
        tune(client)
        return client

    def close(self) -> None:
        """Close the socket and remove its file. May be called again."""
        was_open = self._server.fileno() >= 0
        self._server.close()
        if was_open and self.address.family == socket.AF_UNIX:
            with contextlib.suppress(OSError):
                Path(str(self.address.place)).unlink()


def tune(connection: socket.socket) -> None:
    """Make a connection non-blocking, and send small messages without delay."""
    connection.settimeout(0.0)
    if connection.family != socket.AF_UNIX:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def receive(connection: socket.socket, size: int = READ_BYTES) -> bytes | None:
    """Return received bytes; b"" at the end of the connection or after an error; None if there is nothing to read."""
    try:
        return connection.recv(size)
    except BlockingIOError:
        return None
    except OSError:
        return b""


def shut(connection: socket.socket) -> None:
    """End the sending side, even if other processes have the socket open. The peer may have disconnected."""
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_WR)
