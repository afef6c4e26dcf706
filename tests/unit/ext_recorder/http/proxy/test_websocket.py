"""WebSockets are recorded by message, and replayed in the recorded order."""

from __future__ import annotations

import json
from itertools import count

import pytest
from wsproto.connection import Connection, ConnectionType
from wsproto.events import BytesMessage, CloseConnection, Event, Ping, TextMessage
from wsproto.frame_protocol import CloseReason

from ext_recorder.http.interaction import Body
from ext_recorder.http.proxy.websocket import CLIENT, SERVER, WebSocketObserver, WebSocketPlayer, lines_of

SENT = ((SERVER, TextMessage("hello")), (CLIENT, BytesMessage(b"\0\1")), (SERVER, TextMessage("é")))


def recorded(*events: tuple[str, Event]) -> Body:
    """Return the body of a WebSocket with these events, each sent byte by byte."""
    body, clock = Body(), count()
    observer = WebSocketObserver(body, lambda: next(clock) / 4)
    sides = {SERVER: Connection(ConnectionType.SERVER), CLIENT: Connection(ConnectionType.CLIENT)}
    for side, event in events:
        for byte in sides[side].send(event):
            observer.receive(side, bytes([byte]))
    return body


class Program:
    """Program with a replayed WebSocket."""

    def __init__(self, body: Body) -> None:
        self._side = Connection(ConnectionType.CLIENT)
        self.misses: list[str] = []
        self.received: list[object] = []
        self.ends = 0
        self.player = WebSocketPlayer(
            body, write=self._write, end=self._end, clean=lambda data: data, miss=self.misses.append
        )
        self.player.begin()

    def _write(self, data: bytes) -> None:
        self._side.receive_data(data)
        for event in self._side.events():
            self.received.append(getattr(event, "data", None) or getattr(event, "code", None) or type(event).__name__)

    def _end(self) -> None:
        self.ends += 1

    def send(self, event: Event) -> None:
        """Send an event."""
        self.player.receive(self._side.send(event))


def test_messages_are_lines_with_their_time_and_side() -> None:
    body = recorded(*SENT, (CLIENT, Ping()), (SERVER, CloseConnection(1000, "bye")))
    assert [json.loads(line) for line in body.whole().splitlines()] == [
        {"t": 0.25, "from": "server", "text": "hello"},
        {"t": 0.5, "from": "client", "base64": "AAE="},
        {"t": 0.75, "from": "server", "text": "é"},
        {"t": 1.0, "from": "server", "close": 1000, "reason": "bye"},
    ]
    assert len(list(lines_of(body))) == 4


def test_fragments_are_one_message() -> None:
    parts = (TextMessage("one, ", message_finished=False), TextMessage("two"))
    assert b'"one, two"' in recorded(*((SERVER, part) for part in parts)).whole()


def test_the_server_sends_its_messages_when_those_of_the_client_have_arrived() -> None:
    program = Program(recorded(*SENT, (SERVER, CloseConnection(1001))))
    assert program.received == ["hello"]
    program.send(Ping())
    assert program.received[1:] == ["Pong"]
    program.send(BytesMessage(b"\0\1"))
    assert program.received[2:] == ["é", 1001]
    assert (program.ends, program.misses) == (1, [])


@pytest.mark.parametrize("status", [CloseReason.NORMAL_CLOSURE, CloseReason.NO_STATUS_RCVD])
def test_the_server_closes_with_the_recorded_status_or_without_one(status: CloseReason) -> None:
    assert Program(recorded((SERVER, CloseConnection(status)))).received == [status]


def test_another_message_is_a_miss_and_ends_the_connection() -> None:
    program = Program(recorded(*SENT))
    program.send(BytesMessage(b"\0\2"))
    assert program.received[1:] == [1011]
    assert program.ends == 1
    assert len(program.misses) == 1
    assert "AAI=" in program.misses[0]
