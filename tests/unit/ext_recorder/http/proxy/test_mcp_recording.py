"""Bodies and streams of MCP over HTTP, in pieces of any size."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.errors import UsageError
from ext_recorder.http.proxy.mcp_recording import (
    Endpoint,
    EventStream,
    cassette_of,
    endpoint_of,
    failure_of,
    messages_in,
)

STREAM = (
    b": a comment\r\n\r\nid: 1\r\nretry: 5\r\ndata:\r\n\r\n"
    b'event: message\rid: 2\rdata: {"a":\rdata:  1}\r\r'
    b"data: caf\xc3\xa9\n\nevent: endpoint\ndata: /messages\n\ndata: without its end"
)


@given(st.lists(st.integers(1, len(STREAM) - 1), unique=True))
def test_a_stream_has_the_same_events_in_any_pieces(cuts: list[int]) -> None:
    places = [0, *sorted(cuts), len(STREAM)]
    parser = EventStream()
    pieces = (STREAM[start:end] for start, end in pairwise(places))
    events = [event for piece in pieces for event in parser.receive(piece)]

    assert [(event.name, event.id, event.data) for event in events] == [
        ("message", "1", b""),
        ("message", "2", b'{"a":\n 1}'),
        ("message", "", "café".encode()),
        ("endpoint", "", b"/messages"),
    ]


@given(st.binary())
def test_any_bytes_are_a_stream_and_a_body(data: bytes) -> None:
    list(EventStream().receive(data))
    messages_in(data)


def test_a_message_is_one_line_and_keeps_its_text() -> None:
    body = '{\r\n  "jsonrpc": "2.0",\n\t"id": 1.0,\n  "method": "a\u2028 b\x7f",\n "params": {"x": 1e2}\n}\n'.encode()

    [message] = messages_in(body)

    assert message.text == '{"jsonrpc": "2.0","id": 1.0,"method": "a\\u2028 b\\u007f","params": {"x": 1e2}}'
    assert json.loads(message.text) == json.loads(body)


def test_a_batch_is_several_messages() -> None:
    batch = [{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "note", "params": {}}]

    assert [message.kind for message in messages_in(json.dumps(batch).encode())] == ["request", "notification"]


@pytest.mark.parametrize("body", [b"", b"{}", b"[]", b"[1]", b'{"id": 1, "method": "ping"}', b"\xff", b'{"jsonrpc"'])
def test_a_body_without_json_rpc_has_no_messages(body: bytes) -> None:
    assert messages_in(body) == []


def test_a_failure_is_the_error_in_its_body_or_its_text() -> None:
    error = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"gone"}}'

    assert failure_of(404, "Not Found", error) == '{"code":-32001,"message":"gone"}'
    assert failure_of(404, "Not Found", b"") == '{"code":-32000,"message":"HTTP 404: Not Found"}'
    assert failure_of(500, "x", b"out of\nmemory") == '{"code":-32000,"message":"HTTP 500: out of memory"}'


def test_the_address_of_an_endpoint_has_no_query() -> None:
    assert endpoint_of("https://host/mcp?key=secret#a") == "https://host/mcp"
    assert Endpoint.parse("https://host/mcp", "--connect").url == "https://host/mcp"
    assert Endpoint.parse("http://[::1]:0", "--listen").url == "http://[::1]:0/"


@pytest.mark.parametrize("url", ["ftp://host/", "http://", "http://host:99999/", "http://user:pw@host/", "http://h/#a"])
def test_an_address_that_is_no_endpoint_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="expected the URL of an MCP endpoint"):
        Endpoint.parse(url, "--connect")


def test_each_session_has_a_cassette() -> None:
    assert [cassette_of("a/mcp.yaml", number) for number in (1, 2)] == ["a/mcp.yaml", "a/mcp-2.yaml"]
