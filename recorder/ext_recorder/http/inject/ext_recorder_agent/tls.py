"""TLS on replay: what was said in it is played in plain text on a line to the recorder, which is in nobody's sight.

Nothing is encrypted, because nothing leaves the machine, and there is no server that could have the keys. Certificates
are those of the recording; who does not trust them was told so there, and is told so here.
"""

from __future__ import annotations

import ssl
from base64 import b64decode
from contextlib import contextmanager
from socket import socket as plain_socket

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, Self

    from .answering import Guard
    from .channel import Told

CIPHER = ("TLS_AES_256_GCM_SHA384", "TLSv1.3", 256)
PEM_LINE = 64
# The arguments of `SSLContext.wrap_socket`, in its order.
WRAP_SOCKET = (
    "server_side", "do_handshake_on_connect", "suppress_ragged_eofs", "server_hostname", "session",
)  # fmt: skip


class RecordedTLS(ssl.SSLSocket):
    """A socket that was in TLS when it was recorded.

    Attributes:
        told: what is known of that: certificate, version, alpn.
    """

    _guard: Guard
    told: Told

    @classmethod
    def around(cls, sock: plain_socket, context: ssl.SSLContext, name: str | None, guard: Guard) -> Self:
        """Take over a plain socket. Raises ssl.SSLError, as recorded."""
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
        """Connect, and be in TLS."""
        plain_socket.connect(self, addr)  # type: ignore[arg-type]
        self._connected = True
        self.told = self._guard.secure(self.fileno(), self.server_hostname)

    def read(self, len: int = 1024, buffer: bytearray | None = None) -> int | bytes:  # type: ignore[override]
        """As SSLSocket has it."""
        if buffer is not None:
            return self.recv_into(buffer, len)
        return self.recv(len)

    def write(self, data: bytes) -> int:  # type: ignore[override]
        """As SSLSocket has it."""
        return self.send(data)

    def recv(self, *args: Any) -> bytes:
        """As SSLSocket has it."""
        with _wanting(ssl.SSLWantReadError):
            return plain_socket.recv(self, *args)

    def recv_into(self, *args: Any) -> int:
        """As SSLSocket has it."""
        with _wanting(ssl.SSLWantReadError):
            return plain_socket.recv_into(self, *args)

    def send(self, *args: Any) -> int:
        """As SSLSocket has it."""
        with _wanting(ssl.SSLWantWriteError):
            return plain_socket.send(self, *args)

    def do_handshake(self, block: bool = False) -> None:
        """It is done."""

    def unwrap(self) -> plain_socket:
        """End TLS, and go on in plain text."""
        return self

    def pending(self) -> int:
        """Bytes that were decrypted already."""
        return 0

    def version(self) -> str:
        """The recorded one."""
        return str(self.told.get("version") or CIPHER[1])

    def cipher(self) -> tuple[str, str, int]:
        """Some cipher."""
        return CIPHER

    def selected_alpn_protocol(self) -> str | None:
        """The recorded one."""
        return str(self.told["alpn"]) if self.told.get("alpn") else None

    def getpeercert(self, binary_form: bool = False) -> object:  # type: ignore[override]
        """The recorded one."""
        encoded = str(self.told.get("certificate") or "")
        if not encoded:
            return None
        return b64decode(encoded) if binary_form else _decoded(encoded)


@contextmanager
def _wanting(kind: type[OSError]) -> Iterator[None]:
    """What cannot be done at once is said in the words of TLS."""
    try:
        yield
    except BlockingIOError:
        raise kind(2, "The operation did not complete") from None


def _decoded(encoded: str) -> object:
    """A certificate as a dictionary, in the way of the ssl module, which has it for files only."""
    import _ssl
    import tempfile

    lines = [encoded[at : at + PEM_LINE] for at in range(0, len(encoded), PEM_LINE)]
    with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
        file.write("\n".join(["-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""]))
        file.flush()
        decode: Callable[[str], object] = vars(_ssl)["_test_decode_cert"]
        return decode(file.name)


def install(module: Any, guard: Guard) -> None:
    """Have clients get a RecordedTLS; servers are left alone, and so is who connects to a server of the same process.

    Args:
        module: ssl.
        guard: what connects.
    """
    wrap: Callable[..., object] = module.SSLContext.wrap_socket
    wrap_bio: Callable[..., object] = module.SSLContext.wrap_bio

    def wrap_socket(context: ssl.SSLContext, sock: plain_socket, *args: Any, **named: Any) -> object:
        given = dict(zip(WRAP_SOCKET, args, strict=False)) | named
        recorded = sock.fileno() in guard.connections.by_fd
        if given.get("server_side", False) or (not recorded and _is_connected(sock)):
            return wrap(context, sock, **given)
        return RecordedTLS.around(sock, context, given.get("server_hostname"), guard)

    def wrap_bio_(context: ssl.SSLContext, incoming: object, outgoing: object, *args: Any, **named: Any) -> object:
        if not (args[0] if args else named.get("server_side", False)):
            name = args[1] if len(args) > 1 else named.get("server_hostname")
            raise guard.refuse(f"TLS to {name} within memory, as asyncio has it")
        return wrap_bio(context, incoming, outgoing, *args, **named)

    module.SSLContext.wrap_socket = wrap_socket
    module.SSLContext.wrap_bio = wrap_bio_


def _is_connected(sock: plain_socket) -> bool:
    try:
        sock.getpeername()
    except OSError:
        return False
    return True
