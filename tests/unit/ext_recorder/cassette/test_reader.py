"""Reading a cassette: our own, a person's, and what is none."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.events import Data, Mark
from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import CassetteError

if TYPE_CHECKING:
    from pathlib import Path

HEADER = """\
# A recorded session. Show it: ext-recorder show FILE
cassette: 1
recorder: 0.1.0
protocol: gevals
framing: ndjson
command: [ext-shell, '-c', 'it''s', 'true', a:b]
recorded: 2026-11-21T21:00:00Z
bindings: {workdir: /tmp/workdir, home: /home/user}
events:
"""
EVENTS = """\
- {t: 0.1, in: '{"a":1.0}'}
- {t: 0.2, err: 'it''s'}
- {t: 0.3, exit: 0}
"""
WHOLE = HEADER + EVENTS + "redacted: [env.API_TOKEN, bearer]\n"
READ = [Data("in", 0.1, b'{"a":1.0}'), Data("err", 0.2, b"it's"), Mark("exit", 0.3, 0)]


def read(tmp_path: Path, text: str | bytes) -> Reader:
    path = tmp_path / "session.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Reader(path)


def events(tmp_path: Path, text: str | bytes) -> list[Data | Mark]:
    with read(tmp_path, text) as reader:
        return list(reader)


def error(tmp_path: Path, text: str | bytes) -> CassetteError:
    with pytest.raises(CassetteError) as caught:
        events(tmp_path, text)
    assert str(caught.value).startswith(str(tmp_path / "session.yaml"))
    assert "\n" not in str(caught.value)
    return caught.value


def test_the_header_says_what_was_recorded(tmp_path: Path) -> None:
    with read(tmp_path, WHOLE) as reader:
        header = reader.header
        assert (header.protocol, header.framing, header.recorder) == ("gevals", "ndjson", "0.1.0")
        assert header.command == ("ext-shell", "-c", "it's", "true", "a:b")
        assert header.recorded == "2026-11-21T21:00:00Z"
        assert header.bindings == {"workdir": "/tmp/workdir", "home": "/home/user"}


def test_events_come_with_their_lines_and_the_redacted_rules_at_the_end(tmp_path: Path) -> None:
    with read(tmp_path, WHOLE) as reader:
        found = [(reader.line, event) for event in reader]
        assert found == list(zip([10, 11, 12], READ, strict=True))
        assert reader.redacted == ("env.API_TOKEN", "bearer")


@pytest.mark.parametrize(
    "text",
    [
        WHOLE.replace("\n", "\r\n"),
        WHOLE.rstrip("\n"),
        WHOLE.replace("- {t: 0.2", "# a comment\n\n- {t: 0.2"),
        WHOLE.replace("- {", "  - {"),
        WHOLE.replace("in: '{\"a\":1.0}'", 'in: "{\\"a\\":1.0}"'),
        WHOLE.replace("- {t: 0.2, err: 'it''s'}", "- t: 0.2\n  err: it's"),
        WHOLE.replace("- {t: 0.2, err: 'it''s'}", "- {err: it's, t: 0.2}"),
        WHOLE.replace("'{\"a\":1.0}'}", "\n    '{\"a\":1.0}'\n  }"),
        WHOLE.replace("- {t: 0.1, in: '{\"a\":1.0}'}", "- t: 0.1\n  in: |-\n    {\"a\":1.0}"),
        WHOLE.replace("- {t: 0.1, in: '{\"a\":1.0}'}", "- t: 0.1\n  in:\n    raw: |-\n      eyJhIjox\n      LjB9"),
        "---\n" + WHOLE + "...\n",
        WHOLE.replace("command: [ext-shell, '-c', 'it''s', 'true', a:b]", "command:\n- ext-shell\n- -c"),
        WHOLE.replace("cassette: 1\n", "").replace("events:", "cassette: 1\nevents:"),
        WHOLE.replace("protocol: gevals", "protocol: gevals  # the first"),
        WHOLE.replace("bindings: {", "colour: blue\nbindings: {"),
        "redacted: []\nevents:\n" + EVENTS + HEADER.replace("events:\n", ""),
    ],
)  # fmt: skip
def test_a_file_that_a_person_or_a_formatter_has_written_holds_the_same_events(tmp_path: Path, text: str) -> None:
    found = events(tmp_path, text)

    if "raw: |" in text:
        assert found[0] == Data("in", 0.1, b'{"a":1.0}', raw=True)
        assert found[1:] == READ[1:]
    else:
        assert found == READ


def test_lines_are_those_of_the_file_in_a_rewrapped_cassette_too(tmp_path: Path) -> None:
    with read(tmp_path, WHOLE.replace("- {t: 0.2, err: 'it''s'}", "- t: 0.2\n  err: it's")) as reader:
        assert [reader.line for _ in reader] == [10, 11, 13]


def test_a_cassette_without_redacted_is_whole_when_its_child_has_ended(tmp_path: Path) -> None:
    with read(tmp_path, HEADER + EVENTS) as reader:
        assert list(reader) == READ
        assert reader.redacted is None


# --- What is no cassette --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cut", range(1, len(EVENTS) - len("- {t: 0.3, exit: 0}\n")))
def test_a_file_that_was_cut_off_anywhere_is_never_a_shorter_session(tmp_path: Path, cut: int) -> None:
    assert "recover" in str(error(tmp_path, HEADER + EVENTS[:cut]))


@pytest.mark.parametrize("cut", range(len(HEADER)))
def test_a_header_that_was_cut_off_anywhere_is_an_error(tmp_path: Path, cut: int) -> None:
    error(tmp_path, HEADER[:cut])


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 0, "empty"),
        ("\n\n", 0, "empty"),
        ("hello\n", 1, "not a mapping"),
        ('{"a": 1}', 1, "expected a key `cassette: 1`, found"),
        ("interactions:\n- request: {}\n", 1, "expected a key `cassette: 1`, found"),
        ("\x00\x01\x02", 1, "not YAML"),
        ("# Title\n\n[a](b): c: d\n", 3, "a cassette begins with the line `cassette: 1`"),
        (WHOLE.replace("err: 'it''s'", "err: 'it's'"), 11, "a quotation mark in a message is written twice: ''"),
        (WHOLE.replace("err: 'it''s'", "err: 'it''s").partition("redacted")[0], 11, "cut off: ext-recorder recover"),
        (b"\xff\xfe\xff", 0, ""),
        (WHOLE.replace("cassette: 1", "cassette: 2"), 2, "expected format version 1, found 2 (upgrade ext-recorder"),
        (WHOLE.replace("cassette: 1", "cassette: 0"), 2, "expected format version 1, found 0"),
        (WHOLE.replace("cassette: 1", "cassette: '1.0'"), 2, "expected format version 1, found 1.0"),
        (WHOLE.replace("framing: ndjson", "framing: smoke"), 5, "uint32, http, found 'smoke'"),
        (WHOLE.replace("framing: ndjson\n", ""), 1, "`framing`"),
        (WHOLE.replace("protocol: gevals\n", ""), 1, "`protocol`"),
        (WHOLE.replace("protocol: gevals", "protocol: [gevals]"), 4, "`protocol`"),
        (WHOLE.replace("protocol: gevals", "protocol: gevals\nprotocol: raw"), 5, "given twice"),
        (WHOLE.replace("events:\n" + EVENTS, ""), 0, "no `events` key"),
        (WHOLE.replace(EVENTS, ""), 0, "no events"),
        (HEADER, 0, "no events"),
        (WHOLE.replace("events:\n" + EVENTS, "events: []\n"), 0, "no events"),
        (WHOLE.replace(EVENTS, "  a: b\n"), 10, "not a list"),
        (WHOLE.replace("0.2, err: 'it''s'", "0.2, err: 'it''s"), 11, "not YAML"),
        (WHOLE.replace("0.2, err: 'it''s'", "0.2"), 11, "found none"),
        (WHOLE.replace("0.2, err: 'it''s'", "0.2, err: 'a', in: 'b'"), 11, "found `err`, `in`"),
        (WHOLE.replace("0.2, err: 'it''s'", "0.2, er: 'a'"), 11, "expected one of in, out, err"),
        (WHOLE.replace("0.2, err: 'it''s'", "0.2, err: {a: 1}"), 11, "single quotation marks"),
        (WHOLE.replace("0.2, err: 'it''s'", "0.2, err: [a]"), 11, "single quotation marks"),
        (WHOLE.replace("0.2, err: 'it''s'", "0.2, err: {raw: '=a'}"), 11, "not base64"),
        (WHOLE.replace("t: 0.2", "t: soon"), 11, "expected `t` in seconds, found soon"),
        (WHOLE.replace("{t: 0.2, ", "{"), 11, "expected `t` in seconds, found nothing"),
        (WHOLE.replace("t: 0.2, ", "t: 0.2, conn: -1, "), 11, "`conn`"),
        (WHOLE.replace("exit: 0", "exit: maybe"), 12, "an exit code, or a signal as in SIGKILL, found 'maybe'"),
        (WHOLE.replace("err: 'it''s'", "err: 'it''s \x07'"), 11, "not YAML"),
        (WHOLE + "- {t: 0.4, in: 'late'}\n", 14, "not YAML"),
        (WHOLE + "---\n" + WHOLE, 0, ""),
        (WHOLE.replace("err: 'it''s'", "err: *alias"), 11, "not YAML"),
        (WHOLE.replace(EVENTS, "- " + "[" * 5000 + "\n"), 0, ""),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str | bytes, line: int, says: str) -> None:
    found = error(tmp_path, text)

    assert says in str(found)
    if line:
        assert found.line == line


def test_no_class_is_built_and_nothing_is_run_from_a_file(tmp_path: Path) -> None:
    proof = tmp_path / "proof"
    command = f"!!python/object/apply:os.system ['touch {proof}']"

    for text in (
        WHOLE.replace("'it''s'", command),
        WHOLE.replace("protocol: gevals", f"protocol: {command}"),
        f"x: {command}\n" + WHOLE,
        WHOLE.replace("0.2", "!!python/name:os.system 0.2"),
    ):
        with contextlib.suppress(CassetteError):
            events(tmp_path, text)

    assert not proof.exists()


def test_many_aliases_of_many_aliases_take_no_memory(tmp_path: Path) -> None:
    bomb = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))

    assert events(tmp_path, bomb + WHOLE) == READ


def test_a_missing_file_and_a_folder_are_errors_of_ours(tmp_path: Path) -> None:
    with pytest.raises(CassetteError, match="no such file"):
        Reader(tmp_path / "none.yaml")
    with pytest.raises(CassetteError, match="can't be read"):
        Reader(tmp_path)


def test_the_design_pages_example_is_a_cassette(tmp_path: Path) -> None:
    text = """\
# A recorded session. Show it: ext-recorder show FILE
cassette: 1
recorder: 0.1.0
protocol: gevals
framing: ndjson
command: [ext-shell]
recorded: 2026-11-21T21:00:00Z
bindings: {workdir: /tmp/task}
redacted: [env.API_TOKEN]
events:
- {t: 0.000, in: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"0.0.1"}}'}
- {t: 0.021, out: '{"jsonrpc":"2.0","id":1,"result":{}}'}
- {t: 0.022, err: 'a line on stderr'}
- {t: 0.140, eof: in}
- {t: 0.150, exit: 0}
"""
    with read(tmp_path, text) as reader:
        assert len(list(reader)) == 5
        assert reader.redacted == ("env.API_TOKEN",)


def test_the_traffic_beside_a_cassette_is_none_and_that_is_told(tmp_path: Path) -> None:
    path = tmp_path / "session.http.yaml"
    path.write_text("# The HTTP traffic of a recorded session.\nhttp: 1\nrecorder: 0.1.0\n")
    with pytest.raises(
        CassetteError, match=r"no cassette: .*it is the HTTP traffic of a session; the cassette is next to it"
    ):
        Reader(path)


def test_messages_are_those_of_host_and_child_in_any_form(tmp_path: Path) -> None:
    events = """\
- {t: 0.1, in: 'one'}
- {t: 0.2, err: 'a line'}
- {t: 0.3, out: {text: "two\\nthree\\ncut off"}}
- {t: 0.4, conn: 0, err: 'of the server'}
- {t: 0.5, exit: 0}
"""
    with read(tmp_path, HEADER + events + "redacted: []\n") as reader:
        assert [(event.time, payload) for event, payload in reader.messages()] == [
            (0.1, b"one"),
            (0.3, b"two"),
            (0.3, b"three"),
        ]
