"""Recording and replaying socket servers: TCP and Unix, several connections at once."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

import pytest

from ext_recorder.cassette.reader import Reader
from tests.support.host import PATIENCE_S
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from tests.support.ports import NewPort

# Answers what it is asked; tells "broadcast" to every other client; greets where the second argument says so.
SERVER = """
import json, os, socketserver, sys
kind, place, greeting = sys.argv[1:4]
others = []
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        others.append(self)
        os.write(2, b"a client\\n")  # in one piece: clients are served by threads
        if greeting:
            self.wfile.write(greeting.encode() + b"\\n")
        for line in self.rfile:
            asked = json.loads(line)
            if asked["method"] == "broadcast":
                for other in others:
                    if other is not self:
                        other.wfile.write(b'{"jsonrpc":"2.0","method":"news","params":%d}\\n' % asked["params"])
            if asked["method"] == "bye":
                return
            self.wfile.write(b'{"jsonrpc":"2.0","id":%d,"result":%d}\\n' % (asked["id"], asked["params"]))
        others.remove(self)
base = socketserver.ThreadingUnixStreamServer if kind == "unix" else socketserver.ThreadingTCPServer
base.daemon_threads = base.allow_reuse_address = True
base(place if kind == "unix" else ("127.0.0.1", int(place)), Handler).serve_forever()
"""


class Relay:
    """A running recorder or replayer of sockets; `heading` is what it said first."""

    def __init__(self, process: subprocess.Popen[bytes], heading: bytes) -> None:
        self.process = process
        self.heading = heading
        self.address = heading.decode().partition("listening on ")[2].partition(",")[0]
        self.said = b""

    def end(self, number: int = signal.SIGTERM) -> int:
        """Signal it and wait. Returns its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.wait()

    def wait(self) -> int:
        """Wait for it."""
        _, err = self.process.communicate(timeout=PATIENCE_S)
        self.said += err
        return self.process.returncode


@contextmanager
def started(command: Sequence[str]) -> Iterator[Relay]:
    """A recorder or replayer of sockets, once it listens."""
    pipe = subprocess.PIPE
    # Without a buffer, in which communicate() would not find what has come with the first line.
    process = subprocess.Popen(command, bufsize=0, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe)
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        if said.startswith(b"ext-recorder: replaying "):
            said = process.stderr.readline()
        assert b"listening on " in said, said
        yield Relay(process, said)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


@contextmanager
def running(*words: str, address: str = "tcp:127.0.0.1:0") -> Iterator[Relay]:
    """`ext-recorder` with --listen, once it listens."""
    with started([*RECORDER, words[0], f"--listen={address}", *words[1:]]) as relay:
        yield relay


class Client:
    """One client of a server that speaks lines."""

    def __init__(self, address: str) -> None:
        kind, _, place = address.partition(":")
        if kind == "unix":
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.connect(place)
        else:
            host, _, port = place.rpartition(":")
            self.socket = socket.create_connection((host, int(port)))
        self.socket.settimeout(PATIENCE_S)
        self.lines = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.lines.close()
        self.socket.close()

    def ask(self, id: int, method: str, params: int) -> None:
        asked = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self.socket.sendall(json.dumps(asked).encode() + b"\n")

    def hear(self) -> dict[str, object]:
        line = self.lines.readline()
        assert line, "the server has closed the connection"
        heard: dict[str, object] = json.loads(line)
        return heard


def answer(id: int, result: int) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": id, "result": result}


NEWS = {"jsonrpc": "2.0", "method": "news", "params": 42}


def recording(tmp_path: Path, place: int | Path, greeting: str = "") -> tuple[list[str], str]:
    """The arguments that record the server at a port or a path, and the address for its clients."""
    kind = "tcp" if isinstance(place, int) else "unix"
    target = f"unix:{place}" if kind == "unix" else f"tcp:127.0.0.1:{place}"
    address = f"unix:{tmp_path / 'relay.sock'}" if kind == "unix" else "tcp:127.0.0.1:0"
    server = [sys.executable, "-c", SERVER, kind, str(place), greeting]
    cassette = str(tmp_path / "session.yaml")
    return ["record", "--protocol=jsonrpc", f"--connect={target}", cassette, "--", *server], address


def two_clients(address: str, *, ids: int = 1) -> None:
    """The session that is recorded: two clients side by side, and news for one that the other has caused."""
    with Client(address) as one, Client(address) as other:
        one.ask(ids, "first", 1)
        assert one.hear() == answer(ids, 1)
        other.ask(ids, "second", 2)
        assert other.hear() == answer(ids, 2)
        one.ask(ids + 1, "broadcast", 42)
        assert one.hear() == answer(ids + 1, 42)
        assert other.hear() == NEWS


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_two_clients_are_recorded_and_play_without_the_server(tmp_path: Path, kind: str, new_port: NewPort) -> None:
    words, address = recording(tmp_path, new_port() if kind == "tcp" else tmp_path / "server.sock")
    with running(*words, address=address) as relay:
        two_clients(relay.address)
        assert relay.end() == -signal.SIGTERM
    with Reader(tmp_path / "session.yaml") as reader:
        assert {event.conn for event in reader} == {0, 1, 2}
    for ids in (1, 70):
        with running("replay", str(tmp_path / "session.yaml"), address=address) as relay:
            two_clients(relay.address, ids=ids)
            assert relay.end() == -signal.SIGTERM, relay.said
            assert relay.said.count(b"a client\n") == 2


@pytest.fixture
def cassette(tmp_path: Path, new_port: NewPort) -> str:
    """Two clients, recorded."""
    words, address = recording(tmp_path, new_port())
    with running(*words, address=address) as relay:
        two_clients(relay.address)
        relay.end()
    return str(tmp_path / "session.yaml")


def test_clients_that_come_in_another_order_each_get_their_own_connection(cassette: str) -> None:
    with running("replay", cassette) as relay, Client(relay.address) as other, Client(relay.address) as one:
        other.ask(1, "second", 2)
        assert other.hear() == answer(1, 2)
        one.ask(1, "first", 1)
        assert one.hear() == answer(1, 1)
        one.ask(2, "broadcast", 42)
        assert other.hear() == NEWS
        assert one.hear() == answer(2, 42)


def test_news_wait_for_the_other_client_that_caused_them(cassette: str) -> None:
    with running("replay", cassette) as relay, Client(relay.address) as other, Client(relay.address) as one:
        one.ask(1, "first", 1)
        assert one.hear() == answer(1, 1)
        other.ask(1, "second", 2)
        assert other.hear() == answer(1, 2)
        other.socket.settimeout(0.0)
        with pytest.raises(BlockingIOError):
            other.socket.recv(1)
        other.socket.settimeout(PATIENCE_S)
        one.ask(2, "broadcast", 42)
        assert other.hear() == NEWS


def test_what_never_came_and_what_came_too_much_makes_exit_code_3(cassette: str) -> None:
    with running("replay", cassette) as relay:
        with Client(relay.address) as one:
            one.ask(1, "first", 1)
            assert one.hear() == answer(1, 1)
            one.ask(2, "unheard", 1)
            error = one.hear()["error"]
            assert isinstance(error, dict)
            assert "never recorded" in str(error["message"])
        assert relay.end() == 3
    assert b"the recorded connection 2" in relay.said
    assert b"never played" in relay.said


def test_a_third_client_of_two_is_closed_and_told(cassette: str) -> None:
    with running("replay", cassette) as relay:
        two_clients(relay.address)
        with Client(relay.address) as third:
            assert third.lines.readline() == b""
        assert relay.end() == 3
    assert b"one connection more than the 2" in relay.said


def test_in_any_order_each_connection_plays_by_itself(cassette: str) -> None:
    with running("replay", "--order=any", cassette) as relay:
        with Client(relay.address) as other:
            other.ask(5, "second", 2)
            assert other.hear() == answer(5, 2)
        with Client(relay.address) as one:
            one.ask(6, "broadcast", 42)
            assert one.hear() == answer(6, 42)
        assert relay.end() == -signal.SIGTERM, relay.said


def test_a_server_that_speaks_first_and_one_that_hangs_up(tmp_path: Path, new_port: NewPort) -> None:
    words, address = recording(tmp_path, new_port(), greeting='{"jsonrpc":"2.0","method":"hello"}')

    def session(place: str) -> None:
        with Client(place) as one:
            assert one.hear()["method"] == "hello"
            one.ask(1, "bye", 0)
            assert one.lines.readline() == b""

    with running(*words, address=address) as relay:
        session(relay.address)
        relay.end()
    with running("replay", str(tmp_path / "session.yaml")) as relay:
        session(relay.address)
        assert relay.end() == -signal.SIGTERM, relay.said


def test_a_server_that_runs_already_is_recorded_until_a_signal(tmp_path: Path, new_port: NewPort) -> None:
    port = new_port()
    server = subprocess.Popen([sys.executable, "-c", SERVER, "tcp", str(port), ""], stderr=subprocess.DEVNULL)
    try:
        wait_for(port)
        cassette = str(tmp_path / "session.yaml")
        with running("record", "--protocol=jsonrpc", f"--connect=tcp:127.0.0.1:{port}", cassette) as relay:
            two_clients(relay.address)
            assert relay.end(signal.SIGINT) == 0
    finally:
        server.terminate()
        server.wait()
    with running("replay", cassette) as relay:
        two_clients(relay.address)
        assert relay.end(signal.SIGINT) == -signal.SIGINT, relay.said


def wait_for(port: int) -> None:
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            continue
        return


def test_a_server_that_is_not_there_is_told_and_the_client_let_go(tmp_path: Path, new_port: NewPort) -> None:
    port = new_port()
    with running("record", f"--connect=tcp:127.0.0.1:{port}", str(tmp_path / "session.yaml")) as relay:
        with Client(relay.address) as client:
            assert client.lines.readline() == b""
        relay.end()
    assert b"cannot connect to tcp:127.0.0.1:" in relay.said
    assert b"Traceback" not in relay.said


def test_a_megabyte_passes_in_both_directions_while_nobody_reads(tmp_path: Path, new_port: NewPort) -> None:
    words, address = recording(tmp_path, new_port())
    with running(*words, address=address) as relay, Client(relay.address) as one:
        for id in range(20_000):
            one.ask(id, "much", id)
        for id in range(20_000):
            assert one.hear() == answer(id, id)
        relay.end()
    with Reader(tmp_path / "session.yaml") as reader:
        assert sum(event.kind == "out" and event.conn == 1 for event in reader) == 20_000


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--listen=morse:1", "--connect=tcp:1"], "--listen morse:1: expected tcp:HOST:PORT or unix:PATH"),
        (["--listen=tcp:127.0.0.1:99999", "--connect=tcp:1"], "expected tcp:HOST:PORT or unix:PATH"),
        (["--listen=tcp:127.0.0.1:0"], "both or neither"),
        (["--connect=tcp:127.0.0.1:1"], "both or neither"),
        (["--listen=unix:/no/such/folder/x.sock", "--connect=tcp:1"], "cannot listen at unix:/no/such/folder/x.sock"),
    ],
)
def test_a_wrong_address_is_explained(tmp_path: Path, words: list[str], said: str) -> None:
    command = [*RECORDER, "record", *words, str(tmp_path / "x.yaml"), "--", "true"]
    done = subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 2
    assert said in done.stderr.decode()
    assert not list(tmp_path.iterdir())


def test_the_socket_file_of_a_dead_server_is_replaced_and_that_of_a_live_one_is_not(
    tmp_path: Path, cassette: str
) -> None:
    path = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with running("replay", cassette, address=f"unix:{path}") as relay:
        assert path.stat().st_mode & 0o777 == 0o600
        second = [*RECORDER, "replay", f"--listen=unix:{path}", cassette]
        done = subprocess.run(second, capture_output=True, timeout=PATIENCE_S, check=False)
        told = f"cannot listen at unix:{path}: Address already in use; end the process that listens there"
        assert (done.returncode, told in done.stderr.decode()) == (2, True)
        relay.end()
    assert not path.exists()


def test_a_shim_of_a_socket_server_records_at_first_and_replays_from_then_on(tmp_path: Path) -> None:
    words, address = recording(tmp_path, tmp_path / "server.sock")
    shim = tmp_path / "server"
    made = [*RECORDER, "shim", f"--listen={address}", *words[1:3], str(shim), *words[3:]]
    done = subprocess.run(made, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for doing in (b"for unix:", b"replaying"):
        with started([str(shim)]) as relay:
            assert doing in relay.heading
            two_clients(relay.address)
            assert relay.end() == -signal.SIGTERM, relay.said


def test_a_shim_of_a_socket_server_that_only_replays_needs_no_server(tmp_path: Path, cassette: str) -> None:
    shim = tmp_path / "server"
    made = [*RECORDER, "shim", "--mode=none", "--listen=tcp:127.0.0.1:0", "--connect=tcp:1", str(shim), cassette]
    subprocess.run(made, timeout=PATIENCE_S, check=True)
    with started([str(shim)]) as relay:
        two_clients(relay.address)
        assert relay.end() == -signal.SIGTERM, relay.said


# Says much to its client, more than a socket holds, and ends at once.
LEAVING = """
import socket, sys
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
client, _ = server.accept()
client.recv(1)
client.sendall(bytes(300_000))
"""


def test_a_client_that_reads_later_has_all_that_a_server_said_before_its_end(tmp_path: Path) -> None:
    place, address = tmp_path / "server.sock", f"unix:{tmp_path}/relay.sock"
    server = [sys.executable, "-c", LEAVING, str(place)]
    words = ["record", "--protocol=raw", f"--connect=unix:{place}", str(tmp_path / "session.yaml"), "--", *server]
    with running(*words, address=address) as relay, Client(relay.address) as client:
        client.socket.sendall(b"\n")
        assert relay.wait() == 0, relay.said
        assert not (tmp_path / "relay.sock").exists()
        assert len(client.lines.read()) == 300_000
