"""HTTP/1.1 of a mock's connection: valid requests, refusals, responses."""

from __future__ import annotations

import socket
import threading

import h11
import pytest

from ext_http.mock.http1 import InvalidRequest, RequestReader, ResponseWriter
from ext_http.mock.request import HEAD_BYTES, Limits
from ext_http.mock.response import Response, plain_response

Ends = tuple[socket.socket, socket.socket, h11.Connection]


@pytest.fixture
def ends() -> Ends:
    client, server = socket.socketpair()
    return client, server, h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)


def read(ends: Ends, data: bytes) -> object:
    client, server, state = ends
    with client, server:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        return RequestReader(server, state, Limits(body=5)).read()


def test_the_end_between_two_requests_is_not_a_request(ends: Ends) -> None:
    assert read(ends, b"") is None


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabcdef", 413),
        (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * HEAD_BYTES + b"\r\n\r\n", 431),
        (b"nothing\r\n\r\n", 400),
    ],
)
def test_an_invalid_request_has_the_status_of_its_refusal(ends: Ends, data: bytes, status: int) -> None:
    with pytest.raises(InvalidRequest) as refused:
        read(ends, data)
    assert refused.value.status == status


def test_a_response_to_head_has_a_length_and_no_body(ends: Ends) -> None:
    client, server, state = ends
    with client, server:
        client.sendall(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n")
        RequestReader(server, state, Limits()).read()
        assert ResponseWriter(server, state, threading.Event()).write(plain_response(200, "hello"), head=True)
        received = client.recv(10_000)
    assert b"Content-Length: 6\r\n" in received
    assert received.endswith(b"\r\n\r\n")


def test_a_header_with_a_line_feed_is_not_sent(ends: Ends) -> None:
    client, server, state = ends
    with client, server:
        client.sendall(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        RequestReader(server, state, Limits()).read()
        writer = ResponseWriter(server, state, threading.Event())
        with pytest.raises(h11.LocalProtocolError):
            writer.write(Response(200, [("X", "a\r\nY: b")], b""))
