"""The HTTP traffic of a socket server: recorded behind the relay, answered when the real server runs again."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support.host import PATIENCE_S
from tests.support.http_child import document, script
from tests.support.http_site import serving
from tests.support.recorder_process import RECORDER
from tests.unit.ext_recorder.sockets.test_server import Client, answer, running

if TYPE_CHECKING:
    from tests.support.http_stub import Stub

# Asks the network for what each request names, and answers by what came; says on stderr that it listens.
SOCKET_SERVER = """
import json, socketserver, sys, urllib.request
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            asked = json.loads(line)
            got = urllib.request.urlopen({url!r} + "/" + asked["method"]).read().decode()
            told = {{"jsonrpc": "2.0", "id": asked["id"], "result": int(got) + asked["params"]}}
            self.wfile.write(json.dumps(told).encode() + b"\\n")
with socketserver.ThreadingUnixStreamServer({place!r}, Handler) as server:
    server.daemon_threads = True
    print("listening on unix:" + {place!r} + ",", file=sys.stderr, flush=True)
    server.serve_forever()
"""


def server_of(web: Stub, tmp_path: Path) -> tuple[list[str], str]:
    """The command of the socket server, and where it listens."""
    place = tmp_path / "server.sock"
    place.unlink(missing_ok=True)  # what the last one has left
    return script(SOCKET_SERVER.format(url=web.origin, place=str(place))), f"unix:{place}"


def uri_of(interaction: dict[str, object]) -> str:
    request = interaction["request"]
    assert isinstance(request, dict)
    return str(request["uri"])


def two_clients(address: str) -> None:
    """Both count by one page of the web, with the same id."""
    with Client(address) as one, Client(address) as other:
        one.ask(1, "count/same", 10)
        assert one.hear() == answer(1, 11)
        other.ask(1, "count/same", 20)
        assert other.hear() == answer(1, 22)
        one.ask(2, "count/other", 30)
        assert one.hear() == answer(2, 31)


class Recorded(NamedTuple):
    """A recorded session of two clients, whose web is closed."""

    cassette: Path
    command: list[str]
    connect: str  # address of the server


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("recorded")
    cassette, listen = folder / "session.yaml", f"unix:{folder}/relay.sock"
    with serving() as web:
        command, connect = server_of(web, folder)
        words = ["record", "--http", "--protocol=jsonrpc", f"--connect={connect}", str(cassette), "--", *command]
        with running(*words, address=listen) as relay:
            two_clients(relay.address)
            assert relay.end() == -signal.SIGTERM, relay.said
    return Recorded(cassette, command, connect)


@pytest.fixture
def recorded(session: Recorded) -> Recorded:
    """The session, for a server that has not been started."""
    Path(session.connect.removeprefix("unix:")).unlink(missing_ok=True)
    return session


def test_the_traffic_of_a_socket_server_is_recorded_with_the_calls_that_caused_it(
    recorded: Recorded,
) -> None:
    cassette, _, _ = recorded
    asked = [(uri_of(each).rpartition("/")[2], each["call"]) for each in document(cassette)["interactions"]]
    assert asked == [("same", 1), ("same", 1), ("other", 2)]


def test_the_real_server_runs_behind_a_relay_without_its_web(recorded: Recorded, tmp_path: Path) -> None:
    cassette, command, connect = recorded
    words = ["replay", "--http", f"--connect={connect}", str(cassette), "--", *command]
    with running(*words, address=f"unix:{tmp_path}/relay.sock") as relay:
        two_clients(relay.address)
        assert relay.end() == -signal.SIGTERM, relay.said
    assert not (tmp_path / "relay.sock").exists()


def test_the_mode_once_records_first_and_runs_the_real_server_from_then_on(recorded: Recorded, tmp_path: Path) -> None:
    cassette, command, connect = recorded
    before = cassette.read_bytes()
    words = ["record", "--http", "--protocol=jsonrpc", f"--connect={connect}", str(cassette), "--", *command]
    with running(*words, address=f"unix:{tmp_path}/relay.sock") as relay:
        two_clients(relay.address)
        assert relay.end() == -signal.SIGTERM, relay.said
    assert cassette.read_bytes() == before


def test_clients_may_come_to_the_real_server_itself(recorded: Recorded) -> None:
    cassette, command, connect = recorded
    line = [*RECORDER, "replay", "--http", "--quiet", str(cassette), "--", *command]
    with subprocess.Popen(line, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        try:
            assert process.stderr is not None
            assert b"listening" in process.stderr.readline()
            two_clients(connect)
            process.terminate()
            assert process.wait(PATIENCE_S) == -signal.SIGTERM
        finally:
            process.kill()


def test_what_no_client_caused_this_time_makes_exit_code_3(recorded: Recorded, tmp_path: Path) -> None:
    cassette, command, connect = recorded
    words = ["replay", "--http", f"--connect={connect}", str(cassette), "--", *command]
    with running(*words, address=f"unix:{tmp_path}/relay.sock") as relay:
        with Client(relay.address) as one:
            one.ask(1, "count/same", 10)
            assert one.hear() == answer(1, 11)
        assert relay.end() == 3
    assert b"recorded requests were never sent" in relay.said


def verify(*words: str) -> subprocess.CompletedProcess[str]:
    line = [*RECORDER, "verify", *words]
    return subprocess.run(line, capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def test_the_server_is_verified_without_its_web(recorded: Recorded) -> None:
    cassette, command, connect = recorded
    done = verify("--http", f"--connect={connect}", str(cassette), "--", *command)
    assert (done.returncode, done.stdout) == (0, f"ok      {cassette}\n"), done.stdout + done.stderr


def test_a_server_that_asks_the_web_for_something_else_differs(recorded: Recorded) -> None:
    cassette, command, connect = recorded
    changed = [*command[:-1], command[-1].replace('asked["method"]', '"another"')]
    done = verify("--http", f"--connect={connect}", str(cassette), "--", *changed)
    assert done.returncode == 1
    assert "/another: never recorded" in done.stdout


def test_a_server_that_is_no_python_program_is_ended_before_it_is_used(recorded: Recorded) -> None:
    cassette, _, connect = recorded
    done = verify("--http", f"--connect={connect}", str(cassette), "--", sys.executable, "-S", "-c", "")
    assert done.returncode == 2
    assert "has not loaded the HTTP layer" in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["record", "--http", "--listen=unix:l", "--connect=unix:c", "x.yaml"],
            "expected the command to run with --http",
        ),
        (["verify", "--http", "--connect=unix:c", "x.yaml"], "expected the command to run with --http"),
        (["replay", "--http", "--listen=unix:l", "x.yaml", "--", "true"], "omit --listen, or add --connect"),
        (["replay", "--http", "--connect=unix:c", "x.yaml", "--", "true"], "both or neither"),
        (
            ["replay", "--connect=unix:c", "x.yaml"],
            "--connect unix:c: replay does not connect to a server; add --http to run one",
        ),
        (["replay", "--http", "--fault=drop", "x.yaml", "--", "true"], "--fault applies to recorded messages"),
    ],
)
def test_what_does_not_go_together_is_told_with_what_to_do(tmp_path: Path, words: list[str], said: str) -> None:
    done = subprocess.run([*RECORDER, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert not list(tmp_path.iterdir())
