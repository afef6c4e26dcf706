"""The feed pauses servers while the worker has much to write; requests go to the back end of their server."""

from __future__ import annotations

import socket
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import pytest

from ext_recorder.http.inject.ext_recorder_agent.channel import SOCKET
from ext_recorder.http.interaction import Body, Interaction
from ext_recorder.http.proxy import service
from ext_recorder.http.proxy.client import Entry
from ext_recorder.http.proxy.service import Backends, Feed, ProxyOptions, ProxyRouting, open_listener
from ext_recorder.http.proxy.upstream import Origin

if TYPE_CHECKING:
    from pathlib import Path

    from ext_recorder.http.proxy.client import Backend
    from ext_recorder.http.proxy.streams import Stream
    from ext_recorder.http.proxy.upstream import Trust

    from .conftest import Loop, Receiver


def test_a_server_is_paused_until_the_worker_has_taken_what_is_held(
    loop: Loop, pair: tuple[Stream, Stream], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MOST_HELD_BYTES", 1_000_000)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(tmp_path / SOCKET))
        listener.listen()
        feed = Feed(loop, str(tmp_path))
        worker, _ = listener.accept()
    server, upstream = pair
    server.write(b"1")
    feed.add(Interaction(body=Body(b"x" * 900_000)))
    feed.slow_down(upstream)
    received = cast("Receiver", upstream.handler)
    loop.until(lambda: received.data == b"1")
    feed.add(Interaction(body=Body(b"x" * 900_000)))
    feed.slow_down(upstream)
    server.write(b"2")
    while loop.turn(0):
        pass
    assert received.data == b"1"
    worker.settimeout(0)

    def read() -> bool:
        with suppress(BlockingIOError):
            worker.recv(1_000_000)
        return received.data == b"12"

    loop.until(read)
    worker.close()
    feed.stream.close()


@pytest.mark.parametrize(
    ("origin", "kind"),
    [
        (Origin("http", "127.0.0.1", 1), "own"),
        (Origin("http", "127.0.0.1", 2), "recorded"),
        (Origin("https", "api.example.com", 1), "recorded"),
        (Origin("https", "grpc.example.com", 443), "through"),
    ],
)
def test_each_server_has_its_back_end(origin: Origin, kind: str) -> None:
    made: list[str] = []

    def maker(name: str) -> object:
        def make(_trust: Trust | None) -> Backend:
            made.append(name)
            return cast("Backend", None)

        return make

    backends = Backends(*(maker(name) for name in Backends._fields))  # type: ignore[arg-type]
    passed: list[str] = []
    with open_listener(Entry(Origin("https", "real", 443))).socket as route:
        options = ProxyOptions([service.Listener(route, Entry(Origin("https", "real", 443)), 9)])
        options = options._replace(pass_through=("grpc.example.com",))
        routing = ProxyRouting(
            options, backends, is_own=lambda origin: origin.port == 1, note=passed.append, problem=made.append
        )
        routing.backend(origin, None)
    assert made == [kind if kind == "through" else {"own": "own"}.get(kind, "recorded")]
    assert passed == ([origin.place] if kind == "through" else [])
    assert routing.route(Origin("http", "127.0.0.1", 9)) is not None
    assert routing.route(Origin("http", "elsewhere", 9)) is None
