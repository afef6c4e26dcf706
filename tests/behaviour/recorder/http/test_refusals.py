"""What can't be recorded is told while recording; what was not recorded is refused on replay. Nothing is silent."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from ext_recorder.http.inject.ext_recorder_agent.start import AROUND
from tests.support.host import PATIENCE_S
from tests.support.http_child import document, record, replay, script
from tests.support.http_site import serving
from tests.support.recorder_process import RECORDER, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


UNRECORDABLE = {
    "becomes one of websocket": "urllib3.PoolManager().request('GET', url + '/websocket', timeout=60, retries=False,"
    " headers={{'Upgrade': 'websocket', 'Connection': 'Upgrade'}})",
    "HTTP/2": "socket.create_connection(place).send(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')",
    "a datagram to ('127.0.0.1', 9)": "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 9))",
    "not HTTP": "socket.create_connection(place).send(b'hello, example.com\\r\\n')",
    "TLS that does not go through Python's ssl": "socket.create_connection(place).send(b'\\x16\\x03\\x01' + bytes(99))",
}


def test_traffic_that_cannot_be_recorded_is_reported_and_makes_the_exit_code_3(cassette: Path) -> None:
    attempts = "".join(f"try: {attempt.format()}\nexcept Exception: pass\n" for attempt in UNRECORDABLE.values())
    with serving() as server:
        place = ("127.0.0.1", server.port)
        done = record(
            cassette, script(f"import socket, ssl, urllib3\nurl, place = {server.origin!r}, {place}\n{attempts}")
        )
    assert done.code == 3
    assert done.err.count(b"ext-recorder: not recorded: ") == len(UNRECORDABLE)
    for reason in UNRECORDABLE:
        assert reason.encode() in done.err
        assert reason in str(document(cassette)["unrecorded"])


def test_libraries_that_do_not_use_the_sockets_of_python_are_reported_and_refused(
    cassette: Path, tmp_path: Path
) -> None:
    (tmp_path / "site").mkdir()
    for library in AROUND:
        (tmp_path / "site" / f"{library}.py").write_text("")
    path = {"PYTHONPATH": str(tmp_path / "site")}
    done = record(cassette, script(f"import {', '.join(AROUND)}"), path)
    reasons = [f"{library} does not use Python's sockets" for library in AROUND]
    assert (done.code, done.err.decode()) == (3, "".join(f"ext-recorder: not recorded: {each}\n" for each in reasons))
    assert list(map(str, document(cassette)["unrecorded"])) == reasons
    attempts = "".join(f"try: import {library}\nexcept ImportError as error: print(error)\n" for library in AROUND)
    again = replay(cassette, script(attempts), path)
    assert again.out.decode() == "".join(f"ext-recorder: {each}, and would reach the network\n" for each in reasons)


def test_the_address_of_a_unix_socket_is_recorded_with_what_was_said_on_it(cassette: Path, tmp_path: Path) -> None:
    program = (
        "import http.client, os, socket, subprocess, sys\n"
        "connection = http.client.HTTPConnection('web.test')\n"
        "connection.sock = socket.socket(socket.AF_UNIX)\n"
        f"connection.sock.connect({str(tmp_path / 'web.socket')!r})\n"
        "connection.request('GET', '/name')\n"
        "answer = connection.getresponse()\n"
        "print(answer.status, answer.read())\n"
    )
    with answering_once(tmp_path / "web.socket"):
        plain = record(cassette, script(program))
    assert (plain.out, plain.err, plain.code) == (b"200 b'ok'\n", b"", 0)
    again = replay(cassette, script(program))
    assert (again.out, again.err, again.code) == (plain.out, b"", 0)


@contextlib.contextmanager
def answering_once(path: Path) -> Iterator[None]:
    """A server on a unix socket that answers one request."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()

        def answer() -> None:
            sock, _ = listener.accept()
            with sock:
                sock.recv(65_536)
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

        thread = threading.Thread(target=answer)
        thread.start()
        yield
        thread.join()
    path.unlink()


@pytest.mark.parametrize(
    "child",
    [["true"], [sys.executable, "-I", "-c", ""], [sys.executable, "-S", "-c", ""], [sys.executable, "-E", "-c", ""]],
    ids=["no Python", "-I", "-S", "-E"],
)
def test_a_child_that_does_not_load_the_layer_is_told(child: list[str], cassette: Path) -> None:
    plain = record(cassette, child)
    assert plain.code == 3
    assert b"the child has not loaded the HTTP layer" in plain.err
    again = replay(cassette, child)
    assert again.code == 2
    assert b"it was ended, before it could use the network" in again.err


def test_nothing_but_what_was_recorded_is_reached(cassette: Path) -> None:
    """Over whatever way: by name, by address, by datagram, by a socket of the C library's own."""
    ways = [
        "socket.create_connection(place)",
        "socket.create_connection(('127.0.0.2', place[1]))",
        "_socket.socket().connect(place)",
        "socket.getaddrinfo('example.com', 80)",
        "socket.gethostbyname('example.com')",
        "socket.socket(type=socket.SOCK_DGRAM).sendto(b'x', place)",
        "socket.socket(type=socket.SOCK_DGRAM).connect(place)",
        "asyncio.run(asyncio.open_connection(*place))",
        "asyncio.run(asyncio.open_connection('example.com', 443, ssl=True))",
        "urllib3.PoolManager().request('GET', 'http://127.0.0.1:%d/' % place[1], retries=False)",
    ]
    program = "import _socket, asyncio, socket, urllib3\nplace = ('127.0.0.1', {port})\n" + "".join(
        f"try:\n    {way}\n    print('reached')\n"
        "except Exception as error: print('ext-recorder' in str(error) or error)\n"
        for way in ways
    )
    assert record(cassette, script("pass")).code == 0
    with serving() as server:
        again = replay(cassette, script(program.format(port=server.port)))
        assert server.counts == {}
    assert again.out == b"True\n" * len(ways)
    assert again.code == 3
    assert again.err.count(b"ext-recorder: ") >= len(ways)


def test_what_a_process_says_to_itself_is_not_the_network(cassette: Path) -> None:
    """A server of the child's own is live in both: it is a part of the child."""
    child = script(
        "import http.server, threading, urllib.request\n"
        "class Handler(http.server.BaseHTTPRequestHandler):\n"
        "    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(b'own')\n"
        "    def log_message(self, *args): pass\n"
        "server = http.server.HTTPServer(('127.0.0.1', 0), Handler)\n"
        "threading.Thread(target=server.serve_forever, daemon=True).start()\n"
        "print(urllib.request.urlopen('http://127.0.0.1:%d/' % server.server_port).read())"
    )
    assert record(cassette, child).out == b"b'own'\n"
    assert document(cassette)["interactions"] == []
    again = replay(cassette, child)
    assert (again.out, again.err, again.code) == (b"b'own'\n", b"", 0)


def test_a_sitecustomize_of_the_machine_is_loaded_as_ever(cassette: Path, tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text("import builtins; builtins.machine = 'here'")
    child = script(
        "import sys; print(machine, sys.modules['sitecustomize'].__file__, [p for p in sys.path if 'inject' in p])"
    )
    path = str(tmp_path / "site")
    plain = record(cassette, child, {"PYTHONPATH": path})
    assert plain.out == f"here {path}/sitecustomize.py []\n".encode()


def test_processes_that_a_child_starts_are_recorded_too(cassette: Path) -> None:
    with serving() as server:
        program = f"import urllib.request; print(urllib.request.urlopen({server.origin!r} + '/count').read())"
        child = script(f"import subprocess, sys; subprocess.run([sys.executable, '-c', {program!r}])")
        plain = record(cassette, child)
        again = replay(cassette, child)
        assert server.counts == {"/count": 1}
    assert (plain.out, plain.code) == (b"b'1'\n", 0)
    assert (again.out, again.code) == (plain.out, 0)


def test_programs_that_nobody_sees_are_told(cassette: Path) -> None:
    child = script(
        "import subprocess, sys; subprocess.run(['true']); subprocess.run([sys.executable, '-IS', '-c', ''])"
    )
    told = f"not recorded: network traffic of true, {os.path.basename(sys.executable)}, which the child ran"  # noqa: PTH119
    plain = record(cassette, child)
    assert (plain.code, plain.err) == (0, f"ext-recorder: {told}\n".encode())
    assert list(map(str, document(cassette)["programs"])) == ["true", os.path.basename(sys.executable)]  # noqa: PTH119
    assert b"not recorded: network traffic of " in replay(cassette, child).err


def test_programs_that_ask_about_the_machine_are_not_reported(cassette: Path) -> None:
    child = script("import subprocess; subprocess.run(['uname'], capture_output=True)")
    plain = record(cassette, child)
    assert (plain.code, plain.err) == (0, b"")
    again = replay(cassette, child)
    assert (again.code, again.err) == (0, b"")


def broken_off(cassette: Path, url: str, *options: str) -> list[str]:
    """Kill the recorder in the middle of a session. Returns a child that asks the same, and kills nobody."""
    asking = f"import urllib.request as u, os, signal; print(u.urlopen({url!r}).read())\n"
    with contextlib.suppress(subprocess.TimeoutExpired):
        record(cassette, script(asking + "os.kill(os.getppid(), signal.SIGKILL)\nos.read(0, 1)"), None, *options)
    return script(asking)


def test_a_recording_that_is_broken_off_leaves_what_there_was_and_no_older_file_is_lost(cassette: Path) -> None:
    with serving() as server:
        child = script(f"import urllib.request as u, os, signal; u.urlopen({server.origin!r} + '/count').read()")
        assert record(cassette, child).code == 0
        before = (cassette.parent / "session.http.yaml").read_bytes()
        broken_off(cassette, f"{server.origin}/count", "--mode", "all")
    assert (cassette.parent / "session.http.yaml").read_bytes() == before


def test_what_a_killed_recorder_left_is_recovered_and_plays(cassette: Path) -> None:
    left = cassette.parent / "session.http.yaml.partial"
    with serving() as server:
        child = broken_off(cassette, f"{server.origin}/count")
        wait_for(left, b"\nredacted:")
    done = recover(left)
    while b"another recorder is writing" in done.stderr:  # the one that writes the end has not gone yet
        done = recover(left)
    path = left.with_suffix("")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{path}: 1 HTTP interaction kept\n".encode(), b"")
    assert not left.exists()
    again = replay(cassette, child)
    assert (again.code, again.err) == (0, b"")
    left.write_bytes(path.read_bytes())
    assert b"session.http.yaml exists already" in recover(left).stderr


def test_a_recording_without_its_end_is_recovered_and_says_what_is_not_known(cassette: Path) -> None:
    with serving() as server:
        asking = f"import urllib.request as u; print([u.urlopen({server.origin!r} + '/count').read() for _ in 'abc'])"
        recorded = record(cassette, script(asking))
    whole = cassette.parent / "session.http.yaml"
    left = whole.with_name(whole.name + ".partial")
    data = whole.read_bytes()
    left.write_bytes(data[: data.index(b"\nversion: 1") - 4])  # within the last interaction
    whole.unlink()
    done = recover(left)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"session.http.yaml: 2 HTTP interactions kept; the last one was incomplete: " in done.stdout
    assert b"; unknown, because the end is missing: host names, " in done.stdout
    assert not left.exists()
    again = replay(cassette, script(asking.replace("abc", "ab")))
    assert (again.code, again.err) == (0, b"")
    assert again.out.strip(b"]\n") == recorded.out.rpartition(b",")[0]


def test_damage_is_reported_when_it_is_reached(cassette: Path) -> None:
    with serving() as server:
        child = script(f"import urllib.request as u; [u.urlopen({server.origin!r} + '/count').read() for _ in 'ab']")
        assert record(cassette, child).code == 0
    path = cassette.parent / "session.http.yaml"
    first, method, second = path.read_bytes().rpartition(b"method: GET")
    path.write_bytes(first + method.replace(b"m", b"'") + second)  # of the same size, so the index is valid
    again = replay(cassette, child)
    assert again.code != 0
    assert b"session.http.yaml: the interaction at offset " in again.err
    assert b"internal error" not in again.err


def test_what_has_no_interaction_is_not_recovered(cassette: Path) -> None:
    left = cassette.parent / "left.http.yaml.partial"
    left.write_bytes(b"http: 1\ninteractions:\n- request:\n")
    done = recover(left)
    assert done.returncode == 2
    assert b"no complete interaction: there is nothing to recover" in done.stderr
    assert b"record the session again" in done.stderr
    assert left.exists()


def recover(partial: Path) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([*RECORDER, "recover", str(partial)], capture_output=True, timeout=PATIENCE_S, check=False)


def test_a_file_that_would_run_code_is_refused(cassette: Path) -> None:
    (cassette.parent / "session.http.yaml").write_text(
        "interactions: !!python/object/apply:os.system ['touch /tmp/never']\nversion: 1\n"
    )
    again = replay(cassette, script("print('ran')"))
    assert (again.out, again.code) == (b"", 2)
    assert b"not YAML of plain data" in again.err


def test_a_file_that_is_not_there_is_told_before_anything_runs(cassette: Path) -> None:
    again = replay(cassette, script("print('ran')"))
    assert (again.out, again.code) == (b"", 2)
    assert b"session.http.yaml: no such file" in again.err


def test_without_http_nothing_of_the_layer_is_there(tmp_path: Path) -> None:
    from tests.support.recorder_process import run

    session = run(
        tmp_path / "session.yaml",
        script(
            "import os, sys\n"
            "print([n for n in sys.modules if 'ext_recorder' in n], os.environ.get('EXT_RECORDER_HTTP'))"
        ),
    )
    assert session.out == b"[] None\n"
    assert not (tmp_path / "session.http.yaml").exists()


def test_the_layer_imports_nothing_before_the_child_does(cassette: Path) -> None:
    """Nothing that takes time: no `socket`, no `json`, no `threading`, and nothing of what is installed."""
    child = script("import sys; print(sorted({'socket', 'json', 'threading', 're', 'ssl'} & set(sys.modules)))")
    assert record(cassette, child).out == script_output(child)


def script_output(child: list[str]) -> bytes:
    """What the same child says without the layer."""
    import subprocess

    return subprocess.run(child, capture_output=True, check=True, env=dict(os.environ)).stdout


@pytest.mark.parametrize(
    ("extension", "operation", "arguments"),
    [
        ("ext_kubernetes", "stable", {"resource": "pod/web", "condition": "Ready", "for": "1s", "timeout": "25s"}),
        ("ext_kubernetes", "get", {"resource": "pod/web", "namespace": "default"}),
        ("ext_http", "wait", {"url": "http://127.0.0.1:9/", "timeout": "25s"}),
        ("ext_http", "request", {"url": "http://127.0.0.1:9/"}),
    ],
)
def test_an_operation_fails_at_once_for_a_connection_that_was_never_recorded(
    extension: str, operation: str, arguments: dict[str, object], cassette: Path, tmp_path: Path
) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(KUBECONFIG)
    assert record(cassette, script("pass")).code == 0
    params = {"operation": operation, "args": arguments, "context": {"workdir": str(tmp_path), "phase": "verify"}}
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "execute", "params": params}).encode() + b"\n"
    done = subprocess.run(
        [*RECORDER, "replay", "--http", "--accept-command", str(cassette), "--", sys.executable, "-m", extension],
        input=request,
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
        env=os.environ | {"KUBECONFIG": str(kubeconfig)},
    )
    result = json.loads(done.stdout.splitlines()[-1])["result"]
    assert result["success"] is False
    assert "a connection to 127.0.0.1:9: never recorded" in result["error"]
    assert done.stderr.count(b"a connection to 127.0.0.1:9: never recorded") <= 5  # it was not tried until the deadline
    assert done.returncode == 3


KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {}}]
"""
