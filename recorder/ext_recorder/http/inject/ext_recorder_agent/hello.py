"""Map from `ssl.SSLObject` to the connection that its bytes are sent over.

asyncio, anyio, trio and urllib3's TLS in TLS encrypt within memory and send the result themselves, so that neither the
object nor the socket refers to the other. But each handshake begins with 32 random bytes, by which the first message
(ClientHello) is recognized when it is sent over a connection.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import MutableMapping

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
