"""Cassettes from and to other formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import CassetteError
from ext_recorder.tools.convert import format_of
from tests.support.player_host import cassette
from tests.support.recorder_tools import call

if TYPE_CHECKING:
    import subprocess

FOLDER = Path(__file__).parents[4] / "cassettes"
COMMITTED = sorted(path for path in FOLDER.rglob("*.yaml") if not path.name.endswith(".http.yaml"))


def convert(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return call("convert", *words, cwd=cwd)


def ok(*words: str, cwd: Path) -> str:
    done = convert(*words, cwd=cwd)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_a_cassette_is_the_same_to_the_byte_after_both_ways(path: Path, tmp_path: Path) -> None:
    ok("-o", "a.jsonl", str(path), cwd=tmp_path)
    ok("-o", "b.yaml", "a.jsonl", cwd=tmp_path)
    assert (tmp_path / "b.yaml").read_bytes() == path.read_bytes()


def test_json_lines_hold_all_that_a_cassette_holds(tmp_path: Path) -> None:
    session = """
    - {t: 0, in: '{"a": 1.0}', head: ['Content-Type: x', 'Content-Length: 10']}
    - {t: 0.5, out: {raw: '/wA='}}
    - {t: 1, err: 'a ''line'''}
    - {t: 2, conn: 2, open: in}
    - {t: 3, signal: SIGTERM}
    - {t: 4, eof: in}
    - {t: 5, exit: 3}
    """
    path = cassette(
        tmp_path / "c.yaml", session, protocol="lsp", framing="content-length", bindings={"home": "/home/user"}
    )
    lines = [json.loads(line) for line in ok("c.yaml", cwd=tmp_path).splitlines()]
    assert lines == [
        {"cassette": 1, "protocol": "lsp", "framing": "content-length", "bindings": {"home": "/home/user"}},
        {"t": 0.0, "in": '{"a": 1.0}', "head": ["Content-Type: x", "Content-Length: 10"]},
        {"t": 0.5, "out": {"raw": "/wA="}},
        {"t": 1.0, "err": "a 'line'"},
        {"t": 2.0, "conn": 2, "open": "in"},
        {"t": 3.0, "signal": "SIGTERM"},
        {"t": 4.0, "eof": "in"},
        {"t": 5.0, "exit": 3},
        {"redacted": []},
    ]
    ok("-o", "c.jsonl", "c.yaml", cwd=tmp_path)
    ok("-o", "d.yaml", "c.jsonl", cwd=tmp_path)
    with Reader(path) as one, Reader(tmp_path / "d.yaml") as other:
        assert list(one) == list(other)
        assert (one.header.bindings, one.redacted) == (other.header.bindings, other.redacted)


BROKEN = {
    "no JSON": ("{", "a.jsonl:2: expected a line of JSON"),
    "no object": ("[]", "a.jsonl:2: expected a JSON object"),
    "no event": ('{"t":1}', "a.jsonl:2: expected one of in, out, err"),
    "two events": ('{"t":1,"in":"a","out":"b"}', "a.jsonl:2: expected one of in, out, err"),
    "no time": ('{"in":"a"}', "a.jsonl:2: expected `t` to be a number"),
    "no text": ('{"t":1,"in":3}', "a.jsonl:2: expected `in` to be a text"),
    "no base64": ('{"t":1,"in":{"raw":"ä"}}', "a.jsonl:2: expected `in` to be a text"),
    "no exit": ('{"t":1,"exit":"tomorrow"}', "a.jsonl:2: 'tomorrow' is not a value of `exit`"),
    "no end": ('{"t":1,"in":"a"}', "a.jsonl:2: the file ends without its last line"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_json_lines_are_an_error_with_their_line_and_nothing_is_written(tmp_path: Path, what: str) -> None:
    line, says = BROKEN[what]
    (tmp_path / "a.jsonl").write_text(f'{{"cassette":1,"protocol":"raw","framing":"ndjson"}}\n{line}\n')
    done = convert("-o", "b.yaml", "a.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert [each.name for each in tmp_path.iterdir()] == ["a.jsonl"]


def test_an_unknown_version_is_refused_with_the_way_to_go(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"cassette":9,"protocol":"raw","framing":"ndjson"}\n')
    done = convert("-o", "b.yaml", "a.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "expected format version 1, found 9 (upgrade ext-recorder" in done.stderr


def test_what_no_format_begins_like_is_refused_with_their_names(tmp_path: Path) -> None:
    for text in ("hello\n", "{}\n", "[]", "\x00\x01"):
        (tmp_path / "file").write_text(text)
        with pytest.raises(CassetteError, match="known are cassette, jsonl, mcp-rec"):
            format_of(tmp_path / "file")


WRONG = [
    (["missing"], "missing: no such file"),
    (["--from", "morse", "c.yaml"], "--from morse: expected one of cassette, jsonl"),
    (["--to", "cassette", "c.yaml"], "a cassette cannot be written to standard output"),
    (["-o", "c.yaml", "--to", "cassette", "c.yaml"], "c.yaml exists already"),
    (["--protocol", "morse", "c.yaml"], "--protocol morse: expected one of gevals"),
]


@pytest.mark.parametrize(("words", "says"), WRONG)
def test_what_is_wrong_is_said(tmp_path: Path, words: list[str], says: str) -> None:
    cassette(tmp_path / "c.yaml", "- {t: 0, in: 'x'}\n- {t: 1, exit: 0}")
    done = convert(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
