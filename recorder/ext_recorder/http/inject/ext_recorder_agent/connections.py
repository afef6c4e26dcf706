"""The connections of a process by file descriptor, which a socket keeps when TLS is put around it."""

from __future__ import annotations

from _thread import allocate_lock

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping, MutableMapping, Sequence
    from typing import Any

    from .call_context import CallId


class Connection:
    """A connection that the layer has to do with.

    Attributes:
        id: for the recorder.
        address: as it was given to `connect`.
        name: the host, where its name was looked up before.
        call: the call that it last sent for.
        tls: it is in TLS by now.
        failed: on replay: the number of the error with which the recorded one ended before it was there; 0: it did not.
        within: the `ssl.SSLObject` that encrypts what goes over it; None where the socket itself does, or nothing.
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
    """Those that are open, the names of hosts, and what this process listens on."""

    def __init__(self) -> None:
        self.by_fd: dict[int, Connection] = {}
        self._names: dict[str, str] = {}
        self._own: set[object] = set()
        self._count = 0
        self._lock = allocate_lock()

    def number(self) -> int:
        """A number that no other connection has."""
        with self._lock:
            self._count += 1
            return self._count

    def named(self, name: str, address: str) -> None:
        """A host has this address."""
        self._names[address] = name

    def name_of(self, address: object) -> str:
        """The name under which an address was looked up; the address where it was not."""
        host = address[0] if isinstance(address, tuple) else address
        text = host.decode("utf-8", "replace") if isinstance(host, bytes) else str(host)
        return self._names.get(text, text)

    def listening(self, address: object) -> None:
        """This process listens there: what it sends itself is not the network."""
        self._own.add(_place(address))

    def is_own(self, address: object) -> bool:
        """Whether this process listens there."""
        return bool(self._own) and _place(address) in self._own


def _place(address: object) -> object:
    """A port of this machine, or a file."""
    if isinstance(address, tuple):
        host = str(address[0])
        here = host in {"", "0.0.0.0", "::", "::1", "localhost"} or host.startswith("127.")  # noqa: S104
        return address[1] if here else address[:2]
    return address.encode("utf-8", "surrogateescape") if isinstance(address, str) else address


HANDSHAKE = b"\x16\x03"  # how a TLS record with a message of the handshake begins
RANDOM = slice(11, 43)  # of a ClientHello, behind the headers of record and message, and the version


class Hellos:
    """ClientHellos that were made and not sent yet."""

    def __init__(self) -> None:
        self._made: MutableMapping[bytes, ssl.SSLObject] | None = None

    def made(self, tls: ssl.SSLObject, outgoing: ssl.MemoryBIO) -> None:
        """Remember the ClientHello that a handshake has written.

        Args:
            tls: begins a handshake.
            outgoing: what it has written and nothing has read yet.
        """
        written = outgoing.read()
        outgoing.write(written)
        if written.startswith(HANDSHAKE):
            if self._made is None:
                from weakref import WeakValueDictionary

                self._made = WeakValueDictionary()
            self._made[written[RANDOM]] = tls

    def sender(self, data: bytes | bytearray | memoryview) -> ssl.SSLObject | None:
        """Return the object whose ClientHello is being sent; None if the data is anything else."""
        if not self._made or bytes(data[:2]) != HANDSHAKE:
            return None
        return self._made.pop(bytes(data[RANDOM]), None)


def peeks(module: Any, args: Sequence[object], named: Mapping[str, object]) -> bool:
    """Return True if `recv` or `recv_into` leaves the received bytes in the socket (MSG_PEEK).

    Args:
        module: socket.
        args: of the call.
        named: of the call, too.
    """
    at = 1 if args and isinstance(args[0], int) else 2  # after the size, or after a buffer and the size
    flags = args[at] if len(args) > at else named.get("flags", 0)
    return isinstance(flags, int) and bool(flags & module.MSG_PEEK)


def text_of(host: object) -> str:
    """A host as text."""
    return host.decode("utf-8", "replace") if isinstance(host, bytes) else str(host)
