"""`verify --connect`: sessions over sockets, played to a real server by all their clients at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_recorder.cassette.events import Data, Mark
from ext_recorder.cassette.reader import Reader
from tests.peers.conversations import Names, inside, kaiak, tells, waza, write_evals
from tests.peers.conversations import call as request
from tests.support.host import PATIENCE_S, connected
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from tests.support.host import MessageStream
    from tests.support.ports import NewPort

    # Gives addresses of a kind that nobody listens at.
    Free: TypeAlias = Callable[[str], str]

ROOT = Path(__file__).parents[4]
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT)}


def peer(name: str, address: str) -> list[str]:
    return [sys.executable, "-m", f"tests.peers.{name}", "--listen", address]


@pytest.fixture
def free(tmp_path: Path, new_port: NewPort) -> Free:
    numbers = count()
    return lambda kind: f"unix:{tmp_path}/{next(numbers)}.sock" if kind == "unix" else f"tcp:127.0.0.1:{new_port()}"


@contextmanager
def recorded(path: Path, name: str, server: str, *, started: bool = True) -> Iterator[str]:
    """A peer with a recorder before it: the address for clients. The session ends by SIGTERM."""
    listen = f"unix:{path.parent}/relay" if server.startswith("unix:") else "tcp:127.0.0.1:0"
    command = [*RECORDER, "record", f"--protocol={name}", f"--listen={listen}", f"--connect={server}", str(path)]
    own = None if started else subprocess.Popen(peer(name, server), env=ENVIRONMENT, stderr=subprocess.PIPE)
    if own and own.stderr:
        assert b"listening" in own.stderr.readline()
    process = subprocess.Popen(
        [*command, *(["--", *peer(name, server)] if started else [])],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    )
    assert process.stderr is not None
    try:
        said = process.stderr.readline().decode()
        yield said.partition("listening on ")[2].partition(",")[0]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)
    finally:
        for each in (process, own):
            if each:
                each.kill()
                each.communicate()


def verify(path: Path, *words: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    there, text = path.parent / "there", path.read_text()
    folders = {"evals": there / "evals", "workspace": there}
    bound = [f"--bind={name}={folder}" for name, folder in folders.items() if f"{name}: " in text]
    command = [*RECORDER, "verify", "--timeout=30", *bound, *options, *words[:1], str(path), *words[1:]]
    return subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def two_at_once(one: MessageStream, other: MessageStream, folder: Path) -> None:
    """Two clients of waza: the second asks, in the middle, for the run that the first was told of."""
    path = str(folder / "evals/functions/eval.yaml")
    one.send(request(1, "eval.run", path=path, executor="never"))
    run = str(inside(one.next(), "result")["runId"])
    other.send(request(1, "task.list", path=path))
    other.next()
    one.until(tells("eval.progress", event="run_complete"))
    other.send(request(2, "eval.get", path=path))
    other.next()
    one.send(request(2, "run.status", runId=run), request(3, "run.cancel", runId=run))
    one.next()
    one.next()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the servers work, when they are recorded and when they are verified."""
    made = tmp_path / "there"
    made.mkdir()
    write_evals(made)
    return made


def session(path: Path, name: str, server: str, folder: Path, *, started: bool = True) -> Path:
    """A recorded session of a peer that listens at `server`."""
    framing = {"waza": "ndjson", "kaiak": "content-length"}[name]
    talk: Callable[[MessageStream, Names, Path], None] = {"waza": waza, "kaiak": kaiak}[name]
    with recorded(path, name, server, started=started) as address:
        first, one = connected(address, framing)
        second, other = connected(address, framing)
        with first, second:
            talk(one, Names(), folder)
            if name == "waza":
                two_at_once(one, other, folder)
            else:
                talk(other, Names(100, "second-"), folder)
    with Reader(path) as reader:
        assert {event.conn for event in reader} == ({0, 1, 2})
    return path


@pytest.mark.parametrize(("name", "kind"), [("waza", "tcp"), ("kaiak", "unix")])
def test_the_same_server_answers_all_its_clients_as_recorded(
    name: str, kind: str, tmp_path: Path, folder: Path, free: Free
) -> None:
    path = session(tmp_path / "c.yaml", name, free(kind), folder)
    address = free(kind)
    done = verify(path, f"--connect={address}", "--", *peer(name, address))
    assert (done.returncode, done.stdout, done.stderr) == (0, f"ok      {path}\n", "")


def test_another_server_differs_on_the_connection_that_shows_it(tmp_path: Path, folder: Path, free: Free) -> None:
    path = session(tmp_path / "c.yaml", "waza", free("tcp"), folder)
    (folder / "evals/functions/eval.yaml").write_text('{"name":"other","skill":"azure","version":"1.0","tasks":[]}')
    address = free("tcp")
    done = verify(path, f"--connect={address}", "--", *peer("waza", address))
    assert done.returncode == 1
    assert "the answer to eval.get (id 2): /result/name" in done.stdout
    assert 'found     "other"' in done.stdout


def test_a_server_that_runs_already_is_verified_and_left_running(tmp_path: Path, folder: Path, free: Free) -> None:
    path = session(tmp_path / "c.yaml", "waza", free("tcp"), folder, started=False)
    address = free("tcp")
    with subprocess.Popen(peer("waza", address), env=ENVIRONMENT, stderr=subprocess.PIPE) as server:
        assert server.stderr is not None
        server.stderr.readline()
        for _ in range(2):
            done = verify(path, f"--connect={address}")
            assert (done.returncode, done.stdout) == (0, f"ok      {path}\n"), done.stdout + done.stderr
        assert server.poll() is None
        server.kill()


def test_a_session_with_a_server_that_ran_already_is_verified_with_one_that_is_started(
    tmp_path: Path, folder: Path, free: Free
) -> None:
    path = session(tmp_path / "c.yaml", "waza", free("tcp"), folder, started=False)
    address = free("tcp")
    done = verify(path, f"--connect={address}", "--", *peer("waza", address))
    assert (done.returncode, done.stdout) == (0, f"ok      {path}\n")


def test_an_update_is_a_cassette_of_all_connections(tmp_path: Path, folder: Path, free: Free) -> None:
    path = session(tmp_path / "c.yaml", "waza", free("tcp"), folder)
    (folder / "evals/functions/eval.yaml").write_text(
        '{"name":"other","skill":"azure","version":"1.0","tasks":[{"id":"create"},{"id":"delete"}]}'
    )
    address = free("tcp")
    updated = verify(path, f"--connect={address}", "--", *peer("waza", address), options=("--update",))
    assert "updated: " in updated.stdout, updated.stdout + updated.stderr
    with Reader(path) as reader:
        events = list(reader)
    assert {event.conn for event in events} == {0, 1, 2}
    assert [event.conn for event in events if isinstance(event, Mark) and event.kind == "open"] == [1, 2]
    assert [(event.kind, event.value) for event in events if isinstance(event, Mark)][-1] == ("exit", "SIGTERM")
    named = [event.conn for event in events if isinstance(event, Data) and b'"name":"other"' in event.payload]
    assert set(named) == {1, 2}


def test_no_server_and_one_that_ends_at_once_are_told(tmp_path: Path, folder: Path, free: Free) -> None:
    path = session(tmp_path / "c.yaml", "waza", free("tcp"), folder)
    address = free("tcp")
    done = verify(path, f"--connect={address}")
    assert done.returncode == 2
    assert (
        f"{path}: no connection to {address}: Connection refused; start the server, or give its command" in done.stdout
    )
    done = verify(path, f"--connect={address}", "--", "sh", "-c", "echo broken >&2; exit 3")
    assert done.returncode == 2
    assert (
        f"no connection to {address}: the server has exited (3); its output on stderr:\n" in done.stdout + done.stderr
    )
    assert "broken" in done.stdout + done.stderr


def test_a_session_over_sockets_is_not_verified_on_stdio(tmp_path: Path, folder: Path, free: Free) -> None:
    path = session(tmp_path / "c.yaml", "waza", free("tcp"), folder)
    done = verify(path, "--messages-only", "--", "cat")
    assert done.returncode == 2
    assert "verify --connect" in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--connect=morse:1"], "--connect morse:1: expected tcp:HOST:PORT or unix:PATH"),
        (["--connect=tcp:1", "--http"], "expected the command to run with --http"),
    ],
)
def test_what_does_not_go_together_is_told(tmp_path: Path, words: list[str], said: str) -> None:
    done = subprocess.run([*RECORDER, "verify", *words, "c.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert said in done.stderr
