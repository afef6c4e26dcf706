"""What clients and task files may try with a mock."""

from __future__ import annotations

import base64
import http.client
import json
import re
import socket
import threading
from typing import TYPE_CHECKING

import h11
import pytest

import ext_sdk
from ext_http.mock.registry import Mocks
from ext_http.mock.request import HEAD_BYTES, Limits
from ext_http.mock.response import MockResponse, plain_response
from ext_http.mock.server import InvalidRequest, RequestReader, ResponseWriter
from tests.support.mocks import read_all, wait_for

if TYPE_CHECKING:
    from tests.support.mocks import MockMaker, Started


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
            writer.write(MockResponse(200, [("X", "a\r\nY: b")], b""))


ECHO = {"name": "echo", "answer": {"text": "${request.body}"}}
HEAD = b"POST / HTTP/1.1\r\nHost: a\r\n"
SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"


def calls(mock: Started) -> int:
    return int(mock.verify(calls=[{"atMost": 100_000}]).outputs["calls"])


@pytest.mark.parametrize(
    "request_",
    [
        HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
        HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 40\r\n\r\n0\r\n\r\n" + SMUGGLED,
        HEAD + b"Content-Length: 0\r\nContent-Length: 40\r\n\r\n" + SMUGGLED,
        HEAD + b"Content-Length: 0, 40\r\n\r\n" + SMUGGLED,
        HEAD + b"Content-Length: +0\r\n\r\n" + SMUGGLED,
        HEAD + b"Content-Length: 0x0\r\n\r\n" + SMUGGLED,
        HEAD + b"Content-Length: -1\r\n\r\n" + SMUGGLED,
        HEAD + b"Content-Length : 0\r\n\r\n" + SMUGGLED,
        HEAD + b"Transfer-Encoding: identity\r\n\r\n" + SMUGGLED,
        HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
        HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
        HEAD + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n\r\n" + SMUGGLED,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffffffff\r\n\r\n" + SMUGGLED,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n" + SMUGGLED,
        HEAD + b"X-A: b\x00c\r\n\r\n" + SMUGGLED,
        HEAD + b"X-A: b\rc\r\n\r\n" + SMUGGLED,
        HEAD + b"X A: b\r\n\r\n" + SMUGGLED,
        HEAD + b": b\r\n\r\n" + SMUGGLED,
        b"GET / HTTP/1.1\r\n\r\n" + SMUGGLED,
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + SMUGGLED,
        b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n" + SMUGGLED,
        b"GET /\x7f HTTP/1.1\r\nHost: a\r\n\r\n" + SMUGGLED,
        b"GET / HTTP/1.1 x\r\nHost: a\r\n\r\n" + SMUGGLED,
        b"GET / HTTP/9.9\r\nHost: a\r\n\r\n",
        b" GET / HTTP/1.1\r\nHost: a\r\n\r\n" + SMUGGLED,
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\xff\xfe\xfd\r\n\r\n",
        b"{}\r\n\r\n",
    ],
)
def test_what_two_readers_could_read_in_two_ways_is_refused_and_ends_the_connection(
    mocks: MockMaker, request_: bytes
) -> None:
    mock = mocks(ECHO)
    got = mock.raw(request_)
    assert got[:12] in {b"HTTP/1.1 400", b"HTTP/1.1 501", b"HTTP/1.1 505"}, got
    assert len(re.findall(rb"^HTTP/1.1 \d", got, re.MULTILINE)) == 1
    assert b"connection: close" in got.lower()
    assert calls(mock) == 0


def test_a_body_that_looks_like_a_request_is_a_body(mocks: MockMaker) -> None:
    mock = mocks(ECHO)
    end = b"GET /end HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    mock.raw(HEAD + b"Content-Length: %d\r\n\r\n" % len(SMUGGLED) + SMUGGLED + end)
    mock.raw(HEAD + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n" % len(SMUGGLED) + SMUGGLED + b"\r\n0\r\n\r\n" + end)
    assert mock.verify(
        calls=[{"path": "/", "exactly": 2}, {"path": "/smuggled", "never": True}, {"exactly": 4}]
    ).success


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\r\nHost: a\r\n" + b"X: a\r\n" * 20_000 + b"\r\n", 431),
        (b"a" * 100_000, 431),
        (HEAD + b"Content-Length: 1001\r\n\r\n", 413),
        (HEAD + b"Content-Length: 99999999999999999999\r\n\r\n", 413),
        (HEAD + b"Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n", 413),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3e9\r\n" + b"a" * 1001 + b"\r\n0\r\n\r\n", 413),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"1\r\na\r\n" * 1001 + b"0\r\n\r\n", 413),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"x" * 100_000, 431),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 20_000, 431),
    ],
)
def test_a_request_that_is_too_large_is_refused_before_all_of_it_is_read(
    mocks: MockMaker, request_: bytes, status: int
) -> None:
    mock = mocks(ECHO, limits={"body": 1000})
    assert mock.raw(request_).startswith(b"HTTP/1.1 %d " % status)
    assert mock.ask("/", "POST", "a" * 1000).text == "a" * 1000
    assert calls(mock) == 1


@pytest.mark.parametrize("begun", [b"G", b"GET / HTTP/1.1\r\nHost: a\r\nX", HEAD + b"Content-Length: 5\r\n\r\nabcd"])
def test_a_request_that_does_not_end_is_ended(mocks: MockMaker, begun: bytes) -> None:
    mock = mocks(ECHO, limits={"requestTime": "100ms"})
    with mock.socket() as one:
        one.sendall(begun)
        assert read_all(one).startswith(b"HTTP/1.1 408 ")
    assert mock.ask("/").status == 200


def test_many_who_send_nothing_keep_nobody_else_from_being_answered(mocks: MockMaker) -> None:
    mock = mocks(ECHO, limits={"connections": 3})
    last = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
    with mock.socket(), mock.socket() as second:
        assert b" 200 OK" in mock.raw(last)  # to the end of the connection, which counts no more then
        with mock.socket(), mock.socket() as fourth:
            assert read_all(fourth).startswith(b"HTTP/1.1 503 ")
        second.sendall(last)
        assert b" 200 OK" in read_all(second)
    assert "more than 3 connections at once" in mock.verify(calls=[{"exactly": 9}]).error


@pytest.mark.parametrize("path", ["../secret", "/etc/hostname", "link", "a/../../secret", "missing", "fifo", "."])
def test_no_file_out_of_the_workdir_becomes_an_answer(mocks: MockMaker, path: str) -> None:
    secret = mocks.workdir.parent / "secret"
    secret.write_text("secret")
    (mocks.workdir / "link").symlink_to(secret)
    with pytest.raises(ext_sdk.OperationFailed):
        mocks({"answer": {"file": path}})


def test_base64_that_is_none_is_refused_before_anything_listens(mocks: MockMaker) -> None:
    with pytest.raises(ext_sdk.InvalidArgs, match="expected base64"):
        mocks({"answer": {"base64": "a$b"}})
    assert mocks({"answer": {"base64": base64.encodebytes(b"x" * 100).decode()}}).ask("/").text == "x" * 100


def test_a_template_can_not_be_made_to_grow_without_end(mocks: MockMaker) -> None:
    mock = mocks(
        {"path": "/text", "answer": {"text": "${request.body}" * 40}},
        {"path": "/json", "answer": {"json": ["${request.json}"] * 40}},
        {"path": "/texts", "answer": {"json": ["${request.body}"] * 40}},
    )
    body = json.dumps("x" * 1_000_000)
    for path in ("/text", "/json", "/texts"):
        got = mock.ask(path, "POST", body)
        assert (got.status, len(got.body) < 500) == (500, True)
    assert "insert more than 16,777,216 characters" in mock.verify(calls=[{"path": "/text"}]).message


@pytest.mark.parametrize(
    "body", ["[" * 100_000, "[" * 900 + "]" * 900, '{"a": 1e999}', "\ufeff{}", "\x00", '"\N{GRINNING FACE}"']
)
def test_strange_bodies_are_an_answer_and_no_crash(mocks: MockMaker, body: str) -> None:
    mock = mocks(
        {"name": "deep", "body": {"jsonContains": {"a": [[[]]]}}, "answer": {}},
        {"name": "echo", "answer": {"json": {"it": "${request.json|none}", "raw": "${request.body}"}}},
    )
    got = mock.ask("/", "POST", body.encode())
    assert got.status in {200, 500}
    if got.status == 200:
        assert json.loads(got.body)["raw"] == body
    assert mock.ask("/", "POST", "1").status == 200


def test_what_a_request_brings_in_is_never_a_template_and_never_a_header(mocks: MockMaker) -> None:
    mock = mocks({"path": "/a", "answer": {"headers": {"X-Echo": "${request.query.q}"}, "text": "${request.query.q}"}})
    assert mock.ask("/a?q=${request.path.x}$$(").text == "${request.path.x}$$("
    got = mock.ask("/a?q=1%0d%0aSet-Cookie:%20a=1%0d%0a%0d%0abody")
    assert got.status == 500
    assert "set-cookie" not in got.headers
    assert mock.ask("/a?q=stra%C3%9Fe").text == "straße"


def test_a_pattern_without_end_is_a_miss_and_the_mock_goes_on(mocks: MockMaker) -> None:
    mock = mocks({"name": "evil", "pathMatches": "^/(a+)+$", "answer": {}}, {"path": "/b", "answer": {}})
    assert mock.ask("/" + "a" * 40 + "b").status == 404
    assert "took longer than" in mock.verify(unmatched=0).error
    assert mock.ask("/b").status == 200


def test_stopping_does_not_wait_for_a_pattern_without_end_and_leaves_no_process(mocks: MockMaker) -> None:
    mock = mocks({"name": "evil", "pathMatches": "^/(a+)+$", "answer": {}})
    held = mocks.context.state(Mocks).get("mock")
    assert held is not None
    searcher = held.router._searcher
    with mock.socket() as one:
        one.sendall(b"GET /%b HTTP/1.1\r\nHost: a\r\n\r\n" % (b"a" * 40 + b"b"))
        child = wait_for(lambda: searcher._child)
        mock.stop()
        read_all(one)
    assert child.wait(20) != 0
    assert wait_for(lambda: searcher._child is None)


def test_a_schema_that_can_not_be_used_is_told_where_it_is_asked(mocks: MockMaker) -> None:
    mock = mocks({"name": "s", "body": {"jsonSchema": {"type": "objct"}}, "answer": {}})
    assert mock.ask("/", "POST", "{}").status == 500
    assert "jsonSchema: the schema can't be used" in mock.verify(calls=[{"exactly": 1}]).message
    assert "jsonSchema: the schema can't be used" in mock.verify(calls=[{"route": "s"}]).error


def test_a_client_that_goes_away_at_any_moment_harms_nobody(mocks: MockMaker) -> None:
    mock = mocks({"path": "/big", "answer": {"text": "x" * 5_000_000}}, {"path": "/ok", "answer": {"text": "ok"}})
    for data in (b"", b"GET", b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n", HEAD + b"Content-Length: 9\r\n\r\nab"):
        with mock.socket() as one:
            one.sendall(data)
    assert mock.ask("/ok").text == "ok"


def test_more_calls_than_are_kept_are_counted_and_said(mocks: MockMaker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ext_http.mock.request.MAX_BODIES", 10)
    mock = mocks(ECHO, limits={"calls": 3})
    for body in ("12345678", "123", "1", "2"):
        mock.ask("/", "POST", body)
    result = mock.verify(calls=[{"body": "123"}])
    assert "journal: expected to be complete\n  got 4 calls, of which the first 3 were kept" in result.error
    assert "raise `limits.calls` of mock-start, or verify and restart the mock after fewer calls" in result.error
    assert "expected to be read completely" in result.error
    assert result.outputs["calls"] == "4"


def test_a_mock_that_is_asked_by_http_client_again_and_again_keeps_its_connection(mocks: MockMaker) -> None:
    mock = mocks(ECHO)
    connection = http.client.HTTPConnection("127.0.0.1", mock.port, timeout=20)
    ports = set()
    for number in range(20):
        connection.request("POST", "/", str(number))
        ports.add(connection.sock.getsockname()[1])
        assert connection.getresponse().read() == str(number).encode()
    connection.close()
    assert len(ports) == 1
