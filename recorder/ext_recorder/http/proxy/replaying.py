"""Replay: requests of a program are answered from the recording, without any connection to a server."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from ext_recorder.http.inject.ext_recorder_agent.errors import error_code
from ext_recorder.http.interaction import TCP, TLS, Body
from ext_recorder.http.responses import CONTINUE

from .websocket import WebSocketPlayer, accepted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.http.interaction import Interaction
    from ext_recorder.http.interaction_store import InteractionStore
    from ext_recorder.http.playback import Playback
    from ext_recorder.http.responses import PlayedResponse

    from .certificates import Authority, Defect
    from .client import Client, Request
    from .mcp_replaying import McpReplay
    from .recording import RecordedConnection
    from .upstream import Origin

# Errors of the server's connection after which the recorder has reset that of the program. The TLS library reports one
# of its own if the server closes the connection without the end of TLS.
RESETS = frozenset({"ConnectionResetError", "BrokenPipeError", "ConnectionAbortedError", "SSLEOFError", "SSLError"})
# Wait until a program closes a connection that it has closed in the recording: the recorded time and GRACE_S.
GRACE_S = 5.0  # watches of a program last as long as its other work, which may be slower now
DEFECTS: dict[str, Defect] = {name: name for name in ("untrusted", "self-signed", "expired", "not-yet-valid", "name")}


class ReplayedConnection:
    """Backend of one connection of a program: the recording."""

    def __init__(
        self, playback: Playback, store: InteractionStore, authority: Authority, sessions: McpReplay | None = None
    ) -> None:
        self._sessions = sessions
        self._playback = playback
        self._store = store
        self._authority = authority
        self._request: Interaction | None = None

    def open_tunnel(self, client: Client, origin: Origin) -> None:
        """Open the tunnel, unless the connection failed in the recording.

        A tunnel to an unknown server is opened, too: its requests are refused with an explanation.
        """
        if not self._is_refused(client, TCP, origin):
            client.tunnel_opened()

    def secure(self, client: Client, origin: Origin) -> None:
        """Make the TLS handshake with a certificate like that of the server."""
        if self._store.refusal(TLS, origin.place) is not None:
            self._playback.count += 1
            client.stream.reset()
            return
        defect = DEFECTS.get(str(self._store.tls(origin.place).get("defect", "")), "")
        client.start_tls(self._authority.context(origin.host, defect))

    def begin(self, client: Client, request: Request) -> None:
        """Begin to collect a request."""
        if self._is_refused(client, TCP, request.origin) or self._is_refused(client, TLS, request.origin):
            return
        self._request = request.interaction
        if request.expects:
            client.stream.write(CONTINUE)
        client.proceed()

    def body(self, client: Client, data: bytes) -> None:
        """Collect a piece of the body."""
        if self._request is not None and self._request.request_body is not None:
            self._request.request_body.write(data)

    def end(self, client: Client) -> None:
        """Respond to the request."""
        request, self._request = self._request, None
        assert request is not None
        if self._sessions is not None and self._sessions.respond(client, request):
            return
        self._play(client, request, self._playback.respond(request, None))

    def _play(self, client: Client, request: Interaction, played: PlayedResponse) -> None:
        if played.error is not None and played.error.get("type") in RESETS:
            client.stream.stream(played.pieces, end=False, apart=played.piecewise)
            client.stream.reset_at_end()
            return
        if played.missing:
            # The program has closed the connection, as after a timeout, or with a watch that it needs no longer.
            text = f"{request.method} {request.uri}: {played.missing}"
            patience = max(played.elapsed, 0.0) + GRACE_S

            def pieces() -> Iterator[bytes]:
                yield from played.pieces
                client.expect_end(patience, lambda: self._playback.misses.append(text))

            client.stream.stream(pieces(), end=False, apart=played.piecewise)
            return
        if played.recorded is not None:
            self._open_websocket(client, request, played.recorded)
            return
        client.stream.stream(played.pieces, end=played.end, apart=played.piecewise)
        if not played.end:
            client.next_request()

    def _open_websocket(self, client: Client, request: Interaction, recorded: Interaction) -> None:
        key = next((value for name, value in request.request_headers if name.lower() == "sec-websocket-key"), "")
        lines = [f"HTTP/1.1 {recorded.status} {recorded.reason}"]
        lines += [f"{name}: {value}" for name, value in accepted(recorded.headers, key)]
        client.stream.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1", "replace"))
        name = f"{request.method} {request.uri}"
        player = WebSocketPlayer(
            recorded.body or Body(),
            write=client.stream.write,
            end=client.stream.end,
            clean=self._playback.cleaner.data,
            miss=lambda text: self._playback.misses.append(f"{name}: {text}"),
        )
        player.begin()
        client.switch(player.receive)

    def client_drained(self, client: Client) -> None:
        """Do nothing: the stream sends as the program reads."""

    def gone(self, client: Client, error: OSError | None) -> None:
        """End what the client has of sessions. A connection to a server does not exist."""
        if self._sessions is not None:
            self._sessions.gone(client)

    def _is_refused(self, client: Client, kind: str, origin: Origin) -> bool:
        failure = self._store.refusal(kind, origin.place)
        if failure is None:
            return False
        self._playback.count += 1
        error = failure.error or {}
        reason = error.get("message") or "the connection failed in the recording"
        client.refuse(502, "Bad Gateway", f"{origin.place}: {reason}", error_code(error))
        return True


class ExtendedConnection(ReplayedConnection):
    """Backend of one connection of a program: the recording, and the server for requests that it does not have.

    A server without any recorded traffic is connected at once, so that its certificate is verified by the program.

    Args:
        live: back end of the server.
    """

    def __init__(
        self,
        playback: Playback,
        store: InteractionStore,
        authority: Authority,
        live: RecordedConnection,
        sessions: McpReplay | None,
    ) -> None:
        super().__init__(playback, store, authority, sessions)
        self._live = live
        self._is_live = False
        self._head: Request | None = None

    def _is_new(self, origin: Origin) -> bool:
        if not self._store.serves(origin.place) and not (self._sessions and self._sessions.serves(origin.place)):
            self._is_live = True
        return self._is_live

    def open_tunnel(self, client: Client, origin: Origin) -> None:
        """Open the tunnel, to the server itself if the recording does not have it."""
        if self._is_new(origin):
            self._live.open_tunnel(client, origin)
        else:
            super().open_tunnel(client, origin)

    def secure(self, client: Client, origin: Origin) -> None:
        """Make the TLS handshake with a certificate like that of the server."""
        if self._is_new(origin):
            self._live.secure(client, origin)
        else:
            super().secure(client, origin)

    def begin(self, client: Client, request: Request) -> None:
        """Begin to collect a request, or to send it."""
        self._head = request
        if self._is_new(request.origin):
            self._live.begin(client, request)
        else:
            super().begin(client, request)

    def body(self, client: Client, data: bytes) -> None:
        """Collect or send a piece of the body."""
        if self._is_live:
            self._live.body(client, data)
        else:
            super().body(client, data)

    def end(self, client: Client) -> None:
        """Respond to the request from the recording, or send it to the server."""
        if self._is_live:
            self._live.end(client)
            return
        request, self._request = self._request, None
        assert request is not None
        if self._sessions is not None and self._sessions.respond(client, request):
            return
        sanitized = replace(request)
        recorded = self._playback.find(sanitized, None)
        if not isinstance(recorded, str):
            self._play(client, sanitized, self._playback.played(sanitized, recorded))
            return
        assert self._head is not None
        body = request.request_body or Body()

        def send() -> None:
            client.stream.resume()
            for piece in body.pieces():
                self._live.body(client, piece)
            self._live.end(client)

        new = self._head._replace(interaction=replace(request, request_body=Body()))
        self._live.begin(cast("Client", _Collected(client, send)), new)

    def client_drained(self, client: Client) -> None:
        """Read from the server again."""
        self._live.client_drained(client)

    def gone(self, client: Client, error: OSError | None) -> None:
        """Close the connection to the server."""
        self._live.gone(client, error)


class _Collected:
    """Client whose request has been read completely.

    Args:
        send: sends the body when the server accepts it.
    """

    def __init__(self, client: Client, send: Callable[[], None]) -> None:
        self._client = client
        self.proceed = send

    def __getattr__(self, name: str) -> object:
        return getattr(self._client, name)
