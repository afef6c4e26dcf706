"""Requests to the proxy: their server, their headers, and requests that can't be served."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import pytest

from ext_recorder.http.proxy.client import (
    Client,
    Entry,
    http2_refusal,
    origin_of,
    outgoing_headers,
    readable_encodings,
)
from ext_recorder.http.proxy.upstream import Origin

if TYPE_CHECKING:
    from ext_recorder.http.proxy.client import Request
    from ext_recorder.http.proxy.streams import Stream
    from ext_recorder.http.proxy.upstream import Trust

    from .conftest import Loop, Receiver


class Echo:
    """Back end, and routing to it, that responds with the head of each request and its body."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.problems: list[str] = []
        self._body = b""

    def open_tunnel(self, client: Client, origin: Origin) -> None:
        """Open the tunnel."""
        client.tunnel_opened()

    def secure(self, client: Client, origin: Origin) -> None:
        """Refuse."""
        client.stream.reset()

    def begin(self, client: Client, request: Request) -> None:
        """Keep a request."""
        self.requests.append(request)
        self._body = b""
        client.proceed()

    def body(self, client: Client, data: bytes) -> None:
        """Collect the body."""
        self._body += data

    def end(self, client: Client) -> None:
        """Respond."""
        client.stream.write(b"<%b>" % self._body)
        client.next_request()

    def client_drained(self, client: Client) -> None:
        """Do nothing."""

    def gone(self, client: Client, error: OSError | None) -> None:
        """Do nothing."""

    def backend(self, origin: Origin, trust: Trust | None) -> Echo:
        """Return this back end."""
        return self

    def route(self, origin: Origin) -> Entry | None:
        """Return the route of one port."""
        return Entry(Origin("https", "real", 443), headers={"Authorization": "ours"}) if origin.port == 81 else None

    def passes(self, origin: Origin) -> bool:
        """Return False."""
        return False

    def problem(self, text: str) -> None:
        """Keep a problem."""
        self.problems.append(text)


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
def program(loop: Loop, pair: tuple[Stream, Stream], echo: Echo) -> Stream:
    near, far = pair
    loop.unwatch(far.sock.fileno())
    Client(loop, far.sock, Entry(), echo)
    return near


def received(program: Stream) -> bytes:
    return cast("Receiver", program.handler).data


def test_requests_that_arrive_at_once_are_processed_one_after_the_other(
    loop: Loop, program: Stream, echo: Echo
) -> None:
    chunked = b"POST http://h/b HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
    chunked += b"3\r\nabc\r\n1\r\nd\r\n0\r\n\r\n"
    program.write(b"POST http://h:81/a?b HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n12" + chunked + chunked)
    loop.until(lambda: received(program) == b"<12><abcd><abcd>")
    assert [request.interaction.uri for request in echo.requests] == ["https://real/a?b", "http://h/b", "http://h/b"]
    assert echo.requests[0].head == (
        b"POST /a?b HTTP/1.1\r\nHost: real\r\nContent-Length: 2\r\nAuthorization: ours\r\n\r\n"
    )
    assert [request.chunked for request in echo.requests] == [False, True, True]


def test_requests_in_a_tunnel_without_tls_go_to_its_server(loop: Loop, program: Stream, echo: Echo) -> None:
    program.write(b"CONNECT h:8080 HTTP/1.1\r\nHost: h:8080\r\n\r\n")
    loop.until(lambda: received(program))
    program.write(b"GET /a HTTP/1.1\r\nHost: other\r\n\r\n")
    loop.until(lambda: received(program).endswith(b"<>"))
    assert [request.interaction.uri for request in echo.requests] == ["http://h:8080/a"]
    assert b"Host: other\r\n" in echo.requests[0].head  # as the program has sent it


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET /a HTTP/1.1\r\nHost: h\r\n\r\n", b"HTTP/1.1 400 "),
        (b"CONNECT h HTTP/1.1\r\nHost: h\r\n\r\n", b"HTTP/1.1 400 "),
        (b"GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n", b"HTTP/1.1 400 "),
        (b"\0\1\2\r\n\r\n", b"HTTP/1.1 400 "),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", http2_refusal("")[:9]),
    ],
)
def test_other_requests_are_refused(loop: Loop, program: Stream, echo: Echo, sent: bytes, status: bytes) -> None:
    program.write(sent)
    loop.until(lambda: cast("Receiver", program.handler).ends)
    assert received(program).startswith(status)
    assert echo.requests == []


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://h/a", Origin("http", "h", 80)),
        ("https://u:p@H:8443/", Origin("https", "h", 8443)),
        ("http://[::1]:1/", Origin("http", "::1", 1)),
        ("http://h:x/", None),
        ("http://h:99999/", None),
        ("/a", None),
        ("ftp://h/", None),
    ],
)
def test_the_server_of_a_url(url: str, origin: Origin | None) -> None:
    assert origin_of(url) == origin


def test_headers_for_the_proxy_are_not_sent_to_the_server() -> None:
    sent = [
        ("Host", "old"),
        ("Proxy-Connection", "keep-alive"),
        ("Connection", "Upgrade, HTTP2-Settings"),
        ("Upgrade", "h2c"),
        ("Accept-Encoding", "br, gzip;q=0.8"),
        ("X-Key", "theirs"),
        ("Cookie", "a=1"),
    ]
    entry = Entry(headers={"x-key": "ours"}, drop=frozenset({"cookie"}))
    assert outgoing_headers(sent, "new", entry) == [
        ("Host", "new"),
        ("Connection", "Upgrade"),
        ("Accept-Encoding", "gzip;q=0.8"),
        ("x-key", "ours"),
    ]
    assert outgoing_headers(sent[:1], None, Entry()) == [("Host", "old")]


def test_only_encodings_that_can_be_searched_are_accepted() -> None:
    assert readable_encodings("zstd, br;q=1.0, gzip, deflate;q=0") == "gzip, deflate;q=0"
    assert readable_encodings("br") == "identity"
