"""TLS on replay: its recorded data is sent in plain text on a private connection to the recorder.

Nothing is encrypted, because nothing leaves the machine, and the server's keys are unknown. Certificates are those of
the recording. A client that refused them when recording gets the same error.
"""

from __future__ import annotations

import ssl
from base64 import b64decode
from contextlib import contextmanager, suppress
from socket import socket as plain_socket

from .channel import HELLO
from .record_tls import remember_outgoing
from .redirect import raise_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

    from .channel import Event
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
        properties: recorded certificate, version and alpn.
    """

    _redirect: NetworkRedirect
    properties: Event

    @classmethod
    def around(cls, sock: plain_socket, context: ssl.SSLContext, name: str | None, redirect: NetworkRedirect) -> Self:
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
        self._redirect = redirect
        self.properties = {}
        self._connected = self.fileno() in redirect.connections.by_fd
        if self._connected:
            try:
                self.properties = redirect.secure(self.fileno(), name)
            except OSError:
                self.close()
                raise
        result: Self = self
        return result

    def connect(self, addr: object) -> None:
        """Connect, and start TLS."""
        plain_socket.connect(self, addr)  # type: ignore[arg-type]
        self._connected = True
        self.properties = self._redirect.secure(self.fileno(), self.server_hostname)

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
        return str(self.properties.get("version") or CIPHER[1])

    def cipher(self) -> tuple[str, str, int]:
        """Return a fixed cipher."""
        return CIPHER

    def selected_alpn_protocol(self) -> str | None:
        """Return the recorded protocol."""
        return str(self.properties["alpn"]) if self.properties.get("alpn") else None

    def getpeercert(self, binary_form: bool = False) -> object:  # type: ignore[override]
        """Return the recorded certificate."""
        return _certificate(self.properties, binary_form)


class Memory:
    """Replacements for methods of an `ssl.SSLObject` whose handshake went to the recorder: it passes on plain text."""

    def __init__(self, redirect: NetworkRedirect) -> None:
        self._redirect = redirect

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
                if not hasattr(tls, "_properties") and hasattr(tls, "_outgoing"):
                    self._redirect.hellos.made(tls, tls._outgoing)
                raise

        return do_handshake

    def do_handshake(self, tls: Any) -> None:
        """Complete the handshake when the recorder has sent its bytes back. Raises OSError, as recorded."""
        if not tls._incoming.read(len(HELLO)):
            raise _unfinished(ssl.SSLWantReadError)
        raise_failure(tls._properties)

    def read(self, tls: Any, len: int = 1024, buffer: Any = None) -> int | bytes:
        """Return the data that was received."""
        data: bytes = tls._incoming.read(len)
        if not data and len and not tls._incoming.eof:
            raise _unfinished(ssl.SSLWantReadError)
        self._redirect.step()
        if buffer is None:
            return data
        view = memoryview(data)
        memoryview(buffer).cast("B")[: view.nbytes] = view
        return view.nbytes

    def write(self, tls: Any, data: bytes) -> int:
        """Write the data unencrypted."""
        self._redirect.step()
        return int(tls._outgoing.write(data))

    def unwrap(self, tls: Any) -> None:
        """End TLS."""

    def pending(self, tls: Any) -> int:
        """Return the number of received bytes that were not read yet."""
        return 0

    def version(self, tls: Any) -> str:
        """Return the recorded version."""
        return str(tls._properties.get("version") or CIPHER[1])

    def cipher(self, tls: Any) -> tuple[str, str, int]:
        """Return a fixed cipher."""
        return CIPHER

    def compression(self, tls: Any) -> None:
        """Return None: no compression."""

    def selected_alpn_protocol(self, tls: Any) -> str | None:
        """Return the recorded protocol."""
        return str(tls._properties["alpn"]) if tls._properties.get("alpn") else None

    def getpeercert(self, tls: Any, binary_form: bool = False) -> object:
        """Return the recorded certificate."""
        return _certificate(tls._properties, binary_form)

    def get_channel_binding(self, tls: Any, cb_type: str = "tls-unique") -> None:
        """Return None: channel binding is not available."""


def _of_recorded(plain: Callable[..., object], recorded: Callable[..., object]) -> Callable[..., object]:
    """Return a method that calls `recorded` for objects that pass on plain text, and `plain` for all others."""

    def method(tls: ssl.SSLObject, *args: object, **named: object) -> object:
        return (recorded if hasattr(tls, "_properties") else plain)(tls, *args, **named)

    return method


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


def _certificate(properties: Event, binary_form: bool) -> object:
    """Return the recorded certificate of a server."""
    encoded = str(properties.get("certificate") or "")
    if not encoded:
        return None
    if binary_form:
        return b64decode(encoded)
    # The ssl module converts a certificate to a dictionary only if it is in a file.
    import _ssl
    import tempfile

    lines = [encoded[at : at + PEM_LINE] for at in range(0, len(encoded), PEM_LINE)]
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write("\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]))
        file.flush()
        decode: Callable[[str], object] = vars(_ssl)["_test_decode_cert"]
        return decode(file.name)


def install(module: Any, redirect: NetworkRedirect) -> None:
    """Make clients get a RecordedTLS, except those of servers in the same process. Servers are unchanged.

    Args:
        module: ssl.
    """
    wrap: Callable[..., object] = module.SSLContext.wrap_socket

    def wrap_socket(context: ssl.SSLContext, sock: plain_socket, *args: Any, **named: Any) -> object:
        given = dict(zip(WRAP_SOCKET, args, strict=False)) | named
        is_live = given.get("server_side", False)
        if sock.fileno() not in redirect.connections.by_fd:
            with suppress(OSError):  # it is not connected
                sock.getpeername()
                is_live = True
        if is_live:
            return wrap(context, sock, **given)
        return RecordedTLS.around(sock, context, given.get("server_hostname"), redirect)

    module.SSLContext.wrap_socket = wrap_socket
    module.SSLContext.wrap_bio = remember_outgoing(module.SSLContext.wrap_bio)
    Memory(redirect).install(module.SSLObject)
