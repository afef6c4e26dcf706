"""Servers that mean no good: drips, bombs, floods, resets. Each ends in its time, in bounded memory, with a reason."""

from __future__ import annotations

import contextlib
import gzip
import socket
import struct
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.http_stub import Asked, Handler, Stub, gzipped
from tests.support.raw_server import RawServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.ext_http import Extension

GENEROUS_SECONDS = 60.0  # a test that hangs is a failure; none of these needs a tenth of it


@pytest.fixture
def gone() -> Iterator[threading.Event]:
    """Set at the end: servers that drip have to stop."""
    event = threading.Event()
    yield event
    event.set()


def drip(start: bytes, piece: bytes, gone: threading.Event) -> Callable[[Handler, Asked], None]:
    """Sends a start, then a piece every now and then, for ever: each read of a client succeeds."""

    def route(handler: Handler, asked: Asked) -> None:
        handler.close_connection = True
        handler.wfile.write(start)
        while not gone.wait(0.02):
            handler.wfile.write(piece)

    return route


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
        (b"HTTP/1.1 200 O", b"K"),
        (b"", b"H"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_the_deadline_is_for_all_however_often_a_byte_comes(
    start: bytes, piece: bytes, http: Extension, stub: Stub, gone: threading.Event
) -> None:
    """A timeout of 2 s took 10 s with httpx, requests and urllib3 alike, and 12 s where headers drip."""
    url = stub.does("/", drip(start, piece, gone))
    begun = time.monotonic()
    result = http.failed("request", url=url, timeout="400ms")
    assert time.monotonic() - begun < GENEROUS_SECONDS
    assert "before the deadline" in result.error or "no HTTP" in result.error or "protocol" in result.error.lower(), (
        result
    )


def test_a_server_that_says_nothing_is_told(http: Extension, stub: Stub, gone: threading.Event) -> None:
    url = stub.does("/", lambda handler, asked: handler.close_after(gone))
    result = http.failed("request", url=url, timeout="2s")
    assert f"GET {url}: connected, but no complete response before the deadline" in result.error


def test_a_server_that_takes_nothing_of_a_long_body_is_told(http: Extension) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/"
        (http.workdir / "big").write_bytes(bytes(20_000_000))
        result = http.failed("request", url=url, body={"file": "big"}, timeout="3s")
    assert "did not read the request before the deadline" in result.error


def test_a_connection_that_nobody_takes_ends_at_connect_timeout(http: Extension) -> None:
    import socket

    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        address = server.getsockname()
        fillers = [socket.socket() for _ in range(4)]
        for one in fillers:
            one.settimeout(0)
            one.connect_ex(address)
        result = http.failed("request", url=f"http://127.0.0.1:{address[1]}/", connectTimeout="300ms", timeout="20s")
        for one in fillers:
            one.close()
    assert "no connection" in result.error or "before the deadline" in result.error


def test_a_body_is_read_up_to_its_limit_and_the_message_says_so(http: Extension, stub: Stub) -> None:
    url = stub.says("/", b"x" * 5000)
    result = http.get(url, maxBody=1000)
    assert result.outputs["body"].startswith("x" * 1000 + "\n[... 1,000 bytes, and more that were not read")
    assert "the body is cut: it exceeds maxBody" in result.message
    assert http.get(url, maxBody=5000).outputs["body"] == "x" * 5000


def test_no_check_of_a_body_holds_for_a_part_of_it(http: Extension, stub: Stub) -> None:
    url = stub.says("/", b"x" * 5000)
    result = http.failed("request", url=url, maxBody=1000, expect={"body": {"contains": "x"}})
    assert "body" in result.error
    error = http.failed("request", url=url, maxBody=1000, capture={"a": {"regex": "x"}}).error
    assert "only a part of the body" in error


def test_a_flood_without_end_is_left_at_the_limit(http: Extension, stub: Stub, gone: threading.Event) -> None:
    def route(handler: Handler, asked: Asked) -> None:
        handler.begin("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
        while not gone.is_set():
            handler.wfile.write(b"y" * 65536)

    result = http.get(stub.does("/", route), maxBody=200_000)
    assert "and more that were not read" in result.outputs["body"]


@pytest.mark.parametrize("layers", [1, 2])
def test_a_bomb_is_left_when_it_grows_too_much(layers: int, http: Extension, stub: Stub) -> None:
    """195 KB of gzip were 416 MB in memory of another tool, in spite of its limit, which counts encoded bytes."""
    data = gzipped(60_000_000)
    for _ in range(layers - 1):
        data = gzip.compress(data)
    coding = ", ".join(["gzip"] * layers)
    stub.routes["/"] = lambda handler, asked: handler.answer(200, data, {"Content-Encoding": coding})
    result = http.get(stub.url(), maxBody=50_000_000)
    assert "expands too much when decoded" in result.message


@pytest.mark.parametrize("kind", ["body", "bomb"])
def test_what_is_not_kept_is_not_in_memory_either(kind: str, fresh: Callable[..., Extension], stub: Stub) -> None:
    """A body of 100 MB with a cap of 10, and 200 MB in 195 KB of gzip."""
    bomb = gzipped(200_000_000) if kind == "bomb" else b""

    def route(handler: Handler, asked: Asked) -> None:
        if bomb:
            handler.answer(200, bomb, {"Content-Encoding": "gzip"})
            return
        handler.close_connection = True
        handler.begin("HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        with contextlib.suppress(OSError):  # the client has enough, and goes
            for _ in range(100):
                handler.wfile.write(bytes(1_000_000))

    http = fresh()
    assert "the body is cut" in http.get(stub.does("/", route), maxBody=10_000_000).message
    status = Path(f"/proc/{http.peer.process.pid}/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))  # KiB
    assert peak < 80 * 1024


def test_the_limit_counts_decoded_bytes(http: Extension, stub: Stub) -> None:
    data = gzip.compress(b"0123456789" * 100)
    stub.routes["/"] = lambda handler, asked: handler.answer(200, data, {"Content-Encoding": "gzip"})
    assert "[... 500 bytes, and more" in http.get(stub.url(), maxBody=500).outputs["body"]


def test_a_connection_that_is_reset_is_told(http: Extension, stub: Stub) -> None:
    result = http.failed("request", url=stub.does("/", lambda handler, asked: handler.reset()))
    assert "Connection reset by peer" in result.error


def test_an_answer_that_ends_too_soon_is_no_answer(http: Extension, stub: Stub) -> None:
    url = stub.does("/", lambda handler, asked: handler.begin("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"))
    assert "ended too soon" in http.failed("request", url=url).error


def test_a_connection_that_is_closed_without_a_word_is_told(http: Extension, stub: Stub) -> None:
    result = http.failed("request", url=stub.does("/", lambda handler, asked: handler.begin("")))
    assert "the server closed the connection without a response" in result.error


@pytest.mark.parametrize(
    "text", ["SSH-2.0-OpenSSH_9\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "\0\0\0\0\r\n\r\n", "X" * 200_000]
)
def test_what_is_no_http_is_told(text: str, http: Extension, stub: Stub) -> None:
    result = http.failed("request", url=stub.does("/", lambda handler, asked: handler.begin(text)))
    assert "check that an HTTP server listens there" in result.error


@pytest.mark.parametrize("count", [1, 200])
def test_headers_are_bounded(count: int, http: Extension, stub: Stub) -> None:
    lines = "".join(f"X-{number}: {'v' * (200_000 // count)}\r\n" for number in range(count))
    result = http.failed(
        "request", url=stub.does("/", lambda handler, asked: handler.begin(f"HTTP/1.1 200 OK\r\n{lines}\r\n"))
    )
    assert "the headers of the response are too long" in result.error


def test_an_invalid_compressed_body_is_told(http: Extension, stub: Stub) -> None:
    stub.routes["/"] = lambda handler, asked: handler.answer(200, b"no gzip", {"Content-Encoding": "gzip"})
    assert "the body can't be decoded: Error -3" in http.failed("request", url=stub.url()).error


def test_a_compressed_body_that_was_cut_off_is_no_body(http: Extension, stub: Stub) -> None:
    """The length is right, and what there is can be decoded: no library says a word."""
    body = gzip.compress(b"all is well; " * 1000)[:-20]
    url = stub.does("/", lambda handler, asked: handler.answer(200, body, {"Content-Encoding": "gzip"}))
    result = http.failed("request", url=url, expect={"body": {"notContains": "error"}})
    assert "the body can't be decoded: it ends too soon; send the header `Accept-Encoding: identity`" in result.error
    assert "it ends too soon" in http.failed("download", url=url, path="cut.txt").error
    assert not (http.workdir / "cut.txt").exists()


def test_patterns_and_nesting_without_end_are_bounded(http: Extension, stub: Stub) -> None:
    url = stub.says("/", "a" * 60 + "b")
    pattern = "^(a|a)*$"
    error = http.failed("request", url=url, expect={"body": {"matches": pattern}}).error
    assert "took longer than" in error
    assert "took longer than" in http.failed("request", url=url, capture={"x": {"regex": pattern}}).error
    deep = stub.says("/deep", "[" * 200_000)
    checks = {"body": {"json": [{"path": "$[0]", "exists": True}]}}
    assert "nested too deeply" in http.failed("request", url=deep, expect=checks).error


def test_the_extension_ends_while_a_request_waits(
    fresh: Callable[..., Extension], stub: Stub, gone: threading.Event
) -> None:
    http = fresh()
    arrived = threading.Event()

    def route(handler: Handler, asked: Asked) -> None:
        arrived.set()
        handler.close_after(gone)

    url = stub.does("/", route)
    call = {
        "operation": "request",
        "args": {"url": url, "timeout": "5m"},
        "context": {"workdir": str(http.workdir), "phase": "setup"},
    }
    http.peer.send({"jsonrpc": "2.0", "id": 99, "method": "execute", "params": call})
    assert arrived.wait(GENEROUS_SECONDS)
    http.peer.process.terminate()
    assert http.peer.exit_code() == 0


def test_requests_that_hang_do_not_hold_up_others(
    fresh: Callable[..., Extension], stub: Stub, gone: threading.Event
) -> None:
    """The library's own limit is 100 connections, for whose end the next request waits."""
    http = fresh()
    arrived = threading.Semaphore(0)

    def route(handler: Handler, asked: Asked) -> None:
        arrived.release()
        handler.close_after(gone)

    args = {"url": stub.does("/", route), "timeout": "5m"}
    call = {"operation": "request", "args": args, "context": {"workdir": str(http.workdir), "phase": "setup"}}
    for number in range(110):
        http.peer.send({"jsonrpc": "2.0", "id": f"hangs-{number}", "method": "execute", "params": call})
    assert all(arrived.acquire(timeout=GENEROUS_SECONDS) for _ in range(110))
    http.peer.process.terminate()
    assert http.peer.exit_code() == 0


def test_checks_end_with_the_timeout_and_the_answer_is_told(http: Extension, stub: Stub) -> None:
    """The timeout was for the request only: twelve such checks took 28 s, and passed."""
    url = stub.json("/", [{"a": number} for number in range(60_000)])
    paths = [{"path": f"$[?@.a == {number}].a", "equals": number} for number in range(59_900, 59_990)]
    begun = time.monotonic()
    result = http.failed("request", url=url, timeout="2s", expect={"body": {"json": paths}})
    assert time.monotonic() - begun < GENEROUS_SECONDS
    assert "body at $[?@.a == 599" in result.error
    assert "the time of the operation was up before this check ended" in result.error
    assert 'response: 200 OK (application/json)\nbody: [{"a": 0}' in result.error
    assert result.outputs["status"] == "200"


def test_a_stream_that_goes_on_is_told_with_what_came_of_it(http: Extension, stub: Stub, gone: threading.Event) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    url = stub.does("/", drip(head + b"d\r\ndata: first\n\n\r\n", b"9\r\ndata: x\n\n\r\n", gone))
    for operation in ("request", "wait"):
        result = http.failed(operation, url=url, timeout="1500ms")
        assert "the response began, but did not end before the deadline" in result.error
        assert "received: 200 OK (text/event-stream), " in result.error
        assert " bytes of its body: data: first data: x" in result.error
    assert http.failed("request", url=url, timeout="1500ms").outputs["status"] == "200"
    result = http.failed("download", url=url, path="stream", timeout="1500ms")
    assert "received: 200 OK (text/event-stream), " in result.error


def test_secrets_in_what_came_of_an_answer_are_redacted(
    fresh: Callable[..., Extension], stub: Stub, gone: threading.Event
) -> None:
    http = fresh(env={"DB_PASSWORD": "swordfish-77"})
    http.get(stub.says("/warm"))  # the imports of the first request take a part of its time
    url = stub.does("/", drip(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\npw swordfish-77 ", b"x", gone))
    error = http.failed("request", url=url, timeout="2s").error
    assert "bytes of its body: pw [redacted:env.DB_PASSWORD#1] x" in error
    assert "swordfish" not in error


def test_an_answer_that_ends_too_soon_is_told_and_so_is_what_came_of_it(http: Extension, stub: Stub) -> None:
    url = stub.does("/", lambda handler, asked: handler.begin("HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\nabc"))
    error = http.failed("request", url=url).error
    assert "closed the connection before the end of the response; received: 200 OK, 3 bytes of its body: abc" in error
    assert "does it run" not in error


def test_a_server_without_http_2_is_told(http: Extension, stub: Stub) -> None:
    error = http.failed("request", url=stub.says("/", "hi"), httpVersion="2", timeout="5s").error
    assert "check that the server supports HTTP/2; `httpVersion: auto` falls back to HTTP/1.1" in error


def test_a_reset_of_a_connection_with_http_2_names_the_protocol(http: Extension) -> None:
    def reset(connection: socket.socket, head: bytes) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    with RawServer(reset) as server:
        error = http.failed("request", url=server.url, httpVersion="2").error
    assert "Connection reset by peer; check that the server supports HTTP/2" in error
