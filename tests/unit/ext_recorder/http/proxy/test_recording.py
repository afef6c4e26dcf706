"""Requests are forwarded first; the feed gets each of them, complete or with what ended it."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest

from ext_recorder.http.event_loop import READ
from ext_recorder.http.interaction import CONNECT, Interaction
from ext_recorder.http.proxy.certificates import Authority
from ext_recorder.http.proxy.client import Client, Entry
from ext_recorder.http.proxy.recording import OwnServers, RecordedConnection, RecordingContext
from ext_recorder.http.proxy.streams import Stream
from ext_recorder.http.proxy.upstream import Origin, ParentProxies, Trust

from .conftest import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.ports import NewPort

    from .conftest import Loop

    Script = Callable[[Stream, bytes], None]

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
AUTHORITY = Authority()


class Feed:
    """Recipient that keeps everything."""

    def __init__(self) -> None:
        self.found: list[Interaction] = []
        self.problems: list[str] = []

    def add(self, interaction: Interaction) -> None:
        """Keep an interaction."""
        self.found.append(interaction)

    def problem(self, text: str) -> None:
        """Keep a problem."""
        self.problems.append(text)

    def server(self, place: str, properties: dict[str, str]) -> None:
        """Do nothing."""

    def slow_down(self, stream: Stream) -> None:
        """Do nothing."""


class Site(Receiver):
    """Server of one loop.

    Attributes:
        script: responds to the data of a connection so far.
        connections: their number.
    """

    def __init__(self, loop: Loop) -> None:
        super().__init__()
        self.script: Script = lambda stream, _: stream.write(OK)
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(0)
        self.place = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self._loop = loop
        loop.watch(self.listener.fileno(), READ, self._accept)

    def _accept(self, _events: int) -> None:
        self.connections += 1
        Stream(self._loop, self.listener.accept()[0], self)

    def received(self, stream: Stream, data: bytes) -> None:
        """Respond."""
        super().received(stream, data)
        self.script(stream, data)


class Routing:
    """Routing that records everything."""

    def __init__(self, context: RecordingContext, feed: Feed) -> None:
        self._context = context
        self.problem = feed.problem

    def backend(self, origin: Origin, trust: Trust | None) -> RecordedConnection:
        """Return a recorded connection."""
        return self._context.connection(trust)

    def route(self, origin: Origin) -> Entry | None:
        """Return None."""

    def passes(self, origin: Origin) -> bool:
        """Return False."""
        return False


@pytest.fixture
def feed() -> Feed:
    return Feed()


@pytest.fixture
def site(loop: Loop) -> Iterator[Site]:
    served = Site(loop)
    yield served
    served.listener.close()


@pytest.fixture
def program(loop: Loop, pair: tuple[Stream, Stream], feed: Feed) -> Stream:
    """Return the end of the program of a connection to the proxy."""
    context = RecordingContext(loop, Trust(), AUTHORITY, feed, time.monotonic(), set(), ParentProxies({}))
    near, far = pair
    loop.unwatch(far.sock.fileno())
    Client(loop, far.sock, Entry(), Routing(context, feed))
    return near


def receiver(stream: Stream) -> Receiver:
    assert isinstance(stream.handler, Receiver)
    return stream.handler


def get(site: Site, path: str = "/") -> bytes:
    return f"GET http://{site.place}{path} HTTP/1.1\r\nHost: {site.place}\r\n\r\n".encode()


def test_requests_of_one_connection_use_one_connection_to_the_server(
    loop: Loop, site: Site, program: Stream, feed: Feed
) -> None:
    program.write(get(site, "/a") + get(site, "/b"))
    loop.until(lambda: receiver(program).data == OK * 2)
    assert [interaction.uri for interaction in feed.found] == [f"http://{site.place}/a", f"http://{site.place}/b"]
    assert all(found.body is not None and found.body.whole() == b"ok" for found in feed.found)
    assert site.connections == 1
    assert site.data.startswith(b"GET /a HTTP/1.1\r\n")


def test_a_response_before_the_end_of_its_request_does_not_lose_the_next_one(
    loop: Loop, site: Site, program: Stream, feed: Feed
) -> None:
    too_large = b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"
    site.script = lambda stream, data: stream.write(too_large if b"POST" in data else OK if b"GET" in data else b"")
    head = f"POST http://{site.place}/ HTTP/1.1\r\nHost: {site.place}\r\nContent-Length: 10\r\n\r\n"
    program.write(head.encode() + b"12345")
    loop.until(lambda: receiver(program).data == too_large)
    program.write(b"67890" + get(site))
    loop.until(lambda: receiver(program).data == too_large + OK)
    assert [interaction.status for interaction in feed.found] == [413, 200]
    assert feed.problems == []


@pytest.mark.parametrize("error", ["ServerClosed", "ConnectionResetError"])
def test_half_a_response_is_recorded_with_the_error_that_ended_it(
    loop: Loop, site: Site, program: Stream, feed: Feed, error: str
) -> None:
    half = OK.replace(b": 2", b": 4")

    def cut(stream: Stream, _data: bytes) -> None:
        stream.write(half)
        stream.reset_at_end() if "Reset" in error else stream.end()

    site.script = cut
    program.write(get(site))
    loop.until(lambda: receiver(program).ends)
    assert [(found.error or {}).get("type") for found in feed.found] == [error]
    if error == "ServerClosed":
        assert receiver(program).data == half
        assert receiver(program).ends == [None]


def test_a_program_that_does_not_wait_is_recorded_as_such(loop: Loop, site: Site, program: Stream, feed: Feed) -> None:
    site.script = lambda stream, _: None
    program.write(get(site))
    loop.until(lambda: site.data)
    program.close()
    loop.until(lambda: feed.found)
    assert (feed.found[0].error or {})["type"] == "GaveUp"


def test_a_server_that_does_not_listen_is_a_bad_gateway(
    loop: Loop, site: Site, program: Stream, feed: Feed, new_port: NewPort
) -> None:
    site.place = f"127.0.0.1:{new_port()}"
    program.write(get(site))
    loop.until(lambda: receiver(program).ends)
    assert receiver(program).data.startswith(b"HTTP/1.1 502 ")
    assert [(found.uri, (found.error or {})["type"]) for found in feed.found] == [
        (f"tcp://{site.place}", "ConnectionRefusedError")
    ]


def test_refused_connections_to_a_server_that_has_listened_at_any_time_are_forgotten() -> None:
    own = OwnServers()
    refused = [Interaction(CONNECT, f"tcp://{place}") for place in ("127.0.0.1:1", "localhost:1", "[::1]:2", "[::1]:2")]
    for each in refused:
        own.add(each)
    assert own.failed == {"127.0.0.1:1": refused[:1], "localhost:1": refused[1:2], "[::1]:2": refused[2:]}
    own.reached(Origin("http", "127.0.0.1", 1))
    own.add(refused[0])
    own.add(Interaction("GET", "http://127.0.0.1:3/"))
    assert own.failed == {"[::1]:2": refused[2:]}


def test_a_response_that_is_not_http_is_forwarded_and_reported(
    loop: Loop, site: Site, program: Stream, feed: Feed
) -> None:
    site.script = lambda stream, _: stream.write(b"220 ready\r\n\r\n")
    program.write(get(site))
    loop.until(lambda: receiver(program).data == b"220 ready\r\n\r\n")
    assert feed.found == []
    assert len(feed.problems) == 1
