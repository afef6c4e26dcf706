"""Recording: requests of a program go to their server, responses come back at once; both are observed afterwards."""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from wsproto.utilities import RemoteProtocolError

from ext_recorder.http.http1_observer import SWITCHING, ResponseReader, Unreadable, forget_reads
from ext_recorder.http.inject.ext_recorder_agent.errors import described, error_code
from ext_recorder.http.interaction import CONNECT, TCP, TLS, Interaction

from .upstream import Upstream
from .websocket import CLIENT, SERVER, WebSocketObserver, is_websocket, other_protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.http.event_loop import EventLoop

    from .certificates import Authority
    from .client import Client, Request
    from .streams import Stream
    from .upstream import Origin, ParentProxies, Trust

SERVER_CLOSED = {"type": "ServerClosed", "errno": None, "message": "the server ended the connection"}
MOST_REFUSED = 1000  # connections to one server that are kept; a replay repeats the last one
PATIENCE_S = 0.1  # a program that ends the connection after a longer silence of the server has given up
GAVE_UP = {"type": "GaveUp", "errno": None, "message": "the child did not wait for an answer"}

SPDY_REMEDY = "; kubectl 1.31 and later use WebSocket, as do 1.29 and 1.30 with KUBECTL_REMOTE_COMMAND_WEBSOCKETS=true"


class Recipient(Protocol):
    """Recipient of what is recorded."""

    def add(self, interaction: Interaction) -> None:
        """Take a complete interaction."""

    def problem(self, text: str) -> None:
        """Take a text about traffic that can't be recorded."""

    def server(self, place: str, properties: dict[str, str]) -> None:
        """Take the properties of a server that the program has refused."""

    def slow_down(self, stream: Stream) -> None:
        """Pause a stream if it sends more than can be written."""


class Unrecorded:
    """Recipient of traffic that is not recorded: that with servers which the command starts itself."""

    def add(self, interaction: Interaction) -> None:
        """Release the interaction."""
        for body in (interaction.request_body, interaction.body):
            if body is not None:
                body.close()

    def problem(self, text: str) -> None:
        """Do nothing."""

    def server(self, place: str, properties: dict[str, str]) -> None:
        """Do nothing."""

    def slow_down(self, stream: Stream) -> None:
        """Do nothing."""


class OwnServers(Unrecorded):
    """Servers of the command itself, which are not recorded.

    Programs connect to their own server until it listens, so refused connections are kept until the end of the run: a
    port without a successful connection by then does not belong to a server of the command.
    """

    def __init__(self) -> None:
        self._refused: dict[int, dict[str, list[Interaction]]] = {}  # by port, and by host and port
        self._reached: set[int] = set()  # ports

    def add(self, interaction: Interaction) -> None:
        """Keep a refused connection; release other interactions."""
        place = interaction.uri.removeprefix(TCP)
        port = int(place.rpartition(":")[2]) if place != interaction.uri else None
        if port is None or port in self._reached:
            super().add(interaction)
            return
        kept = self._refused.setdefault(port, {}).setdefault(place, [])
        if len(kept) < MOST_REFUSED:
            kept.append(interaction)

    def reached(self, origin: Origin) -> None:
        """Forget the refused connections to the port of a server that listens."""
        self._reached.add(origin.port)
        self._refused.pop(origin.port, None)

    @property
    def failed(self) -> dict[str, list[Interaction]]:
        """Return the failed connections to ports without a successful one, by host and port."""
        return {place: failed for places in self._refused.values() for place, failed in places.items()}


class Watch(Protocol):
    """Finds requests that an observer records."""

    def watch(self, request: Request, connection: object) -> Request:
        """Return a request with its observer, if it has one, in the form in which it is sent."""


class RecordingContext(NamedTuple):
    """Parts that all connections of a recording share.

    Attributes:
        trust: certificates of servers.
        authority: certificates for the program.
        feed: receives each complete interaction, and what can't be recorded.
        started: zero of the recording's clock, on the monotonic clock.
        connections: those that are open.
        parents: proxies of the user.
        is_raw: bytes in tunnels are forwarded as they are, without TLS in between.
        watch: finds requests of sessions that are recorded as such; None if there are none.
        reached: receives each server to which a connection was opened.
    """

    loop: EventLoop
    trust: Trust
    authority: Authority
    feed: Recipient
    started: float
    connections: set[RecordedConnection]
    parents: ParentProxies
    is_raw: bool = False
    watch: Watch | None = None
    reached: Callable[[Origin], None] = lambda origin: None

    def now(self) -> float:
        """Return the seconds since the start."""
        return time.monotonic() - self.started

    def connection(self, trust: Trust | None) -> RecordedConnection:
        """Return a back end; with certificates of its own for its server, if they are given."""
        return RecordedConnection(self if trust is None else self._replace(trust=trust))


class RecordedConnection:
    """Backend of one connection of a program: the server, whose responses are recorded."""

    def __init__(self, context: RecordingContext) -> None:
        self._context = context
        context.connections.add(self)
        self._client: Client
        self._upstream: Upstream | None = None
        self._stream: Stream | None = None  # of the server, when it is ready for requests
        self._request: Request | None = None
        self._response: ResponseReader | None = None
        self._socket: WebSocketObserver | None = None
        self._purpose = ""  # of the connection that is being opened: tunnel, tls or request
        self._is_raw = False  # another protocol, or one that can't be read
        self._shown = ""  # defect of the certificate that the program has accepted
        self._received_at = 0.0  # time of the latest data of the server
        self._is_shaking = False  # the TLS handshake with the program is not complete

    @property
    def _now(self) -> Interaction | None:
        return self._request.interaction if self._request else None

    # --- Requests of the program -------------------------------------------------------------------------------------

    def open_tunnel(self, client: Client, origin: Origin) -> None:
        """Connect to the server."""
        self._connect(client, origin, "tunnel")

    def secure(self, client: Client, origin: Origin) -> None:
        """Make the TLS handshake with the server, then that with the program."""
        if self._upstream is None:
            self._connect(client, origin, "tls")
        else:
            self._purpose = "tls"
            self._upstream.origin = origin
            self._upstream.start_tls(origin.host)

    def begin(self, client: Client, request: Request) -> None:
        """Send the head of a request, on a new connection if there is none to this server."""
        self._is_shaking = False
        if self._context.watch is not None:
            request = self._context.watch.watch(request, self)
        self._request = request
        if self._purpose == "tunnel" and self._upstream is not None:  # without TLS
            self._purpose, self._upstream.origin = "request", request.origin
        request.interaction.time = self._context.now()
        if (
            self._stream is None
            or self._stream.closed
            or (self._upstream is not None and self._upstream.origin != request.origin)
        ):
            self._connect(client, request.origin, "request")
        else:
            self._send_head(client)

    def body(self, client: Client, data: bytes) -> None:
        """Send a piece of the body."""
        if self._stream is None or self._request is None:
            return
        self._stream.write(b"%x\r\n%b\r\n" % (len(data), data) if self._request.chunked else data)
        assert self._request.interaction.request_body is not None
        self._request.interaction.request_body.write(data)
        if self._stream.is_full:
            client.stream.pause()

    def end(self, client: Client) -> None:
        """Send the end of the body."""
        if self._stream is not None and self._request is not None and self._request.chunked:
            self._stream.write(b"0\r\n" + client.trailers + b"\r\n")
        if self._request is not None and self._request.interaction.observer is not None:
            self._request.interaction.observer.sent()
        if self._response is None and self._request is None:
            # The response was complete before the request, whose rest the server has not received.
            if self._upstream is not None:
                self._upstream.close()
            self._upstream = self._stream = None
            client.next_request()

    def client_drained(self, client: Client) -> None:
        """Read from the server again."""
        if self._stream is not None:
            self._stream.resume()

    def gone(self, client: Client, error: OSError | None) -> None:
        """Close the connection to the server; record what there is."""
        if self._is_shaking:
            self._refused_by_program(error)
        self.cut()
        if self._upstream is not None:
            self._upstream.close()
        self._context.connections.discard(self)

    def cut(self) -> None:
        """Record what there is of the current request."""
        now = self._now
        if now is not None:
            if self._socket is not None:
                pass  # a client may close a WebSocket at any time
            elif now.status:
                now.cut = True
                if self._context.now() - self._received_at > PATIENCE_S:
                    now.error = dict(GAVE_UP)
            else:
                now.error = dict(GAVE_UP)
            self._finish()

    # --- Connection to the server ------------------------------------------------------------------------------------

    def _connect(self, client: Client, origin: Origin, purpose: str) -> None:
        self._client, self._purpose = client, purpose
        if self._upstream is not None:
            self._upstream.close()
        self._stream = None
        self._is_raw = False
        client.stream.pause()
        parent = self._context.parents.of(origin)
        self._upstream = Upstream(self._context.loop, origin, self._context.trust, self, parent)
        self._upstream.connect()

    def connected(self, upstream: Upstream) -> None:
        """Continue after the connection was opened."""
        self._context.reached(upstream.origin)
        if self._purpose == "tunnel":
            if self._context.is_raw:
                self._is_raw = True
                self._client.switch(self._from_client)
            self._client.tunnel_opened()
            self._stream = upstream.hand_over(self)  # a tunnel without TLS uses it as it is
            self._stream.resume()
        elif upstream.origin.scheme == "https":
            upstream.start_tls(upstream.origin.host)
        else:
            self._ready(upstream)

    def verified(self, upstream: Upstream) -> None:
        """Continue after the TLS handshake with the server."""
        if self._purpose == "tls":
            self._stream = upstream.hand_over(self)
            self._stream.resume()
            self._is_shaking = True
            self._shown = upstream.defect
            self._client.start_tls(self._context.authority.context(upstream.origin.host, upstream.defect))
        elif upstream.defect and upstream.defect != self._shown:  # the program can't refuse what it does not see
            upstream.close()
            self.refused(upstream, ssl.SSLCertVerificationError(1, f"its certificate is not valid: {upstream.defect}"))
        else:
            self._ready(upstream)

    def refused(self, upstream: Upstream, error: OSError) -> None:
        """Record a connection that has failed, and let the program fail as well."""
        self._upstream = None
        kind = TLS if self._purpose == "tls" or upstream.address else TCP
        interaction = Interaction(CONNECT, kind + upstream.origin.place, time=self._context.now())
        interaction.error, interaction.client = dict(described(error)), self._client.name
        interaction.peer = upstream.address
        if (now := self._now) is not None and now.observer is not None:
            now.error = dict(described(error))
            now.observer.finished()
        self._request = None
        self._context.feed.add(interaction)
        if self._purpose == "tls":
            self._client.stream.reset()
        else:
            text = f"{upstream.origin.place}: {error.strerror or error}"
            self._client.refuse(502, "Bad Gateway", text, error_code(described(error)))

    def _ready(self, upstream: Upstream) -> None:
        self._stream = upstream.hand_over(self)
        self._stream.resume()
        self._send_head(self._client)

    def _refused_by_program(self, error: OSError | None) -> None:
        """Report a program that has refused our certificate, unless it has refused the defect of the real one.

        Some programs verify after the handshake, and just close the connection.
        """
        upstream = self._upstream
        if upstream is None:
            return
        if upstream.defect:
            self._context.feed.server(upstream.origin.place, {"defect": upstream.defect})
        elif "ALERT" in (getattr(error, "reason", None) or ""):
            self._context.feed.problem(
                f"{upstream.origin.place}: the program does not trust the certificate of the recorder ({error})"
            )

    # --- Requests and responses --------------------------------------------------------------------------------------

    def _send_head(self, client: Client) -> None:
        assert self._request is not None
        assert self._stream is not None
        assert self._upstream is not None
        interaction = self._request.interaction
        interaction.peer = self._upstream.address
        if (tls := self._stream.tls) is not None:
            known = {"version": tls.version(), "alpn": tls.selected_alpn_protocol(), "defect": self._upstream.defect}
            interaction.tls = {name: value for name, value in known.items() if value}
        self._client = client
        self._stream.write(self._upstream.head(self._request.head))
        self._response = ResponseReader(interaction)
        client.proceed()

    def received(self, stream: Stream, data: bytes) -> None:
        """Forward data of the server, then observe it."""
        client, now = self._client, self._now
        observer = now.observer if now is not None and self._response is not None and not self._is_raw else None
        if observer is None:
            client.stream.write(data)
        self._received_at = self._context.now()
        if client.stream.is_full:
            stream.pause()
        self._context.feed.slow_down(stream)
        if self._socket is not None:
            self._observe(SERVER, data)
            return
        if self._response is None or self._is_raw:
            return
        try:
            complete = self._response.receive(data)
            if observer is not None:  # its program may kill another one as soon as it has the response
                observer.received(complete=complete)
                client.stream.write(data)
            if complete:
                self._complete(client)
        except Unreadable as reason:
            if observer is not None:
                client.stream.write(data)
            self._not_recorded(str(reason))

    def ended(self, stream: Stream, error: OSError | None) -> None:
        """Process the end of the connection, which may be the end of a response."""
        now, response = self._now, self._response
        if now is not None and self._socket is not None:
            self._finish()
        elif now is not None and response is not None and not self._is_raw:
            if error is None and response.receive(b""):
                self._finish()
            else:
                response.cut()
                now.error = dict(described(error)) if error is not None else dict(SERVER_CLOSED)
                self._finish()
        stream.close()
        self._stream = None
        if error is not None:
            self._client.stream.reset()
        else:
            self._client.stream.end()

    def secured(self, stream: Stream, error: OSError | None) -> None:
        """Do nothing: the stream was handed over after its handshake."""

    def drained(self, stream: Stream) -> None:
        """Read from the program again."""
        self._client.stream.resume()

    def _complete(self, client: Client) -> None:
        """Process the end of a response."""
        now = self._now
        assert now is not None
        if now.status == SWITCHING:
            self._switch(client, now)
            return
        self._finish()
        client.next_request()

    def _switch(self, client: Client, now: Interaction) -> None:
        """Continue with another protocol, and record it if it is WebSocket."""
        assert self._response is not None
        assert self._stream is not None
        if not is_websocket(now):
            name = other_protocol(now)
            remedy = SPDY_REMEDY if name.upper() == "SPDY/3.1" else ""
            text = f"{now.method} {now.uri}: the connection becomes one of {name}, which is not recorded{remedy}"
            self._context.feed.problem(text)
            self._finish()  # so that a replay refuses it with a reason
            self._forward_all()
            return
        assert now.body is not None
        self._socket = WebSocketObserver(now.body, self._context.now)
        self._observe(SERVER, self._response.rest)
        self._response = None
        client.switch(self._from_client)

    def _from_client(self, data: bytes) -> None:
        """Forward data of another protocol, then observe it if it is WebSocket."""
        if self._stream is None:
            return
        self._stream.write(data)
        if self._stream.is_full:
            self._client.stream.pause()
        self._observe(CLIENT, data)

    def _observe(self, side: str, data: bytes) -> None:
        if self._socket is not None and data:
            try:
                self._socket.receive(side, data)
            except RemoteProtocolError as error:
                self._not_recorded(f"its frames are not those of WebSocket ({error})")

    def _finish(self) -> None:
        """Give the interaction to the recording."""
        now = self._now
        if now is not None:
            now.elapsed = self._context.now() - now.time
            forget_reads(now)
            if now.observer is None or not now.observer.finished():
                self._context.feed.add(now)
        self._request = self._response = self._socket = None

    def _not_recorded(self, reason: str) -> None:
        """Forward everything from now on, without observing it."""
        now = self._now
        self._context.feed.problem(f"{now.method} {now.uri}: {reason}" if now else reason)
        self._request = self._response = self._socket = None
        self._forward_all()

    def _forward_all(self) -> None:
        self._is_raw = True
        if self._stream is not None:
            self._client.switch(self._from_client)
