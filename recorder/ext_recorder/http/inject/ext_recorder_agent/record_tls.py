"""Patches of TLS for recording: report data before encryption and after decryption."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable
    from typing import Any

    from .traffic import TrafficReporter

    Method = Callable[..., Any]


def patch_tls(module: Any, reporter: TrafficReporter) -> None:
    """Report the traffic of TLS connections.

    Args:
        module: ssl.
    """
    kind, patches = module.SSLSocket, Patches(module, reporter)
    kind.read = patches.reading(kind.read)
    kind.send = patches.sending(kind.send)
    kind.write = patches.sending(kind.write)
    kind.do_handshake = patches.beginning(kind.do_handshake)
    MemoryPatches(module, reporter).install(module.SSLContext, module.SSLObject)


class Patches:
    """Replacements for methods of `ssl.SSLSocket`."""

    def __init__(self, module: Any, reporter: TrafficReporter) -> None:
        self._passing = (module.SSLWantReadError, module.SSLWantWriteError, BlockingIOError)
        self._reporter = reporter

    def reading(self, read: Method) -> Method:
        """Wrap `read`, which `recv` and `recv_into` call."""
        reporter = self._reporter

        def read_(sock: ssl.SSLSocket, len: int = 1024, buffer: bytearray | None = None) -> object:
            fd = sock.fileno()
            try:
                result = read(sock, len, buffer)
            except self._passing:
                raise
            except OSError as error:
                reporter.failed(fd, error)
                raise
            reporter.received(fd, result if buffer is None else memoryview(buffer).cast("B")[:result])
            return result

        return read_

    def sending(self, send: Method) -> Method:
        """Wrap `send`, which `sendall` calls, and `write`."""
        reporter = self._reporter

        def send_(sock: Any, data: bytes, *args: object) -> object:
            if sock._sslobj is None:  # not in TLS (yet): the method of the plain socket is called, which reports it
                return send(sock, data, *args)
            fd = sock.fileno()
            try:
                result = send(sock, data, *args)
            except self._passing:
                raise
            except OSError as error:
                reporter.failed(fd, error)
                raise
            reporter.sent(fd, memoryview(data).cast("B")[:result])
            return result

        return send_

    def beginning(self, handshake: Method) -> Method:
        """Wrap `do_handshake`."""
        reporter = self._reporter

        def do_handshake(sock: ssl.SSLSocket, *args: object) -> None:
            connection = reporter.connections.by_fd.get(sock.fileno())
            try:
                handshake(sock, *args)
            except self._passing:
                raise
            except OSError as error:
                if connection is not None:
                    reporter.not_secured(connection, error)
                raise
            if connection is not None:
                reporter.secured(connection, sock)

        return do_handshake


class MemoryPatches:
    """Replacements for methods of `ssl.SSLObject`: TLS in memory buffers, as asyncio uses it.

    Its bytes reach a connection through a socket's methods, where `TrafficReporter.passed_out` finds the connection.
    """

    def __init__(self, module: Any, reporter: TrafficReporter) -> None:
        # The socket has already reported the end of a connection (SSLEOFError).
        self._passing = (module.SSLWantReadError, module.SSLWantWriteError, module.SSLEOFError)
        self._server = module.PROTOCOL_TLS_SERVER
        self._error = module.SSLError
        self._reporter = reporter

    def install(self, context: Any, kind: Any) -> None:
        """Replace the methods."""
        context.wrap_bio = remember_outgoing(context.wrap_bio)
        context.set_alpn_protocols = self.offering(context.set_alpn_protocols)
        kind.do_handshake = self.beginning(kind.do_handshake)
        kind.read = self.reading(kind.read)
        kind.write = self.writing(kind.write)
        kind.unwrap = self.ending(kind.unwrap)

    def offering(self, set_alpn_protocols: Method) -> Method:
        """Wrap `set_alpn_protocols`: a client that accepts HTTP/1.1 offers nothing else, so that it can be recorded."""

        def set_alpn_protocols_(context: ssl.SSLContext, protocols: list[str]) -> object:
            offered = list(protocols)
            if context.protocol != self._server and "http/1.1" in offered:
                offered = [protocol for protocol in offered if protocol != "h2"]
            return set_alpn_protocols(context, offered)

        return set_alpn_protocols_

    def beginning(self, handshake: Method) -> Method:
        """Wrap `do_handshake`, which is called repeatedly until enough data was received."""
        reporter = self._reporter

        def do_handshake(tls: Any) -> None:
            connection = getattr(tls, "_recorded", None)
            try:
                handshake(tls)
            except self._passing:
                if connection is None and (outgoing := getattr(tls, "_outgoing", None)) is not None:
                    reporter.hellos.made(tls, outgoing)
                raise
            except self._error as error:
                if connection is not None:
                    reporter.not_secured(connection, error)
                raise
            if connection is not None:
                reporter.secured(connection, tls)

        return do_handshake

    def reading(self, read: Method) -> Method:
        """Wrap `read`."""
        reporter = self._reporter

        def read_(tls: Any, len: int = 1024, buffer: bytearray | None = None) -> object:
            connection = getattr(tls, "_recorded", None)
            try:
                result = read(tls, len, buffer)
            except self._passing:
                raise
            except self._error as error:
                if connection is not None:
                    reporter.broken(connection, error)
                raise
            if connection is not None:
                reporter.passed_in(connection, tls, result if buffer is None else memoryview(buffer).cast("B")[:result])
            return result

        return read_

    def writing(self, write: Method) -> Method:
        """Wrap `write`."""
        reporter = self._reporter

        def write_(tls: Any, data: bytes) -> object:
            result: Any = write(tls, data)
            connection = getattr(tls, "_recorded", None)
            if connection is not None:
                reporter.passed_out(connection, tls, memoryview(data).cast("B")[:result])
            return result

        return write_

    def ending(self, unwrap: Method) -> Method:
        """Wrap `unwrap`, after which the child receives no more data; the server closes because the child does."""
        reporter = self._reporter

        def unwrap_(tls: Any) -> object:
            connection = getattr(tls, "_recorded", None)
            if connection is not None and connection.within is tls:
                reporter.ended(connection)
            return unwrap(tls)

        return unwrap_


def remember_outgoing(wrap_bio: Method) -> Method:
    """Wrap `wrap_bio`: the objects of clients keep `outgoing`, so that the ClientHello can be read from it."""

    def wrap_bio_(
        context: ssl.SSLContext, incoming: object, outgoing: object, *args: object, **named: object
    ) -> object:
        tls: Any = wrap_bio(context, incoming, outgoing, *args, **named)
        if not tls.server_side:
            tls._incoming, tls._outgoing = incoming, outgoing
        return tls

    return wrap_bio_
