"""TLS on replay: its recorded data is sent in plain text on a private connection to the recorder.

Nothing is encrypted, because nothing leaves the machine, and the server's keys are unknown. Certificates are those of
the recording. A client that refused them when recording gets the same error.
"""

from __future__ import annotations

import ssl
from base64 import b64decode
from contextlib import contextmanager
from socket import socket as plain_socket

from .channel import HELLO
from .record_tls import remember_outgoing
from .redirect import raise_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

    from .channel import Told
    from .redirect import NetworkRedirect

CIPHER = ("TLS_AES_256_GCM_SHA384", "TLSv1.3", 256)
PEM_LINE = 64
# The arguments of `SSLContext.wrap_socket`, in its order.
WRAP_SOCKET = (
    "server_side", "do_handshake_on_connect", "suppress_ragged_eofs", "server_hostname", "session",
)  # fmt: skip


class RecordedTLS(ssl.SSLSocket):
    """Socket whose recorded connection used TLS.

    Attributes:
        told: recorded properties: certificate, version, alpn.
    """

    _guard: NetworkRedirect
    told: Told

    @classmethod
    def around(cls, sock: plain_socket, context: ssl.SSLContext, name: str | None, guard: NetworkRedirect) -> Self:
        """Wrap a plain socket. Raises ssl.SSLError, as recorded."""
        timeout = sock.gettimeout()
        self: Any = cls.__new__(cls)
        plain_socket.__init__(self, family=sock.family, type=sock.type, proto=sock.proto, fileno=sock.fileno())
        sock.detach()
        self.settimeout(timeout)
        self._sslobj = None
        self._context = context
        self._session = None
        self.server_side = False
        self.server_hostname = name
        self.do_handshake_on_connect = True
        self.suppress_ragged_eofs = True
        self._guard = guard
        self.told = {}
        self._connected = self.fileno() in guard.connections.by_fd
        if self._connected:
            try:
                self.told = guard.secure(self.fileno(), name)
            except OSError:
                self.close()
                raise
        made: Self = self
        return made

    def connect(self, addr: object) -> None:
        """Connect, and start TLS."""
        plain_socket.connect(self, addr)  # type: ignore[arg-type]
        self._connected = True
        self.told = self._guard.secure(self.fileno(), self.server_hostname)

    def read(self, len: int = 1024, buffer: bytearray | None = None) -> int | bytes:  # type: ignore[override]
        """Act as the method of SSLSocket."""
        if buffer is not None:
            return self.recv_into(buffer, len)
        return self.recv(len)

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """Act as the method of SSLSocket."""
        return self.send(data)

    def recv(self, *args: Any) -> bytes:
        """Act as the method of SSLSocket."""
        with _wanting(ssl.SSLWantReadError):
            return plain_socket.recv(self, *args)

    def recv_into(self, *args: Any) -> int:
        """Act as the method of SSLSocket."""
        with _wanting(ssl.SSLWantReadError):
            return plain_socket.recv_into(self, *args)

    def send(self, *args: Any) -> int:
        """Act as the method of SSLSocket."""
        with _wanting(ssl.SSLWantWriteError):
            return plain_socket.send(self, *args)

    def do_handshake(self, block: bool = False) -> None:
        """Do nothing: the handshake is complete."""

    def unwrap(self) -> plain_socket:
        """End TLS, and continue in plain text."""
        return self

    def pending(self) -> int:
        """Return 0: no data is decrypted in advance."""
        return 0

    def version(self) -> str:
        """Return the recorded version."""
        return str(self.told.get("version") or CIPHER[1])

    def cipher(self) -> tuple[str, str, int]:
        """Return a fixed cipher."""
        return CIPHER

    def selected_alpn_protocol(self) -> str | None:
        """Return the recorded protocol."""
        return str(self.told["alpn"]) if self.told.get("alpn") else None

    def getpeercert(self, binary_form: bool = False) -> object:  # type: ignore[override]
        """Return the recorded certificate."""
        return _certificate(self.told, binary_form)


class Memory:
    """Replacements for methods of an `ssl.SSLObject` whose handshake was sent to the recorder; it passes on plain text.

    Args:
        guard: finds its connection.
    """

    def __init__(self, guard: NetworkRedirect) -> None:
        self._guard = guard

    def install(self, kind: Any) -> None:
        """Replace the methods; objects with a live connection keep the originals."""
        for name in (
            "do_handshake", "read", "write", "unwrap", "pending", "version", "cipher", "compression",
            "selected_alpn_protocol", "getpeercert", "get_channel_binding",
        ):  # fmt: skip
            setattr(kind, name, _of_recorded(getattr(kind, name), getattr(self, name)))
        kind.do_handshake = self.beginning(kind.do_handshake)

    def beginning(self, handshake: Callable[..., object]) -> Callable[..., object]:
        """Wrap `do_handshake` as long as the connection is unknown."""

        def do_handshake(tls: Any) -> object:
            try:
                return handshake(tls)
            except ssl.SSLWantReadError:
                if not hasattr(tls, "_told") and hasattr(tls, "_outgoing"):
                    self._guard.hellos.made(tls, tls._outgoing)
                raise

        return do_handshake

    def do_handshake(self, tls: Any) -> None:
        """Complete the handshake when the recorder has sent its bytes back. Raises OSError, as recorded."""
        if not tls._incoming.read(len(HELLO)):
            raise _unfinished(ssl.SSLWantReadError)
        raise_failure(tls._told)

    def read(self, tls: Any, len: int = 1024, buffer: Any = None) -> int | bytes:
        """Return the data that was received."""
        data: bytes = tls._incoming.read(len)
        if not data and len and not tls._incoming.eof:
            raise _unfinished(ssl.SSLWantReadError)
        self._guard.step()
        return data if buffer is None else _filled(buffer, data)

    def write(self, tls: Any, data: bytes) -> int:
        """Write the data unencrypted."""
        self._guard.step()
        return int(tls._outgoing.write(data))

    def unwrap(self, tls: Any) -> None:
        """End TLS."""

    def pending(self, tls: Any) -> int:
        """Return the number of received bytes that were not read yet."""
        return 0

    def version(self, tls: Any) -> str:
        """Return the recorded version."""
        return str(tls._told.get("version") or CIPHER[1])

    def cipher(self, tls: Any) -> tuple[str, str, int]:
        """Return a fixed cipher."""
        return CIPHER

    def compression(self, tls: Any) -> None:
        """Return None: no compression."""

    def selected_alpn_protocol(self, tls: Any) -> str | None:
        """Return the recorded protocol."""
        return str(tls._told["alpn"]) if tls._told.get("alpn") else None

    def getpeercert(self, tls: Any, binary_form: bool = False) -> object:
        """Return the recorded certificate."""
        return _certificate(tls._told, binary_form)

    def get_channel_binding(self, tls: Any, cb_type: str = "tls-unique") -> None:
        """Return None: channel binding is not available."""


def _of_recorded(plain: Callable[..., object], recorded: Callable[..., object]) -> Callable[..., object]:
    """Return a method that calls `plain` for objects that pass on plain text, and `recorded` for all others."""

    def method(tls: ssl.SSLObject, *args: object, **named: object) -> object:
        return (recorded if hasattr(tls, "_told") else plain)(tls, *args, **named)

    return method


def _filled(buffer: Any, data: bytes) -> int:
    """Copy data into a buffer. Returns its size."""
    memoryview(buffer).cast("B")[: len(data)] = data
    return len(data)


def _unfinished(kind: type[OSError]) -> OSError:
    what = "read" if kind is ssl.SSLWantReadError else "write"
    return kind(2, f"The operation did not complete ({what})")


@contextmanager
def _wanting(kind: type[OSError]) -> Iterator[None]:
    """Convert errors of a non-blocking socket to those of TLS."""
    try:
        yield
    except BlockingIOError:
        raise _unfinished(kind) from None


def _certificate(told: Told, binary_form: bool) -> object:
    """Return the recorded certificate of a server."""
    encoded = str(told.get("certificate") or "")
    if not encoded:
        return None
    return b64decode(encoded) if binary_form else _decoded(encoded)


def _decoded(encoded: str) -> object:
    """Return a certificate as a dictionary; the ssl module offers that for files only."""
    import _ssl
    import tempfile

    lines = [encoded[at : at + PEM_LINE] for at in range(0, len(encoded), PEM_LINE)]
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write("\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]))
        file.flush()
        decode: Callable[[str], object] = vars(_ssl)["_test_decode_cert"]
        return decode(file.name)


def install(module: Any, guard: NetworkRedirect) -> None:
    """Make clients get a RecordedTLS, except those of servers in the same process. Servers are unchanged.

    Args:
        module: ssl.
        guard: connects to the recorder.
    """
    wrap: Callable[..., object] = module.SSLContext.wrap_socket

    def wrap_socket(context: ssl.SSLContext, sock: plain_socket, *args: Any, **named: Any) -> object:
        given = dict(zip(WRAP_SOCKET, args, strict=False)) | named
        recorded = sock.fileno() in guard.connections.by_fd
        if given.get("server_side", False) or (not recorded and _is_connected(sock)):
            return wrap(context, sock, **given)
        return RecordedTLS.around(sock, context, given.get("server_hostname"), guard)

    module.SSLContext.wrap_socket = wrap_socket
    module.SSLContext.wrap_bio = remember_outgoing(module.SSLContext.wrap_bio)
    Memory(guard).install(module.SSLObject)


def _is_connected(sock: plain_socket) -> bool:
    try:
        sock.getpeername()
    except OSError:
        return False
    return True
