"""What the examples of ext-http ask: a shop that sells seven things."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from wsproto.connection import Connection, ConnectionType
from wsproto.events import CloseConnection, Event, TextMessage
from wsproto.utilities import generate_accept_token

from tests.support.http_stub import Asked, Handler, Stub

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE_SERVER = "127.0.0.1:8080"  # as examples name it; it runs on another port


def _graphql(handler: Handler, asked: Asked) -> None:
    handler.json({"data": {"item": {"name": "lamp"}}})


def _chat(handler: Handler, asked: Asked) -> None:
    """Greet over a WebSocket, and confirm each message."""
    key = asked.header("Sec-WebSocket-Key")
    if key is None:
        handler.answer(426, "this is a WebSocket", {"Upgrade": "websocket"})
        return
    accept = generate_accept_token(key.encode()).decode()
    upgrade = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    handler.begin(f"{upgrade}Sec-WebSocket-Accept: {accept}\r\n\r\n")
    frames = Connection(ConnectionType.SERVER)

    def send(event: Event) -> None:
        handler.wfile.write(frames.send(event))

    send(TextMessage("welcome"))
    while data := handler.connection.recv(65536):
        frames.receive_data(data)
        for event in frames.events():
            if isinstance(event, TextMessage):
                send(TextMessage('{"op": "news"}'))
                send(TextMessage('{"op": "added", "id": 7}'))
            elif isinstance(event, CloseConnection):
                send(event.response())
                return


@contextmanager
def example_server() -> Iterator[Stub]:
    """The shop, on a port of its own."""
    with Stub() as server:
        server.json("/items/7", {"id": 7, "name": "lamp"})
        server.says("/healthz", "ok")
        server.says("/report.csv", "name,count\nlamp,3\n", Content_Type="text/csv")
        feed = '<feed><item id="7"><name>lamp</name></item></feed>'
        type, date = "application/xml; charset=utf-8", "Sun, 22 Nov 2026 12:00:00 GMT"
        server.says("/feed.xml", feed, Content_Type=type, Last_Modified=date)
        server.does("/graphql", _graphql)
        events = 'data: hello\n\nevent: price\ndata: {"eur": 7}\n\n'
        server.says("/events", events, Content_Type="text/event-stream")
        cookie = "sid=battery-staple-7; HttpOnly; SameSite=Lax; Max-Age=1800"
        server.does("/login", lambda handler, asked: handler.answer(200, "", {"Set-Cookie": cookie}))
        server.does("/chat", _chat)
        yield server
