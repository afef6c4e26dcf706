"""kill -9 at any point of a session, of whom it may be: the older cassette stays, and what was written is recovered."""

from __future__ import annotations

import os
import random
import signal
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.recovery import recover
from tests.support.recorder_process import (
    ECHO,
    children_of,
    marks,
    messages,
    partial_of,
    python,
    run,
    scribe_of,
    start,
    wait_until_gone,
)

if TYPE_CHECKING:
    from pathlib import Path

# Answers each request at once.
ANSWERS = python(
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    print(json.dumps({'jsonrpc': '2.0', 'id': json.loads(line)['id'], 'result': {}}), flush=True)"
)
POINTS = 6
LINES = 400


def line(number: int) -> bytes:
    return b"line %d" % number


SENT = b"".join(line(number) + b"\n" for number in range(LINES))


def session_until(cassette: Path, seed: int, victim: str) -> tuple[int, list[int]]:
    """A session that is flooded, and in which somebody is killed while bytes are everywhere.

    Returns the bytes that the host had read by then, and the processes that have to be gone.
    """
    host = start(cassette, ECHO, "--mode=all", "--protocol=raw")
    host.write(SENT)
    heard = random.Random(seed).randrange(len(SENT))
    assert host.read(heard) == SENT[:heard]
    scribe = scribe_of(host)
    processes = children_of(host.pid)
    (child,) = set(processes) - {scribe}
    os.kill({"recorder": host.pid, "child": child, "scribe": scribe}[victim], signal.SIGKILL)
    host.end()
    for pid in processes:
        wait_until_gone(pid)
    return heard, processes


@pytest.fixture(scope="module")
def older_session(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    cassette = tmp_path_factory.mktemp("older") / "session.yaml"
    run(cassette, ECHO, "--protocol=raw", stdin=b"the older session\n")
    return cassette.read_bytes()


@pytest.fixture
def older(cassette: Path, older_session: bytes) -> bytes:
    """Leave an older cassette where the session is recorded, and return its content."""
    cassette.write_bytes(older_session)
    return older_session


@pytest.mark.parametrize("seed", range(POINTS))
def test_a_killed_recorder_leaves_the_older_cassette_and_a_partial_one_of_all_that_was_forwarded(
    cassette: Path, older: bytes, seed: int
) -> None:
    heard, _ = session_until(cassette, seed, "recorder")
    assert cassette.read_bytes() == older
    recovered = recover(partial_of(cassette), cassette.with_name("rescued.yaml")).path
    for kind in ("in", "out"):
        found = messages(recovered, kind)
        assert found == [line(number) for number in range(len(found))]
        assert len(b"".join(each + b"\n" for each in found)) >= heard - len(line(LINES))


@pytest.mark.parametrize("protocol", ["auto", "acp"])
def test_a_recorder_that_is_killed_right_after_an_answer_has_kept_it(cassette: Path, protocol: str) -> None:
    # mcpchecker kills an ACP agent as soon as it has the answer to its prompt; the wire has never been idle.
    asked = [b'{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{}}' % id for id in range(20)]
    answer = b""
    host = start(cassette, ANSWERS, f"--protocol={protocol}")
    for request in asked:
        host.write(request + b"\n")
        answer = host.read_line()
    processes = children_of(host.pid)
    host.kill()
    host.end()
    for pid in processes:
        wait_until_gone(pid)
    recovered = recover(partial_of(cassette)).path
    assert messages(recovered, "in") == asked
    assert messages(recovered, "out")[-1] + b"\n" == answer
    assert len(messages(recovered, "out")) == len(asked)


@pytest.mark.parametrize("seed", range(POINTS))
@pytest.mark.usefixtures("older")
def test_a_killed_child_leaves_a_whole_cassette_of_all_that_it_said(cassette: Path, seed: int) -> None:
    heard, _ = session_until(cassette, seed, "child")
    assert marks(cassette, "exit") == [("exit", "SIGKILL")]
    found = messages(cassette, "out")
    assert found == [line(number) for number in range(len(found))]
    assert len(b"".join(each + b"\n" for each in found)) >= heard - len(line(LINES))
    assert not partial_of(cassette).exists()


@pytest.mark.parametrize("seed", range(POINTS))
def test_a_killed_scribe_leaves_the_older_cassette_and_the_session(cassette: Path, older: bytes, seed: int) -> None:
    session_until(cassette, seed, "scribe")
    assert cassette.read_bytes() == older
