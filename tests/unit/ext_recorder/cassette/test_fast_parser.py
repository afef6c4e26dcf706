"""Event lines: each form is read as it was written, by both parsers."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.cassette.events import Data, Mark, event_line, raw_line, text_line
from ext_recorder.cassette.fast_parser import parse_line
from ext_recorder.cassette.yaml_parser import load_line


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


@pytest.mark.parametrize(
    "text",
    ["", "no", "1e5", "2026-11-21", "~", "'", "''", "#", "- a", "a: b", "{", "&a *a !!x |>", "\ta ", "\u00a0\u200b"],
)
def test_what_yaml_would_take_for_something_else_is_a_text(text: str) -> None:
    line = text_line("in", 0, text.encode())

    assert line is not None
    assert parse_line(line) == Data("in", 0, text.encode())
    assert yaml.safe_load(line)[0]["in"] == text
