"""The pace of a replay: what clients get by separate reads, and that nothing else changes."""

from __future__ import annotations

import os
import socket
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ext_recorder.cassette.reader import Reader
from ext_recorder.posix.output import pipe_outlet, unread
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.replay import event_loop
from ext_recorder.replay.actions import ActionBuffer, Write
from ext_recorder.replay.event_loop import PATIENCE_S, PAUSE_S, POLL_S, PlayerDriver
from ext_recorder.replay.faults import FaultInjector, parse_fault_rules
from ext_recorder.replay.player import Divergence
from ext_recorder.replay.replay import MAX, Options, make_action_buffer, make_player
from ext_sdk.core.wire.framing import FRAMINGS
from tests.support.host import PATIENCE_S as PROCESS_PATIENCE_S
from tests.support.player_host import END, cassette
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOTE = '{"jsonrpc":"2.0","method":"progress"}'
CALL = '{"jsonrpc":"2.0","id":%d,"method":"m"}'
ANSWER = '{"jsonrpc":"2.0","id":%d,"result":1}'


def session(*lines: str) -> str:
    """Return events: '> …' is said by the host, everything else by the child."""
    return "".join(
        f"- {{t: 1, in: '{line[2:]}'}}\n" if line.startswith("> ") else f"- {{t: 1, out: '{line}'}}\n" for line in lines
    )


def wire(*lines: str) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()


# --- What is kept apart ---------------------------------------------------------------------------------------------


def writes(stage: ActionBuffer) -> list[tuple[bytes, bool]]:
    return [(action.data, action.apart) for action in stage.take() if isinstance(action, Write)]


def test_a_response_and_the_notifications_around_it_are_written_apart() -> None:
    stage = ActionBuffer(apart=True)
    for data, answers in ((b"p", False), (b"p", False), (b"a", True), (b"b", True), (b"e", False)):
        stage.out(data, answers=answers)

    assert stage.take_out() is None
    assert writes(stage) == [(b"pp", False), (b"ab", True), (b"e", True)]


def test_a_stage_remembers_what_it_wrote_last() -> None:
    stage = ActionBuffer(apart=True)
    stage.out(b"a", answers=True)
    assert stage.take_out() == b"a"
    stage.out(b"b", answers=True)
    assert stage.take_out() == b"b"
    stage.out(b"e")
    assert stage.take_out() is None
    assert writes(stage) == [(b"e", True)]


def test_as_fast_as_possible_is_one_write() -> None:
    stage = ActionBuffer()
    stage.out(b"p")
    stage.out(b"a", answers=True)
    assert stage.take_out() == b"pa"


MESSAGES = st.lists(st.one_of(st.booleans(), st.sampled_from(["err", "take"])))


@given(MESSAGES, st.booleans())
def test_nothing_is_lost_or_comes_in_another_order(messages: list[bool | str], paced: bool) -> None:
    stage, plain = ActionBuffer(apart=True, paced=paced), ActionBuffer()
    said: list[tuple[bytes, bool]] = []
    fast: list[tuple[bytes, bool]] = []
    for number, message in enumerate(messages):
        if message == "take":
            said += writes(stage)
        elif message == "err":
            stage.err(b"x")
            plain.err(b"x")
        else:
            data = b"%d%c" % (number, b"a" if message else b"n")
            stage.out(data, answers=message is True)
            plain.out(data, answers=message is True)
    said += writes(stage)
    fast += writes(plain)
    assert b"".join(data for data, _ in said) == b"".join(data for data, _ in fast)
    kinds = [set(data.translate(None, b"0123456789")) for data, _ in said if data != b"x"]
    assert all(len(kind) == 1 for kind in kinds)
    before = kinds[:1]
    for kind, apart in zip(kinds, [apart for data, apart in said if data != b"x"], strict=True):
        assert apart == (kind != before[0])
        before = [kind]


def test_a_response_that_a_fault_delays_is_apart_as_well() -> None:
    stage = FaultInjector(
        parse_fault_rules(("delay=2s@method=m",), ""), DIALECTS["jsonrpc"], FRAMINGS["ndjson"], "", apart=True
    )
    stage.on_host_data(wire(CALL % 1))
    stage.out(wire(NOTE))
    stage.out(wire(ANSWER % 1), answers=True)

    assert [(action.apart, action.delay) for action in stage.take() if isinstance(action, Write)] == [
        (False, 0.0),
        (True, 2.0),
    ]


@pytest.mark.parametrize(
    ("speed", "apart"), [(0.0, [False, True]), (1.0, [False, True]), (MAX, [False])]
)  # fmt: skip
def test_the_speed_says_what_is_apart(tmp_path: Path, speed: float, apart: list[bool]) -> None:
    path = cassette(tmp_path / "c.yaml", session("> " + CALL % 1, NOTE, ANSWER % 1) + END, protocol="jsonrpc")
    options = Options(speed=speed)
    with Reader(path) as reader:
        stage = make_action_buffer(reader.header, options)
        player = make_player(reader, stage, options, {})
        player.start()
        player.receive_data(wire(CALL % 7))
        assert [each for _, each in writes(stage)] == apart


DAP_ANSWER = '{"seq": 1, "type": "response", "request_seq": 1, "success": true, "command": "configurationDone"}'
DAP_EVENT = '{"seq": 2, "type": "event", "event": "stopped", "body": {"reason": "breakpoint"}}'


@pytest.mark.parametrize("order", ["strict", "any"])
def test_an_event_of_dap_is_apart_from_the_response_before_it(tmp_path: Path, order: str) -> None:
    request = '{"type":"request","seq":1,"command":"configurationDone"}'
    events = session("> " + request, DAP_ANSWER, DAP_EVENT) + END
    path = cassette(tmp_path / "c.yaml", events, protocol="dap", framing="content-length")
    options = Options(order=order)
    with Reader(path) as reader:
        stage = make_action_buffer(reader.header, options)
        player = make_player(reader, stage, options, {})
        player.start()
        player.receive_data(FRAMINGS["content-length"].encode(request.encode()))
        assert [(DAP_EVENT.encode() in data, apart) for data, apart in writes(stage)] == [(False, False), (True, True)]


# --- When it is written ---------------------------------------------------------------------------------------------


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(event_loop, "monotonic", clock)
    monkeypatch.setattr(event_loop, "monotonic", clock)
    return clock


class Played:
    """A session on pipes whose time is that of a clock.

    Attributes:
        shell: plays it.
    """

    def __init__(self, path: Path, options: Options, clock: Clock) -> None:
        self._reader = Reader(path)
        stage = make_action_buffer(self._reader.header, options)
        source, self._to = os.pipe()
        self._from, out = os.pipe()
        self._nowhere, err = os.pipe()
        for fd in (self._from, out, err):
            os.set_blocking(fd, False)
        self._files = [source, self._to, self._from, out, self._nowhere, err]
        self._clock = clock
        self.player = make_player(self._reader, stage, options, {})
        outlets = {"out": pipe_outlet(out), "err": pipe_outlet(err)}
        self.shell = PlayerDriver(self.player, stage, source, outlets, options.speed)  # type: ignore[arg-type]
        self.shell.start()

    def say(self, *lines: str) -> None:
        os.write(self._to, wire(*lines))
        self.shell.listen()

    def read(self) -> bytes:
        try:
            return os.read(self._from, 65_536)
        except BlockingIOError:
            return b""

    def pass_time(self, seconds: float) -> None:
        self._clock.now += seconds
        self.shell.act({}, {})

    def close(self) -> None:
        self._reader.close()
        for fd in self._files:
            os.close(fd)


@pytest.fixture
def played(tmp_path: Path, clock: Clock) -> Iterator[Played]:
    lines = ("> " + CALL % 1, NOTE, ANSWER % 1, "> " + CALL % 2, NOTE, ANSWER % 2, NOTE)
    path = cassette(tmp_path / "c.yaml", session(*lines) + END, protocol="jsonrpc")
    played = Played(path, Options(), clock)
    yield played
    played.close()


def test_it_is_written_when_the_reader_has_read_and_had_a_pause(played: Played) -> None:
    played.say(CALL % 1)
    for _ in range(10):
        played.pass_time(POLL_S)  # nothing was read
    assert not played.shell.rests
    assert played.read() == wire(NOTE)
    played.pass_time(POLL_S)  # now that is seen
    assert played.read() == b""
    played.pass_time(PAUSE_S)
    assert played.read() == wire(ANSWER % 1)
    assert played.shell.rests


def test_a_host_that_has_read_and_answers_waits_for_nothing(played: Played) -> None:
    played.say(CALL % 1)
    played.read()
    played.pass_time(POLL_S)
    played.pass_time(PAUSE_S)
    assert played.read() == wire(ANSWER % 1)

    played.say(CALL % 2)  # the notification follows a response, which was read

    assert played.read() == wire(NOTE)


def test_who_reads_nothing_is_waited_for_once(played: Played) -> None:
    played.say(CALL % 1, CALL % 2)
    played.pass_time(PATIENCE_S)
    assert played.shell.backlog() == 0 or not played.shell.rests
    played.pass_time(POLL_S)
    assert played.read() == wire(NOTE, ANSWER % 1, NOTE, ANSWER % 2, NOTE)


def test_who_reads_again_is_waited_for_again(played: Played) -> None:
    played.say(CALL % 1)
    played.pass_time(PATIENCE_S + POLL_S)
    assert played.read() == wire(NOTE, ANSWER % 1)
    played.say(CALL % 2)
    assert played.read() == wire(NOTE)
    played.pass_time(POLL_S)
    played.pass_time(PAUSE_S)
    assert played.read() == wire(ANSWER % 2)
    played.pass_time(POLL_S)
    played.pass_time(PAUSE_S)
    assert played.read() == wire(NOTE)


def test_what_is_still_to_be_written_is_backlog(played: Played) -> None:
    played.say(CALL % 1)
    assert played.shell.backlog() >= len(wire(ANSWER % 1))
    assert played.shell.patience() is not None


def test_what_was_released_before_a_divergence_is_written(played: Played) -> None:
    played.player.diverges = True
    played.say(CALL % 1)
    with pytest.raises(Divergence):
        played.say(CALL.replace('"m"', '"other"') % 3)
    assert played.read() == wire(NOTE, ANSWER % 1)


# --- What a reader has not read -------------------------------------------------------------------------------------


def test_the_bytes_in_a_pipe_are_unread() -> None:
    read, write = os.pipe()
    os.write(write, b"12345")
    assert unread(write) == 5
    os.read(read, 5)
    assert unread(write) == 0
    os.close(read)
    assert unread(write) == 0
    os.close(write)


def test_the_bytes_in_a_socket_are_unread() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.send(b"12345")
        assert unread(ours.fileno()) > 0
        theirs.recv(100)
        assert unread(ours.fileno()) == 0


def test_nothing_is_unread_in_a_file(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        file.write(b"12345")
        file.flush()
        assert unread(file.fileno()) == 0


# --- The process ----------------------------------------------------------------------------------------------------


def alone(path: Path, *options: str, calls: int) -> int:
    """Play calls one after another; return for how many of them the notification came in a read of its own."""
    command = [*RECORDER, "replay", *options, str(path)]
    count = 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as child:
        assert child.stdin
        assert child.stdout
        for number in range(calls):
            child.stdin.write(wire(CALL % number))
            expected, heard = wire(NOTE, ANSWER % number), b""
            reads = 0
            while len(heard) < len(expected):
                heard += child.stdout.read(65_536) or b"?" * 1000
                reads += 1
            assert heard == expected
            count += reads > 1
        child.stdin.close()
        assert child.stdout.read() == b""
        assert child.wait(PROCESS_PATIENCE_S) == 0
    return count


def test_a_client_reads_a_notification_before_the_response(tmp_path: Path) -> None:
    calls = 20
    lines = [line for number in range(calls) for line in ("> " + CALL % number, NOTE, ANSWER % number)]
    path = cassette(tmp_path / "c.yaml", session(*lines) + END, protocol="jsonrpc")

    assert alone(path, calls=calls) > 0
    assert alone(path, "--speed", "max", calls=calls) == 0
