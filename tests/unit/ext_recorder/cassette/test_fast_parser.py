"""Event lines: what is written for what, and what each spelling is read as."""

from __future__ import annotations

import base64

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.cassette.events import STDERR_FRAMING, Data, Mark, event_line, mark_line, note, raw_line, text_line
from ext_recorder.cassette.fast_parser import parse_line
from ext_recorder.cassette.yaml_parser import load_line
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
    ("line", "event"),
    [
        (b"- {t: 0.000123, in: '{\"id\":1}'}\n", Data("in", 0.000123, b'{"id":1}')),
        (b"- {t: 1.500000, out: 'it''s'}\n", Data("out", 1.5, b"it's")),
        (b"- {t: 1.500000, out: ''}\n", Data("out", 1.5, b"")),
        ("- {t: 1.500000, err: 'é 漢 😀'}\n".encode(), Data("err", 1.5, "é 漢 😀".encode())),
        (b"- {t: 1.500000, out: 'a\tb'}\n", Data("out", 1.5, b"a\tb")),
        (b'- {t: 1.500000, out: "PONG\\r"}\n', Data("out", 1.5, b"PONG\r")),
        (b'- {t: 1.500000, err: "\\e[32m\\"it\'s\\"\\e[0m \\\\"}\n', Data("err", 1.5, b'\x1b[32m"it\'s"\x1b[0m \\')),
        (b'- {t: 1.500000, out: "a\\0\\x01\\x7F\\x85\\u2028"}\n', Data("out", 1.5, "a\0\x01\x7f\x85\u2028".encode())),
        (
            b"- {t: 1.500000, conn: 2, out: \"a\\r\", head: ['A: b']}\n",
            Data("out", 1.5, b"a\r", head=("A: b",), conn=2),
        ),
        (b"- {t: 1.500000, out: {text: '> '}}\n", Data("out", 1.5, b"> ", raw=True)),
        (b'- {t: 1.500000, conn: 2, out: {text: "hi\\r\\n"}}\n', Data("out", 1.5, b"hi\r\n", raw=True, conn=2)),
        (b"- {t: 1.500000, out: {raw: '//8='}}\n", Data("out", 1.5, b"\xff\xff", raw=True)),
        (b"- {t: 1.500000, in: {text: ''}}\n", Data("in", 1.5, b"", raw=True)),
        (b"- {t: 1.500000, conn: 2, in: 'x'}\n", Data("in", 1.5, b"x", conn=2)),
        (b"- {t: 1.500000, conn: 2, in: {raw: '/w=='}}\n", Data("in", 1.5, b"\xff", raw=True, conn=2)),
        (b"- {t: 1.500000, out: 'x', head: ['A: b', 'C: d']}\n", Data("out", 1.5, b"x", head=("A: b", "C: d"))),
        (b"- {t: 1.500000, eof: in}\n", Mark("eof", 1.5, "in")),
        (b"- {t: 1.500000, exit: 0}\n", Mark("exit", 1.5, 0)),
        (b"- {t: 1.500000, exit: 255}\n", Mark("exit", 1.5, 255)),
        (b"- {t: 1.500000, exit: SIGKILL}\n", Mark("exit", 1.5, "SIGKILL")),
        (b"- {t: 1.500000, signal: SIGRTMIN+3}\n", Mark("signal", 1.5, "SIGRTMIN+3")),
        (b"- {t: 1.500000, conn: 2, open: in}\n", Mark("open", 1.5, "in", 2)),
    ],
)
def test_each_form_is_written_and_read_by_hand_and_by_yaml_alike(line: bytes, event: Data | Mark) -> None:
    assert event_line(event) == line
    assert parse_line(line) == event
    assert load_line("x", line) == event


@pytest.mark.parametrize(
    "line",
    [
        b"- {t: 0.1, in: 'a'b'}\n",
        b"- {t: 0.1, in: 'a''}\n",
        b"- {t: 0.1, in: 'a}\n",
        b"- {t: 0.1, in: a'}\n",
        b"- {t: 0.1, in: 'a'}",
        b"- {t: 0.1, in: 'a', in: 'b'}\n",
        b"- {t: 0.1 in: 'a'}\n",
        b"- {t: , in: 'a'}\n",
        b"- {t: x, in: 'a'}\n",
        b"- {t: -1, in: 'a'}\n",
        b"- {t: nan, in: 'a'}\n",
        b"- {t: inf, in: 'a'}\n",
        b"- {t: 0.1, in: '\x1b'}\n",
        b"- {t: 0.1, in: '\xff'}\n",
        b"- {t: 0.1, in: '\xe2\x80\xa8'}\n",
        b"- {t: 0.1, in: 'a\rb'}\n",
        b"- {t: 0.1, in: ",
        b"- {t: 0.1, in: {raw: 'a'}}\n",
        b"- {t: 0.1, in: {raw: 'aGk'}}\n",
        b"- {t: 0.1, in: {texts: 'aGk='}}\n",
        b"- {t: 0.1, in: {text: aGk=}}\n",
        b'- {t: 0.1, in: "a"b"}\n',
        b'- {t: 0.1, in: "a\\"}\n',
        b'- {t: 0.1, in: "a\\q"}\n',
        b'- {t: 0.1, in: "\\x1"}\n',
        b'- {t: 0.1, in: "\\uD800"}\n',
        b'- {t: 0.1, in: "\x1b"}\n',
        b'- {t: 0.1, in: "\xff"}\n',
        b"- {t: 0.1, conn: 01, in: 'a'}\n",
        b"- {t: 0.1, conn: x, in: 'a'}\n",
        b"- {t: 0.1, exit: -1}\n",
        b"- {t: 0.1, exit: 007}\n",
        b"- {t: 0.1, exit: TERM}\n",
        b"- {t: 0.1, exit: }\n",
        b"- {t: 0.1, eof: input}\n",
        b"- {t: 0.1, signal: 15}\n",
        b"- {t: 0.1, sleep: 1}\n",
        b"-  {t: 0.1, in: 'a'}\n",
        b"- {in: 'a', t: 0.1}\n",
        b"redacted: []\n",
        b"\n",
        b"",
    ],
)
def test_what_is_not_of_our_own_writing_is_left_to_yaml(line: bytes) -> None:
    assert parse_line(line) is None


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


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_is_the_same_after_writing_and_reading(text: str) -> None:
    payload = text.encode()
    line = text_line("out", 0, payload)

    assert line is not None
    assert parse_line(line) == load_line("x", line) == Data("out", 0, payload)
    assert line.count(b"\n") == 1
    assert yaml.safe_load(line)[0]["out"] == text


@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes_are_the_same_after_writing_and_reading(data: bytes) -> None:
    line = raw_line("out", 0, data)

    assert parse_line(line) == load_line("x", line) == Data("out", 0, data, raw=True)


@pytest.mark.parametrize("payload", [b"\xff\xfe", b"\xed\xa0\x80", bytes(range(1, 128)) * 4])
def test_what_is_not_text_is_kept_in_base64(payload: bytes) -> None:
    payload = payload.replace(b"\n", b"")
    line = note("in", 0, frame(payload), NDJSON, unchanged)

    assert parse_line(line) == Data("in", 0, payload + b"\n", raw=True)
    assert yaml.safe_load(line)[0]["in"] == {"raw": base64.b64encode(payload + b"\n").decode()}


@pytest.mark.parametrize(
    "text",
    ["", "no", "1e5", "2026-11-21", "~", "'", "''", "#", "- a", "a: b", "{", "&a *a !!x |>", "\ta ", "\u00a0\u200b"],
)
def test_what_yaml_would_take_for_something_else_is_a_text(text: str) -> None:
    line = text_line("in", 0, text.encode())

    assert line is not None
    assert parse_line(line) == Data("in", 0, text.encode())
    assert yaml.safe_load(line)[0]["in"] == text


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
