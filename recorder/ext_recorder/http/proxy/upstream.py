"""Connections to real servers: name, address, TLS, each without blocking the event loop."""

from __future__ import annotations

import base64
import errno
import ipaddress
import os
import socket
import ssl
import tempfile
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from ext_recorder.errors import UsageError
from ext_recorder.http.event_loop import WRITE
from ext_recorder.http.interaction import HEAD_LIMIT

from .certificates import defect_of
from .streams import Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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


def is_listed(origin: Origin, entries: Iterable[str]) -> bool:
    """Return True if a server is in a list like that of NO_PROXY.

    Args:
        entries: HOST, which includes its subdomains, HOST:PORT, .SUFFIX, *.SUFFIX, an address, a network, or * for all.
    """
    host = origin.host.lower()
    for entry in entries:
        name, colon, port = entry.lower().rpartition(":")
        if not colon or not port.isdigit() or name.count(":") == 1 or (":" in name and not name.endswith("]")):
            name, port = entry.lower(), ""
        name = name.strip("[]")
        suffix = name.removeprefix("*").removeprefix(".")
        is_same = entry == "*" or host == suffix or (bool(suffix) and host.endswith(f".{suffix}"))
        with suppress(ValueError):  # not a network
            networks = [ipaddress.ip_network(name, strict=False)] if "/" in name else []
            is_same = is_same or any(ipaddress.ip_address(host) in network for network in networks)
        if is_same and port in {"", str(origin.port)}:
            return True
    return False


class ParentProxy(NamedTuple):
    """Proxy of the user, through which servers are reached.

    Attributes:
        origin: its address.
        login: value of Proxy-Authorization; "" for none.
    """

    origin: Origin
    login: str

    def connect_request(self, place: str) -> bytes:
        """Return the request for a tunnel."""
        return f"CONNECT {place} HTTP/1.1\r\nHost: {place}\r\n{self._login_line}\r\n".encode("latin-1")

    def absolute(self, head: bytes, origin: Origin) -> bytes:
        """Return the head of a request to a server in the form for a proxy."""
        method, _, rest = head.partition(b" ")
        line, _, headers = rest.partition(b"\r\n")
        url = f" http://{origin.authority}".encode("latin-1")
        return method + url + line + b"\r\n" + self._login_line.encode("latin-1") + headers

    @property
    def _login_line(self) -> str:
        return f"Proxy-Authorization: {self.login}\r\n" if self.login else ""


class ParentProxies:
    """Proxies of the user by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY. Loopback is reached without a proxy.

    Args:
        environ: of the user.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._urls: dict[str, str] = {}
        names = [name for name in environ if name.lower().endswith("_proxy") and environ[name]]
        for name in sorted(names):  # names in lower case come last, and take precedence
            self._urls[name.lower().removesuffix("_proxy")] = environ[name]

    def check(self) -> None:
        """Raise UsageError if servers can't be reached through these proxies."""
        for scheme in ("http", "https"):
            self.of(Origin(scheme, "server.invalid", 80))

    def of(self, origin: Origin) -> ParentProxy | None:
        """Return the proxy for a server; None to connect to it directly. Raises UsageError."""
        url = self._urls.get(origin.scheme) or self._urls.get("all")
        if not url or origin.is_local or is_listed(origin, self._urls.get("no", "").replace(",", " ").split()):
            return None
        parts = urlsplit(url if "://" in url else f"http://{url}")
        with suppress(ValueError):
            if parts.scheme == "http" and parts.hostname:
                text = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
                login = f"Basic {base64.b64encode(text.encode()).decode()}" if parts.username else ""
                return ParentProxy(Origin("http", parts.hostname, parts.port or 80), login)
        shown = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
        raise UsageError(f"proxy {shown}: only http://HOST:PORT is supported; set HTTP_PROXY and HTTPS_PROXY to one")


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

    Args:
        parent: proxy through which the server is reached; None for none.

    Attributes:
        origin: as given.
        parent: as given.
        address: the peer, as "127.0.0.1:443"; "" before it is connected, and with a parent.
        defect: of its certificate; "" for none.
        stream: open; None before.
    """

    def __init__(
        self, loop: EventLoop, origin: Origin, trust: Trust, owner: UpstreamOwner, parent: ParentProxy | None = None
    ) -> None:
        self.origin = origin
        self.parent = parent
        self._next_hop = parent.origin if parent else origin
        self._uses_connect = False
        self._response: bytes | None = None  # of the parent to CONNECT, so far
        self.address = ""
        self.defect: Defect = ""
        self.stream: Stream | None = None
        self.closed = False
        self._loop = loop
        self._trust = trust
        self._owner = owner
        self._addresses: list[Address] = []
        self._reached = origin  # address that was connected to
        self._name = ""
        self._again = False  # the second connection, whose certificate is not verified

    def connect(self) -> None:
        """Begin to connect."""
        try:
            addresses = _resolve(self._next_hop, socket.AI_NUMERICHOST)
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

    def head(self, head: bytes) -> bytes:
        """Return the head of a request as the next hop gets it."""
        return head if self.parent is None or self._uses_connect else self.parent.absolute(head, self.origin)

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
            addresses = _resolve(self._next_hop, 0)
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
        self._reached = Origin("", str(address[0]), sock.getpeername()[1])
        self.address = "" if self.parent else f"{address[0]}:{address[1]}"
        self.stream = Stream(self._loop, sock, self)
        if self.parent is not None and self.origin.scheme == "https":
            self._uses_connect, self._response = True, b""
            self.stream.write(self.parent.connect_request(self.origin.place))
        else:
            self._open()

    def _open(self) -> None:
        assert self.stream is not None
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
        """Process the response of the parent to CONNECT; otherwise the stream is paused until its user has it."""
        if self._response is None:
            return
        self._response += data
        head, end, rest = self._response.partition(b"\r\n\r\n")
        if not end and len(self._response) < HEAD_LIMIT:
            return
        self._response = None
        status = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")[2]
        if status.startswith("2") and not rest:
            self._open()
            return
        stream.close()
        assert self.parent is not None
        self._refuse(OSError(errno.ECONNREFUSED, f"the proxy {self.parent.origin.place} responded: {status[:200]}"))

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
            self._addresses = _resolve(self._reached, socket.AI_NUMERICHOST)
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
