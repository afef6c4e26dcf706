"""`record --dir`: a cassette for each session, and never a replay; names that are templates."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING

from ext_recorder.cli.cassette_names import expanded, is_unique, release, reserved
from ext_recorder.messages.provenance import Live
from tests.support.host import PATIENCE_S, HostProcess
from tests.support.recorder_process import ECHO, RECORDER, messages, python, run, wait_for
from tests.unit.ext_recorder.sockets.test_server import Client, running

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

LINE = b'{"jsonrpc":"2.0","method":"%d"}\n'


def start(*words: str) -> HostProcess:
    return HostProcess([*RECORDER, "record", *words])


def test_sessions_at_the_same_time_have_a_cassette_each(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "sessions"
    hosts = [start("--dir", str(folder), "--", *ECHO) for _ in range(4)]
    for number, host in enumerate(hosts):
        host.write(LINE % number)
        assert host.read_line() == LINE % number
    for host in hosts:
        done = host.end()
        assert (done.code, done.err) == (0, b"")
    found = sorted(folder.iterdir())
    assert [path.suffix for path in found] == [".yaml"] * 4
    assert sorted(messages(path, "in")[0] + b"\n" for path in found) == [LINE % number for number in range(4)]


def test_a_name_that_is_taken_is_not_given_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 1_790_000_000_123_456_789)
    monkeypatch.setattr("os.getpid", lambda: 7)
    name = f"{tmp_path}/{{time}}-{{pid}}.yaml"
    stem = f"{tmp_path}/20260921T141320.123456Z-7"
    assert reserved(name) == f"{stem}.yaml"
    (tmp_path / "20260921T141320.123456Z-7-2.yaml").write_text("a cassette")
    (tmp_path / "20260921T141320.123456Z-7-3.http.yaml").write_text("HTTP traffic")
    assert reserved(name) == f"{stem}-4.yaml"
    assert not (tmp_path / "20260921T141320.123456Z-7-3.yaml.partial").exists()
    release(f"{stem}.yaml")
    assert reserved(name) == f"{stem}.yaml"


def test_a_template_is_a_name_of_the_session(tmp_path: Path) -> None:
    name = f"{tmp_path}/echo-{{args}}-{{pid}}.yaml"
    for _ in range(2):
        assert run(tmp_path / "echo-{args}-{pid}.yaml", python("import sys; print(sys.argv[1:])")).code == 0
    assert is_unique(name)
    assert len(list(tmp_path.glob("echo-*-*.yaml"))) == 2
    assert expanded("{args}.yaml", Live(["x", "get", "a"])) == "get_a.yaml"
    assert expanded("{args}.yaml", Live(["x", "-f", "get", "a"], passed=1)) == "a.yaml"
    assert expanded("{odd}/{args}.yaml", Live(["x"])) == "{odd}/none.yaml"


def test_secrets_and_folders_of_this_machine_are_not_in_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    monkeypatch.setenv("PLACE", "/home/ada/x")
    monkeypatch.setenv("THE_TOKEN", "hunter2-hunter2")
    live = Live(["x", "--password", "Wq7Rk2vX", "/home/ada/f", "hunter2-hunter2"], match_env=("PLACE",))
    name = expanded("{args} {env}.yaml", live)
    for hidden in ("Wq7Rk2vX", "ada", "hunter2"):
        assert hidden not in name
    assert "/" not in name
    monkeypatch.setenv("PLACE", "/home/ada/y")
    assert expanded("{args} {env}.yaml", live) != name


def test_a_command_that_cannot_be_started_leaves_nothing(tmp_path: Path) -> None:
    done = start("--dir", str(tmp_path), "--", "/no/such/program").end()
    assert done.code == 127
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_written_does_not_stop_the_session(tmp_path: Path) -> None:
    host = start("--dir", "/proc/1/none", "--", *ECHO)
    host.write(LINE % 1)
    assert host.read_line() == LINE % 1
    done = host.end()
    assert done.code == 0
    assert b": /proc/1/none: No such file" in done.err  # told when it is seen: during the session or at its end


def test_a_session_of_a_killed_recorder_stays_partial_and_is_recovered(tmp_path: Path) -> None:
    host = start("--dir", str(tmp_path), "--", *ECHO)
    host.write(LINE % 1)
    assert host.read_line() == LINE % 1
    host.kill()
    host.communicate(timeout=PATIENCE_S)
    (partial,) = tmp_path.iterdir()
    assert partial.name.endswith(".yaml.partial")
    wait_for(partial, b"out: ")


def test_sessions_of_a_socket_server_have_a_cassette_each(tmp_path: Path) -> None:
    folder, place = tmp_path / "sessions", tmp_path / "echo.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(place))
        server.listen()
        for number in range(2):
            options = ["--dir", str(folder), "--protocol=jsonrpc", f"--connect=unix:{place}"]
            with running("record", *options, address=f"unix:{tmp_path}/relay.sock") as relay:
                with Client(relay.address) as client:
                    client.socket.sendall(LINE % number)
                    connection, _ = server.accept()
                    with connection:
                        connection.sendall(connection.recv(1000))
                        assert client.lines.readline() == LINE % number
                assert relay.end(signal.SIGINT) == 0
    found = sorted(folder.iterdir())
    assert [messages(path, "in") for path in found] == [[(LINE % number)[:-1]] for number in range(2)]


def test_http_traffic_has_a_file_of_the_same_name(tmp_path: Path) -> None:
    done = start("--dir", str(tmp_path), "--http", "--", *python("pass")[:1], "-c", "print('a line')").end()
    assert (done.code, done.out) == (0, b"a line\n")
    cassette, traffic = sorted(tmp_path.iterdir(), key=lambda path: len(path.name))
    assert traffic.name == f"{cassette.stem}.http.yaml"
