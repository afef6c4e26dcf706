"""Connections to real servers: name, address, TLS, each without blocking the event loop."""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import ssl
import tempfile
import threading
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ext_recorder.http.event_loop import WRITE

from .certificates import defect_of
from .streams import Stream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ext_recorder.http.event_loop import EventLoop

    from .certificates import Defect
    from .streams import StreamHandler

    Address = tuple[socket.AddressFamily, tuple[object, ...]]


class Origin(NamedTuple):
    """A server.

    Attributes:
        scheme: http or https.
        host: name or address, without brackets.
    """

    scheme: str
    host: str
    port: int

    @property
    def place(self) -> str:
        """Return host and port, as in a URL."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def authority(self) -> str:
        """Return host and port as in the header Host, without the usual port."""
        return self.place.removesuffix(":443" if self.scheme == "https" else ":80")

    @property
    def is_local(self) -> bool:
        """Return True if the server is on loopback."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost" or self.host.endswith(".localhost")


class Trust:
    """Certificates that upstream servers must have, as the user's programs would check them.

    Args:
        files: of authorities, in addition to those of the system.
    """

    def __init__(self, files: Iterable[str] = ()) -> None:
        self.name = ""  # that certificates must have; "" for the host
        self._files = tuple(files)
        self._contexts: dict[bool, ssl.SSLContext] = {}

    def context(self, *, verify: bool) -> ssl.SSLContext:
        """Return the context of a client.

        Args:
            verify: False after the certificate of this server was refused.
        """
        context = self._contexts.get(verify)
        if context is None:
            context = self._contexts[verify] = ssl.create_default_context()
            context.set_alpn_protocols(["http/1.1"])
            if not verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            for file in self._files if verify else ():
                context.load_verify_locations(file)
        return context


class ClusterTrust(Trust):
    """Certificates of a Kubernetes cluster, and of the user who connects to it.

    Args:
        authority: PEM; none for the authorities of the system.
        certificate, key: PEM of the client; none for another way to log in.
        insecure: the certificate of the server is not verified.
        name: that the certificate of the server must have; "" for its host.
    """

    def __init__(self, *, authority: bytes, certificate: bytes, key: bytes, insecure: bool, name: str) -> None:
        super().__init__()
        self._authority = authority
        self._pair = certificate + b"\n" + key if certificate and key else b""
        self._insecure = insecure
        self.name = name

    def context(self, *, verify: bool) -> ssl.SSLContext:
        """Return the context of a client."""
        verify = verify and not self._insecure
        if verify not in self._contexts:
            context = ssl.create_default_context(cadata=self._authority.decode("ascii", "replace") or None)
            context.set_alpn_protocols(["http/1.1"])
            if not verify:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self._pair:
                with tempfile.NamedTemporaryFile() as file:  # OpenSSL reads keys from files only
                    file.write(self._pair)
                    file.flush()
                    context.load_cert_chain(file.name)
            self._contexts[verify] = context
        return self._contexts[verify]


class UpstreamOwner(Protocol):
    """Receiver of the progress of a connection."""

    def connected(self, upstream: Upstream, /) -> None:
        """Process an open connection, before TLS."""

    def verified(self, upstream: Upstream, /) -> None:
        """Process the end of the TLS handshake; `defect` is that of the certificate."""

    def refused(self, upstream: Upstream, error: OSError, /) -> None:
        """Process a connection, or a TLS handshake, that has failed."""


class Upstream:
    """Connection to a server, from the name to the open stream.

    Attributes:
        origin: as given.
        address: the peer, as "127.0.0.1:443"; "" before it is connected.
        defect: of its certificate; "" for none.
        stream: open; None before.
    """

    def __init__(self, loop: EventLoop, origin: Origin, trust: Trust, owner: UpstreamOwner) -> None:
        self.origin = origin
        self.address = ""
        self.defect: Defect = ""
        self.stream: Stream | None = None
        self.closed = False
        self._loop = loop
        self._trust = trust
        self._owner = owner
        self._addresses: list[Address] = []
        self._name = ""
        self._again = False  # the second connection, whose certificate is not verified

    def connect(self) -> None:
        """Begin to connect."""
        try:
            addresses = _resolve(self.origin, socket.AI_NUMERICHOST)
        except OSError:
            threading.Thread(target=self._look_up, daemon=True).start()
        else:
            self._resolved(addresses)

    def start_tls(self, name: str) -> None:
        """Begin the TLS handshake.

        Args:
            name: that the program has asked for.
        """
        assert self.stream is not None
        self._name = self._trust.name or name
        self.stream.handler = self
        self.stream.start_tls(self._trust.context(verify=not self._again), server=False, name=self._name)

    def close(self) -> None:
        """Close the connection at any stage."""
        self.closed = True
        if self.stream is not None:
            self.stream.close()

    def hand_over(self, handler: StreamHandler) -> Stream:
        """Return the open stream to its user."""
        assert self.stream is not None
        self.stream.handler = handler
        return self.stream

    # --- Name and address --------------------------------------------------------------------------------------------

    def _look_up(self) -> None:
        try:
            addresses = _resolve(self.origin, 0)
        except OSError as error:
            failure = error
            self._loop.post(lambda: self._refuse(failure))
        else:
            self._loop.post(lambda: self._resolved(addresses))

    def _resolved(self, addresses: list[Address]) -> None:
        self._addresses = addresses
        self._next_address(OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL)))

    def _next_address(self, error: OSError) -> None:
        if self.closed:
            return
        if not self._addresses:
            self._refuse(error)
            return
        family, address = self._addresses.pop(0)
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.settimeout(0)
        number = sock.connect_ex(address)
        if number in {0, errno.EINPROGRESS}:
            self._loop.watch(sock.fileno(), WRITE, lambda _: self._on_connected(sock, address))
        else:
            sock.close()
            self._next_address(_error(number))

    def _on_connected(self, sock: socket.socket, address: tuple[object, ...]) -> None:
        self._loop.unwatch(sock.fileno())
        number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        # TCP may connect a client to itself if nothing listens on the port.
        if not number and sock.getsockname() == sock.getpeername():
            number = errno.ECONNREFUSED
        if number or self.closed:
            sock.close()
            if number:
                self._next_address(_error(number))
            return
        self.address = f"{address[0]}:{address[1]}"
        self.stream = Stream(self._loop, sock, self)
        self.stream.pause()
        if self._again:
            self.start_tls(self._name)
        else:
            self._owner.connected(self)

    def _refuse(self, error: OSError) -> None:
        if not self.closed:
            self.closed = True
            self._owner.refused(self, error)

    # --- Events of the stream until it is handed over ----------------------------------------------------------------

    def received(self, stream: Stream, data: bytes) -> None:
        """Do nothing: the stream is paused until its user has it."""

    def ended(self, stream: Stream, error: OSError | None) -> None:
        """Refuse: the server has closed the connection before it was used."""
        self._refuse(error or ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))

    def drained(self, stream: Stream) -> None:
        """Do nothing."""

    def secured(self, stream: Stream, error: OSError | None) -> None:
        """Continue after the TLS handshake; after a bad certificate, connect again without verification."""
        if isinstance(error, ssl.SSLCertVerificationError) and not self._again:
            self.defect = defect_of(error)
            self._again = True
            host, _, port = self.address.rpartition(":")
            self._addresses = _resolve(Origin("", host, int(port)), socket.AI_NUMERICHOST)
            self._next_address(error)
        elif error is not None:
            self._refuse(error)
        else:
            self._owner.verified(self)


def _resolve(origin: Origin, flags: int) -> list[Address]:
    """Return the addresses of a server. Raises OSError."""
    found = socket.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in found]


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
