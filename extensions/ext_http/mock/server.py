"""Server of a mock: accepts connections on loopback, one thread for each, with TLS if configured."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import h11

from .http1 import InvalidRequest, RequestReader, ResponseWriter
from .request import HANDSHAKE_SECONDS, HEAD_BYTES
from .response import plain_response

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .journal import Journal
    from .request import Limits, Request
    from .response import Response


CLOSING_SECONDS = 1.0  # for connections to end when the server is closed
RETRY_SECONDS = 0.05  # after a failed accept
BACKLOG = 128  # connections that wait to be accepted
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Server:
    """HTTP server that listens until it is closed.

    Args:
        host: a loopback address.
        port: 0 for any free port.
        respond: returns the response to a request; called in several threads.
        journal: records what is not a valid request.
        limits: of connections and requests.
        tls: None for plain HTTP.
        hints: explain in the response why a request is not valid.

    Attributes:
        port: at which it listens.

    Raises:
        OSError: the port is not available.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        respond: Callable[[Request], Response],
        journal: Journal,
        limits: Limits,
        tls: ssl.SSLContext | None = None,
        hints: bool = False,
    ) -> None:
        self._respond = respond
        self._journal = journal
        self._limits = limits
        self._tls = tls
        self._hints = hints
        self._closing = threading.Event()
        self._changed = threading.Condition()
        self._open: set[socket.socket] = set()
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, port), family=family, backlog=BACKLOG)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._listen, daemon=True, name=f"mock {self.port}").start()

    @property
    def closed(self) -> bool:
        """Return True once the server was stopped."""
        return self._closing.is_set()

    def stop(self) -> None:
        """Stop listening and shut down all connections, without waiting for them."""
        self._closing.set()
        _shut_down(self._listener)
        self._listener.close()
        with self._changed:
            for connection in self._open:
                _shut_down(connection)

    def close(self) -> None:
        """Stop, and wait up to one second for the connections to end."""
        self.stop()
        with self._changed:
            self._changed.wait_for(lambda: not self._open, CLOSING_SECONDS)

    def _listen(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:  # such as no free descriptor, which is temporary
                if self._closing.wait(RETRY_SECONDS):
                    return
                continue
            if not self._admit(connection):
                connection.close()
                continue
            try:
                threading.Thread(target=self._serve, args=(connection,), daemon=True, name="mock connection").start()
            except RuntimeError as error:  # the system permits no more threads
                self._journal.add_problem(f"a connection could not be served: {error}")
                self._end(connection)

    def _admit(self, connection: socket.socket) -> bool:
        """Register a connection. Returns False if the server is closing or has too many of them."""
        with self._changed:
            full = len(self._open) >= self._limits.connections
            if not full and not self._closing.is_set():
                self._open.add(connection)
                return True
        if full:
            self._journal.add_problem(f"more than {self._limits.connections} connections at once (limits.connections)")
            with suppress(OSError):
                connection.settimeout(0)
                connection.send(BUSY)
        return False

    def _end(self, connection: socket.socket) -> None:
        with self._changed:
            self._open.discard(connection)
            self._changed.notify_all()
        connection.close()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls is not None:
                connection.settimeout(HANDSHAKE_SECONDS)
                secured = self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
                with self._changed:  # the plain socket is detached from here on
                    self._open.discard(connection)
                    self._open.add(secured)
                connection = secured
                secured.do_handshake()
            self._serve_requests(connection)
        except (OSError, ValueError) as error:  # the client or this server closed the connection
            if isinstance(error, ssl.SSLError) and not self._closing.is_set():
                self._journal.add_problem(f"not TLS: {error}")
        finally:
            self._end(connection)

    def _serve_requests(self, connection: socket.socket) -> None:
        state = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        reader = RequestReader(connection, state, self._limits)
        writer = ResponseWriter(connection, state, self._closing)
        while not self._closing.is_set():
            try:
                request = reader.read()
            except InvalidRequest as invalid:
                self._refuse(writer, invalid.status, invalid.reason, invalid.reason)
                return
            if request is None:
                return
            try:
                if not writer.write(self._respond(request), head=request.method == "HEAD"):
                    return
            except h11.LocalProtocolError as error:
                # A header filled in with a part of the request is not a single header any more.
                problem = f"the response to {request.method} {request.target} is not valid HTTP: {error}"
                self._refuse(writer, 500, f"the response is not valid HTTP: {error}", problem)
                return
            state.start_next_cycle()

    def _refuse(self, writer: ResponseWriter, status: int, text: str, problem: str) -> None:
        self._journal.add_problem(problem)
        writer.refuse(plain_response(status, text if self._hints else ""))


def _shut_down(connection: socket.socket) -> None:
    """Shut down a socket, which wakes the threads that read or write it."""
    with suppress(OSError, ValueError):
        connection.shutdown(socket.SHUT_RDWR)


HOST_NAMES = ("localhost", "127.0.0.1", "::1")
ORGANIZATION = "Local"


def server_context(ca_file: Path) -> ssl.SSLContext:
    """Return the TLS context of a server with a new certificate.

    Args:
        ca_file: file to write the CA certificate to, as PEM. Raises OSError.
    """
    import trustme

    # The agent under test sees both certificates, and trustme's default names mention tests.
    authority = trustme.CA(organization_name=ORGANIZATION, organization_unit_name="Certificate Authority")
    ca_file.write_bytes(authority.cert_pem.bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    certificate = authority.issue_cert(
        *HOST_NAMES, common_name=HOST_NAMES[0], organization_name=ORGANIZATION, organization_unit_name="Services"
    )
    certificate.configure_cert(context)
    return context
