"""The wire, whatever the bytes: any chunking gives the same events, no byte is lost, only WireError comes out."""

from __future__ import annotations

from contextlib import suppress
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_sdk.core.wire.connection import Connection
from ext_sdk.core.wire.errors import MessageError, RpcError, WireError
from ext_sdk.core.wire.frames import Frame, Junk
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads, scan
from ext_sdk.core.wire.jsonrpc import ErrorResponse, Message, Notification, Request, Response, encode, parse

if TYPE_CHECKING:
    from ext_sdk.core.wire.errors import Id

framings = st.sampled_from(sorted(FRAMINGS))
limits = st.sampled_from([None, 0, 1, 4, 20])

# Bytes that mean something to a framing, beside any others.
PIECES = [
    b"\n",
    b"\r\n",
    b"\r",
    b" ",
    b"{}",
    b"{}\n",
    b"Content-Length: 2\r\n\r\n{}",
    b"content-length:1\n",
    b"Content-Length: 99\r\n\r\n",
    b"Content-Length: x\r\n",
    b"X-Header: y\r\n",
    b": ",
    b"\0\0\0\2",
    b"\0\0\0\0",
    b"\0\0\0\2ab",
    b"\0\xff\xff\xff",
]
streams = st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=8)), max_size=12).map(b"".join)
cuts = st.lists(st.integers(0, 200), max_size=8)


def chunked(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({0, len(data), *(place for place in at if place < len(data))})
    return [data[start:end] for start, end in pairwise(places)]


def events(framing: str, limit: int | None, chunks: list[bytes]) -> list[Frame | Junk]:
    decoder = FRAMINGS[framing].decoder(limit)
    found = []
    for chunk in chunks:
        decoder.receive_data(chunk)
        while event := decoder.next_event():
            found.append(event)
    decoder.receive_eof()
    while event := decoder.next_event():
        found.append(event)
    return found


@given(framings, limits, streams, cuts)
def test_events_do_not_depend_on_the_chunks(framing: str, limit: int | None, data: bytes, at: list[int]) -> None:
    assert events(framing, limit, chunked(data, at)) == events(framing, limit, [data])


@given(framings, limits, streams, cuts)
def test_the_bytes_of_all_events_are_the_bytes_received(
    framing: str, limit: int | None, data: bytes, at: list[int]
) -> None:
    assert b"".join(event.wire for event in events(framing, limit, chunked(data, at))) == data


@given(framings, limits, streams)
def test_no_payload_is_over_the_limit(framing: str, limit: int | None, data: bytes) -> None:
    frames = [event for event in events(framing, limit, [data]) if isinstance(event, Frame)]
    assert all(limit is None or len(frame.payload) <= limit for frame in frames)


@given(framings, st.lists(st.binary(max_size=40), max_size=5))
def test_what_is_encoded_is_decoded(framing: str, payloads: list[bytes]) -> None:
    sent = []
    for payload in payloads:
        try:
            sent.append((payload, FRAMINGS[framing].encode(payload)))
        except ValueError:
            assert framing != "content-length"
    wire = b"".join(frame for _, frame in sent)
    found = [(event.payload, event.wire) for event in events(framing, None, [wire]) if isinstance(event, Frame)]
    assert found == sent


# --- JSON and messages ---

# A pair of surrogates is one character in JSON; in Python it can be two, which are not the same text.
texts = st.text(st.characters(codec="utf-8") | st.just("\ud800"), max_size=20)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**400), 10**400)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=12,
)
ids = st.none() | texts | numbers
errors = st.builds(RpcError, st.integers(-40000, 1000), texts, values)
params = st.none() | st.lists(values, max_size=3) | st.dictionaries(texts, values, max_size=3)
messages = st.one_of(
    st.builds(Request, ids, texts, params),
    st.builds(Notification, texts, params),
    st.builds(Response, ids, values),
    st.builds(ErrorResponse, ids, errors),
)

# Texts that are nearly messages.
WORDS = [
    '{"jsonrpc":"2.0"',
    ',"id":',
    ',"method":"m"',
    ',"params":',
    ',"result":',
    ',"error":',
    "null",
    "1",
    '"x"',
    "}",
]
WORDS += [
    "{",
    "[",
    "]",
    "1e999",
    "NaN",
    '"\\ud800"',
    '"\\u00"',
    ",",
    ":",
    " ",
    "\n",
    "9" * 5000,
    '{"code":1,"message":""}',
]
nearly = st.lists(st.sampled_from(WORDS) | st.text(max_size=3), max_size=12).map("".join)
payloads = nearly.map(lambda text: text.encode("utf-8", "surrogatepass")) | st.binary(max_size=60)


@given(messages)
def test_a_message_is_read_as_it_was_written(message: Message) -> None:
    payload = encode(message)
    assert b"\n" not in payload
    assert parse(payload) == message


@given(ids)
def test_an_id_keeps_its_type(id: Id) -> None:
    read = parse(encode(Response(id, None)))
    assert isinstance(read, Response)
    assert (type(read.id), read.id) == (type(id), id)


@given(st.lists(messages, min_size=1, max_size=4))
def test_a_batch_is_its_messages(sent: list[Message]) -> None:
    assert parse(b"[" + b" , ".join(map(encode, sent)) + b"]", batches=True) == sent


@given(st.lists(nearly, max_size=4), st.booleans())
def test_a_batch_of_anything_raises_nothing_else(elements: list[str], batches: bool) -> None:
    text = "[" + ",".join(elements) + "]"
    try:
        found = parse(text.encode("utf-8", "surrogatepass"), batches=batches)
    except MessageError:
        return
    assert batches
    assert isinstance(found, list)


@given(payloads, st.booleans())
def test_arbitrary_payloads_raise_nothing_but_our_error(payload: bytes, batches: bool) -> None:
    refused: list[MessageError] = []
    try:
        parse(payload, batches=batches)
    except MessageError as error:
        refused.append(error)
    assert all(error.code in (-32700, -32600) and str(error) for error in refused)


@pytest.mark.parametrize("inner", ["[", '{"a":', '[{"a":'])
@given(depth=st.integers(1, 1500), batches=st.booleans())
def test_nesting_of_any_depth_raises_nothing_but_our_error(inner: str, depth: int, batches: bool) -> None:
    text = (
        inner * depth + "1" + "".join("]" if sign == "[" else "}" for sign in reversed(inner) if sign in "[{") * depth
    )
    for payload in (text, f'{{"jsonrpc":"2.0","method":"m","params":{text}}}'):
        with suppress(MessageError):
            parse(payload.encode(), batches=batches)


@given(framings, streams, cuts)
def test_a_connection_raises_nothing_whatever_is_received(framing: str, data: bytes, at: list[int]) -> None:
    connection = Connection(FRAMINGS[framing], batches=True)
    for chunk in chunked(data, at):
        connection.receive_data(chunk)
        while connection.next_event():
            pass
    connection.receive_eof()
    while connection.next_event():
        pass
    assert connection.next_event() is None


@given(st.lists(nearly | st.builds(lambda message: encode(message).decode(), messages), max_size=6))
def test_a_connection_gives_one_event_a_line_at_least(lines: list[str]) -> None:
    connection = Connection(FRAMINGS["ndjson"])
    data = "\n".join(lines).encode("utf-8", "surrogatepass") + b"\n"
    connection.receive_data(data)
    count = 0
    while connection.next_event():
        count += 1
    assert count == data.count(b"\n")


@given(values)
def test_a_value_is_read_as_it_was_written(value: object) -> None:
    assert loads(dumps(value)) == value


@given(st.dictionaries(texts, values, max_size=5), st.sampled_from(["", " ", "\n\t", "\r\n"]))
def test_scan_tells_where_each_value_is_spelled(members: dict[str, object], space: str) -> None:
    pairs = [f"{space}{dumps(name)}{space}:{space}{dumps(value)}{space}" for name, value in members.items()]
    envelope = scan(space + "{" + ",".join(pairs) + (space if not pairs else "") + "}" + space)
    assert {name: member.value for name, member in envelope.members.items()} == members
    assert {name: envelope.member_text(name) for name in members} == {
        name: dumps(value) for name, value in members.items()
    }
    assert envelope.duplicates == ()


@given(payloads)
def test_scan_raises_nothing_but_our_error(payload: bytes) -> None:
    try:
        envelope = scan(payload.decode("utf-8", "replace"))
    except WireError:
        return
    for name, member in envelope.members.items():
        assert loads(envelope.text[member.start : member.end]) == member.value, name
