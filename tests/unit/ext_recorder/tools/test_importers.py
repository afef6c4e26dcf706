"""Recordings of other programs as cassettes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.reader import Reader
from ext_recorder.tools.convert import format_of
from ext_recorder.tools.importers import IMPORTS
from tests.support.player_host import Host
from tests.support.recorder_process import events, messages
from tests.unit.ext_recorder.tools.test_convert import convert, ok

if TYPE_CHECKING:
    from pathlib import Path

GITHUB = "ghp_" + "a1b2" * 9
ASK = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"n":12345678901234567890123,"f":1.0}}'
TELL = '{"method":"notifications/progress","jsonrpc":"2.0"}'
ANSWER = '{"jsonrpc":"2.0","id":1,"result":{"text":"ä\\u0000"}}'
JUNK = "starting…"


def mcp_rec(path: Path) -> Path:
    def line(ts: float, side: str, message: str) -> str:
        return f'{{"ts": {ts}, "dir": "{side}", "msg": {message}}}\n'

    junk = json.dumps({"_raw": JUNK, "_unparsed": True})
    path.write_text(
        line(100.5, "client->server", ASK)
        + line(101.0, "server->client", junk)
        + line(101.25, "server->client", TELL)
        + line(101.5, "server->client", ANSWER)
    )
    return path


def typescript(path: Path, version: object = 2, transport: str = "stdio", more: str = "") -> Path:
    header = {"type": "header", "cassetteVersion": version, "recorder": "mcp-cassette/0.4.0", "transport": transport}
    path.write_text(
        json.dumps(header) + "\n"
        f'{{"type":"frame","t":500,"dir":"c2s","frame":{ASK}}}\n'
        f'{{"type":"raw","t":1000,"dir":"s2c","data":"{JUNK}"}}\n'
        f'{{"type":"frame","t":1250,"dir":"s2c","frame":{TELL}}}\n'
        f'{{"type":"frame","t":1500,"dir":"s2c","frame":{ANSWER},"origin":"live"}}\n{more}'
    )
    return path


def python(path: Path, version: object = 3, transport: str = "stdio") -> Path:
    def message(ms: int, sender: str, payload: str) -> str:
        return f'{{"seq": 0, "t_offset_ms": {ms}, "sender": "{sender}", "kind": "request", "payload": {payload}}}'

    said = [
        message(500, "client", ASK),
        message(1000, "server", json.dumps(JUNK)),
        message(1250, "server", TELL),
        message(1500, "server", ANSWER),
    ]
    head = f'{{\n  "format_version": {json.dumps(version)},\n  "transport": "{transport}",\n  "messages": ['
    path.write_text(head + ",\n".join(said) + "]\n}\n")
    return path


def mcpsnoop(path: Path, more: str = "", transport: str = "stdio") -> Path:
    def line(time: str, direction: str, content: str) -> str:
        about = f'"session_id":"s","server_label":"x","seq":1,"ts":"2026-11-22T01:00:{time}Z"'
        return f'{{{about},"direction":"{direction}","transport":"{transport}",{content}}}\n'

    path.write_text(
        line("00.5", "meta", '"raw":{"command":["server"]}')
        + line("00.500000001", "c2s", f'"raw":{ASK}')
        + line("01", "s2c", f'"text":"{JUNK}"')
        + line("01.25", "s2c", f'"raw":{TELL}')
        + line("01.5", "s2c", f'"raw":{ANSWER}')
        + more
    )
    return path


WRITERS = {"mcp-rec": mcp_rec, "mcp-cassette-ts": typescript, "mcp-cassette": python, "mcpsnoop": mcpsnoop}


def test_there_is_an_example_of_every_format() -> None:
    assert WRITERS.keys() == IMPORTS.keys()


@pytest.mark.parametrize("name", WRITERS)
def test_a_recording_of_another_program_becomes_a_cassette_that_plays(tmp_path: Path, name: str) -> None:
    assert format_of(WRITERS[name](tmp_path / "file")) == name
    assert ok("-o", "c.yaml", "file", cwd=tmp_path) == f"c.yaml: 4 events, from {name}\n"
    path = tmp_path / "c.yaml"
    assert [payload.decode() for payload in messages(path, "in")] == [ASK]
    assert [round(event.time, 3) for event in events(path)] == [0.0, 0.5, 0.75, 1.0]
    with Reader(path) as reader:
        assert (reader.header.protocol, reader.header.framing) == ("mcp", "ndjson")
    with Host(path) as host:
        said = host.say(ASK.replace('"id":1', '"id":"x"'))
        assert said[0] == JUNK
        assert json.loads(said[1]) == json.loads(TELL)
        assert json.loads(said[2]) == json.loads(ANSWER.replace('"id":1', '"id":"x"'))


@pytest.mark.parametrize("name", ["mcp-rec", "mcp-cassette-ts", "mcpsnoop"])
def test_messages_keep_their_spelling_where_the_recording_has_it(tmp_path: Path, name: str) -> None:
    WRITERS[name](tmp_path / "file")
    ok("-o", "c.yaml", "file", cwd=tmp_path)
    assert [payload.decode() for payload in messages(tmp_path / "c.yaml", "out")] == [JUNK, TELL, ANSWER]


def test_what_another_program_left_in_is_redacted(tmp_path: Path) -> None:
    text = mcp_rec(tmp_path / "file").read_text().replace('"f":1.0', f'"token":"{GITHUB}"')
    (tmp_path / "file").write_text(text)
    ok("-o", "c.yaml", "file", cwd=tmp_path)
    assert GITHUB not in (tmp_path / "c.yaml").read_text()
    assert GITHUB not in ok("--to", "jsonl", "file", cwd=tmp_path)


def refused(path: Path) -> list[tuple[Path, str]]:
    chunks = '{"type":"chunks","t":1,"dir":"s2c","chunks":[]}\n'
    second = '{"session_id":"t","ts":"2026-11-22T01:00:00Z","direction":"c2s","raw":{}}\n'
    cut = '{"session_id":"s","ts":"2026-11-22T01:00:00Z","direction":"c2s","text":"x","truncated":true}\n'
    late = '{"session_id":"s","ts":"today","direction":"c2s","text":"x"}\n'
    return [
        (typescript(path / "a", version=3), "a:1: cassetteVersion 3; known are 1 and 2 (record the session again)"),
        (typescript(path / "b", transport="http"), "b:1: it was recorded over HTTP"),
        (typescript(path / "c", more=chunks), "c:6: an entry of type 'chunks'"),
        (python(path / "d", version=4), "d: format_version 4; known are 1, 2 and 3"),
        (python(path / "e", version="3"), "e: format_version '3'"),
        (python(path / "f", transport="http"), "f: it was recorded over HTTP"),
        (mcpsnoop(path / "g", more=second), "g:6: a second session"),
        (mcpsnoop(path / "h", more=cut), "h:6: the message was cut by its recorder"),
        (mcpsnoop(path / "i", transport="http"), "i:1: it was recorded over HTTP"),
        (mcpsnoop(path / "j", more=late), "j:6: expected an ISO 8601 time"),
    ]


@pytest.mark.parametrize("case", range(10))
def test_what_can_not_be_converted_is_refused_and_nothing_is_written(tmp_path: Path, case: int) -> None:
    path, says = refused(tmp_path)[case]
    there = set(tmp_path.iterdir())
    done = convert("-o", "out.yaml", path.name, cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr
    assert set(tmp_path.iterdir()) == there
