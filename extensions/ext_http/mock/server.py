"""Server of a mock: connections on loopback, one thread for each, HTTP/1.1 by h11, TLS if configured."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import h11

import ext_sdk

from .request import (
    HANDSHAKE_SECONDS,
    HEAD_BYTES,
    IDLE_SECONDS,
    LINGER_BYTES,
    LINGER_SECONDS,
    SEND_SECONDS,
    ReceivedRequest,
)
from .response import plain_response, reason_phrase

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from .request import Journal, Limits
    from .response import MockResponse


READ_BYTES = 16 * 1024  # read at once
VERSIONS = (b"1.0", b"1.1")


class InvalidRequest(Exception):
    """Received bytes are not a request that a route can respond to."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


class RequestReader:
    """Reads the requests of one connection."""

    def __init__(self, connection: socket.socket, state: h11.Connection, limits: Limits) -> None:
        self._connection = connection
        self._h11 = state
        self._limits = limits
        self._until = 0.0
        self._begun = False

    def read(self) -> ReceivedRequest | None:
        """Return the next request; None if the client closed the connection between requests.

        Raises:
            InvalidRequest: the request is not valid, too large, or too slow.
            OSError: the connection failed.
        """
        self._begun = bool(self._h11.trailing_data[0])
        self._until = time.monotonic() + (self._limits.request_time.seconds if self._begun else IDLE_SECONDS)
        try:
            head = self._next_event()
            if not isinstance(head, h11.Request):
                return None
            if head.http_version not in VERSIONS:
                raise InvalidRequest(505, f"HTTP/{_text(head.http_version)}, expected 1.1 or 1.0")
            # h11 limits an incomplete head; one that arrives at once may be larger.
            if len(head.target) + sum(len(name) + len(value) for name, value in head.headers) > HEAD_BYTES:
                raise InvalidRequest(431, f"request line and headers of more than {HEAD_BYTES:,} bytes")
            fields = dict(head.headers)
            if b"content-length" in fields and b"transfer-encoding" in fields:
                # RFC 9112, 6.1: readers that prefer one or the other would see different requests after this one.
                raise InvalidRequest(400, "both Content-Length and Transfer-Encoding")
            self._check_length(int(fields.get(b"content-length", b"0")))
            if self._h11.they_are_waiting_for_100_continue:
                response = h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue")
                self._connection.sendall(self._h11.send(response))
            body = bytearray()
            while isinstance(event := self._next_event(), h11.Data):
                body += event.data
                self._check_length(len(body))
        except h11.RemoteProtocolError as error:
            raise InvalidRequest(error.error_status_hint, f"not HTTP/1.1: {error}") from error
        except TimeoutError:
            if not self._begun:
                return None
            raise InvalidRequest(408, f"the request did not end within {self._limits.request_time}") from None
        headers = [(_text(name), _text(value)) for name, value in head.headers.raw_items()]
        return ReceivedRequest(_text(head.method), _text(head.target), headers, bytes(body))

    def _check_length(self, length: int) -> None:
        if length > self._limits.body:
            raise InvalidRequest(413, f"a body of more than {self._limits.body:,} bytes (limits.body)")

    def _next_event(self) -> object:
        while (event := self._h11.next_event()) is h11.NEED_DATA:
            left = self._until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self._connection.settimeout(left)
            data = self._connection.recv(READ_BYTES)
            if data and not self._begun:
                self._begun = True
                self._until = time.monotonic() + self._limits.request_time.seconds
            self._h11.receive_data(data)
        return event


def _text(data: bytes) -> str:
    """Decode a part of a head; h11 accepts only visible characters and bytes over 127."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


MAX_PIECES = 100  # of a body that is sent slowly
MALFORMED = b"HTTP/1.1 OK two hundred\r\nContent-Length: many\r\n\r\n\x00\xff<html"


class ResponseWriter:
    """Writes the responses of one connection.

    Args:
        closing: set when the mock is stopped, which ends delays.
    """

    def __init__(self, connection: socket.socket, state: h11.Connection, closing: threading.Event) -> None:
        self._connection = connection
        self._h11 = state
        self._closing = closing

    def write(self, response: MockResponse, *, head: bool = False) -> bool:
        """Write a response, or the fault instead of it.

        Args:
            head: the request was HEAD, so the body is left out.

        Returns:
            True if the connection can be used again.

        Raises:
            OSError: the client closed the connection or does not read.
            h11.LocalProtocolError: the response is not valid HTTP, such as a header with a line feed.
        """
        answer = response.answer
        if answer is not None and isinstance(answer.delay, ext_sdk.Duration):
            self._closing.wait(answer.delay.seconds)
        if self._closing.is_set():
            return False
        self._connection.settimeout(SEND_SECONDS)
        body = b"" if head else response.body or b""
        if answer is not None and isinstance(answer.fault, str):
            if answer.fault == "reset":
                # Without lingering, closing sends RST.
                self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._connection.close()
            elif answer.fault == "malformed":
                self._connection.sendall(MALFORMED)
            elif answer.fault == "truncate":
                begin = self._encode_head(response)
                content = b"" if head else b"".join(self._encode_body(body, 1))
                self._connection.sendall(begin + content[: len(content) // 2] if content else begin[: len(begin) // 2])
            return False
        if answer is not None and isinstance(answer.drip, ext_sdk.Duration) and answer.drip.seconds:
            self._connection.sendall(self._encode_head(response))
            pieces = self._encode_body(body, MAX_PIECES)
            pause = answer.drip.seconds / max(1, len(pieces) - 1)  # the last one ends the message, usually empty
            for piece in filter(None, pieces):
                if self._closing.wait(pause):
                    return False
                self._connection.sendall(piece)
        else:
            self._connection.sendall(self._encode_head(response) + b"".join(self._encode_body(body, 1)))
        return self._h11.our_state is h11.DONE and not self._closing.is_set()

    def refuse(self, response: MockResponse) -> None:
        """Write a response to an invalid request, and give a client that still sends time to read it."""
        self._connection.settimeout(SEND_SECONDS)
        body = response.body or b""
        lines = [f"HTTP/1.1 {response.status} {reason_phrase(response.status)}", "Connection: close"]
        lines += [f"{name}: {value}" for name, value in response.headers] + [f"Content-Length: {len(body)}", "", ""]
        self._connection.sendall("\r\n".join(lines).encode() + body)
        self._connection.shutdown(socket.SHUT_WR)
        until, left = time.monotonic() + LINGER_SECONDS, LINGER_BYTES
        while left > 0 and (seconds := until - time.monotonic()) > 0:
            self._connection.settimeout(seconds)
            data = self._connection.recv(LINGER_BYTES)
            if not data:
                return
            left -= len(data)

    def _encode_head(self, response: MockResponse) -> bytes:
        headers = list(response.headers)
        chunked = response.answer is not None and response.answer.chunked
        if response.body is not None and not chunked:
            headers.append(("Content-Length", str(len(response.body))))
        encoded = [(name.encode("ascii"), value.encode("utf-8", "replace")) for name, value in headers]
        reason = reason_phrase(response.status).encode()
        return self._h11.send(h11.Response(status_code=response.status, headers=encoded, reason=reason))

    def _encode_body(self, body: bytes, max_pieces: int) -> list[bytes]:
        size = max(1, -(-len(body) // max_pieces))
        pieces = [self._h11.send(h11.Data(data=body[at : at + size])) for at in range(0, len(body), size)]
        return [*pieces, self._h11.send(h11.EndOfMessage())]


CLOSING_SECONDS = 1.0  # for connections to end when the server is closed
RETRY_SECONDS = 0.05  # after a failed accept
BACKLOG = 128  # connections that wait to be accepted
BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Server:
    """HTTP server that listens until it is closed.

    Args:
        host: an address of this machine, or 0.0.0.0 or :: for all of them.
        port: 0 for any free port.
        respond: returns the response to a request; called in several threads.
        journal: records what is not a valid request.
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
        respond: Callable[[ReceivedRequest], MockResponse],
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
            with self._changed:
                full = len(self._open) >= self._limits.connections
                admitted = not full and not self._closing.is_set()
                if admitted:
                    self._open.add(connection)
            if not admitted:
                if full:
                    limit = f"{self._limits.connections} connections at once (limits.connections)"
                    self._journal.add_problem(f"more than {limit}")
                    with suppress(OSError):
                        connection.settimeout(0)
                        connection.send(BUSY)
                connection.close()
                continue
            try:
                threading.Thread(target=self._serve, args=(connection,), daemon=True, name="mock connection").start()
            except RuntimeError as error:  # the system permits no more threads
                self._journal.add_problem(f"a connection could not be served: {error}")
                self._end(connection)

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
        except (OSError, ValueError) as error:  # the client or this server closed the connection
            if isinstance(error, ssl.SSLError) and not self._closing.is_set():
                self._journal.add_problem(f"not TLS: {error}")
        finally:
            self._end(connection)

    def _refuse(self, writer: ResponseWriter, status: int, text: str, problem: str) -> None:
        self._journal.add_problem(problem)
        writer.refuse(plain_response(status, text if self._hints else ""))


def _shut_down(connection: socket.socket) -> None:
    """Shut down a socket, which wakes the threads that read or write it."""
    with suppress(OSError, ValueError):
        connection.shutdown(socket.SHUT_RDWR)


HOST_NAMES = ("localhost", "127.0.0.1", "::1")
ORGANIZATION = "Local"


def server_context(ca_file: Path, names: Sequence[str] = ()) -> ssl.SSLContext:
    """Return the TLS context of a server with a new certificate.

    Args:
        names: of the certificate, in addition to those of loopback. Raises ValueError for one that is not valid.
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
        *dict.fromkeys((*HOST_NAMES, *names)),
        common_name=HOST_NAMES[0],
        organization_name=ORGANIZATION,
        organization_unit_name="Services",
    )
    certificate.configure_cert(context)
    return context
