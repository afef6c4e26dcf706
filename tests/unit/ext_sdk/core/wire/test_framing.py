"""One table through every framing: fed whole, byte by byte, and with more bytes behind it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ext_sdk.core.wire.errors import FrameTooLong
from ext_sdk.core.wire.frames import HEAD_LIMIT_BYTES, JUNK_PIECE_BYTES, Frame, Junk
from ext_sdk.core.wire.framing import FRAMINGS, UINT32_LIMIT_BYTES

Event = Frame | Junk

PIECE = JUNK_PIECE_BYTES
LIMIT = 10  # bytes, for the rows about limits


def line(payload: bytes) -> Frame:
    return Frame(payload, payload + b"\n")


def with_header(payload: bytes, *head: str, end: bytes = b"\r\n") -> Frame:
    lines = head or (f"Content-Length: {len(payload)}",)
    return Frame(payload, end.join([*(text.encode("latin-1") for text in lines), b"", b""]) + payload, lines)


def with_length(payload: bytes) -> Frame:
    return Frame(payload, len(payload).to_bytes(4, "big") + payload)


def over_line(wire: bytes) -> Junk:
    return Junk(wire, f"part of a line over {LIMIT} bytes")


def over_body(wire: bytes) -> Junk:
    return Junk(wire, f"part of a body over {LIMIT} bytes")


def no_length(spelled: bytes) -> list[Event]:
    reason = f"Content-Length {spelled.decode('latin-1')!r} is not a length"
    return [Junk(b"Content-Length: %b\r\n" % spelled, reason), Junk(b"\r\n", "blank line"), with_header(b"{}")]


def lost(length: int, limit: int, wire: bytes) -> Junk:
    return Junk(wire, f"a frame length of {length} bytes, over the limit of {limit}: no frame can be found after it")


# (framing, limit, what is in the bytes): the events, in order, have to be exactly these.
WITHOUT_TAIL: list[tuple[str, int | None, list[Event]]] = [
    ("ndjson", None, []),
    ("ndjson", None, [line(b"{}")]),
    ("ndjson", None, [line(b"{}"), line(b'{"a":1}'), line(b"[]")]),
    ("ndjson", None, [line(b"not JSON, and not a framing's business")]),
    ("ndjson", None, [line(b"{}\r")]),
    ("ndjson", None, [line(b" {} "), line(b"\x00"), line(b"\xff\xfe"), line("ä\u2028ö".encode())]),
    ("ndjson", None, [line(b"\rlone carriage return")]),
    ("ndjson", None, [Junk(b"\n", "blank line"), line(b"{}"), Junk(b"\r\n", "blank line")]),
    ("ndjson", None, [Junk(b" \t \n", "blank line"), Junk(b"\n", "blank line")]),
    ("ndjson", LIMIT, [line(b"x" * LIMIT), over_line(b"x" * (LIMIT + 1) + b"\n"), line(b"{}")]),
    ("ndjson", LIMIT, [over_line(b" " * (LIMIT + 1) + b"\n"), Junk(b"\n", "blank line")]),
    ("ndjson", LIMIT, [over_line(b"x" * (PIECE - 1) + b"\n"), line(b"{}")]),
    ("ndjson", LIMIT, [over_line(b"x" * PIECE), over_line(b"\n"), line(b"{}")]),
    ("ndjson", LIMIT, [over_line(b"x" * PIECE), over_line(b"x" * PIECE), over_line(b"xyz\n"), line(b"{}")]),
    ("content-length", None, []),
    ("content-length", None, [with_header(b"{}")]),
    ("content-length", None, [with_header(b"{}"), with_header(b"a\nb\n\n"), with_header(b"")]),
    ("content-length", None, [with_header(b"{}", end=b"\n"), with_header(b"{}")]),
    ("content-length", None, [with_header(b"{}", "content-length:2", "Content-Type: a/b; charset=utf-8")]),
    ("content-length", None, [with_header(b"{}", "X-Nothing:", "CONTENT-LENGTH: \t 2 ")]),
    ("content-length", None, [with_header(b"{}", "Name: caf\xe9", "Content-Length: 0002")]),
    ("content-length", None, [Junk(b"starting up\n", "text between frames"), with_header(b"{}")]),
    ("content-length", None, [with_header(b"{}"), Junk(b"\r\n", "blank line"), Junk(b"\n", "blank line")]),
    ("content-length", None, [Junk(b": no name\n", "text between frames"), with_header(b"{}")]),
    ("content-length", None, [Junk(b"two words: no header\n", "text between frames"), with_header(b"{}")]),
    (
        "content-length",
        None,
        [Junk(b"INFO: looks like a header\n\n", "a header block without Content-Length"), with_header(b"{}")],
    ),
    (
        "content-length",
        None,
        [Junk(b"Content-Length: 3\r\nno header\r\n", "a header block without Content-Length"), with_header(b"{}")],
    ),
    *(("content-length", None, no_length(text)) for text in (b"-1", b"1.5", b"0x2", b"2 2", b"\xb2", b"9" * 19)),
    (
        "content-length",
        LIMIT,
        [
            with_header(b"x" * LIMIT),
            Junk(b"Content-Length: 25\r\n\r\n", f"the header of 25 bytes, over the limit of {LIMIT}"),
            over_body(b"Content-Length: 2\r\n\r\n{}ab"),  # a frame in a refused body is none
            with_header(b"{}"),
        ],
    ),
    (
        "content-length",
        LIMIT,
        [
            Junk(
                b"Content-Length: %d\n\n" % (PIECE + 3), f"the header of {PIECE + 3} bytes, over the limit of {LIMIT}"
            ),
            over_body(b"x" * PIECE),
            over_body(b"xyz"),
            with_header(b"{}"),
        ],
    ),
    (
        "content-length",
        None,
        [Junk(b"x" * HEAD_LIMIT_BYTES, "no header line"), Junk(b"rest\n", "text between frames"), with_header(b"{}")],
    ),
    ("uint32", None, []),
    ("uint32", None, [with_length(b"{}"), with_length(b"\n"), with_length(b"\x00\x00\x00\x02")]),
    ("uint32", None, [Junk(b"\0\0\0\0", "a frame of length zero"), with_length(b"{}")]),
    ("uint32", LIMIT, [with_length(b"x" * LIMIT)]),
]

# What is left when the bytes end is one piece more.
WITH_TAIL: list[tuple[str, int | None, list[Event]]] = [
    ("ndjson", None, [Junk(b"{}", "unterminated line")]),
    ("ndjson", None, [line(b"{}"), Junk(b" ", "unterminated line")]),
    ("ndjson", LIMIT, [over_line(b"x" * (LIMIT + 1))]),
    ("ndjson", LIMIT, [over_line(b"x" * PIECE)]),
    ("ndjson", LIMIT, [over_line(b"x" * PIECE), over_line(b"x")]),
    ("content-length", None, [Junk(b"C", "unterminated header")]),
    ("content-length", None, [with_header(b"{}"), Junk(b"Content-Length: 2\r\n", "unterminated header")]),
    ("content-length", None, [Junk(b"Content-Length: 3\r\n\r\n{}", "unterminated body")]),
    (
        "content-length",
        LIMIT,
        [
            Junk(b"Content-Length: 11\r\n\r\n", f"the header of 11 bytes, over the limit of {LIMIT}"),
            Junk(b"0123456789", "unterminated body"),
        ],
    ),
    ("uint32", None, [Junk(b"\0\0\0", "unterminated length")]),
    ("uint32", None, [with_length(b"{}"), Junk(b"\0\0\0\3{}", "unterminated frame")]),
    ("uint32", LIMIT, [with_length(b"{}"), lost(11, LIMIT, b"\0\0\0\x0b"), lost(11, LIMIT, b"xy")]),
    ("uint32", LIMIT, [lost(0x7B7D7B7D, LIMIT, b"{}{}")]),
    (
        "uint32",
        LIMIT,
        [lost(11, LIMIT, b"\0\0\0\x0b"), lost(11, LIMIT, b"x" * PIECE), lost(11, LIMIT, b"\0\0\0\2{}")],
    ),
    ("uint32", None, [lost(UINT32_LIMIT_BYTES + 1, UINT32_LIMIT_BYTES, (UINT32_LIMIT_BYTES + 1).to_bytes(4, "big"))]),
]

ROWS = WITHOUT_TAIL + WITH_TAIL


def events(framing: str, limit: int | None, chunks: list[bytes], *, eof: bool = True) -> list[Event]:
    """All that comes out, asked for after every chunk, and again after the end."""
    decoder = FRAMINGS[framing].decoder(limit)
    found: list[Event] = []
    for chunk in chunks:
        decoder.receive_data(chunk)
        while event := decoder.next_event():
            found.append(event)
    if eof:
        decoder.receive_eof()
        while event := decoder.next_event():
            found.append(event)
    return found


def joined(expected: list[Event]) -> bytes:
    return b"".join(event.wire for event in expected)


@pytest.mark.parametrize(("framing", "limit", "expected"), ROWS)
def test_bytes_received_at_once_are_these_events(framing: str, limit: int | None, expected: list[Event]) -> None:
    assert events(framing, limit, [joined(expected)]) == expected


@pytest.mark.parametrize(("framing", "limit", "expected"), ROWS)
def test_bytes_received_one_by_one_are_the_same_events(framing: str, limit: int | None, expected: list[Event]) -> None:
    assert events(framing, limit, [bytes([byte]) for byte in joined(expected)]) == expected


@pytest.mark.parametrize(("framing", "limit", "expected"), ROWS)
def test_bytes_are_a_lone_frame_only_where_they_are_one_event_by_themselves(
    framing: str, limit: int | None, expected: list[Event]
) -> None:
    decoder = FRAMINGS[framing].decoder(limit)
    for event in expected:
        payload = decoder.lone(event.wire)
        if payload is None:
            decoder.receive_data(event.wire)
            while decoder.next_event():
                pass
        else:
            assert event == Frame(payload, event.wire)
            assert events(framing, limit, [event.wire]) == [event]


@pytest.mark.parametrize(("framing", "limit", "expected"), ROWS)
def test_lines_that_are_taken_at_once_are_the_same_events(
    framing: str, limit: int | None, expected: list[Event]
) -> None:
    decoder = FRAMINGS[framing].decoder(limit)
    decoder.receive_data(joined(expected))
    taken: list[Event] = [Frame(line, line + b"\n") for line in decoder.take_lines()]
    decoder.receive_eof()
    while event := decoder.next_event():
        taken.append(event)
    assert taken == expected


def test_all_complete_lines_are_taken_at_once_unless_one_is_blank() -> None:
    decoder = FRAMINGS["ndjson"].decoder(10)
    decoder.receive_data(b"1\n2")
    assert decoder.take_lines() == [b"1"]
    assert decoder.take_lines() == []
    decoder.receive_data(b"3\n4\n")
    assert decoder.take_lines() == [b"23", b"4"]
    decoder.receive_data(b"5\n \n6\n")
    assert decoder.take_lines() == []
    assert [event.wire for event in (decoder.next_event(), decoder.next_event()) if event] == [b"5\n", b" \n"]
    assert decoder.take_lines() == [b"6"]


@pytest.mark.parametrize("before", [b"", b"1\n", b"1\n2\n"])
def test_a_line_is_a_lone_frame_where_nothing_is_stored(before: bytes) -> None:
    decoder = FRAMINGS["ndjson"].decoder()
    decoder.receive_data(before)
    while decoder.next_event():
        pass

    assert decoder.lone(b"{}\n") == b"{}"
    for several in (b"{}\n{}\n", b"{}", b"", b"\n", b" \n", b"{}\n{"):
        assert decoder.lone(several) is None
    decoder.receive_data(b"{")
    assert decoder.lone(b"}\n") is None


@pytest.mark.parametrize(("framing", "limit", "expected"), WITHOUT_TAIL)
def test_bytes_behind_it_change_nothing(framing: str, limit: int | None, expected: list[Event]) -> None:
    first_byte = FRAMINGS[framing].encode(b"{}")[:1]
    found = events(framing, limit, [joined(expected) + first_byte], eof=False)
    assert found == expected


@pytest.mark.parametrize("framing", FRAMINGS)
def test_nothing_comes_out_before_something_came_in(framing: str) -> None:
    decoder = FRAMINGS[framing].decoder()
    assert decoder.next_event() is None
    decoder.receive_data(b"")
    assert decoder.next_event() is None
    decoder.receive_eof()
    assert decoder.next_event() is None


@pytest.mark.parametrize("framing", FRAMINGS)
def test_a_frame_is_handed_over_while_the_next_one_is_incomplete(framing: str) -> None:
    wire = FRAMINGS[framing].encode(b"{}")
    decoder = FRAMINGS[framing].decoder()
    decoder.receive_data(wire + wire[:-1])
    assert decoder.next_event() == Frame(b"{}", wire, head_of(framing, b"{}"))
    assert decoder.next_event() is None


@pytest.mark.parametrize("framing", FRAMINGS)
@pytest.mark.parametrize("payload", [b"{}", b"x", b'{"a":"\\n"}', bytes(range(11, 256)), b"x" * 100_000])
def test_an_encoded_frame_is_decoded_to_its_payload(framing: str, payload: bytes) -> None:
    wire = FRAMINGS[framing].encode(payload)
    assert events(framing, None, [wire]) == [Frame(payload, wire, head_of(framing, payload))]


def head_of(framing: str, payload: bytes) -> tuple[str, ...]:
    return (f"Content-Length: {len(payload)}",) if framing == "content-length" else ()


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ((), b"Content-Length: 3\r\n\r\nabc"),
        (("Content-Length: 12",), b"Content-Length: 3\r\n\r\nabc"),
        (("content-length:12", "Content-Type: x"), b"content-length:3\r\nContent-Type: x\r\n\r\nabc"),
        (("X: 12", "CONTENT-LENGTH: \t12 "), b"X: 12\r\nCONTENT-LENGTH: \t3 \r\n\r\nabc"),
        (("Content-Length:",), b"Content-Length: 3\r\n\r\nabc"),
        (("Content-Length",), b"Content-Length: 3\r\n\r\nabc"),
        (("X: caf\xe9", "Content-Length: 1"), b"X: caf\xe9\r\nContent-Length: 3\r\n\r\nabc"),
    ],
)
def test_the_length_in_given_header_lines_becomes_the_payloads(head: tuple[str, ...], expected: bytes) -> None:
    assert FRAMINGS["content-length"].encode(b"abc", head) == expected


@pytest.mark.parametrize(
    ("framing", "payload", "head"),
    [
        ("ndjson", b"a\nb", ()),
        ("ndjson", b"", ()),
        ("ndjson", b" \t\r", ()),
        ("uint32", b"", ()),
        ("content-length", b"{}", ("Content-Type: x",)),
        ("content-length", b"{}", ("Content-Length: 2", "X: y\nZ: z")),
        ("content-length", b"{}", ("Content-Length: 2", "X: a\n\nb")),
        ("content-length", b"{}", ("Content-Length: 2", "X: \u20ac")),
    ],
)
def test_what_a_framing_cannot_carry_is_refused(framing: str, payload: bytes, head: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"can't|ordinal not in range"):
        FRAMINGS[framing].encode(payload, head)


def test_the_longest_payload_of_four_bytes_of_length_is_the_last_to_be_sent() -> None:
    longest = b"x" * UINT32_LIMIT_BYTES
    assert FRAMINGS["uint32"].encode(longest).endswith(longest)
    with pytest.raises(FrameTooLong, match="10485761 bytes"):
        FRAMINGS["uint32"].encode(longest + b"x")


def test_a_long_line_in_small_chunks_is_searched_once() -> None:
    """Searching from the start at each chunk would look at 200 GB here."""
    decoder = FRAMINGS["ndjson"].decoder()
    for _ in range(20_000):
        decoder.receive_data(b"x" * 1_000)
        assert decoder.next_event() is None
    decoder.receive_data(b"\n")
    event = decoder.next_event()
    assert isinstance(event, Frame)
    assert len(event.payload) == 20_000_000


def test_a_line_over_the_limit_is_never_held_whole() -> None:
    decoder = FRAMINGS["ndjson"].decoder(LIMIT)
    for _ in range(100):
        decoder.receive_data(b"x" * 10_000)
        while event := decoder.next_event():
            assert len(event.wire) == JUNK_PIECE_BYTES
    assert len(decoder.data) < JUNK_PIECE_BYTES  # type: ignore[attr-defined]


def test_events_are_values() -> None:
    frame, junk = line(b"{}"), Junk(b"\n", "blank line")
    assert frame == line(b"{}")
    assert junk == Junk(b"\n", "blank line")
    different = [frame, line(b"[]"), Frame(b"{}", b"{}\n", ("a",)), junk, Junk(b"\n", "another reason")]
    assert len({*different, line(b"{}")}) == len(different)
    assert all(one != other for one, other in pairwise(different))
    assert repr(frame) == "Frame(b'{}')"
    assert repr(junk) == "Junk(b'\\n', 'blank line')"


def test_after_a_wrong_length_the_next_frame_is_found_behind_the_body_on_its_line() -> None:
    decoder = FRAMINGS["content-length"].decoder()
    decoder.receive_data(b"Content-Length: x\r\n\r\n{}Content-Length: 2\r\n\r\n[]")
    events = []
    while (event := decoder.next_event()) is not None:
        events.append(event)
    assert [event.wire for event in events[:-1]] == [b"Content-Length: x\r\n", b"\r\n", b"{}"]
    assert isinstance(events[-1], Frame)
    assert events[-1].payload == b"[]"
