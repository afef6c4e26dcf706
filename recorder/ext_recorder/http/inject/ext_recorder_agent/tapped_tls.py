"""Patches that let a tap see what goes through TLS, before it is encrypted and after it was decrypted."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from typing import Any

    from .tapping import Tap

    Method = Callable[..., Any]


def patch_tls(module: Any, tap: Tap) -> None:
    """See what goes through TLS.

    Args:
        module: ssl.
        tap: is told.
    """
    kind, patches = module.SSLSocket, Patches(module, tap)
    kind.read = patches.reading(kind.read)
    kind.send = patches.sending(kind.send)
    kind.write = patches.sending(kind.write)
    kind.do_handshake = patches.beginning(kind.do_handshake)
    module.SSLContext.wrap_bio = within_memory(module.SSLContext.wrap_bio, tap)


class Patches:
    """The methods in the place of those of `ssl.SSLSocket`."""

    def __init__(self, module: Any, tap: Tap) -> None:
        self._passing = (module.SSLWantReadError, module.SSLWantWriteError, BlockingIOError)
        self._tap = tap

    def reading(self, read: Method) -> Method:
        """`read`, which `recv` and `recv_into` call."""
        tap = self._tap

        def read_(sock: ssl.SSLSocket, len: int = 1024, buffer: bytearray | None = None) -> object:
            fd = sock.fileno()
            try:
                result = read(sock, len, buffer)
            except self._passing:
                raise
            except OSError as error:
                tap.failed(fd, error)
                raise
            tap.received(fd, result if buffer is None else memoryview(buffer).cast("B")[:result])
            return result

        return read_

    def sending(self, send: Method) -> Method:
        """`send`, which `sendall` calls, and `write`."""
        tap = self._tap

        def send_(sock: Any, data: bytes, *args: object) -> object:
            if sock._sslobj is None:  # not in TLS (yet): the method of the plain socket is called, and sees it
                return send(sock, data, *args)
            fd = sock.fileno()
            try:
                result = send(sock, data, *args)
            except self._passing:
                raise
            except OSError as error:
                tap.failed(fd, error)
                raise
            tap.sent(fd, memoryview(data).cast("B")[:result])
            return result

        return send_

    def beginning(self, handshake: Method) -> Method:
        """`do_handshake`."""
        tap = self._tap

        def do_handshake(sock: ssl.SSLSocket, *args: object) -> None:
            try:
                handshake(sock, *args)
            except self._passing:
                raise
            except OSError as error:
                tap.not_secured(sock, error)
                raise
            tap.secured(sock)

        return do_handshake


def within_memory(wrap_bio: Method, tap: Tap) -> Method:
    """`wrap_bio`: TLS that nobody can see from a socket."""

    def wrap_bio_(
        context: ssl.SSLContext, incoming: object, outgoing: object, *args: object, **named: object
    ) -> object:
        if not (args[0] if args else named.get("server_side", False)):
            name = args[1] if len(args) > 1 else named.get("server_hostname")
            tap.problem(f"TLS to {name} within memory, as asyncio has it: only TLS on sockets is recorded")
        return wrap_bio(context, incoming, outgoing, *args, **named)

    return wrap_bio_
