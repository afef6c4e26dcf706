"""Requests are answered from the recording; connections that failed fail again."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from ext_recorder.http.interaction import CONNECT, Body, Interaction
from ext_recorder.http.interaction_store import InteractionStore
from ext_recorder.http.playback import Playback
from ext_recorder.http.proxy.certificates import Authority
from ext_recorder.http.proxy.client import Client, Entry
from ext_recorder.http.proxy.replaying import ReplayedConnection
from ext_recorder.http.sanitizer import Sanitizer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_recorder.http.proxy.streams import Stream
    from ext_recorder.http.proxy.upstream import Origin, Trust

    from .conftest import Loop, Receiver

AUTHORITY = Authority()


class Routing:
    """Routing to a recording."""

    def __init__(self, recorded: list[Interaction]) -> None:
        store = InteractionStore(recorded, {}, {})
        unchanged = Sanitizer(lambda data: data)
        self.playback = Playback(store, {}, unchanged, unchanged)
        self._store = store
        self.problem: Callable[[str], None] = self.playback.misses.append

    def backend(self, origin: Origin, trust: Trust | None) -> ReplayedConnection:
        """Return a replayed connection."""
        return ReplayedConnection(self.playback, self._store, AUTHORITY)

    def route(self, origin: Origin) -> Entry | None:
        """Return None."""

    def passes(self, origin: Origin) -> bool:
        """Return False."""
        return False


def interaction(path: str, body: bytes = b"ok") -> Interaction:
    made = Interaction("GET", f"http://h{path}", [("Host", "h")], Body())
    made.status, made.reason, made.headers = 200, "OK", [("Content-Length", str(len(body)))]
    made.body = Body(body)
    return made


def ask(loop: Loop, pair: tuple[Stream, Stream], recorded: list[Interaction], *paths: str) -> tuple[Receiver, Routing]:
    """Send requests, and return what the program has received when its connection or the last response has ended."""
    near, far = pair
    loop.unwatch(far.sock.fileno())
    routing = Routing(recorded)
    Client(loop, far.sock, Entry(), routing)
    near.write(b"".join(f"GET http://h{path} HTTP/1.1\r\nHost: h\r\n\r\n".encode() for path in paths))
    received = cast("Receiver", near.handler)
    loop.until(lambda: received.ends or received.data.endswith((b"LAST", b"}")))
    return received, routing


def test_responses_are_the_recorded_ones(loop: Loop, pair: tuple[Stream, Stream]) -> None:
    recorded = [interaction("/a", b"one"), interaction("/b", b"LAST")]
    received, routing = ask(loop, pair, recorded, "/a", "/b")
    assert received.data.split(b"HTTP/1.1 200 OK\r\nContent-Length: ") == [
        b"",
        b"3\r\n\r\none",
        b"4\r\n\r\nLAST",
    ]
    assert routing.playback.misses == []


def test_a_request_that_was_not_recorded_is_refused_and_reported(loop: Loop, pair: tuple[Stream, Stream]) -> None:
    received, routing = ask(loop, pair, [interaction("/a")], "/c")
    assert received.data.startswith(b"HTTP/1.1 499 ")
    assert len(routing.playback.misses) == 1


@pytest.mark.parametrize(("has_response", "elapsed", "patience"), [(True, 0, 5), (False, 1.5, 6.5), (True, 60, 65)])
def test_a_program_that_waits_longer_than_recorded_is_reset(
    loop: Loop, pair: tuple[Stream, Stream], monkeypatch: pytest.MonkeyPatch, *, has_response: bool, elapsed: float,
    patience: float,
) -> None:  # fmt: skip
    """Neither a response that the program had cut nor one that it did not wait for may stall a replay."""
    waits, expect_end = [], Client.expect_end

    def hurry(client: Client, seconds: float, miss: Callable[[], None]) -> None:
        waits.append(seconds)
        expect_end(client, 0, miss)

    monkeypatch.setattr(Client, "expect_end", hurry)
    stalled = interaction("/a", b"half")
    stalled.headers, stalled.cut, stalled.elapsed = [("Content-Length", "8")], has_response, elapsed
    stalled.error = {"type": "GaveUp", "errno": None, "message": "the child did not wait for an answer"}
    expected = "the recording has the first 4 bytes of this body: the program read no more of it then"
    if not has_response:
        stalled.status, stalled.body = 0, None
        expected = "the recording has no response to this request: the program did not wait for it then"
    received, routing = ask(loop, pair, [stalled], "/a")
    assert received.data.endswith(b"half") == has_response
    assert isinstance(received.ends[0], ConnectionResetError)
    assert waits == [patience]
    assert routing.playback.misses == [f"GET http://h/a: {expected}"]


@pytest.mark.parametrize(
    ("error", "type_of_end"), [("ConnectionResetError", ConnectionResetError), ("ServerClosed", type(None))]
)
def test_a_response_ends_as_it_did(
    loop: Loop, pair: tuple[Stream, Stream], error: str, type_of_end: type[OSError] | None
) -> None:
    half = interaction("/a", b"half")
    half.headers, half.error = [("Content-Length", "8")], {"type": error, "errno": None, "message": ""}
    received, _ = ask(loop, pair, [half], "/a")
    assert received.data.endswith(b"\r\n\r\nhalf")
    assert isinstance(received.ends[0], cast("type[OSError]", type_of_end))


def test_a_server_that_was_not_reached_is_a_bad_gateway_again(loop: Loop, pair: tuple[Stream, Stream]) -> None:
    failed = Interaction(CONNECT, "tcp://h:80")
    failed.error = {"type": "ConnectionRefusedError", "errno": 111, "message": "Connection refused"}
    received, routing = ask(loop, pair, [failed, interaction("/a")], "/a")
    assert received.data.startswith(b"HTTP/1.1 502 ")
    assert b"Connection refused" in received.data
    assert routing.playback.misses == []
