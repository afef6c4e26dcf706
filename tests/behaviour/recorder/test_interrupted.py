"""Interrupted sessions with HTTP traffic, of socket servers, and of new episodes: none becomes a cassette."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.host import PATIENCE_S, HostProcess, read
from tests.support.recorder_process import (
    RECORDER,
    children_of,
    command_of,
    messages,
    partial_of,
    python,
    recorder,
    run,
    start,
    wait_for,
    wait_until_gone,
)
from tests.unit.ext_recorder.sockets.test_server import Client, running

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ports import NewPort

REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"a"}\n'
HANG = b'{"jsonrpc":"2.0","id":2,"method":"hang"}\n'
# Answers each request but `hang`; `crash` ends it.
CHILD = (
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    message = json.loads(line)\n"
    "    if message['method'] == 'crash':\n"
    "        sys.exit(7)\n"
    "    if message['method'] != 'hang':\n"
    "        print(json.dumps({'jsonrpc': '2.0', 'id': message['id'], 'result': {}}), flush=True)\n"
)


def http_of(cassette: Path) -> Path:
    return cassette.with_name("session.http.yaml")


def recover(path: Path) -> None:
    done = subprocess.run([*RECORDER, "recover", str(path)], capture_output=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr


def test_a_child_that_a_signal_to_its_group_ends_leaves_no_cassette(cassette: Path) -> None:
    code = "import os, signal, sys; sys.stdin.readline(); os.kill(os.getpid(), signal.SIGTERM)"
    host = start(cassette, python(code), "--protocol=lsp", "--framing=ndjson")
    host.write(b'{"jsonrpc":"2.0","method":"a"}\n')
    assert host.wait(PATIENCE_S) == -signal.SIGTERM  # before its input is closed
    done = host.end()
    assert b"the session was interrupted: it was ended by SIGTERM" in done.err
    assert not cassette.exists()
    assert partial_of(cassette).exists()


# --- HTTP -------------------------------------------------------------------------------------------------------------


def test_an_open_call_leaves_both_files_partial_and_both_are_recovered(cassette: Path) -> None:
    command = [sys.executable, "-c", CHILD]
    host = start(cassette, command, "--http")
    host.write(REQUEST)
    host.read_line()
    host.write(HANG)
    done = host.end()
    assert done.code == 0
    for path in (cassette, http_of(cassette)):
        assert f"{path}: not made, the session was interrupted".encode() in done.err
        assert not path.exists()
        assert partial_of(path).exists()
    again = run(cassette, command, "--http", stdin=REQUEST)  # --mode once records again
    assert again.code == 0
    assert b"replaying" not in again.err
    assert cassette.exists()
    assert http_of(cassette).exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_script_that_a_signal_ends_has_no_whole_recording(cassette: Path, number: signal.Signals) -> None:
    program = "import signal, sys; signal.signal(2, signal.SIG_DFL); print('half', flush=True); sys.stdin.read()"
    host = start(cassette, [sys.executable, "-c", program], "--http")
    assert host.read_line() == b"half\n"
    host.send_signal(number)
    assert host.wait(PATIENCE_S) == -number
    done = host.end()
    assert f"the session was interrupted: it was ended by {number.name}".encode() in done.err
    assert not cassette.exists()
    assert not http_of(cassette).exists()
    for path in (cassette, http_of(cassette)):
        recover(partial_of(path))
        assert path.exists()


def test_a_server_on_stdio_that_a_signal_ends_between_calls_is_whole(cassette: Path) -> None:
    host = start(cassette, [sys.executable, "-c", CHILD], "--http", "--protocol=mcp")
    host.write(REQUEST)
    host.read_line()
    host.send_signal(signal.SIGTERM)
    host.wait(PATIENCE_S)
    host.end()
    assert cassette.exists()
    assert http_of(cassette).exists()


@pytest.mark.parametrize("at", ["start", "open call", "between calls"])
def test_a_killed_recorder_leaves_no_whole_http_traffic(cassette: Path, at: str) -> None:
    host = start(cassette, [sys.executable, "-c", "print('ready', flush=True)\n" + CHILD], "--http")
    host.read_line()
    if at != "start":
        host.write(HANG if at == "open call" else REQUEST)
    if at == "between calls":
        host.read_line()
    host.kill()
    host.communicate(timeout=PATIENCE_S)
    partial = partial_of(http_of(cassette))
    wait_for(partial, b"\nredacted:")
    assert not cassette.exists()
    assert not http_of(cassette).exists()


# A host that says what it is told on its command line, then its child's process id, and waits to be killed.
HOST = (
    "import subprocess, sys, time\n"
    "child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)\n"
    "child.stdin.write(sys.stdin.buffer.readline())\n"
    "child.stdout.readline()\n"
    "child.stdin.write(sys.stdin.buffer.readline())\n"
    "print(child.pid, flush=True)\n"
    "sys.stdin.buffer.read()"
)


@pytest.mark.parametrize("options", [[], ["--http"]])
@pytest.mark.parametrize("last", [HANG, b""])
def test_a_host_that_is_killed_leaves_a_cassette_only_if_no_call_was_open(
    cassette: Path, last: bytes, options: list[str]
) -> None:
    command = recorder(cassette, [sys.executable, "-c", CHILD], "--protocol=jsonrpc", *options)
    host = HostProcess([sys.executable, "-c", HOST, *command])
    host.write(REQUEST + (last or b"\n"))
    pid = int(host.read_line())
    if last:
        wait_for(partial_of(cassette), b'"hang"')
    host.kill()
    host.communicate(timeout=PATIENCE_S)
    wait_until_gone(pid)
    for path in [cassette, *([http_of(cassette)] if options else [])]:
        assert path.exists() == (not last)
        assert partial_of(path).exists() == bool(last)


# --- Sockets ----------------------------------------------------------------------------------------------------------

SERVER = """
import json, os, socketserver, sys
class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        for line in self.rfile:
            asked = json.loads(line)
            if asked["method"] == "crash":
                os._exit(7)
            if asked["method"] != "hang":
                self.wfile.write(b'{"jsonrpc":"2.0","id":%d,"result":%d}\\n' % (asked["id"], asked["params"]))
socketserver.ThreadingTCPServer.daemon_threads = socketserver.ThreadingTCPServer.allow_reuse_address = True
server = socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Handler)
print("up", flush=True)
server.serve_forever()
"""


def words(cassette: Path, port: int, *, starts: bool) -> list[str]:
    command = ["--", sys.executable, "-c", SERVER, str(port)] if starts else []
    return ["record", "--protocol=jsonrpc", f"--connect=tcp:127.0.0.1:{port}", str(cassette), *command]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("starts", [True, False])
@pytest.mark.parametrize("client", ["waits", "has hung up"])
def test_an_open_call_on_a_socket_is_an_interruption(
    cassette: Path, new_port: NewPort, client: str, *, starts: bool, number: signal.Signals
) -> None:
    port = new_port()
    server = None
    if not starts:
        server = subprocess.Popen([sys.executable, "-c", SERVER, str(port)], stdout=subprocess.PIPE)
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
    try:
        with running(*words(cassette, port, starts=starts)) as relay:
            with Client(relay.address) as first:
                first.ask(1, "a", 1)
                first.hear()
                first.ask(2, "hang", 2)
                if client == "waits":
                    wait_for(partial_of(cassette), b'"hang"')
                    relay.end(number)
            if client != "waits":
                wait_for(partial_of(cassette), b"eof: in")
                relay.end(number)
            assert b"not made, the session was interrupted: request hang (line " in relay.said
    finally:
        if server:
            server.kill()
            server.communicate()
    assert not cassette.exists()
    recover(partial_of(cassette))
    assert cassette.exists()


@pytest.mark.parametrize("starts", [True, False])
def test_a_signal_between_calls_or_a_server_that_crashes_leaves_a_whole_session(
    cassette: Path, new_port: NewPort, *, starts: bool
) -> None:
    port = new_port()
    server = None
    if not starts:
        server = subprocess.Popen([sys.executable, "-c", SERVER, str(port)], stdout=subprocess.PIPE)
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
    with running(*words(cassette, port, starts=starts)) as relay, Client(relay.address) as client:
        client.ask(1, "a", 1)
        client.hear()
        client.ask(2, "crash", 2)
        assert client.lines.readline() == b""
        relay.wait() if starts else relay.end(signal.SIGTERM)
        assert b"interrupted" not in relay.said
    assert cassette.exists()
    if server:
        server.communicate(timeout=PATIENCE_S)


def test_a_killed_relay_leaves_no_cassette(cassette: Path, new_port: NewPort) -> None:
    with running(*words(cassette, new_port(), starts=True)) as relay, Client(relay.address) as client:
        client.ask(1, "a", 1)
        client.hear()
        relay.end(signal.SIGKILL)
    wait_for(partial_of(cassette), b'"result":1')
    assert not cassette.exists()


# --- New episodes -----------------------------------------------------------------------------------------------------


def go_on(cassette: Path) -> HostProcess:
    """Continue a session of one request beyond its cassette."""
    run(cassette, python(CHILD), "--protocol=jsonrpc", stdin=REQUEST)
    host = start(cassette, python(CHILD), "--protocol=jsonrpc", "--mode=new_episodes")
    host.write(REQUEST)
    assert host.read_line() == b'{"jsonrpc": "2.0", "id": 1, "result": {}}\n'
    return host


def test_new_episodes_that_are_interrupted_leave_the_cassette_as_it_was(cassette: Path) -> None:
    host = go_on(cassette)
    before = cassette.read_bytes()
    host.write(HANG)
    done = host.end()
    assert b"not made, the session was interrupted: request hang (line " in done.err
    assert cassette.read_bytes() == before
    assert partial_of(cassette).exists()


def test_new_episodes_that_end_well_become_the_cassette(cassette: Path) -> None:
    host = go_on(cassette)
    host.write(REQUEST.replace(b'"a"', b'"b"'))
    host.read_line()
    assert host.end().code == 0
    assert [json.loads(line)["method"] for line in messages(cassette, "in")] == ["a", "b"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_recorder_that_is_ended_while_the_child_is_brought_up_to_state_leaves_nothing_running(
    cassette: Path, number: signal.Signals
) -> None:
    run(cassette, python(CHILD), "--protocol=jsonrpc", stdin=REQUEST)
    before = cassette.read_bytes()
    # This time the child says that it runs, and answers nothing of what the host said before.
    silent = python("import os, signal\nos.write(2, b'%d\\n' % os.getpid())\nwhile True: signal.pause()")
    host = start(cassette, silent, "--protocol=jsonrpc", "--mode=new_episodes", "--accept-command")
    host.write(REQUEST)
    host.read_line()
    host.write(HANG)
    assert host.stderr is not None
    told = b""
    while b"recorded from here on\n" not in told:
        told += read(host.stderr.fileno(), 1)
    # The child, and the process that writes, which has the command line of the recorder.
    while len(pids := [pid for pid in children_of(host.pid) if "signal.pause()" in " ".join(command_of(pid))]) < 2:
        os.sched_yield()
    host.send_signal(number)
    assert host.wait(PATIENCE_S) == -number
    host.communicate(timeout=PATIENCE_S)
    for pid in pids:
        wait_until_gone(pid)
    assert cassette.read_bytes() == before
