"""Connections of the process by file descriptor, which stays the same when a socket is wrapped in TLS."""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping, MutableMapping, Sequence
    from typing import Any

    from .call_context import CallId


class Connection:
    """Connection that is recorded or replayed.

    Attributes:
        id: for the recorder.
        address: as passed to `connect`.
        name: of the host, if its address was looked up before.
        call: call that it last sent for.
        tls: it uses TLS.
        failed: replay: errno with which the recorded connection attempt failed; 0 if it succeeded.
        within: the `ssl.SSLObject` that encrypts its data; None if the socket itself does, or nothing.
    """

    __slots__ = ("address", "call", "failed", "id", "name", "tls", "within")

    def __init__(self, id: int, address: object, name: str, call: CallId) -> None:
        self.id = id
        self.address = address
        self.name = name
        self.call = call
        self.tls = False
        self.failed = 0
        self.within: object = None


class Connections:
    """Open connections, host names, and addresses that this process listens on."""

    def __init__(self) -> None:
        self.by_fd: dict[int, Connection] = {}
        self._names: dict[str, str] = {}
        self._own: set[object] = set()
        self._count = 0
        self._lock = allocate_lock()

    def number(self) -> int:
        """Return a new id."""
        with self._lock:
            self._count += 1
            return self._count

    def named(self, name: str, address: str) -> None:
        """Register the address of a host."""
        self._names[address] = name

    def name_of(self, address: object) -> str:
        """Return the name under which an address was looked up, else the address."""
        host = address[0] if isinstance(address, tuple) else address
        text = host.decode("utf-8", "replace") if isinstance(host, bytes) else str(host)
        return self._names.get(text, text)

    def listening(self, address: object) -> None:
        """Register an address that this process listens on; connections to it are not recorded."""
        self._own.add(_place(address))

    def is_own(self, address: object) -> bool:
        """Return True if this process listens on an address."""
        return bool(self._own) and _place(address) in self._own


def _place(address: object) -> object:
    """Return the port of a local address, or the path of a Unix socket."""
    if isinstance(address, tuple):
        host = str(address[0])
        here = host in {"", "0.0.0.0", "::", "::1", "localhost"} or host.startswith("127.")  # noqa: S104
        return address[1] if here else address[:2]
    return address.encode("utf-8", "surrogateescape") if isinstance(address, str) else address


HANDSHAKE = b"\x16\x03"  # beginning of a TLS record with a message of the handshake
RANDOM = slice(11, 43)  # random bytes of a ClientHello, after the headers of record and message, and the version


class Hellos:
    """ClientHellos that were written and not sent yet."""

    def __init__(self) -> None:
        self._made: MutableMapping[bytes, ssl.SSLObject] | None = None

    def made(self, tls: ssl.SSLObject, outgoing: ssl.MemoryBIO) -> None:
        """Register the ClientHello that a handshake has written.

        Args:
            tls: object that begins a handshake.
            outgoing: buffer with its output, not read yet.
        """
        written = outgoing.read()
        outgoing.write(written)
        if written.startswith(HANDSHAKE):
            if self._made is None:
                from weakref import WeakValueDictionary

                self._made = WeakValueDictionary()
            self._made[written[RANDOM]] = tls

    def sender(self, data: bytes | bytearray | memoryview) -> ssl.SSLObject | None:
        """Return the object whose ClientHello is being sent; None for other data."""
        if not self._made or bytes(data[:2]) != HANDSHAKE:
            return None
        return self._made.pop(bytes(data[RANDOM]), None)


def peeks(module: Any, args: Sequence[object], named: Mapping[str, object]) -> bool:
    """Return True if `recv` or `recv_into` leaves the received bytes in the socket (MSG_PEEK).

    Args:
        module: socket.
        args: of the call.
        named: of the call.
    """
    at = 1 if args and isinstance(args[0], int) else 2  # after the size, or after a buffer and the size
    flags = args[at] if len(args) > at else named.get("flags", 0)
    return isinstance(flags, int) and bool(flags & module.MSG_PEEK)


def text_of(host: object) -> str:
    """Return a host as text."""
    return host.decode("utf-8", "replace") if isinstance(host, bytes) else str(host)
