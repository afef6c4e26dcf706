"""Files that a person or a formatter has edited: the same events, or an error with its line."""

from __future__ import annotations

import pytest

from ext_recorder.cassette.events import Data, Mark
from ext_recorder.cassette.yaml_parser import load, load_line
from ext_recorder.errors import CassetteError

HEADER = "cassette: 1\nprotocol: gevals\nframing: ndjson\ncommand: [a, b]\nbindings: {x: /y}\nnew: key\n"


def test_a_file_in_any_form_has_its_header_and_its_events() -> None:
    events = "events:\n- t: 1\n  in: >-\n    one\n    two\n- {exit: 3, t: 2.5}\nredacted: [bearer]\n"
    file = load("x", (HEADER + events).encode())
    assert file.header == {
        "cassette": "1",
        "protocol": "gevals",
        "framing": "ndjson",
        "command": ["a", "b"],
        "bindings": {"x": "/y"},
        "redacted": ["bearer"],
    }
    assert file.lines["framing"] == 3
    assert file.events == [(8, Data("in", 1.0, b"one two")), (12, Mark("exit", 2.5, 3))]


def test_a_file_without_events_has_none() -> None:
    assert load("x", HEADER.encode()).events is None
    assert load("x", f"{HEADER}events:\n".encode()).events == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("- {t: 1}", "one of in, out, err, eof, exit, signal, open, omitted, files, http in an event, found none"),
        ("- {t: 1, in: a, out: b}", "found `in`, `out`"),
        ("- {t: 1, in: a, pace: b}", "found `in`, `pace`"),
        ("- {in: a}", "expected `t` in seconds, found nothing"),
        ("- {t: -1, in: a}", "expected `t` in seconds, found -1"),
        ("- {t: 1, conn: one, in: a}", "expected `conn` to be a number, found one"),
        ("- {t: 1, exit: TERM}", "expected `exit` to be an exit code, or a signal as in SIGKILL, found 'TERM'"),
        ("- {t: 1, eof: input}", "expected `eof` to be in, out or err, found 'input'"),
        ("- {t: 1, in: [a]}", "`in` is not a text"),
        ("- {t: 1, in: {raw: '='}}", "`raw` is not base64"),
        ("- {t: 1, in: {texts: a}}", "expected a message to be a text"),
        ("- {t: 1, in: a, in: b}", "an event has a key that is not a string or is given twice"),
        ("- a", "an event is not a mapping of keys to values"),
    ],
)
def test_a_wrong_event_is_an_error_with_its_line(line: str, problem: str) -> None:
    with pytest.raises(CassetteError) as wrong:
        load("x", f"{HEADER}events:\n{line}\n".encode())
    assert str(wrong.value).startswith("x:8: ")
    assert problem in str(wrong.value)
    assert load_line("x", f"{line}\n".encode()) is None


def test_a_line_is_an_event_by_itself() -> None:
    assert load_line("x", b'- {in: "a", t: 1.5, conn: 2}\n') == Data("in", 1.5, b"a", conn=2)
    assert load_line("x", b"- {t: 1, in: 'a\n") is None
    assert load_line("x", b"redacted: []\n") is None
