"""Turns: sequential calls are read and performed by one thread; everything else is as without them."""

from __future__ import annotations

import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.support.host import PROBE, ExtensionHost, execute, request
from tests.support.meetings import Meeting

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Every call counts as short, and the thread that reads is named on stderr.
PROGRAM = f"""
import os, runpy, sys, threading
from ext_sdk.core.stdio import Stdio
from ext_sdk.server import server

server.SHORT_SECONDS = float("inf")
server.CHECK_MILLISECONDS, server.LINGER_MILLISECONDS = map(int, sys.argv[1:])
del sys.argv[1:]
read = Stdio.read

def reporting_read(stdio):
    os.write(2, threading.current_thread().name.encode() + b"\\n")
    return read(stdio)

Stdio.read = reporting_read
runpy.run_path({PROBE[1]!r}, run_name="__main__")
"""
LONG = 60_000  # milliseconds: the main thread does not check the turn, or the turn does not end by itself
CHECK = 2
MAIN, WORKER = "MainThread", "operation"


@contextmanager
def in_turn(check: int = LONG, linger: int = LONG) -> Iterator[ExtensionHost]:
    """Yield the host of an extension after some calls."""
    with ExtensionHost([sys.executable, "-c", PROGRAM, str(check), str(linger)]) as peer:
        for number in range(20):
            assert peer.outputs("echo", {"text": str(number)})["text"] == str(number)
        yield peer


@pytest.fixture
def peer() -> Iterator[ExtensionHost]:
    with in_turn(CHECK) as peer:
        yield peer


@pytest.fixture
def meeting(tmp_path: Path) -> Iterator[Meeting]:
    meeting = Meeting(tmp_path, "first")
    yield meeting
    meeting.close()


def test_a_worker_reads_the_calls_that_follow_one_by_one() -> None:
    with in_turn() as peer:
        readers = peer.stderr.split()
        begin = readers.index(WORKER)
        assert readers[:begin] == [MAIN] * begin
        assert readers[begin:] == [WORKER] * (len(readers) - begin)


def test_the_main_thread_reads_after_another_message() -> None:
    with in_turn() as peer:
        assert peer.initialize()["result"]
        assert peer.stderr.split()[-1] == WORKER
        assert peer.outputs("echo", {"text": "x"})["text"] == "x"
        assert peer.stderr.split()[-1] == MAIN


def test_the_main_thread_reads_after_a_pause() -> None:
    with in_turn(CHECK, 0) as peer:  # no turn waits for a call
        assert peer.outputs("echo", {"text": "x"})["text"] == "x"
        assert set(peer.stderr.split()) <= {MAIN, WORKER}
        peer.send(request("end", "shutdown"))
        assert [answer["id"] for answer in peer.rest()] == ["end"]


def test_calls_are_read_while_a_turn_performs_one(peer: ExtensionHost, meeting: Meeting) -> None:
    peer.send(execute("slow", "meet", meeting.args))
    assert meeting.started.line() == "started"
    for number in range(5):
        assert peer.outputs("echo", {"text": str(number)})["text"] == str(number)
    meeting.go_on.write("done")
    assert peer.message()["id"] == "slow"
    assert peer.outputs("echo", {"text": "after"})["text"] == "after"


def test_a_turn_that_another_one_follows_reads_no_more(peer: ExtensionHost, tmp_path: Path) -> None:
    meetings = [Meeting(tmp_path, name) for name in ("a", "b", "c")]
    for meeting in meetings:  # each is performed by a turn of its own, whose input was taken
        peer.send(execute(meeting.args["started"], "meet", meeting.args))
        assert meeting.started.line() == "started"
    for meeting in meetings:
        meeting.go_on.write("done")
        assert peer.message()["id"] == meeting.args["started"]
        for number in range(3):
            assert peer.outputs("echo", {"text": str(number)})["text"] == str(number)
        meeting.close()


def test_a_deadline_ends_a_call_of_a_turn(peer: ExtensionHost, meeting: Meeting) -> None:
    error = peer.error("hang", meeting.args, timeout="200ms")
    assert error["code"] == -32001
    assert peer.outputs("echo", {"text": "next"})["text"] == "next"


def test_calls_in_one_write_run_side_by_side(peer: ExtensionHost, meeting: Meeting) -> None:
    peer.send(execute("slow", "meet", meeting.args), execute("fast", "echo"))
    assert peer.message()["id"] == "fast"
    meeting.go_on.write("")
    assert peer.message()["id"] == "slow"


@pytest.mark.parametrize("check", [CHECK, LONG])
def test_a_message_in_pieces_ends_a_turn(check: int) -> None:
    with in_turn(check) as peer:
        line = b'{"jsonrpc":"2.0","id":"cut","method":"execute","params":{"operation":"echo","args":{},"context":'
        peer.write(line)
        peer.write(b'{"workdir":"/tmp"}}}\n')
        assert peer.message()["id"] == "cut"
        assert peer.outputs("echo", {"text": "x"})["text"] == "x"


@pytest.mark.parametrize("end", ["eof", "shutdown", "SIGTERM"])
@pytest.mark.parametrize("running", [False, True])
def test_a_session_ends_in_a_turn(peer: ExtensionHost, meeting: Meeting, end: str, running: bool) -> None:
    if running:
        peer.send(execute("running", "wait-for-stop" if end != "eof" else "meet", meeting.args))
        assert meeting.started.line() == "started"
    if end == "eof":
        peer.eof()
        meeting.go_on.write("")
    elif end == "shutdown":
        peer.send(request("end", "shutdown"))
    else:
        peer.process.send_signal(signal.SIGTERM)
    expected = ["running"] * running + ["end"] * (end == "shutdown")
    assert [answer["id"] for answer in peer.rest()] == expected
    assert peer.exit_code() == 0


def test_state_is_closed_when_the_host_reads_no_more(tmp_path: Path) -> None:
    with in_turn() as peer:
        trace = tmp_path / "trace"
        peer.initialize({"trace": str(trace)})
        for number in range(5):
            assert peer.outputs("count")["count"] == str(number + 1)
        assert peer.process.stdout
        peer.process.stdout.close()
        assert peer.exit_code() == 1
        assert trace.read_text() == "closed at 5\n"
