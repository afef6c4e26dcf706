"""Server-sent events: their parser, and requests that expect the first ones."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from ext_http.response.events import Event, EventParser, events_of
from tests.support.raw_server import RawServer

if TYPE_CHECKING:
    import socket

    from tests.support.ext_http import Extension
    from tests.support.http_stub import Stub

STREAM = (
    '\ufeff: comment\nevent: price\nid: 7\ndata: {"eur":\ndata:7}\nretry: 10\n\nevent: unused\n\n'
    "data: ä\r\n\r\ndata\r\rdata: half\n"
)
EVENTS = [Event("price", '{"eur":\n7}', "7"), Event("message", "ä", "7"), Event("message", "", "7")]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n\r\n"


def test_events_do_not_depend_on_the_pieces() -> None:
    data = STREAM.encode()
    assert events_of(data) == EVENTS
    for cut in range(len(data)):
        parser = EventParser(3)
        first = parser.feed(data[:cut])
        assert (first, parser.feed(data[cut:]), parser.events) == (len(parser.events) >= 3 and first, True, EVENTS)


def test_a_stream_that_does_not_end_is_read_up_to_the_last_expected_event(http: Extension) -> None:
    over = threading.Event()

    def talk(connection: socket.socket, _head: bytes) -> None:
        connection.sendall(HEAD + b'data: one\n\nevent: two\nid: 2\ndata: {"a": 1}\n\ndata: three\n\n')
        over.wait(60)

    events: list[object] = ["one", {"event": "two", "id": "2", "data": {"jsonContains": {"a": 1}}}]
    capture = {"a": {"from": "events", "json": "$[1].data"}}
    try:
        with RawServer(talk) as server:
            result = http.get(server.url, expect={"events": events}, capture=capture)
            assert result.outputs["a"] == '{"a": 1}'
            assert b"accept: text/event-stream" in server.heads[-1].lower()
            http.ok("wait", url=server.url, expect={"events": events})
            late = http.failed(
                "request", url=server.url, timeout="500ms", expect={"events": [*events, "three", "four"]}
            )
            assert "event 4: expected to be sent, got 3 complete events up to the end" in late.error
            endless = http.failed("request", url=server.url, timeout="500ms")
            assert "`expect.events` of request and wait reads a stream" in endless.error
            wrong = http.failed(
                "request", url=server.url, expect={"events": ["1", {"event": "x", "data": {"size": 1}}]}
            )
            assert "data of event 1: expected" in wrong.error
            assert 'event of event 2: expected to be "x", got "two"' in wrong.error
            assert "size of data of event 2" in wrong.error
    finally:
        over.set()


def test_a_response_that_is_not_a_stream_of_events(http: Extension, stub: Stub) -> None:
    url = stub.says("/", "data: one\n\n", Content_Type="text/plain")
    error = http.failed("request", url=url, expect={"events": ["one"]}).error
    assert "Content-Type: expected to be text/event-stream, got text/plain" in error


@pytest.mark.parametrize(
    ("expect", "problem"),
    [
        ({"events": [{}]}, "checks nothing"),
        ({"events": []}, "events"),
        ({"events": ["a"], "body": "b"}, "excludes body"),
        ({"events": ["a"], "failure": "reset"}, "it excludes events"),
    ],
)
def test_events_that_can_not_be_expected(expect: object, problem: str, http: Extension) -> None:
    assert problem in http.refused("request", url="http://127.0.0.1:1/", expect=expect)
