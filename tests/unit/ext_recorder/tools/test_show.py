"""Show: a cassette for people and for programs, and nothing in it that a terminal or a reader should not get."""

from __future__ import annotations

import base64
import io
import json
import os
import pty
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.header import Header, encode_header, encode_trailer
from ext_recorder.errors import CassetteError
from ext_recorder.tools.show import show
from tests.support.host import PATIENCE_S
from tests.support.player_host import END, cassette
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from pathlib import Path

SESSION = """
    - {t: 0.0, in: '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"0.0.1"}}'}
    - {t: 0.0214, out: '{"jsonrpc":"2.0","id":1,"result":{"name":"shell"}}'}
    - {t: 0.03, in: '{"jsonrpc":"2.0","id":"x","method":"execute","params":{"operation":"run"}}'}
    - {t: 0.04, out: '{"jsonrpc":"2.0","method":"log","params":{"level":"info"}}'}
    - {t: 0.05, out: '{"jsonrpc":"2.0","id":"x","result":{"success":false,"message":"It failed","error":"exit code
    1"}}'}
    - {t: 0.06, in: '{"jsonrpc":"2.0","id":2,"method":"exekute"}'}
    - {t: 0.07, out: '{"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"Unknown method"}}'}
    - {t: 0.08, err: 'a warning'}
    - {t: 0.09, out: 'Loading...'}
    - {t: 0.10, signal: SIGTERM}
    - {t: 0.14, eof: in}
    - {t: 0.15, exit: 3}
    """


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return cassette(tmp_path / "session.yaml", SESSION)


def shown(path: Path, *, raw: bool = False, as_json: bool = False, color: bool | None = None) -> str:
    file = io.StringIO()
    show(str(path), raw=raw, as_json=as_json, file=file, color=color)
    return file.getvalue()


def test_a_session_is_told_line_by_line(path: Path) -> None:
    lines = [" ".join(line.split()) for line in shown(path).splitlines()]

    assert lines == [
        f"{path}: gevals over ndjson",
        "bindings: workdir is /tmp/workdir",
        "",
        '0.000 → initialize #1 {"protocolVersion":"0.0.1"}',
        '0.021 ← initialize #1 21 ms {"name":"shell"}',
        '0.030 → execute run #"x" {"operation":"run"}',
        '0.040 ← log {"level":"info"}',
        '0.050 ✗ execute #"x" 20 ms failed: It failed; exit code 1',
        "0.060 → exekute #2",
        "0.070 ✗ exekute #2 10 ms error -32601: Unknown method",
        "0.080 ! a warning",
        "0.090 ? not a message Loading...",
        "0.100 signal SIGTERM",
        "0.140 → end of input",
        "0.150 exit 3",
    ]


def test_the_header_says_where_it_comes_from(tmp_path: Path) -> None:
    header = Header("raw", "ndjson", command=("ext-shell", "-v"), recorder="0.1.0", recorded="2026-11-21T21:00:00Z")
    path = tmp_path / "x.yaml"
    path.write_bytes(encode_header(header) + b"- {t: 1, exit: 0}\n" + encode_trailer(("bearer", "env.T")))

    text = shown(path)

    assert "raw over ndjson, recorded 2026-11-21T21:00:00Z by ext-recorder 0.1.0" in text
    assert "command: ext-shell -v" in text
    assert text.endswith("redacted: bearer, env.T\n")


def test_without_a_terminal_there_is_no_color_and_with_one_errors_are_red(path: Path) -> None:
    assert "\x1b" not in shown(path)
    colored = [line for line in shown(path, color=True).splitlines() if line.startswith("\x1b[31m")]
    assert len(colored) == 3
    assert all(line.endswith("\x1b[0m") for line in colored)


def test_lines_are_cut_unless_raw(tmp_path: Path) -> None:
    path = cassette(tmp_path / "x.yaml", "- {t: 1, out: '" + "x" * 1000 + "'}\n" + END)

    assert max(map(len, shown(path).splitlines())) <= 160
    assert "x" * 1000 in shown(path, raw=True)


def test_raw_shows_whole_messages(path: Path) -> None:
    assert '{"jsonrpc":"2.0","id":"x","method":"execute","params":{"operation":"run"}}' in shown(path, raw=True)


def test_a_message_can_not_reach_into_the_terminal(tmp_path: Path) -> None:
    nasty = "\x1b[2J\x07\u202e\u2028\x9b31m\r\x00".encode() + b"\xff"
    path = tmp_path / "x.yaml"
    cassette(path, f"- {{t: 1, out: {{raw: '{base64.b64encode(nasty).decode()}'}}}}\n" + END)

    for text in (shown(path), shown(path, raw=True)):
        assert all(char.isprintable() or char == "\n" for char in text)
    assert "\x1b" not in shown(path, as_json=True)


def test_colors_and_carriage_returns_are_shown_only_in_full(tmp_path: Path) -> None:
    events = """
        - {t: 1, in: "PING\\r"}
        - {t: 2, err: "\\e[1;32mready\\e[0m\\e[K to \\e[31mserve\\e[m"}
        """
    path = cassette(tmp_path / "x.yaml", events + END, protocol="raw")

    lines = [" ".join(line.split()) for line in shown(path).splitlines()]
    assert lines[3:5] == ["1.000 → PING", "2.000 ! ready to serve"]
    assert "PING\\r" in shown(path, raw=True)
    assert "\\e[1;32mready\\e[0m" in shown(path, raw=True)
    assert json.loads(shown(path, as_json=True).splitlines()[1])["payload"].startswith("\x1b[1;32m")


def test_a_secret_in_a_cassette_written_by_hand_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "correct-horse-battery")
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"m","params":{"password":"hunter2hunter2"}}'}
        - {t: 2, err: 'using correct-horse-battery'}
        """
    path = cassette(tmp_path / "x.yaml", events + END)

    for text in (shown(path), shown(path, raw=True), shown(path, as_json=True)):
        assert "hunter2" not in text
        assert "correct-horse" not in text
        assert "[redacted:" in text


def test_json_is_one_object_an_event(path: Path) -> None:
    entries = [json.loads(line) for line in shown(path, as_json=True).splitlines()]

    assert [entry["kind"] for entry in entries] == [
        "request", "response", "request", "notification", "failure", "request", "error", "stderr", "junk", "signal",
        "eof", "exit",
    ]  # fmt: skip
    assert entries[1] == {
        "t": 0.0214,
        "kind": "response",
        "stream": "out",
        "label": "initialize #1",
        "took": 0.0214,
        "payload": '{"jsonrpc":"2.0","id":1,"result":{"name":"shell"}}',
    }


def test_messages_within_raw_bytes_are_told_one_by_one(tmp_path: Path) -> None:
    raw = base64.b64encode(
        b'{"jsonrpc":"2.0","id":1,"method":"a"}\r\n\n{"jsonrpc":"2.0","id":2,"method":"b"}\r\ntail'
    ).decode()
    path = cassette(tmp_path / "x.yaml", f"- {{t: 1, in: {{raw: '{raw}'}}}}\n" + END)

    labels = [json.loads(line).get("label") for line in shown(path, as_json=True).splitlines()]

    assert labels[:4] == ["a #1", "1 bytes, blank line", "b #2", "4 bytes, unterminated line"]


def test_ids_that_come_back_and_answers_to_nothing_are_told_apart(tmp_path: Path) -> None:
    events = """
        - {t: 1.0, in: '{"jsonrpc":"2.0","id":1,"method":"a"}'}
        - {t: 1.1, out: '{"jsonrpc":"2.0","id":1,"method":"ask"}'}
        - {t: 1.3, in: '{"jsonrpc":"2.0","id":1,"result":0}'}
        - {t: 1.7, out: '{"jsonrpc":"2.0","id":1,"result":1}'}
        - {t: 2.0, in: '{"jsonrpc":"2.0","id":1,"method":"b"}'}
        - {t: 2.5, out: '{"jsonrpc":"2.0","id":1,"result":2}'}
        - {t: 3.0, out: '{"jsonrpc":"2.0","id":1,"result":3}'}
        """
    entries = [
        json.loads(line) for line in shown(cassette(tmp_path / "x.yaml", events + END), as_json=True).splitlines()
    ]

    assert [(entry["label"], entry.get("took")) for entry in entries[:7]] == [
        ("a #1", None), ("ask #1", None), ("ask #1", 0.2), ("a #1", 0.7), ("b #1", None), ("b #1", 0.5),
        ("an answer to nothing #1", None),
    ]  # fmt: skip


def test_further_connections_are_numbered(tmp_path: Path) -> None:
    path = cassette(
        tmp_path / "x.yaml", "- {t: 1, conn: 2, open: in}\n- {t: 2, conn: 2, in: 'hello'}\n" + END, protocol="raw"
    )

    assert "[2] connected" in shown(path)
    assert json.loads(shown(path, as_json=True).splitlines()[1])["conn"] == 2


def test_what_could_be_read_of_a_broken_cassette_is_shown_before_the_error(tmp_path: Path) -> None:
    path = cassette(tmp_path / "x.yaml", "- {t: 1, in: 'first'}\n- {t: 2, in: 'broken\n", protocol="raw")
    file = io.StringIO()

    with pytest.raises(CassetteError, match=r"x\.yaml:\d+: "):
        show(str(path), file=file)

    assert "first" in file.getvalue()


def test_an_unknown_protocol_can_be_looked_at(tmp_path: Path) -> None:
    path = cassette(tmp_path / "x.yaml", '- {t: 1, in: \'{"method":"a"}\'}\n' + END, protocol="morse")

    assert "morse over ndjson" in shown(path)


# --- The command ----------------------------------------------------------------------------------------------------


def test_the_command_shows_a_cassette_on_a_pipe_in_plain_text(path: Path) -> None:
    done = subprocess.run([*RECORDER, "show", str(path)], capture_output=True, timeout=PATIENCE_S, check=True)

    assert done.stdout.decode() == shown(path)
    assert done.stderr == b""


def test_a_terminal_without_arrows_is_no_reason_to_fail(path: Path) -> None:
    done = subprocess.run(
        [*RECORDER, "show", str(path)],
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )

    assert b"initialize #1" in done.stdout


def test_a_reader_that_has_seen_enough_is_no_error(path: Path) -> None:
    cassette(path, "- {t: 1, out: 'again and again'}\n" * 50_000 + END, protocol="raw")
    with subprocess.Popen([*RECORDER, "show", str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""


def test_on_a_terminal_lines_fit_its_width(path: Path) -> None:
    main, terminal = pty.openpty()
    command = [*RECORDER, "show", str(path)]
    environment = {**os.environ, "COLUMNS": "40", "TERM": "xterm"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(command, stdout=terminal, env=environment) as process:
        os.close(terminal)
        text = b""
        while True:
            try:
                text += os.read(main, 4096)
            except OSError:  # the terminal's other end is closed
                break
        assert process.wait(PATIENCE_S) == 0
    os.close(main)

    events = [
        re.sub(r"\x1b\[\d+m", "", line) for line in text.decode().splitlines() if re.match(r"(\x1b\[\d+m)? +\d", line)
    ]
    assert len(events) == 12
    assert all(len(line) <= 40 for line in events)
    assert b"\x1b[31m" in text
