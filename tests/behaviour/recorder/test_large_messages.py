"""Messages over the limit: the session goes on, the rest is recorded, and no command passes over them in silence."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.cassette.events import MESSAGE_LIMIT_BYTES, Mark
from ext_recorder.cassette.fast_parser import parse_line
from ext_recorder.cassette.yaml_parser import load_line
from ext_recorder.messages.path_bindings import RecordBindings as Bindings
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.record import event_encoder
from ext_recorder.replay import any_order, strict
from ext_recorder.replay.player import EXIT_DIFFERS
from ext_recorder.replay.replay import Options
from ext_sdk.core.wire.frames import JUNK_PIECE_BYTES, Frame, Overlong
from ext_sdk.core.wire.framing import FRAMINGS
from tests.support.host import PATIENCE_S
from tests.support.player_host import END, Host, cassette, error_of
from tests.support.recorder_process import RECORDER, events, patched, python, recorder

if TYPE_CHECKING:
    from pathlib import Path

    from ext_recorder.cassette.events import Event

SMALL = 1000
PATCHES = ("from ext_recorder.cassette import events", f"events.MESSAGE_LIMIT_BYTES = {SMALL}")
# Answers each request with as many letters as it wants.
CHILD = python(
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    call = json.loads(line)\n"
    "    answer = {'jsonrpc': '2.0', 'id': call['id'], 'result': 'x' * call['params']['size']}\n"
    "    sys.stdout.write(json.dumps(answer) + '\\n')\n"
    "    sys.stdout.flush()\n"
)


def call(id: int, size: int, padding: int = 0) -> bytes:
    params = {"size": size, "padding": "y" * padding} if padding else {"size": size}
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": "m", "params": params}).encode() + b"\n"


# --- Framing --------------------------------------------------------------------------------------------------------


@given(
    st.sampled_from(["ndjson", "content-length"]),
    st.lists(st.integers(1, 3 * JUNK_PIECE_BYTES), max_size=4),
    st.integers(10_000, 100_000),
)
def test_an_overlong_frame_comes_in_pieces_of_which_the_last_one_says_so(
    framing: str, sizes: list[int], step: int
) -> None:
    wire = b"".join(FRAMINGS[framing].encode(b"x" * size) for size in sizes)
    decoder = FRAMINGS[framing].decoder(100)
    items = []
    for start in range(0, len(wire), step):
        decoder.receive_data(wire[start : start + step])
        while item := decoder.next_event():
            items.append(item)
    assert b"".join(item.wire for item in items) == wire
    assert all(isinstance(item, Frame | Overlong) and len(item.wire) <= JUNK_PIECE_BYTES for item in items)
    assert sum(isinstance(item, Overlong) and item.ends for item in items) == sum(size > 100 for size in sizes)
    assert sum(isinstance(item, Frame) for item in items) == sum(size <= 100 for size in sizes)


# --- What is written ------------------------------------------------------------------------------------------------


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (event_encoder, strict, any_order):
        monkeypatch.setattr(module, "MESSAGE_LIMIT_BYTES", SMALL)


def written(stream: str, data: bytes, *, protocol: str = "jsonrpc", chunk: int = 300) -> list[Event | None]:
    bindings = Bindings(DIALECTS[protocol], {}, "")
    framing = FRAMINGS[DIALECTS[protocol].framing]
    keeps_long = not DIALECTS[protocol].calls
    made = event_encoder.EventEncoder(framing, bytes, bindings, keeps_long=keeps_long)
    notes = [(0.0, stream, data[start : start + chunk]) for start in range(0, len(data), chunk)]
    return [parse_line(line) for line in made.lines([*notes, (0.0, stream, b"")])]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("stream", ["in", "out"])
@pytest.mark.parametrize("protocol", ["jsonrpc", "lsp"])
def test_of_a_message_over_the_limit_its_size_is_kept(stream: str, protocol: str) -> None:
    framing = FRAMINGS[DIALECTS[protocol].framing]
    wire = [framing.encode(call(number, 1, padding)[:-1]) for number, padding in enumerate([0, 5000, 0])]

    kinds = [
        (each.kind, getattr(each, "value", "")) for each in written(stream, b"".join(wire), protocol=protocol) if each
    ]

    assert kinds == [(stream, ""), ("omitted", f"{len(wire[1])} bytes of {stream}"), (stream, ""), ("eof", stream)]


@pytest.mark.usefixtures("small")
def test_a_message_over_the_limit_that_never_ends_is_left_out_as_well() -> None:
    (omitted, _) = written("in", b"x" * 5000)
    assert omitted == Mark("omitted", 0.0, "5000 bytes of in")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("stream", "protocol"), [("err", "jsonrpc"), ("out", "raw")])
def test_lines_of_the_child_that_are_not_messages_are_kept_whatever_their_length(stream: str, protocol: str) -> None:
    data = b"x" * 5000 + b"\nend\n"
    assert (
        b"".join(getattr(each, "payload", b"") for each in written(stream, data, protocol=protocol)[:-2]) == data[:-4]
    )


def test_it_is_a_line_of_the_cassette() -> None:
    line = b"- {t: 1.500000, conn: 2, omitted: 70000000 bytes of out}\n"
    assert parse_line(line) == load_line("x", line) == Mark("omitted", 1.5, "70000000 bytes of out", 2)
    for wrong in (b"bytes of out", b"7 bytes of err", b"7", b"7 bytes  of out", b"x bytes of out"):
        assert parse_line(line.replace(b"70000000 bytes of out", wrong)) is None


# --- How it is replayed ---------------------------------------------------------------------------------------------

TWO_CALLS = """
    - {t: 1, in: '{"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"size": 5000}}'}
    - {t: 2, omitted: 5036 bytes of out}
    - {t: 3, in: '{"jsonrpc": "2.0", "id": 2, "method": "m", "params": {"size": 1}}'}
    - {t: 4, out: '{"jsonrpc": "2.0", "id": 2, "result": "x"}'}
    """


@pytest.mark.parametrize("order", ["strict", "any"])
def test_the_call_whose_answer_was_left_out_is_answered_by_an_error(tmp_path: Path, order: str) -> None:
    path = cassette(tmp_path / "c.yaml", TWO_CALLS + END, protocol="jsonrpc")
    with Host(path, Options(order=order)) as host:
        (line,) = host.say(call(7, 5000).decode().strip())
        assert json.loads(line)["id"] == 7
        assert "its answer was left out" in str(error_of(line)["message"])
        assert host.say(call(8, 1).decode().strip()) == ['{"jsonrpc": "2.0", "id": 8, "result": "x"}']
        host.close()
        assert host.status == EXIT_DIFFERS
        assert (
            f"a message of the child of 5036 bytes was left out (the limit is {MESSAGE_LIMIT_BYTES} bytes)" in host.err
        )


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("order", ["strict", "any"])
def test_a_message_of_the_host_over_the_limit_stands_for_the_one_that_was_left_out(tmp_path: Path, order: str) -> None:
    session = """
    - {t: 1, omitted: 5036 bytes of in}
    - {t: 2, out: '{"jsonrpc": "2.0", "id": 1, "result": "long"}'}
    - {t: 3, in: '{"jsonrpc": "2.0", "id": 2, "method": "m", "params": {"size": 1}}'}
    - {t: 4, out: '{"jsonrpc": "2.0", "id": 2, "result": "x"}'}
    """
    path = cassette(tmp_path / "c.yaml", session + END, protocol="jsonrpc")
    with Host(path, Options(order=order)) as host:
        assert host.say(call(1, 1, 4000).decode().strip()) == ['{"jsonrpc": "2.0", "id": 1, "result": "long"}']
        assert host.say(call(2, 1).decode().strip()) == ['{"jsonrpc": "2.0", "id": 2, "result": "x"}']
        host.close()
        assert host.status == 0


def test_a_message_under_the_limit_does_not(tmp_path: Path) -> None:
    path = cassette(tmp_path / "c.yaml", "- {t: 1, omitted: 70000000 bytes of in}\n" + END, protocol="jsonrpc")
    with Host(path) as host:
        (line,) = host.say(call(1, 1).decode().strip())
        assert "never recorded" in str(error_of(line)["message"])
        host.close()
        assert host.status == EXIT_DIFFERS


# --- The commands ---------------------------------------------------------------------------------------------------


def command(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RECORDER, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_a_session_with_one_is_recorded_and_replayed_without_it(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    said = call(1, 5000) + call(2, 1)

    recording = subprocess.run(
        patched(recorder(path, CHILD), *PATCHES), input=said, capture_output=True, timeout=PATIENCE_S, check=True
    )

    assert [len(json.loads(line)["result"]) for line in recording.stdout.splitlines()] == [5000, 1]
    assert b"a message was left out (5042 bytes; the limit is 1000 bytes)" in recording.stderr
    kinds = [each.kind for each in events(path)]
    assert kinds.count("omitted") == 1
    assert kinds[-1] == "exit"
    playing = subprocess.run(
        [*RECORDER, "replay", str(path)], input=said, capture_output=True, timeout=PATIENCE_S, check=False
    )
    first, second = map(json.loads, playing.stdout.splitlines())
    assert "left out" in first["error"]["message"]
    assert second["result"] == "x"
    assert playing.returncode == EXIT_DIFFERS


def test_the_other_commands_say_so(tmp_path: Path) -> None:
    path = str(cassette(tmp_path / "c.yaml", TWO_CALLS + END, protocol="jsonrpc"))

    assert "a message of 5036 bytes, left out" in command("show", path).stdout
    assert command("lint", path).returncode == 0
    verified = command("verify", path, "--", *CHILD)
    assert verified.returncode == 2
    assert "a message of the child of 5036 bytes was left out" in verified.stdout + verified.stderr
    again = tmp_path / "again.yaml"
    assert command("convert", "-o", str(tmp_path / "c.jsonl"), path).returncode == 0
    assert command("convert", "-o", str(again), str(tmp_path / "c.jsonl")).returncode == 0
    assert [each.kind for each in events(again)] == [each.kind for each in events(tmp_path / "c.yaml")]
