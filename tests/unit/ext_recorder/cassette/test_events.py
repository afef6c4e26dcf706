"""Events: the lines that are written for them, and the messages that they contain."""

from __future__ import annotations

import base64

import pytest
import yaml

from ext_recorder.cassette.events import (
    OWN_FILES,
    STDERR_FRAMING,
    Data,
    Mark,
    event_line,
    mark_line,
    note,
    omission,
    omitted,
    raw_line,
)
from ext_recorder.cassette.fast_parser import parse_line
from ext_sdk.core.wire.frames import Frame, Junk
from ext_sdk.core.wire.framing import FRAMINGS

NDJSON, CONTENT_LENGTH, UINT32 = (FRAMINGS[name] for name in ("ndjson", "content-length", "uint32"))


def unchanged(data: bytes) -> bytes:
    return data


def without_secret(data: bytes) -> bytes:
    return data.replace(b"secret", b"[redacted:x#1]")


def frame(payload: bytes, framing: str = "ndjson") -> Frame:
    decoder = FRAMINGS[framing].decoder()
    decoder.receive_data(FRAMINGS[framing].encode(payload))
    item = decoder.next_event()
    assert isinstance(item, Frame)
    return item


@pytest.mark.parametrize(
    "payload",
    [
        b"a\rb", b"\x00", b"\x1b[0m", b"\x7f", "\u0085".encode(), "\u2028".encode(), "\u2029".encode(),
        "\ufeff".encode(), "\ufffe".encode(), b'{"a":1}\r',
    ],
)  # fmt: skip
def test_control_characters_are_written_as_escapes(payload: bytes) -> None:
    line = note("in", 0, frame(payload), NDJSON, unchanged)

    assert parse_line(line) == Data("in", 0, payload)
    assert yaml.safe_load(line)[0]["in"] == payload.decode()
    assert yaml.load(line, yaml.CSafeLoader)[0]["in"] == payload.decode()


@pytest.mark.parametrize("payload", [b"\xff\xfe", b"\xed\xa0\x80", bytes(range(1, 128)) * 4])
def test_what_is_not_text_is_kept_in_base64(payload: bytes) -> None:
    payload = payload.replace(b"\n", b"")
    line = note("in", 0, frame(payload), NDJSON, unchanged)

    assert parse_line(line) == Data("in", 0, payload + b"\n", raw=True)
    assert yaml.safe_load(line)[0]["in"] == {"raw": base64.b64encode(payload + b"\n").decode()}


def test_a_frame_is_text_when_the_framing_would_write_it_like_that() -> None:
    for framing in FRAMINGS:
        line = note("out", 0, frame(b'{"a":1}', framing), FRAMINGS[framing], unchanged)
        assert line == b"- {t: 0.000000, out: '{\"a\":1}'}\n"


def test_header_lines_of_another_writer_are_kept_beside_the_text() -> None:
    wire = b"Content-Type: x\r\ncontent-length:  2\r\n\r\n{}"
    item = Frame(b"{}", wire, ("Content-Type: x", "content-length:  2"))

    assert note("out", 0, item, CONTENT_LENGTH, unchanged) == (
        b"- {t: 0.000000, out: '{}', head: ['Content-Type: x', 'content-length:  2']}\n"
    )


def test_a_frame_whose_head_we_would_write_otherwise_is_kept_as_bytes() -> None:
    wire = b"Content-Length: 2\n\n{}"

    assert note("out", 0, Frame(b"{}", wire, ("Content-Length: 2",)), CONTENT_LENGTH, unchanged) == raw_line(
        "out", 0, wire
    )


def test_junk_and_torn_ends_are_kept_as_bytes_and_cleaned_too() -> None:
    line = note("err", 0, Junk(b"a secret", "unterminated line"), STDERR_FRAMING, without_secret)

    assert parse_line(line) == Data("err", 0, b"a [redacted:x#1]", raw=True)


@pytest.mark.parametrize("framing", sorted(FRAMINGS))
def test_a_cleaned_message_that_only_bytes_hold_is_framed_anew(framing: str) -> None:
    item = frame(b"secret\xff", framing)

    event = parse_line(note("in", 0, item, FRAMINGS[framing], without_secret))

    assert isinstance(event, Data)
    assert event.raw
    decoder = FRAMINGS[framing].decoder()
    decoder.receive_data(event.payload)
    cleaned = decoder.next_event()
    assert isinstance(cleaned, Frame)
    assert cleaned.payload == b"[redacted:x#1]\xff"
    assert decoder.next_event() is None


def test_a_message_that_was_cleaned_has_no_old_length_beside_it() -> None:
    wire = b"Content-Type: x\r\nContent-Length: 6\r\n\r\nsecret"
    item = Frame(b"secret", wire, ("Content-Type: x", "Content-Length: 6"))

    line = note("in", 0, item, CONTENT_LENGTH, without_secret)

    assert b"[redacted:x#1]" in line
    assert b"secret" not in line


def test_a_further_connection_is_named_on_every_kind_of_event() -> None:
    assert mark_line("eof", 1, "in", conn=3) == b"- {t: 1.000000, conn: 3, eof: in}\n"
    assert note("in", 1, frame(b"x"), NDJSON, unchanged, conn=3) == b"- {t: 1.000000, conn: 3, in: 'x'}\n"
    assert note("in", 1, Junk(b"x", ""), UINT32, unchanged, conn=3) == b"- {t: 1.000000, conn: 3, in: {text: 'x'}}\n"


def test_an_event_that_only_bytes_can_hold_is_no_text_event() -> None:
    with pytest.raises(ValueError, match="not UTF-8"):
        event_line(Data("in", 0, b"\xff"))


def test_the_messages_of_an_event_are_found_in_both_forms() -> None:
    text = Data("out", 0, b"{}", head=("Content-Type: x",))
    assert text.items(CONTENT_LENGTH) == [Frame(b"{}", b"", ("Content-Type: x",))]
    assert text.payloads(CONTENT_LENGTH) == [b"{}"]

    raw = Data("out", 0, b"Content-Length: 2\r\n\r\n{}cut", raw=True)
    frame, junk = raw.items(CONTENT_LENGTH)
    assert isinstance(frame, Frame)
    assert (frame.payload, junk.wire) == (b"{}", b"cut")
    assert raw.payloads(CONTENT_LENGTH) == [b"{}"]


@pytest.mark.parametrize(
    "event", [Data("err", 0, b"a\nb\n", raw=True), Data("out", 0, b"a\nb\n", raw=True, conn=OWN_FILES)]
)
def test_stderr_and_the_own_files_of_a_server_are_lines(event: Data) -> None:
    assert event.payloads(UINT32) == [b"a", b"b"]


def test_a_message_that_was_left_out_has_its_size_and_stream() -> None:
    mark = Mark("omitted", 0, "70000000 bytes of out")
    assert omitted(mark) == (70000000, "out")
    assert omission(mark) == "a message of the child of 70000000 bytes was left out (the limit is 67108864 bytes)"
