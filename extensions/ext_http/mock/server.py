"""The server of a mock: accepts connections on loopback, one thread for each, TLS if configured."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import h11

from .http1 import Receiver, Refused, Sender, cut
from .request import HANDSHAKE_SECONDS
from .response import plain

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .journal import Journal
    from .request import Limits, Request
    from .response import Response


CLOSING_SECONDS = 1.0  # that connections have to end when the server is closed
BACKLOG = 128  # connections that wait to be accepted
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Server:
    """Listens until it is closed.

    Args:
        host: an address of loopback.
        port: 0 for any that is free.
        answer: gives the answer to a request; called in several threads.
        journal: where it is noted what is no request.
        limits: what is put up with.
        tls: for TLS; None without.
        hints: say in the answer what is wrong with what is not a request.

    Attributes:
        port: at which it listens.

    Raises:
        OSError: the port is not to be had.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        answer: Callable[[Request], Response],
        journal: Journal,
        limits: Limits,
        tls: ssl.SSLContext | None = None,
        hints: bool = False,
    ) -> None:
        self._answer = answer
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
        """Listen no more, and end all connections; does not wait."""
        self._closing.set()
        cut(self._listener)
        self._listener.close()
        with self._changed:
            for connection in self._open:
                cut(connection)

    def close(self) -> None:
        """The same, and wait until they have ended, but not long."""
        self.stop()
        with self._changed:
            self._changed.wait_for(lambda: not self._open, CLOSING_SECONDS)

    def _listen(self) -> None:
        while not self._closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                if self._closing.wait(0.05):  # no descriptors left, for one: it may be better in a while
                    return
                continue
            if self._admitted(connection):
                self._start(connection)

    def _admitted(self, connection: socket.socket) -> bool:
        with self._changed:
            full = len(self._open) >= self._limits.connections
            if not full and not self._closing.is_set():
                self._open.add(connection)
                return True
        if full:
            self._journal.note(f"more than {self._limits.connections} connections at once (limits.connections)")
            with suppress(OSError):
                connection.setblocking(False)  # noqa: FBT003 - the only way to say it
                connection.send(BUSY)
        connection.close()
        return False

    def _start(self, connection: socket.socket) -> None:
        try:
            threading.Thread(target=self._serve, args=(connection,), daemon=True, name="mock connection").start()
        except RuntimeError as error:  # the system gives no more threads
            self._journal.note(f"a connection that could not be served: {error}")
            self._end(connection)

    def _end(self, connection: socket.socket) -> None:
        with self._changed:
            self._open.discard(connection)
            self._changed.notify_all()
        connection.close()

    def _serve(self, connection: socket.socket) -> None:
        try:
            if self._tls is not None:
                connection = self._secured(connection, self._tls)
            self._converse(connection)
        except (OSError, ValueError) as error:  # the client has gone, or the socket was closed on the way
            if isinstance(error, ssl.SSLError) and not self._closing.is_set():
                self._journal.note(f"no TLS: {error}")
        finally:
            self._end(connection)

    def _secured(self, connection: socket.socket, tls: ssl.SSLContext) -> socket.socket:
        connection.settimeout(HANDSHAKE_SECONDS)
        secured = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        with self._changed:  # `connection` is an empty shell from here on
            self._open.discard(connection)
            self._open.add(secured)
        try:
            secured.do_handshake()
        except OSError:
            self._end(secured)
            raise
        return secured

    def _converse(self, connection: socket.socket) -> None:
        """Answer one request after the other."""
        receiver = Receiver(connection, self._limits)
        sender = Sender(connection, receiver.h11, self._closing)
        while not self._closing.is_set():
            try:
                request = receiver.request()
            except Refused as refused:
                self._journal.note(refused.reason)
                sender.refuse(self._own(refused.status, refused.reason))
                return
            if request is None or not self._answered(request, sender):
                return
            receiver.h11.start_next_cycle()

    def _answered(self, request: Request, sender: Sender) -> bool:
        """Answer a request. Returns whether there may be another on this connection."""
        response = self._answer(request)
        try:
            return sender.send(response, head=request.method == "HEAD")
        except h11.LocalProtocolError as error:
            # A header of the answer, filled in with what the request brought, would not be one header any more.
            self._journal.note(f"the answer to {request.method} {request.target} is no HTTP: {error}")
            sender.refuse(self._own(500, f"the answer is no HTTP: {error}"))
            return False

    def _own(self, status: int, text: str) -> Response:
        return plain(status, text if self._hints else "")


NAMES = ("localhost", "127.0.0.1", "::1")
ORGANIZATION = "Local"


def server_context(ca_file: Path) -> ssl.SSLContext:
    """What a server needs for TLS.

    Args:
        ca_file: where the authority's certificate is written, as PEM. Raises OSError.
    """
    import trustme

    # The agent under test sees both certificates: trustme's own names say that they are for tests.
    authority = trustme.CA(organization_name=ORGANIZATION, organization_unit_name="Certificate Authority")
    ca_file.write_bytes(authority.cert_pem.bytes())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    certificate = authority.issue_cert(
        *NAMES, common_name=NAMES[0], organization_name=ORGANIZATION, organization_unit_name="Services"
    )
    certificate.configure_cert(context)
    return context
