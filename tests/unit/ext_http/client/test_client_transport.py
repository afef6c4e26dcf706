"""Bytes beyond the end of a response: the step that received them fails, and no other request gets them."""

from __future__ import annotations

import socket
import ssl
from queue import Queue
from typing import TYPE_CHECKING

import pytest
import trustme

from ext_http.client.network import Stream
from tests.support.raw_server import RawServer, sends

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.ext_http import Extension

HELLO = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
SMUGGLED = b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nSMUGGLE"
TOLD = "response: expected to end at its declared length\n  got 45 bytes more: "


def test_the_step_that_received_them_fails_and_the_next_one_gets_its_own_response(http: Extension) -> None:
    """The next request, even one of another task, was answered with SMUGGLE."""
    with RawServer(
        lambda connection, _: connection.sendall(HELLO + (SMUGGLED if server.connections == 1 else b""))
    ) as (server):
        first = http.failed("request", url=server.url)
        assert TOLD + '"HTTP/1.1 200 OK\\r\\nContent-Length: 7\\r\\n\\r\\nSMUGGLE"; the server declares' in first.error
        assert (first.outputs["status"], first.outputs["body"]) == ("200", "hello")
        assert http.get(server.url).outputs["body"] == "hello"
        assert server.connections == 2


@pytest.mark.parametrize(
    "response",
    [
        HELLO,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello",
        b"HTTP/1.1 100 Continue\r\n\r\n" + HELLO,
        b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + HELLO,
    ],
)
def test_each_way_to_frame_a_response_has_an_end(response: bytes, http: Extension) -> None:
    with RawServer(sends(response + SMUGGLED)) as server:
        for number in (1, 2):
            assert TOLD in http.failed("request", url=server.url).error
            assert server.connections == number
    with RawServer(sends(response)) as server:
        for _ in (1, 2):
            http.get(server.url)
        assert server.connections == (2 if b"close" in response else 1)


@pytest.mark.parametrize(
    ("method", "response"),
    [
        ("HEAD", HELLO),
        ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\nhello"),
    ],
)
def test_a_body_where_there_is_none_is_excess(method: str, response: bytes, http: Extension) -> None:
    with RawServer(sends(response)) as server:
        error = http.failed("request", url=server.url, method=method, expect={"status": "100-599"}).error
        assert "expected to end at its declared length" in error
        assert "hello" in error
        http.failed("request", url=server.url, method=method)
        assert server.connections == 2


def test_excess_that_comes_while_the_connection_is_idle_is_noticed_before_it_is_used_again(http: Extension) -> None:
    idle: Queue[socket.socket] = Queue()

    def talk(connection: socket.socket, head: bytes) -> None:
        connection.sendall(HELLO)
        idle.put(connection)

    with RawServer(talk) as server:
        assert http.get(server.url).outputs["body"] == "hello"
        idle.get(timeout=60).sendall(SMUGGLED)
        assert http.get(server.url).outputs["body"] == "hello"
        assert server.connections == 2


def test_excess_over_tls(http: Extension) -> None:
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert("127.0.0.1").configure_cert(context)
    with RawServer(sends(HELLO + SMUGGLED), context) as server:
        for number in (1, 2):
            error = http.failed("request", url=server.url, tls={"ca": ca.cert_pem.bytes().decode()}).error
            assert TOLD in error
            assert server.connections == number


def test_bytes_that_were_received_and_not_read_are_seen_and_left_where_they_are() -> None:
    """A long response may end where a read ends; what follows it is in the socket then, not in the parser."""
    here, there = socket.socketpair()
    with here, there:
        stream = Stream(here)
        assert stream.peek() == b""
        there.sendall(b"more")
        assert stream.peek() == b"more"
        assert stream.read(64) == b"more"
        there.close()
        assert stream.peek() == b""


def test_a_wait_and_a_download_fail_as_well(http: Extension) -> None:
    with RawServer(sends(HELLO + SMUGGLED)) as server:
        error = http.failed("wait", url=server.url, interval="10ms", timeout="500ms").error
        assert TOLD in error
        assert "body: hello" in error
        assert TOLD in http.failed("download", url=server.url, path="file").error
        assert not (http.workdir / "file").exists()


def test_a_redirect_with_excess_is_not_followed(http: Extension) -> None:
    redirect = b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n"
    with RawServer(sends(redirect + SMUGGLED)) as server:
        assert TOLD in http.failed("request", url=server.url, redirects=3).error
        assert len(server.heads) == 1


def test_secrets_in_the_excess_are_redacted(fresh: Callable[..., Extension]) -> None:
    http = fresh(env={"DB_PASSWORD": "swordfish-77"})
    with RawServer(sends(HELLO + b"x" * 50 + b" swordfish-77 ")) as server:
        result = http.failed("request", url=server.url)
        assert "[redacted:env.DB_PASSWORD#1]" in result.error
        assert "swordfish" not in repr(result)
