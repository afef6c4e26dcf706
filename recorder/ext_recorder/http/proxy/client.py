"""The program's side of the proxy: requests to a proxy, tunnels with TLS inside, and reverse routes."""

from __future__ import annotations

import re
import socket
import struct
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol
from urllib.parse import urlsplit

import h11

from ext_recorder.http.event_loop import READ
from ext_recorder.http.http1_observer import request_of
from ext_recorder.http.responses import RequestReader
from ext_recorder.http.sanitizer import KUBERNETES_PROTOBUF

from .streams import HELLO, Stream
from .upstream import Origin, Trust

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Mapping

    from ext_recorder.http.event_loop import EventLoop
    from ext_recorder.http.interaction import Headers, Interaction

# Headers of a request that are for the proxy, or would lead to traffic that can't be recorded.
DROPPED = frozenset({"proxy-connection", "proxy-authorization", "sec-websocket-extensions", "http2-settings"})
LISTENER = b"ext-recorder-listener"  # header of CONNECT: the program connects to a port of its own for the tunnel
LINE = re.compile(rb"[\r\n]*[A-Za-z!#$%&'*+.^_`|~0-9-]*(?: |\Z)")  # beginning of a request: its method
PREFACE = b"PRI * HTTP/2.0\r\n"  # of HTTP/2
CLAIM_S = 30.0  # until the program has connected to that port
READABLE_ENCODINGS = ("gzip", "x-gzip", "deflate", "identity")  # in which secrets can be found


class Entry(NamedTuple):
    """A listener of the proxy.

    Attributes:
        origin: the server of a reverse route; None for the proxy itself, whose requests name their servers.
        tls: clients use TLS.
        headers: added to each request, such as the credentials of a kubeconfig.
        trust: certificates of the server; None for those that all servers must have.
        drop: names of headers that are not passed on, in lower case.
        client: name of the child that uses it; "" for the command.
        is_only: no other server is recorded, and none can be passed through.
    """

    origin: Origin | None = None
    tls: bool = False
    headers: Mapping[str, str] = {}
    trust: Trust | None = None
    drop: frozenset[str] = frozenset()
    client: str = ""
    is_only: bool = False


class Request(NamedTuple):
    """Head of a request on its way to the server.

    Attributes:
        interaction: of the request, as the server gets it.
        head: its bytes.
        chunked: the body is sent in chunks.
        expects: the program sends the body only after a response 100.
    """

    origin: Origin
    interaction: Interaction
    head: bytes
    chunked: bool
    expects: bool


class Backend(Protocol):
    """Source of the responses on one connection: a real server, or a recording."""

    def open_tunnel(self, client: Client, origin: Origin) -> None:
        """Prepare a tunnel, then call `tunnel_opened` or `refuse`."""

    def secure(self, client: Client, origin: Origin) -> None:
        """Prepare TLS in the name of a server, then call `start_tls` or `reset`."""

    def begin(self, client: Client, request: Request) -> None:
        """Process the head of a request; call `proceed` when its body can be processed."""

    def body(self, client: Client, data: bytes) -> None:
        """Process a piece of the body."""

    def end(self, client: Client) -> None:
        """Process the end of a request; call `next_request` after its response."""

    def client_drained(self, client: Client) -> None:
        """Continue to respond: the program has read."""

    def gone(self, client: Client, error: OSError | None) -> None:
        """Process the end of the connection."""


class Routing(Protocol):
    """Chooses what responds to requests."""

    def backend(self, origin: Origin, trust: Trust | None) -> Backend:
        """Return a back end for a connection to a server, with its own certificates if there are any."""

    def route(self, origin: Origin) -> Entry | None:
        """Return the reverse route that listens at an address; None if none does."""

    def passes(self, origin: Origin) -> bool:
        """Return True if traffic with a server is passed through without reading it."""

    def problem(self, text: str) -> None:
        """Report traffic that can't be recorded, or answered."""


class Client:
    """Connection of a program to the proxy.

    Args:
        entry: the listener that it has connected to.
        routing: what responds to requests.

    Attributes:
        stream: the connection.
        name: of the child; "" for the command.
        trailers: header lines after the body of the current request.
    """

    def __init__(self, loop: EventLoop, sock: socket.socket, entry: Entry, routing: Routing) -> None:
        self.stream = Stream(loop, sock, self)
        self._loop = loop
        self._listener: socket.socket | None = None  # for the one connection that uses the tunnel
        self._has_listener = False
        self.name = entry.client
        self._entry = entry
        self._routing = routing
        self._backend: Backend | None = None
        self._server: Origin | None = None  # of the back end
        self._origin = entry.origin  # of a route or tunnel
        self._reader = RequestReader()
        self._is_fresh = True  # nothing has been received, or nothing in the tunnel
        self._is_blocked = False  # until the backend can process more
        self._has_rest = False  # the end of the current request has not arrived
        self._is_tunnel = False
        self.trailers = b""
        self._is_over = False
        self._raw: Callable[[bytes], None] | None = None  # takes data after another protocol was agreed on
        if entry.tls and entry.origin is not None:
            self.stream.pause()
            self._backend_for(entry.origin).secure(self, entry.origin)

    # --- For the backend ---------------------------------------------------------------------------------------------

    def tunnel_opened(self) -> None:
        """Report to the program that its tunnel is open."""
        if self._reader.rest:
            self._routing.problem("a program sent data before its tunnel was open")
            self.stream.reset()
        elif self._has_listener:
            self._listen()
        else:
            self.stream.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            self._use_tunnel()

    def _use_tunnel(self) -> None:
        self._reader = RequestReader()
        self._is_fresh = True
        self._is_tunnel = True
        self._is_blocked = False
        if self._raw is None:
            self.stream.on_first_byte = self._begin_tunnel
        self.stream.resume()

    def start_tls(self, context: ssl.SSLContext) -> None:
        """Begin the handshake with the program."""
        self.stream.resume()
        self.stream.start_tls(context, server=True)

    def proceed(self) -> None:
        """Continue with the body of the request."""
        self._is_blocked = False
        self.stream.resume()
        self._advance()

    def next_request(self) -> None:
        """Continue after the response: with the rest of its request, or with the next one."""
        if not self._has_rest:
            self._reader.begin_next()
        self._is_blocked = False
        self.stream.resume()
        self._advance()

    def expect_end(self, seconds: float, miss: Callable[[], None]) -> None:
        """Wait until the program closes the connection; reset it and call `miss` if it does not."""

        def check() -> None:
            if not self.stream.closed:
                miss()
                self.stream.reset()

        self._loop.after(seconds, check)

    def switch(self, take: Callable[[bytes], None]) -> None:
        """Give all further data to a function, from that on which has been read already."""
        self._raw = take
        self.stream.on_first_byte = None
        if rest := self._reader.rest:
            take(rest)
        self.stream.resume()

    def refuse(self, status: int, reason: str, text: str, code: str = "") -> None:
        """Respond that a server can't be reached, and close the connection.

        Args:
            code: of the error, such as ECONNREFUSED.
        """
        body = f"ext-recorder: {text}\n".encode()
        head = f"HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain\r\nContent-Length: {len(body)}\r\n"
        head += f"Ext-Recorder-Errno: {code}\r\n" if code else ""
        self.stream.write(f"{head}Connection: close\r\n\r\n".encode() + body)
        self._is_over = True
        self.stream.end()

    # --- Events of the stream ----------------------------------------------------------------------------------------

    def received(self, stream: Stream, data: bytes) -> None:
        """Process data of the program."""
        if self._raw is not None:
            self._raw(data)
            return
        if self._is_over:
            return
        if self._is_fresh:
            self._is_fresh = False
            if data.startswith(PREFACE):
                self._refuse_http2()
                return
            if not LINE.match(data):  # its client may wait for the server, so nothing else may come
                self._invalid("not HTTP")
                return
        try:
            self._reader.receive(data)
        except h11.RemoteProtocolError as error:
            self._invalid(error)
            return
        self._advance()

    def ended(self, stream: Stream, error: OSError | None) -> None:
        """Process the end of the connection."""
        self._gone(error)
        self.stream.close()

    def secured(self, stream: Stream, error: OSError | None) -> None:
        """Process the end of the TLS handshake with the program."""
        if error is not None:
            self._gone(error)
        elif stream.tls is not None and stream.tls.selected_alpn_protocol() == "h2":
            self._refuse_http2()

    def _gone(self, error: OSError | None) -> None:
        self._close_listener()
        if self._backend is not None:
            self._backend.gone(self, error)

    def drained(self, stream: Stream) -> None:
        """Continue the back end."""
        if self._backend is not None:
            self._backend.client_drained(self)

    # --- Tunnel at a port of its own ---------------------------------------------------------------------------------

    def _listen(self) -> None:
        """Send a port to the program. The connection to it replaces this one.

        So a program can use the tunnel without HTTP on its connection first, see `run/node_proxy.cjs`.
        """
        self._listener = listener = socket.create_server(("127.0.0.1", 0), backlog=1)
        listener.settimeout(0)

        def accept(_events: int) -> None:
            with suppress(OSError):
                sock, _ = listener.accept()
                self._close_listener()
                self.stream.end()
                self.stream = Stream(self._loop, sock, self)
                self._use_tunnel()

        def give_up() -> None:
            if self._listener is listener:
                self._gone(None)
                self.stream.close()

        self._loop.watch(listener.fileno(), READ, accept)
        self._loop.after(CLAIM_S, give_up)
        self.stream.write(f"HTTP/1.1 200 OK\r\nExt-Recorder-Port: {listener.getsockname()[1]}\r\n\r\n".encode())
        self.stream.resume()

    def _close_listener(self) -> None:
        if self._listener is not None:
            self._loop.unwatch(self._listener.fileno())
            self._listener.close()
            self._listener = None

    # --- Requests ----------------------------------------------------------------------------------------------------

    def _backend_for(self, origin: Origin) -> Backend:
        """Return the back end for a server; programs use one connection for several servers only without a tunnel."""
        if self._backend is None or self._server != origin:
            self._gone(None)
            self._backend, self._server = self._routing.backend(origin, self._entry.trust), origin
        return self._backend

    def _begin_tunnel(self, byte: int) -> None:
        assert self._origin is not None
        if byte == HELLO:
            self._origin = self._origin._replace(scheme="https")
            self._server = self._origin if self._backend is not None else None
            self.stream.pause()
            self._backend_for(self._origin).secure(self, self._origin)
        elif self._entry.origin is None:
            self._origin = self._server = self._origin._replace(scheme="http")

    def _advance(self) -> None:
        """Process the parts of requests that have arrived, as far as the backend can."""
        while not self._is_blocked and not self._is_over and not self.stream.closed:
            try:
                event = self._reader.next_event()
            except h11.RemoteProtocolError as error:
                self._invalid(error)
                return
            if event is None:
                return
            if isinstance(event, h11.Request):
                self._is_blocked = self._has_rest = True
                self._begin(event)
            elif self._backend is not None and isinstance(event, h11.Data):
                self._backend.body(self, bytes(event.data))
            elif self._backend is not None and isinstance(event, h11.EndOfMessage):
                self._is_blocked, self._has_rest = True, False
                self.trailers = b"".join(b"%b: %b\r\n" % item for item in event.headers.raw_items())
                self._backend.end(self)

    def _begin(self, event: h11.Request) -> None:
        if event.method == b"CONNECT":
            host, _, port = event.target.decode("latin-1").rpartition(":")
            if not host or not port.isdigit() or self._origin is not None:
                self.refuse(400, "Bad Request", "CONNECT expects HOST:PORT")
                return
            self._has_listener = any(name == LISTENER for name, _ in event.headers)
            self._origin = Origin("https", host.strip("[]"), int(port))
            route = self._routing.route(self._origin)
            if route is not None:  # its server is connected for the first request
                self._entry, self._origin = route, route.origin or self._origin
                self.tunnel_opened()
                return
            self._backend_for(self._origin).open_tunnel(self, self._origin)
            return
        origin = self._origin or origin_of(event.target.decode("latin-1"))
        if origin is None:
            self.refuse(400, "Bad Request", "this is a proxy; its requests name a server")
            return
        entry = self._entry
        if self._origin is None and (route := self._routing.route(origin)) is not None:
            entry, origin = route, route.origin or origin
        self._backend_for(origin).begin(self, self._request(event, origin, entry))

    def _request(self, event: h11.Request, origin: Origin, entry: Entry) -> Request:
        target = event.target.decode("latin-1")
        if not target.startswith("/"):
            url = urlsplit(target)
            target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        headers = outgoing_headers(
            [(name.decode("latin-1"), value.decode("latin-1")) for name, value in event.headers.raw_items()],
            None if self._is_tunnel and self._entry.origin is None else origin.authority,
            entry,
        )
        interaction = request_of(event, origin.authority, tunnel=origin.authority, tls=origin.scheme == "https")
        interaction.uri = f"{origin.scheme}://{origin.authority}{target}"
        interaction.request_headers = headers
        interaction.client = self.name
        method, version = event.method.decode("latin-1"), event.http_version.decode("latin-1")
        lines = [f"{method} {target} HTTP/{version}", *(f"{name}: {value}" for name, value in headers), "", ""]
        chunked = any(name.lower() == "transfer-encoding" for name, _ in headers)
        return Request(origin, interaction, "\r\n".join(lines).encode("latin-1"), chunked, self._reader.waits)

    def _refuse_http2(self) -> None:
        """Report a program that uses HTTP/2 only, and end its connection with an error of HTTP/2."""
        place = self._origin.place if self._origin else "the proxy"
        text = f"{place}: HTTP/2 without HTTP/1.1, such as gRPC, can't be recorded"
        if self._origin is not None and not self._entry.is_only:
            text += f"; --pass-through {self._origin.host} forwards it unrecorded"
        self._routing.problem(text)
        self._is_over = True
        self.stream.write(http2_refusal(f"ext-recorder: {text}"))
        self.stream.end()

    def _invalid(self, error: object) -> None:
        place = self._origin.place if self._origin else "the proxy"
        text = f"to {place}: the program sends invalid HTTP/1.1 ({error})"
        if self._is_tunnel and self._origin is not None:
            text += f"; --pass-through {self._origin.host} forwards another protocol unrecorded"
        self._routing.problem(text)
        self.refuse(400, "Bad Request", f"not valid HTTP/1.1: {error}")


def accepting(loop: EventLoop, listener: socket.socket, entry: Entry, routing: Routing) -> Callable[[int], None]:
    """Return the function that accepts the clients of a listener."""

    def accept(_events: int) -> None:
        with suppress(OSError):  # the client has given up
            while True:
                sock, _ = listener.accept()
                Client(loop, sock, entry, routing)

    return accept


def origin_of(url: str) -> Origin | None:
    """Return the server of a URL; None if it names none."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        return None
    try:
        return Origin(parts.scheme, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
    except ValueError:
        return None


def http2_refusal(text: str) -> bytes:
    """Return the frames SETTINGS and GOAWAY of HTTP/2 (RFC 9113), the latter with a text for the user.

    The error is INTERNAL_ERROR: HTTP_1_1_REQUIRED would be exact, but gRPC aborts the process because of it.
    """
    settings, goaway, internal_error = 4, 7, 2
    data = struct.pack(">II", 0, internal_error) + text.encode()
    return b"".join(
        struct.pack(">I", len(payload))[1:] + struct.pack(">BBI", kind, 0, 0) + payload
        for kind, payload in ((settings, b""), (goaway, data))
    )


def outgoing_headers(headers: Headers, host: str | None, entry: Entry) -> Headers:
    """Return the headers of a request as the server gets them.

    Args:
        host: value of Host; None to keep that of the program.
        entry: its headers replace those of the same name.
    """
    replaced = {name.lower() for name in entry.headers} | entry.drop
    result: Headers = []
    for name, value in headers:
        lower = name.lower()
        kept = value
        if lower in DROPPED or lower in replaced or (lower == "upgrade" and value.lower() == "h2c"):
            continue
        if lower == "host" and host is not None:
            kept = host
        elif lower == "accept-encoding":
            kept = readable_encodings(value)
        elif lower == "accept":
            kept = readable_types(value)
        elif lower == "connection":
            tokens = [token.strip() for token in value.split(",")]
            kept = ", ".join(token for token in tokens if token.lower() not in {"http2-settings", "proxy-connection"})
        result.append((name, kept))
    return [*result, *entry.headers.items()]


def readable_types(value: str) -> str:
    """Return an Accept without Protocol Buffers of Kubernetes, in which Secrets can't be found, if it has others."""
    types = value.split(",")
    kept = [each for each in types if not each.strip().startswith(KUBERNETES_PROTOBUF)]
    return ",".join(kept or types).strip()


def readable_encodings(value: str) -> str:
    """Return the codings of an Accept-Encoding that a recording can search for secrets."""
    codings = [coding.strip() for coding in value.split(",")]
    kept = [coding for coding in codings if coding.partition(";")[0].strip().lower() in READABLE_ENCODINGS]
    return ", ".join(kept) or "identity"
