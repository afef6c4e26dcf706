"""Replay: requests of a program are answered from the recording, without any connection to a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.http.inject.ext_recorder_agent.errors import NOT_RECORDED, error_code
from ext_recorder.http.interaction import TCP, TLS, Body
from ext_recorder.http.responses import CONTINUE

from .websocket import WebSocketPlayer, accepted

if TYPE_CHECKING:
    from ext_recorder.http.interaction import Interaction
    from ext_recorder.http.interaction_store import InteractionStore
    from ext_recorder.http.playback import Playback

    from .certificates import Authority, Defect
    from .client import Client, Request
    from .mcp_replaying import McpReplay
    from .upstream import Origin

# Errors of the server's connection after which the recorder has reset that of the program. The TLS library reports one
# of its own if the server closes the connection without the end of TLS.
RESETS = frozenset({"ConnectionResetError", "BrokenPipeError", "ConnectionAbortedError", "SSLEOFError", "SSLError"})
CUT_PATIENCE_S = 20.0  # until a program has closed a connection that it has closed in the recording
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
        if self._is_refused(client, TCP, request.origin):
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
        played = self._playback.respond(request, None)
        if played is None:
            return  # the server did not respond while the program waited
        if played.error is not None and played.error.get("type") in RESETS:
            client.stream.stream(played.pieces, end=False, apart=played.piecewise)
            client.stream.reset_at_end()
            return
        if played.error is not None and played.error.get("type") == NOT_RECORDED:
            # The program has closed the connection, as with a watch that it needs no longer.
            client.stream.stream(played.pieces, end=False, apart=played.piecewise)
            text = f"{request.method} {request.uri}: {played.error.get('message')}"
            client.expect_end(CUT_PATIENCE_S, lambda: self._playback.misses.append(text))
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
        """End what the client has of sessions; there is no connection to a server."""
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
