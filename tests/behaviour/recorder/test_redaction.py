"""Secrets of whole sessions, with real processes: next to colours, in commands, cut in two; and bytes that stay."""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.cassette.events import Data, note
from ext_recorder.cassette.reader import Reader
from ext_recorder.record.split_secrets import SplitSecrets, StreamedText, may_be_delta
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from tests.support.host import PATIENCE_S
from tests.support.player_host import END
from tests.support.player_host import cassette as written
from tests.support.recorder_process import ECHO, RECORDER, messages, python, run

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "gh" + "p_" + "16C7e42F292c6912E7710c838347Ae178B4a"
NDJSON = FRAMINGS["ndjson"]


def replay(cassette: Path, stdin: bytes) -> subprocess.CompletedProcess[bytes]:
    command = [*RECORDER, "replay", str(cassette)]
    return subprocess.run(command, input=stdin, capture_output=True, timeout=PATIENCE_S, check=False)


# --- Next to control sequences ----------------------------------------------------------------------------------------

COLOURED = [
    f"\x1b[32m{TOKEN}\x1b[0m",
    json.dumps({"jsonrpc": "2.0", "method": "log", "params": {"text": f"\x1b[1;32m{TOKEN}\x1b[0m"}}),
    f'\x1b[34m"password"\x1b[0m: \x1b[32m"{TOKEN}"\x1b[0m',
]


@pytest.mark.parametrize("line", COLOURED)
def test_a_token_behind_a_colour_is_in_no_stream(cassette: Path, line: str) -> None:
    child = python(
        "import sys\nfor line in sys.stdin: print(line, end='', flush=True); print(line, end='', file=sys.stderr)"
    )
    session = run(cassette, child, stdin=f"{line}\n".encode())
    assert session.out == f"{line}\n".encode()
    assert TOKEN not in cassette.read_text()
    for stream in ("in", "out", "err"):
        (kept,) = messages(cassette, stream)
        assert b"[redacted:" in kept
        assert TOKEN.encode() not in kept


@pytest.mark.parametrize("line", COLOURED)
def test_scrub_finds_a_token_behind_a_colour(tmp_path: Path, line: str) -> None:
    path = tmp_path / "c.yaml"
    item = Frame(line.encode(), line.encode() + b"\n")
    events = [note(stream, 0.1, item, NDJSON, lambda data: data) for stream in ("in", "out", "err")]
    written(path, b"".join(events).decode() + END, protocol="raw")
    command = [*RECORDER, "scrub", "--check", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 1
    assert "(3)" in done.stdout


# --- Commands ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (["-p", "hunter2x"], ("-p", "[redacted:option.p#1]")),
        (["--password", "hunter2"], ("--password", "[redacted:key.password#1]")),
        (["--password=hunter2"], ("--password=[redacted:key.password#1]",)),
        (["mysql", "-phunter2"], ("mysql", "-p[redacted:option.p#1]")),
        (["-p", "8080"], ("-p", "8080")),
    ],
)
def test_the_recorded_command_has_no_password(cassette: Path, arguments: list[str], kept: tuple[str, ...]) -> None:
    run(cassette, [*python("pass"), *arguments], stdin=b"")
    with Reader(cassette) as reader:
        assert reader.header.command[-len(kept) :] == kept


# --- Bytes that are not text ------------------------------------------------------------------------------------------


def test_random_bytes_are_replayed_as_they_were(cassette: Path) -> None:
    size = 8_000_000
    child = python(
        "import os, random\n"
        f"data = random.Random(5).randbytes({size})\n"
        "view = memoryview(data)\n"
        "while view: view = view[os.write(1, view[:65536]):]"
    )
    expected = hashlib.md5(random.Random(5).randbytes(size), usedforsecurity=False).hexdigest()
    run(cassette, child, "--protocol", "raw", stdin=b"", env={"DB_PIN_SECRET": "4711"})
    played = replay(cassette, b"")
    assert hashlib.md5(played.stdout, usedforsecurity=False).hexdigest() == expected
    assert cassette.read_bytes().endswith(b"redacted: []\n")


# --- Protocols --------------------------------------------------------------------------------------------------------


def test_progress_tokens_of_a_language_server_stay(cassette: Path) -> None:
    lines = [
        '{"jsonrpc":"2.0","id":1,"method":"window/workDoneProgress/create","params":{"token":"5577006791947779410"}}',
        '{"jsonrpc":"2.0","method":"$/progress","params":{"token":"5577006791947779410","value":{"kind":"begin"}}}',
    ]
    run(cassette, ECHO, stdin="".join(f"{line}\n" for line in lines).encode())
    assert [each.decode() for each in messages(cassette, "out")] == lines


# --- Cut in two by messages -------------------------------------------------------------------------------------------


def delta(text: str, number: int = 0) -> bytes:
    update = {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}}
    message = {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"sessionId": "s", "seq": number, "update": update},
    }
    return json.dumps(message).encode()


def text_of(payload: bytes) -> str:
    return str(json.loads(payload)["params"]["update"]["content"]["text"])


def streamed(cassette: Path, texts: list[str]) -> list[str]:
    """Record a child that streams a text; return the recorded pieces, those of the replay."""
    lines = b"".join(delta(text, number) + b"\n" for number, text in enumerate(texts))
    answer = b'{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}\n'
    said = cassette.with_name("said")
    said.write_bytes(lines + answer)
    child = python(
        "import os, sys\n"
        "os.read(0, 9999)\n"
        "view = memoryview(open(sys.argv[1], 'rb').read())\n"
        "while view: view = view[os.write(1, view):]\n"
        "os.read(0, 9)"
    )
    child.append(str(said))
    request = b'{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{}}\n'
    assert run(cassette, child, stdin=request).out == lines + answer
    played = replay(cassette, request)
    assert played.returncode == 0
    *pieces, last = played.stdout.splitlines()
    assert last + b"\n" == answer
    assert pieces == messages(cassette, "out")[:-1]
    return [text_of(piece) for piece in pieces]


@pytest.mark.parametrize(
    ("texts", "kept"),
    [
        (["my token is " + TOKEN[:12], TOKEN[12:] + " ok"], ["my token is [redacted:github#1]", " ok"]),
        (["is " + TOKEN[:30], TOKEN[30:]], ["is [redacted:github#1]", ""]),
        (["is ", *TOKEN, " ok"], ["is ", "[redacted:github#1]", *[""] * (len(TOKEN) - 1), " ok"]),
        (["password", ": ", "hunter2", "\n"], ["password", ": ", "[redacted:key.password#1]", "\n"]),
        (["one ", "two ", "two ", "three"], ["one ", "two ", "two ", "three"]),
        (['say \\"' + TOKEN[:9], TOKEN[9:] + '\\"'], ['say \\"[redacted:github#1]', '\\"']),
    ],
)
def test_a_secret_that_is_streamed_in_pieces_is_found(cassette: Path, texts: list[str], kept: list[str]) -> None:
    assert streamed(cassette, texts) == kept
    assert TOKEN[-6:] not in cassette.read_text()


def test_a_long_text_is_released_before_it_ends_and_no_secret_with_it(cassette: Path) -> None:
    kept = streamed(cassette, ["some words, and ", "a token: ", TOKEN[:20], TOKEN[20:], " ok. "] * 300)
    hidden = [piece for piece in kept if piece.startswith("[redacted:")]  # by its key, or by its format
    assert [piece for piece in kept if piece not in hidden] == ["some words, and ", "a token: ", "", " ok. "] * 300
    assert len(hidden) == 300


def held(payloads: list[bytes], redactor: Redactor) -> list[bytes]:
    """Return what becomes of messages that are held back."""
    deltas = SplitSecrets(redactor.replacements, lambda _, payload: redactor.redact(payload))
    items = [StreamedText(0.0, Frame(payload, payload)) for payload in payloads]
    for item in items:
        deltas.take(item)
    deltas.release()
    return [item.line or b"" for item in items]


@given(
    st.lists(st.text(max_size=12) | st.sampled_from([" " + TOKEN[:9], TOKEN[9:], "token: ", "\\", '"']), max_size=12)
)
def test_pieces_stay_messages_and_nothing_else_is_lost(texts: list[str]) -> None:
    payloads = [delta(text, number) for number, text in enumerate(texts)]
    kept = held(payloads, Redactor(rules=True))
    joined = "".join(text_of(each) for each in kept)
    assert " " + TOKEN not in joined
    if "[redacted:" not in joined:
        assert kept == payloads


@pytest.mark.parametrize(
    "other",
    [
        b'{"jsonrpc":"2.0","method":"other","params":{"text":"b"}}',
        b'{"jsonrpc":"2.0","method":"x","params":{"text":"b","more":"c"}}',
        b'{"jsonrpc":"2.0","method":"x","params":{"taxt":"a"}}',
        b'{"jsonrpc":"2.0","method":"x","params":["a"]}',
    ],
)
def test_messages_of_another_form_do_not_continue_a_text(other: bytes) -> None:
    first = b'{"jsonrpc":"2.0","method":"x","params":{"text":"a"}}'
    found = StreamedText(0.0, Frame(first, first)).difference(StreamedText(0.0, Frame(other, other)))
    assert found in {-1, 7}  # 7: the method, under which nothing is streamed
    assert may_be_delta(first)


def test_only_json_objects_are_held_back() -> None:
    assert not may_be_delta(b"a line")
    assert not may_be_delta(b'{"x":"' + b"a" * 10_000 + b'"}')


def test_a_notification_is_written_when_the_session_breaks_off(cassette: Path) -> None:
    line = delta("one") + b"\n"
    child = python(f"import os\nos.write(1, {line!r})\nos.read(0, 9)\nos.kill(os.getpid(), 9)")
    run(cassette, child, stdin=b"x\n")
    with Reader(cassette) as reader:
        kept = [event.payload for event in reader if isinstance(event, Data) and event.kind == "out"]
    assert kept == [delta("one")]


def test_the_header_lines_of_a_notification_stay(cassette: Path) -> None:
    notification = b'{"jsonrpc":"2.0","method":"textDocument/publishDiagnostics","params":{"text":"a long text"}}'
    head = (f"Content-Length: {len(notification)}", "Content-Type: application/vscode-jsonrpc; charset=utf8")
    wire = "\r\n".join([*head, "", ""]).encode() + notification
    run(cassette, ECHO, "--protocol", "lsp", stdin=wire)
    with Reader(cassette) as reader:
        (said,) = [event for event in reader if isinstance(event, Data) and event.kind == "out"]
    assert (said.head, said.payload) == (head, notification)
