"""Sockets for the HTTP library: name lookup, guard, deadline of the exchange."""

from __future__ import annotations

import os
import select
import socket
import ssl
import threading
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import httpcore2

import ext_sdk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from .ssrf_guard import Guard


POLL_SECONDS = 0.25  # seconds after which somebody who waits for a socket looks whether they have to stop


class ExchangeDeadline:
    """The time for one exchange.

    Args:
        deadline: for all of it.
        connect: seconds for connecting, TLS included; None: as much as there is.

    Attributes:
        connections: how many were begun for it; none where one was there already.
    """

    __slots__ = ("connect", "connections", "deadline")

    def __init__(self, deadline: ext_sdk.Deadline, connect: float | None = None) -> None:
        self.deadline = deadline
        self.connect = connect
        self.connections = 0

    def connecting(self) -> ExchangeDeadline:
        """The time for a connection that begins now."""
        self.connections += 1
        return self if self.connect is None else ExchangeDeadline(self.deadline.limit(self.connect))

    def slice(self) -> float:
        """Seconds to wait for a socket, after which to ask again. Raises TimeoutError when there are none left."""
        left = self.deadline.remaining()
        if left <= 0:
            raise TimeoutError("the extension was told to end" if self.deadline.stopped.is_set() else "no time is left")
        return min(left, POLL_SECONDS)


_CURRENT: ContextVar[ExchangeDeadline] = ContextVar("budget")
_UNLIMITED = ExchangeDeadline(ext_sdk.Deadline())


def current() -> ExchangeDeadline:
    """The budget of the exchange that this thread is at."""
    return _CURRENT.get(_UNLIMITED)


@contextmanager
def exchange_deadline(budget: ExchangeDeadline) -> Iterator[None]:
    """All that goes over a socket within the block counts."""
    token = _CURRENT.set(budget)
    try:
        yield
    finally:
        _CURRENT.reset(token)


READ_BYTES = 64 * 1024  # at most, of what follows a response
SocketOption = tuple[int, int, int] | tuple[int, int, bytes | bytearray] | tuple[int, int, None, int]


class Backend(httpcore2.NetworkBackend):
    """Opens connections.

    Args:
        guard: what may be reached.
        resolve: addresses for (host, port), in place of those that the system knows; the port 0 is any.
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
        self._guard.check_host(host, port)  # again, for the library may read a URL differently
        budget = current().connecting()
        problem: OSError = OSError("it has no address")
        for family, address in self._addresses(host, port, budget):
            self._guard.check_address(host, port, str(address[0]))
            opened = socket.socket(family, socket.SOCK_STREAM)
            try:
                _connect(opened, address, budget)
            except OSError as error:
                opened.close()
                if budget.deadline.expired:
                    raise _timeout(f"no connection to {host}:{port} in time", budget) from error
                problem = error
                continue
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return Stream(opened)
        reason = "no connection in time" if isinstance(problem, TimeoutError) else problem.strerror or str(problem)
        raise httpcore2.ConnectError(f"{_kind(problem, 'connection')}: {host}:{port}: {reason}") from problem

    def connect_unix_socket(
        self, path: str, timeout: float | None = None, socket_options: Iterable[SocketOption] | None = None
    ) -> httpcore2.NetworkStream:
        budget = current().connecting()
        opened = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            _connect(opened, path, budget)
        except (OSError, ValueError) as error:
            opened.close()
            if isinstance(error, TimeoutError):
                raise _timeout(f"no connection to {path} in time", budget) from error
            reason = getattr(error, "strerror", None) or str(error)
            raise httpcore2.ConnectError(f"connection: {path!r}: {reason}") from error
        return Stream(opened)

    def _addresses(
        self, host: str, port: int, budget: ExchangeDeadline
    ) -> Iterable[tuple[socket.AddressFamily, tuple[Any, ...]]]:
        name = self._resolve.get((host, port)) or self._resolve.get((host, 0)) or host
        lookup = _Lookup(name, port)
        if not lookup.numeric():
            lookup.in_thread(budget)
        if lookup.error is not None:
            reason = lookup.error.strerror or str(lookup.error)
            kind = _kind(lookup.error, "unknown-host")
            raise httpcore2.ConnectError(f"{kind}: {name}: {reason}") from lookup.error
        return [(family, address) for family, _, _, _, address in lookup.found]


class _Lookup:
    """The addresses of a name. The system's resolver knows no deadline, so it is asked in a thread of its own."""

    def __init__(self, name: str, port: int) -> None:
        self._name = name
        self._port = port
        self.found: list[Any] = []
        self.error: OSError | None = None

    def numeric(self) -> bool:
        """Whether the name is an address, which takes no time."""
        try:
            self.found = self._ask(socket.AI_NUMERICHOST)
        except (OSError, ValueError):
            return False
        return True

    def in_thread(self, budget: ExchangeDeadline) -> None:
        """Ask the system, but no longer than there is time."""
        thread = threading.Thread(target=self._look, daemon=True, name=f"lookup {self._name}")
        thread.start()
        while thread.is_alive():
            try:
                thread.join(budget.slice())
            except TimeoutError:
                raise _timeout(f"no address for {self._name} in time", budget) from None

    def _look(self) -> None:
        try:
            self.found = self._ask(0)
        except (OSError, ValueError) as error:  # a label that is too long is a UnicodeError, a NUL a ValueError
            self.error = error if isinstance(error, OSError) else OSError(str(error))

    def _ask(self, flags: int) -> list[Any]:
        return socket.getaddrinfo(self._name, self._port, type=socket.SOCK_STREAM, flags=flags)


def _kind(problem: OSError, usual: str) -> str:
    """Return the kind of a failure: what the system does not permit, another try does not get either."""
    return "address" if isinstance(problem, PermissionError) else usual


def _connect(opened: socket.socket, address: Any, budget: ExchangeDeadline) -> None:
    """Connect, looking now and then whether to stop."""
    opened.settimeout(0)
    try:
        opened.connect(address)
    except BlockingIOError:
        while not _ready(opened, select.POLLOUT, budget.slice()):
            pass
        if number := opened.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
            raise OSError(number, os.strerror(number)) from None


def _ready(opened: socket.socket, event: int, seconds: float) -> bool:
    poll = select.poll()
    poll.register(opened, event)
    return bool(poll.poll(seconds * 1000))


def _timeout(reason: str, budget: ExchangeDeadline) -> httpcore2.ConnectTimeout:
    return httpcore2.ConnectTimeout("the extension was told to end" if budget.deadline.stopped.is_set() else reason)


class Stream(httpcore2.NetworkStream):
    """A connection."""

    def __init__(self, opened: socket.socket) -> None:
        self._socket = opened

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        budget = current()
        while True:
            try:
                self._socket.settimeout(budget.slice())
            except TimeoutError as error:
                raise httpcore2.ReadTimeout(str(error)) from None
            try:
                return self._socket.recv(max_bytes)
            except TimeoutError:
                continue
            except OSError as error:
                raise httpcore2.ReadError(f"connection: {error.strerror or error}") from error

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        budget = current()
        view = memoryview(buffer)
        while view:
            try:
                self._socket.settimeout(budget.slice())
            except TimeoutError as error:
                raise httpcore2.WriteTimeout(str(error)) from None
            try:
                view = view[self._socket.send(view) :]
            except TimeoutError:
                continue
            except OSError as error:
                raise httpcore2.WriteError(f"connection: {error.strerror or error}") from error

    def waiting(self) -> bytes:
        """Return bytes that were received and not read yet. Over TLS there are none: a look would take them."""
        if isinstance(self._socket, ssl.SSLSocket):
            return b""
        try:
            self._socket.settimeout(0)
            return self._socket.recv(READ_BYTES, socket.MSG_PEEK)
        except OSError:
            return b""

    def close(self) -> None:
        self._socket.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        budget = current().connecting()
        try:
            self._socket.settimeout(max(0.001, budget.deadline.remaining()))
            return Stream(ssl_context.wrap_socket(self._socket, server_hostname=server_hostname))
        except ssl.SSLCertVerificationError as error:
            self.close()
            raise httpcore2.ConnectError(f"certificate: {error.verify_message or error.reason}") from error
        except TimeoutError as error:
            self.close()
            raise _timeout("no TLS handshake in time", budget) from error
        except ssl.SSLError as error:
            self.close()
            raise httpcore2.ConnectError(f"tls: {(error.reason or str(error)).replace('_', ' ').lower()}") from error
        except (OSError, ValueError) as error:
            self.close()
            reason = getattr(error, "strerror", None) or str(error)
            raise httpcore2.ConnectError(f"connection: during the TLS handshake: {reason}") from error

    def get_extra_info(self, info: str) -> Any:
        if info == "ssl_object":
            return self._socket if isinstance(self._socket, ssl.SSLSocket) else None
        if info == "is_readable":  # of an idle connection: the server closed it, or sent bytes without a request
            return self._socket.fileno() < 0 or _ready(self._socket, select.POLLIN, 0)
        return {"socket": self._socket}.get(info)
