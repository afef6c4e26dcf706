"""Connections for the HTTP library: name resolution, guard, deadline of the exchange, TLS."""

from __future__ import annotations

import os
import select
import socket
import ssl
import tempfile
import threading
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpcore2
import httpx2

import ext_sdk

from .errors import TLS_HANDSHAKE
from .settings import RECORDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Self

    from .settings import Tls
    from .url import Guard

POLL_SECONDS = 0.25  # between two checks whether a thread that waits for a socket must stop
PEEK_BYTES = 64 * 1024


class ExchangeDeadline:
    """Deadline of one exchange; within its `with` block, it applies to the sockets that the thread uses.

    Args:
        deadline: of the exchange, to the last byte of the body.
        connect: maximum seconds to connect, TLS included; None for no limit of its own.

    Attributes:
        connections: number of connections opened for the exchange; 0 if an idle one was used.
    """

    __slots__ = ("_token", "connect", "connections", "deadline")

    def __init__(self, deadline: ext_sdk.Deadline, connect: float | None = None) -> None:
        self.deadline = deadline
        self.connect = connect
        self.connections = 0

    def __enter__(self) -> Self:
        self._token = _CURRENT.set(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _CURRENT.reset(self._token)

    def for_connection(self) -> ExchangeDeadline:
        """Count a new connection and return its deadline."""
        self.connections += 1
        return self if self.connect is None else ExchangeDeadline(self.deadline.limit(self.connect))

    def next_poll_timeout(self) -> float:
        """Return the seconds to wait for a socket before calling this again. Raises TimeoutError if time is up."""
        left = self.deadline.remaining()
        if left <= 0:
            raise TimeoutError("the extension is shutting down" if self.deadline.stopped.is_set() else "timed out")
        return min(left, POLL_SECONDS)


_CURRENT: ContextVar[ExchangeDeadline] = ContextVar("exchange_deadline")
_UNLIMITED = ExchangeDeadline(ext_sdk.Deadline())


def current() -> ExchangeDeadline:
    """Return the deadline of the exchange that this thread executes."""
    return _CURRENT.get(_UNLIMITED)


SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class Backend(httpcore2.NetworkBackend):
    """Opens connections.

    Args:
        resolve: addresses by (host, port), instead of the system's resolver; port 0 is any port.
    """

    def __init__(self, guard: Guard, resolve: Mapping[tuple[str, int], str]) -> None:
        self._guard = guard
        self._resolve = resolve

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SocketOption] | None = None,
    ) -> httpcore2.NetworkStream:
        self._guard.check_host(host, port)  # again, because the library may parse a URL differently
        deadline = current().for_connection()
        name = self._resolve.get((host, port)) or self._resolve.get((host, 0)) or host
        problem: OSError = OSError("it has no address")
        for family, _, _, _, address in _lookup(name, port, deadline):
            self._guard.check_address(host, port, str(address[0]))
            connection = socket.socket(family, socket.SOCK_STREAM)
            try:
                _connect(connection, address, deadline)
            except OSError as error:
                connection.close()
                if deadline.deadline.expired:
                    raise _timeout(f"no connection to {host}:{port} before the deadline", deadline) from error
                problem = error
                continue
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return Stream(connection)
        timed_out = isinstance(problem, TimeoutError)
        reason = "no connection before the deadline" if timed_out else problem.strerror or str(problem)
        raise httpcore2.ConnectError(f"{_kind(problem, 'connection')}: {host}:{port}: {reason}") from problem

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[SocketOption] | None = None
    ) -> httpcore2.NetworkStream:
        deadline = current().for_connection()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _connect(connection, path, deadline)
        except (OSError, ValueError) as error:
            connection.close()
            if isinstance(error, TimeoutError):
                raise _timeout(f"no connection to {path} before the deadline", deadline) from error
            reason = getattr(error, "strerror", None) or str(error)
            raise httpcore2.ConnectError(f"connection: {path!r}: {reason}") from error
        return Stream(connection)


def _lookup(name: str, port: int, deadline: ExchangeDeadline) -> list[Any]:
    """Return the addresses of a name, as socket.getaddrinfo does.

    Raises:
        ConnectError: the name has no address.
        ConnectTimeout: the resolver, which has no timeout and runs in a thread of its own, did not respond.
    """
    addresses: list[Any] = []
    problems: list[OSError] = []

    def resolve(flags: int = 0) -> None:
        problems.clear()
        try:
            addresses.extend(socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=flags))
        except (OSError, ValueError) as error:  # a label that is too long is a UnicodeError, a null byte a ValueError
            problems.append(error if isinstance(error, OSError) else OSError(str(error)))

    resolve(socket.AI_NUMERICHOST)  # an address takes no time
    if problems:
        thread = threading.Thread(target=resolve, daemon=True, name=f"lookup {name}")
        thread.start()
        while thread.is_alive():
            try:
                thread.join(deadline.next_poll_timeout())
            except TimeoutError:
                raise _timeout(f"no address for {name} before the deadline", deadline) from None
    for problem in problems:
        reason = problem.strerror or str(problem)
        raise httpcore2.ConnectError(f"{_kind(problem, 'unknown-host')}: {name}: {reason}") from problem
    return addresses


def _kind(problem: OSError, usual: str) -> str:
    """Return the kind of a failure: missing permission is permanent."""
    return "address" if isinstance(problem, PermissionError) else usual


def _broken(problem: OSError) -> str:
    """Return the kind of a failure after the handshake: a TLS 1.3 server checks a client certificate only then."""
    return "tls" if isinstance(problem, ssl.SSLError) and not isinstance(problem, ssl.SSLEOFError) else "connection"


def _connect(connection: socket.socket, address: Any, deadline: ExchangeDeadline) -> None:
    """Connect, with regular checks whether to stop."""
    connection.settimeout(0)
    try:
        connection.connect(address)
    except BlockingIOError:
        while not _ready(connection, select.POLLOUT, deadline.next_poll_timeout()):
            pass
        if number := connection.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(number, os.strerror(number)) from None


def _ready(connection: socket.socket, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(connection, event)
    return bool(poll.poll(seconds * 1000))


def _timeout(reason: str, deadline: ExchangeDeadline) -> httpcore2.ConnectTimeout:
    return httpcore2.ConnectTimeout("the extension is shutting down" if deadline.deadline.stopped.is_set() else reason)


class Stream(httpcore2.NetworkStream):
    """Connection whose reads and writes respect the deadline of the current exchange."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket = connection

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        deadline = current()
        while True:
            try:
                self._socket.settimeout(deadline.next_poll_timeout())
            except TimeoutError as error:
                raise httpcore2.ReadTimeout(str(error)) from None
            try:
                return self._socket.recv(max_bytes)
            except TimeoutError:
                continue
            except OSError as error:
                raise httpcore2.ReadError(f"{_broken(error)}: {error.strerror or error}") from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        if not buffer:
            return
        deadline = current()
        view = memoryview(buffer)
        while view:
            try:
                self._socket.settimeout(deadline.next_poll_timeout())
            except TimeoutError as error:
                raise httpcore2.WriteTimeout(str(error)) from None
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError:
                continue
            except OSError as error:
                raise httpcore2.WriteError(f"{_broken(error)}: {error.strerror or error}") from error

    def peek(self) -> bytes:
        """Return received bytes without consuming them. Over TLS, where that is not possible, return b""."""
        if isinstance(self._socket, ssl.SSLSocket):
            return b""
        try:
            self._socket.settimeout(0)
            return self._socket.recv(PEEK_BYTES, socket.MSG_PEEK)
        except OSError:
            return b""

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        deadline = current().for_connection()
        try:
            self._socket.settimeout(max(0.001, deadline.deadline.remaining()))
            return Stream(ssl_context.wrap_socket(self._socket, server_hostname=server_hostname))
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise httpcore2.ConnectError(f"certificate: {error.verify_message or error.reason}") from error
        except TimeoutError as error:
            self.close()
            raise _timeout("no TLS handshake before the deadline", deadline) from error
        except ssl.SSLError as error:
            self.close()
            raise httpcore2.ConnectError(f"tls: {(error.reason or str(error)).replace('_', ' ').lower()}") from error
        except (OSError, ValueError) as error:
            self.close()
            reason = getattr(error, "strerror", None) or str(error)
            raise httpcore2.ConnectError(f"connection: {TLS_HANDSHAKE}: {reason}") from error

    def get_extra_info(self, info: str) -> Any:
        if info == "ssl_object":
            return self._socket if isinstance(self._socket, ssl.SSLSocket) else None
        if info == "is_readable":  # of an idle connection: the server closed it, or sent bytes without a request
            return self._socket.fileno() < 0 or _ready(self._socket, select.POLLIN, 0)
        return {"socket": self._socket}.get(info)


class Upgraded:
    """Connection after a response with status 101, on which both sides use another protocol."""

    def __init__(self, stream: httpcore2.NetworkStream) -> None:
        self._stream = stream

    def read(self, deadline: ext_sdk.Deadline) -> bytes | None:
        """Return received bytes; b"" at their end, None if the time is over. Raises OSError if the connection broke."""
        try:
            with ExchangeDeadline(deadline):
                return self._stream.read(PEEK_BYTES)
        except httpcore2.ReadTimeout:
            return None
        except httpcore2.ReadError as error:
            raise OSError(str(error).partition(": ")[2]) from error

    def write(self, data: bytes, deadline: ext_sdk.Deadline) -> None:
        """Send bytes. Raises OSError if the connection broke, TimeoutError if the server did not read them in time."""
        try:
            with ExchangeDeadline(deadline):
                self._stream.write(data)
        except httpcore2.WriteTimeout as error:
            raise TimeoutError("the server did not read the message before the deadline") from error
        except httpcore2.WriteError as error:
            raise OSError(str(error).partition(": ")[2]) from error


def create_context(tls: Tls) -> ssl.SSLContext:
    """Return the context of a client. Raises InvalidArgs if a certificate or a key is not valid."""
    if tls.insecure:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    elif tls.ca:
        try:
            context = ssl.create_default_context(cadata=tls.ca)
        except (ssl.SSLError, ValueError) as error:
            raise ext_sdk.InvalidArgs("tls.ca", f"expected certificates in PEM: {_reason(error)}") from None
    else:
        context = httpx2.create_ssl_context(trust_env=False)
    if RECORDER in os.environ and (bundle := os.environ.get("SSL_CERT_FILE")) and Path(bundle).is_file():
        context.load_verify_locations(bundle)
    if not tls.certificate:
        return context
    # Python loads certificates and keys from files only: a private file, removed at once.
    descriptor, name = tempfile.mkstemp(prefix="ext-http-")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(f"{tls.certificate}\n{tls.key}\n")
        context.load_cert_chain(name, password=tls.key_password)
    except (ssl.SSLError, OSError, ValueError) as error:
        problem = f"expected a certificate and its key in PEM, found some that are not valid: {_reason(error)}"
        raise ext_sdk.InvalidArgs("tls.certificate", problem) from None
    finally:
        Path(name).unlink()
    return context


def _reason(error: Exception) -> str:
    reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or str(error)
    return str(reason).replace("_", " ").lower()


def expiry_of(stream: object) -> datetime | None:
    """Return the expiry date of the server's certificate; None without TLS.

    Python parses only certificates that it has verified, so the date is read from the bytes (RFC 5280, 4.1).
    """
    get = getattr(stream, "get_extra_info", None)
    connection = get("ssl_object") if get else None
    data = connection.getpeercert(binary_form=True) if isinstance(connection, ssl.SSLSocket) else None
    if not data:
        return None
    try:
        _, certificate, _ = _element(data)
        _, fields, _ = _element(certificate)
        tag, _, rest = _element(fields)
        if tag == 0xA0:  # the version, which old certificates leave out
            _, _, rest = _element(rest)  # serial number
        for _ in ("signature", "issuer"):
            _, _, rest = _element(rest)
        _, validity, _ = _element(rest)
        _, _, after = _element(validity)
        tag, value, _ = _element(after)
        text = value.decode("ascii")
        if tag == 0x17:  # UTCTime has two digits of the year
            text = ("20" if text < "50" else "19") + text
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    except (IndexError, ValueError):
        return None


def _element(data: bytes) -> tuple[int, bytes, bytes]:
    """Return tag and content of the first DER element (X.690), and the bytes after it."""
    length, start = data[1], 2
    if length & 0x80:
        count = length & 0x7F
        length, start = int.from_bytes(data[2 : 2 + count]), 2 + count
    return data[0], data[start : start + length], data[start + length :]
