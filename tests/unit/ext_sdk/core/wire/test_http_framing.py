"""HTTP/1.1 as a framing: exact bytes, whatever the chunks they come in."""

from __future__ import annotations

from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_sdk.core.wire.frames import Frame, Junk, Overlong
from ext_sdk.core.wire.framing import FRAMINGS

HTTP = FRAMINGS["http"]
POST = b'POST /mcp?x=1 HTTP/1.1\r\nHost: a\r\ncontent-length: 7\r\n\r\n{"a":1}'
GET = b"GET / HTTP/1.0\r\n\r\n"
CHUNKED = b"PUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n"
PLAIN = b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno"
EMPTY = b"HTTP/1.1 204 \r\n\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
EVENTS = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"9\r\ndata: 1\n\n\r\n5\r\ndata:\r\n4\r\n 2\n\n\r\n0\r\n\r\n"
)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"
BYTES = st.binary(max_size=30)


def decoded(wire: bytes, step: int, methods: tuple[str, ...] = (), limit: int | None = None) -> list[Frame | Junk]:
    decoder = HTTP.decoder(limit)
    decoder.methods = deque(methods)  # type: ignore[attr-defined]
    items = []
    for start in range(0, len(wire), step):
        decoder.receive_data(wire[start : start + step])
        while item := decoder.next_event():
            items.append(item)
    decoder.receive_eof()
    while item := decoder.next_event():
        items.append(item)
    return items


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        (POST, [(b'POST /mcp?x=1 {"a":1}', ("HTTP/1.1", "Host: a", "content-length: 7"))]),
        (GET, [(b"GET /", ("HTTP/1.0",))]),
        (CHUNKED, [(b"PUT /c abc0123456789", ("HTTP/1.1", "Transfer-Encoding: chunked", "chunks 3 A"))]),
        (PLAIN, [(b"404 no", ("HTTP/1.1 Not Found", "Content-Length: 2"))]),
        (EMPTY, [(b"204", ("HTTP/1.1 ",))]),
        (CONTINUE, [(b"100", ("HTTP/1.1 Continue",))]),
        (
            EVENTS,
            [
                (b"200", ("HTTP/1.1 OK", "Content-Type: text/event-stream", "Transfer-Encoding: chunked")),
                (b"data: 1\n\n", ("chunk",)),
                (b"data: 2\n\n", ("chunks 5 4",)),
                (b"", ("chunk",)),
            ],
        ),
    ],
)
def test_a_message_is_what_a_person_would_call_it(wire: bytes, expected: list[tuple[bytes, tuple[str, ...]]]) -> None:
    for step in (1, 5, len(wire)):
        found = decoded(wire, step, ("GET",))
        assert [(item.payload, item.head) for item in found if isinstance(item, Frame)] == expected
        assert b"".join(HTTP.encode(payload, head) for payload, head in expected) == wire


@given(
    st.lists(st.sampled_from([POST, GET, CHUNKED]), max_size=5)
    | st.lists(st.sampled_from([PLAIN, EMPTY, CONTINUE, EVENTS]), max_size=5),
    st.integers(1, 60),
)
def test_messages_one_after_another_are_found_whatever_the_chunks(messages: list[bytes], step: int) -> None:
    found = decoded(b"".join(messages), step, ("GET",) * 5)

    assert all(isinstance(item, Frame) for item in found)
    assert b"".join(HTTP.encode(item.payload, item.head) for item in found if isinstance(item, Frame)) == b"".join(
        messages
    )


@given(st.lists(BYTES | st.sampled_from([POST, CHUNKED, PLAIN, EVENTS, HEAD, b"\r\n", b"5\r\n"])), st.integers(1, 60))
def test_no_byte_is_lost(parts: list[bytes], step: int) -> None:
    wire = b"".join(parts)
    assert b"".join(item.wire for item in decoded(wire, step)) == wire


def test_the_response_to_head_has_no_body() -> None:
    first, second = decoded(HEAD + PLAIN, 7, ("HEAD", "GET"))
    assert isinstance(first, Frame)
    assert isinstance(second, Frame)
    assert first.payload == b"200"
    assert HTTP.encode(first.payload, first.head) == HEAD
    assert second.wire == PLAIN


@pytest.mark.parametrize(
    "wire",
    [
        b"\x16\x03\x01\x02\x00\x01",
        b'{"jsonrpc":"2.0","id":1,"method":"m"}\n',
        b"GET / HTTP/2\r\n\r\n",
        b"GET / HTTP/1.1\r\nno field\r\n\r\n",
        b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_not_http_is_junk(wire: bytes) -> None:
    assert not any(isinstance(item, Frame) for item in decoded(wire + b"more" * 100, 9))


def test_bytes_after_an_upgrade_and_bodies_without_a_length_are_junk() -> None:
    for head in (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", b"HTTP/1.0 200 OK\r\n\r\n"):
        first, *rest = decoded(head + PLAIN, 1000, ("GET",))
        assert isinstance(first, Frame)
        assert first.wire == head
        assert b"".join(item.wire for item in rest) == PLAIN
        assert not any(isinstance(item, Frame) for item in rest)


def test_a_body_over_the_limit_is_overlong() -> None:
    wire = HTTP.encode(b"POST /x " + b"y" * 1000, ("HTTP/1.1", "Content-Length: 0"))
    found = decoded(wire + GET, 100, limit=100)
    assert sum(isinstance(item, Overlong) and item.ends for item in found) == 1
    assert isinstance(found[-1], Frame)


def test_a_message_without_a_head_gets_a_length() -> None:
    assert HTTP.encode(b'499 {"error":"x"}') == (
        b'HTTP/1.1 499 \r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{"error":"x"}'
    )
    assert HTTP.encode(b"204") == b"HTTP/1.1 204 \r\nContent-Length: 0\r\n\r\n"
    assert HTTP.encode(b"GET /x") == b"GET /x HTTP/1.1\r\n\r\n"


def test_a_length_and_chunks_follow_a_body_that_was_changed() -> None:
    assert HTTP.encode(b"PUT /c ab", ("HTTP/1.1", "Content-Length: 99")).endswith(b"Content-Length: 2\r\n\r\nab")
    assert HTTP.encode(b"PUT /c ab", ("HTTP/1.1", "Transfer-Encoding: chunked", "chunks 3 A")).endswith(
        b"chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n"
    )


@pytest.mark.parametrize("payload", [b"", b"get /x", b"{}", b"POST"])
def test_what_is_not_a_message_is_not_encoded(payload: bytes) -> None:
    with pytest.raises(ValueError, match="neither"):
        HTTP.encode(payload, ("HTTP/1.1",))
