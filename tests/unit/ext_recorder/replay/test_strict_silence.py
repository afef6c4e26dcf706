"""Replay for a host that sends nothing while a call of it is open: the response is played early, or its cause named."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.events import Data
from ext_recorder.cassette.reader import Reader
from ext_recorder.replay.replay import Options
from tests.support.host import HostProcess
from tests.support.player_host import END, Host, cassette

if TYPE_CHECKING:
    from pathlib import Path

CALLS = [f'{{"jsonrpc":"2.0","id":{id},"method":"m{id}"}}' for id in (1, 2, 3)]
ANSWERS = [f'{{"jsonrpc":"2.0","id":{id},"result":{id}}}' for id in (1, 2, 3)]
# Three requests at once, then their responses.
PIPELINED = "\n".join(
    [*(f"- {{t: 0.1, in: '{call}'}}" for call in CALLS), *(f"- {{t: 0.2, out: '{answer}'}}" for answer in ANSWERS), END]
)
# `ext-recorder` with hosts that are silent at once.
IMPATIENT = """
import sys
from ext_recorder.replay import event_loop
event_loop.SILENCE_MS = event_loop.NEXT_SILENCE_MS = 1
from ext_recorder.__main__ import main
sys.exit(main())
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "session.yaml"


def test_a_host_that_waits_for_each_response_gets_it_before_its_recorded_place(path: Path) -> None:
    cassette(path, PIPELINED, protocol="jsonrpc")
    with Host(path) as host:
        for call, answer in zip(CALLS, ANSWERS, strict=True):
            played = host.say(call) or host.fall_silent()
            assert played == [answer]
        cause = f"the recorded host sent request m2 (id 2) ({path}:8) before it; --order any plays it at once"
        assert host.err == f"ext-recorder: played a response early: the host waits, but {cause}\n"
        host.close()
        assert host.status == 0


def test_a_response_that_was_played_early_is_not_played_again(path: Path) -> None:
    cassette(path, PIPELINED, protocol="jsonrpc")
    with Host(path) as host:
        assert host.say(CALLS[0]) == []
        assert host.fall_silent() == ANSWERS[:1]
        assert host.say(*CALLS[1:]) == ANSWERS[1:]
        host.close()
        assert host.status == 0


def test_silence_changes_nothing_while_no_call_is_open(path: Path) -> None:
    cassette(path, PIPELINED, protocol="jsonrpc")
    with Host(path) as host:
        assert host.fall_silent() == []
        assert host.say(*CALLS) == ANSWERS
        assert host.fall_silent() == []
        assert host.err == ""


def test_a_host_in_the_middle_of_a_message_is_not_silent(path: Path) -> None:
    cassette(path, PIPELINED, protocol="jsonrpc")
    with Host(path) as host:
        host.say(CALLS[0])
        host.write(CALLS[1][:10].encode())
        assert host.fall_silent() == []
        assert host.write(f"{CALLS[1][10:]}\n{CALLS[2]}\n".encode()).decode().splitlines() == ANSWERS
        assert host.err == ""


@pytest.mark.parametrize("order", ["strict", "any"])
def test_a_response_that_depends_on_the_host_waits_and_its_cause_is_reported_once(path: Path, order: str) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"run"}'}
        - {t: 2, out: '{"jsonrpc":"2.0","id":"q","method":"ask"}'}
        - {t: 3, in: '{"jsonrpc":"2.0","id":"q","result":"yes"}'}
        - {t: 4, out: '{"jsonrpc":"2.0","id":1,"result":"done"}'}
        """
    cassette(path, events + END, protocol="jsonrpc")
    with Host(path, Options(order=order)) as host:
        host.say('{"jsonrpc":"2.0","id":1,"method":"run"}')
        assert host.fall_silent() == []
        assert host.fall_silent() == []
        cause = f'the recorded host sent the answer to the child\'s request "q" ({path}:9) before the response'
        assert host.err == f"ext-recorder: request run (id 1) has no response yet: {cause}; send that\n"
        answer = '{"jsonrpc":"2.0","id":1,"result":"done"}'
        assert host.say('{"jsonrpc":"2.0","id":"q","result":"yes"}') == [answer]
        host.close()
        assert host.status == 0


def test_a_call_that_its_host_takes_back_waits_for_that(path: Path) -> None:
    events = """
        - {t: 1, in: '{"jsonrpc":"2.0","id":1,"method":"slow"}'}
        - {t: 2, in: '{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}'}
        - {t: 3, out: '{"jsonrpc":"2.0","id":1,"error":{"code":-32800,"message":"cancelled"}}'}
        """
    cassette(path, events + END, protocol="jsonrpc")
    with Host(path) as host:
        host.say('{"jsonrpc":"2.0","id":1,"method":"slow"}')
        assert host.fall_silent() == []
        assert f"$/cancelRequest ({path}:8) before the response" in host.err
        (answer,) = host.say('{"jsonrpc":"2.0","method":"$/cancelRequest","params":{"id":1}}')
        assert json.loads(answer)["error"]["code"] == -32800
        host.close()
        assert host.status == 0


def test_a_replay_never_hangs_beside_a_host_that_waits(path: Path) -> None:
    cassette(path, PIPELINED, protocol="jsonrpc")
    command = [sys.executable, "-c", IMPATIENT, "replay", str(path)]
    with HostProcess(command) as process:
        for call, answer in zip(CALLS, ANSWERS, strict=True):
            process.write(f"{call}\n".encode())
            assert process.read_line() == f"{answer}\n".encode()
        assert process.end().code == 0


def test_what_was_played_early_is_in_the_cassette_that_new_episodes_makes(path: Path) -> None:
    cassette(path, PIPELINED, protocol="jsonrpc")
    child = "import sys\nfor line in sys.stdin: print(line.replace('method', 'result').strip(), flush=True)"
    options = ["--mode=new_episodes", "--accept-command", str(path)]
    command = [sys.executable, "-c", IMPATIENT, "record", *options, "--", sys.executable, "-c", child]
    with HostProcess(command) as process:
        process.write(f"{CALLS[0]}\n".encode())
        assert process.read_line() == f"{ANSWERS[0]}\n".encode()
        process.write(b'{"jsonrpc":"2.0","id":4,"method":"new"}\n')
        assert process.read_line() == b'{"jsonrpc":"2.0","id":4,"result":"new"}\n'
        assert process.end().code == 0
    with Reader(path) as reader:
        said = [event.payload.decode() for event in reader if isinstance(event, Data) and event.kind == "out"]
    assert said == [ANSWERS[0], '{"jsonrpc":"2.0","id":4,"result":"new"}']
