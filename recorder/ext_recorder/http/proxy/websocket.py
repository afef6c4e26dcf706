"""WebSocket connections: recorded by message, and replayed in the recorded order.

The messages are the body of the response 101, a line of JSON for each:

    {"t": 0.012, "from": "server", "text": "hello"}
    {"t": 0.034, "from": "client", "base64": "AAEC"}
    {"t": 0.050, "from": "server", "close": 1000, "reason": "bye"}

Pings and pongs are not recorded: on replay, pings are answered. Extensions are not negotiated, see `client.DROPPED`.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from wsproto.connection import Connection, ConnectionState, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.frame_protocol import CloseReason
from wsproto.utilities import LocalProtocolError, RemoteProtocolError, generate_accept_token

from ext_recorder.http.http1_observer import SWITCHING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ext_recorder.http.interaction import Body, Headers, Interaction

CLIENT, SERVER = "client", "server"
INTERNAL_ERROR = 1011  # close code


def is_websocket(interaction: Interaction) -> bool:
    """Return True if an interaction has opened a WebSocket whose messages can be recorded."""
    return interaction.status == SWITCHING and not other_protocol(interaction)


def other_protocol(interaction: Interaction) -> str:
    """Return the protocol that a connection has changed to; "" for WebSocket.

    The port-forward of kubectl is a WebSocket that contains SPDY, whose compressed headers differ each time.
    """
    headers = {name.lower(): value for name, value in interaction.headers}
    upgrade, inner = headers.get("upgrade", "another protocol"), headers.get("sec-websocket-protocol", "")
    if upgrade.lower() == "websocket":
        return inner if inner.upper().startswith("SPDY/") else ""
    return upgrade


class WebSocketObserver:
    """Observer of a WebSocket: writes the messages of both sides to a body.

    Args:
        now: returns the seconds since the start of the recording.
    """

    def __init__(self, body: Body, now: Callable[[], float]) -> None:
        self._body = body
        self._now = now
        self._start = now()
        self._parsers = {SERVER: Connection(ConnectionType.CLIENT), CLIENT: Connection(ConnectionType.SERVER)}
        self._parts: dict[str, list[str | bytes]] = {SERVER: [], CLIENT: []}

    def receive(self, side: str, data: bytes) -> None:
        """Process bytes of one side. Raises RemoteProtocolError if they are not frames."""
        parser = self._parsers[side]
        if parser.state is ConnectionState.CLOSED:
            return
        parser.receive_data(data)
        for event in parser.events():
            if isinstance(event, CloseConnection):
                self._write(side, {"close": event.code, "reason": event.reason or ""})
            elif (
                isinstance(event, (TextMessage, BytesMessage))
                and (message := joined(self._parts[side], event)) is not None
            ):
                self._write(side, encoded(message))

    def _write(self, side: str, message: dict[str, object]) -> None:
        line = {"t": round(self._now() - self._start, 6), "from": side, **message}
        self._body.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")


def joined(parts: list[str | bytes], event: TextMessage | BytesMessage) -> str | bytes | None:
    """Return a message whose last frame has arrived; None for another frame.

    Args:
        parts: frames of the message so far; changed.
    """
    parts.append(event.data if isinstance(event, TextMessage) else bytes(event.data))
    if not event.message_finished:
        return None
    whole: str | bytes
    whole = "".join(map(str, parts)) if isinstance(event, TextMessage) else b"".join(map(bytes, parts))  # type: ignore[arg-type]
    parts.clear()
    return whole


def encoded(message: str | bytes) -> dict[str, object]:
    """Return a message as members of its line."""
    return {"text": message} if isinstance(message, str) else {"base64": base64.b64encode(message).decode()}


def lines_of(body: Body) -> Iterator[dict[str, object]]:
    """Yield the lines of a recorded WebSocket. Raises ValueError."""
    rest = b""
    for piece in body.pieces():
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            value = json.loads(line)
            if not isinstance(value, dict):
                raise ValueError(f"expected a mapping for each message, found {line[:80]!r}")  # noqa: TRY004
            yield value


def accepted(headers: Headers, key: str) -> Headers:
    """Return the headers of a recorded response 101 for the key of a live request."""
    token = generate_accept_token(key.encode()).decode()
    return [(name, token if name.lower() == "sec-websocket-accept" else value) for name, value in headers]


class WebSocketPlayer:
    """Player of a recorded WebSocket: sends a message of the server when all earlier ones of the client have arrived.

    Args:
        body: of the recorded response.
        write: sends bytes to the program.
        end: closes the connection after that.
        clean: makes the same replacements in a live message as in the recorded ones.
        miss: receives a text about a message that differs.
    """

    def __init__(
        self,
        body: Body,
        *,
        write: Callable[[bytes], None],
        end: Callable[[], None],
        clean: Callable[[bytes], bytes],
        miss: Callable[[str], None],
    ) -> None:
        self._lines = lines_of(body)
        self._next: deque[dict[str, object]] = deque()
        self._write, self._end, self._clean, self._miss = write, end, clean, miss
        self._parser = Connection(ConnectionType.SERVER)
        self._parts: list[str | bytes] = []
        self._is_over = False

    def begin(self) -> None:
        """Send the first messages."""
        self._advance()

    def receive(self, data: bytes) -> None:
        """Process bytes of the program."""
        if self._is_over:
            return
        try:
            self._parser.receive_data(data)
            for event in self._parser.events():
                self._take(event)
        except RemoteProtocolError as error:
            self._differs(f"the program sends invalid WebSocket frames ({error})")

    def _take(self, event: Event) -> None:
        if isinstance(event, Ping):
            self._send(event.response())
        elif isinstance(event, CloseConnection):
            if self._parser.state is ConnectionState.REMOTE_CLOSING:
                self._send(event.response())
            self._is_over = True
            self._end()
        elif isinstance(event, (TextMessage, BytesMessage)) and (message := joined(self._parts, event)) is not None:
            self._compare(message)

    def _compare(self, message: str | bytes) -> None:
        expected = self._peek()
        if isinstance(message, str):
            live = encoded(self._clean(message.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape"))
        else:
            live = encoded(self._clean(message))
        if expected is None or expected.get("from") != CLIENT or "close" in expected:
            self._differs(f"the program sends a message that was not recorded: {_shown(live)}")
        elif {name: expected.get(name) for name in live} != live:
            self._differs(f"the program sends {_shown(live)}, recorded {_shown(expected)}")
        else:
            self._next.popleft()
            self._advance()

    def _advance(self) -> None:
        while not self._is_over and (line := self._peek()) is not None and line.get("from") == SERVER:
            self._next.popleft()
            if "close" in line:
                code = line["close"]
                if code == CloseReason.NO_STATUS_RCVD:
                    code = CloseReason.NO_STATUS_RCVD  # wsproto sends the number itself as 1000
                reason = str(line.get("reason") or "") or None
                self._is_over = True
                self._send(CloseConnection(code if isinstance(code, int) else 1000, reason))
                self._end()
            elif "text" in line:
                self._send(TextMessage(str(line["text"])))
            else:
                with suppress(binascii.Error):
                    self._send(BytesMessage(base64.b64decode(str(line.get("base64") or ""))))

    def _peek(self) -> dict[str, object] | None:
        if not self._next and (line := next(self._lines, None)) is not None:
            self._next.append(line)
        return self._next[0] if self._next else None

    def _differs(self, text: str) -> None:
        self._miss(text)
        self._is_over = True
        self._send(CloseConnection(INTERNAL_ERROR, "ext-recorder: not recorded"))
        self._end()

    def _send(self, event: Event) -> None:
        try:
            self._write(self._parser.send(event))
        except LocalProtocolError:  # it is closed already
            self._is_over = True


def _shown(line: dict[str, object]) -> str:
    text = str(line.get("text", line.get("base64", "")))
    return json.dumps(text[:80] + ("…" if len(text) > 80 else ""), ensure_ascii=False)
