"""`run` when a process is killed: the old recording stays, what was recorded is recovered, and nothing waits."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
import yaml

from ext_recorder.http.reader import open_document
from tests.support.host import PATIENCE_S
from tests.support.raw_server import RawServer
from tests.support.recorder_process import RECORDER, children_of, wait_for, wait_until_gone

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

# Requests one path after the other; a line `at PATH` before each, then a line of the test on standard input.
CLIENT = """
import http.client, sys, urllib.request
for path in sys.argv[2:]:
    print("at", path, flush=True)
    if not sys.stdin.readline():
        break
    try:
        print(urllib.request.urlopen(sys.argv[1] + path, timeout=30).read().decode(), flush=True)
    except (OSError, http.client.HTTPException) as error:
        print(f"{type(error).__name__}: {error}", flush=True)
"""
PATHS = ("one", "hold", "half", "two")


class Site:
    """Server that responds at once, except where a test lets it wait."""

    def __init__(self) -> None:
        self.reached = threading.Event()
        self.released = threading.Event()
        self.server = RawServer(self._talk)

    def _talk(self, connection: socket.socket, head: bytes) -> None:
        path = head.split()[1].decode()
        body = f"this is {path}".encode()
        with suppress(OSError):
            if path == "/hold":
                self._wait()
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body[:4])
            if path == "/half":
                self._wait()
            connection.sendall(body[4:])

    def _wait(self) -> None:
        self.reached.set()
        self.released.wait(PATIENCE_S)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    site = Site()
    with site.server:
        yield site
        site.released.set()


def words(site: Site, *options: str) -> list[str]:
    return [*RECORDER, "run", *options, "rec", "--", sys.executable, "client.py", site.server.url, *PATHS]


def recorder(folder: Path, *words: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [*RECORDER, *words], cwd=folder, capture_output=True, timeout=PATIENCE_S, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr


def run(folder: Path, site: Site, *options: str) -> tuple[int, str, str]:
    done = subprocess.run(
        words(site, *options),
        cwd=folder,
        input="\n" * len(PATHS),
        capture_output=True,
        timeout=PATIENCE_S,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def recorded_once(tmp_path_factory: pytest.TempPathFactory, site: Site) -> Path:
    """Return a folder with the client, and a recording without any trouble."""
    folder = tmp_path_factory.mktemp("older")
    (folder / "client.py").write_text(CLIENT)
    site.released.set()
    code, out, err = run(folder, site)
    assert (code, out.count("this is")) == (0, len(PATHS)), err
    return folder


@pytest.fixture
def older(tmp_path: Path, recorded_once: Path, site: Site) -> dict[str, bytes]:
    """Copy the recording, and return its content."""
    shutil.copytree(recorded_once, tmp_path, dirs_exist_ok=True)
    site.reached.clear()
    site.released.clear()
    return content(tmp_path / "rec")


def processes(pid: int) -> dict[str, int]:
    """The processes of a run, by their part in it."""
    worker, command = children_of(pid)
    (proxy,) = children_of(worker)
    return {"run": pid, "worker": worker, "proxy": proxy, "command": command}


MOMENTS = {"before a request": 0, "during a request": 1, "during a body": 2, "between two": 3}


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("victim", ["run", "worker", "proxy", "command"])
def test_a_killed_process_leaves_the_older_recording_and_a_recoverable_one(
    tmp_path: Path, site: Site, older: dict[str, bytes], victim: str, moment: str
) -> None:
    recorded = MOMENTS[moment]
    with subprocess.Popen(
        words(site, "--mode=all"), cwd=tmp_path, stdin=-1, stdout=-1, stderr=-1, text=True, bufsize=1
    ) as running:
        assert running.stdin
        assert running.stdout
        assert running.stderr
        for number in range(recorded + 1):
            assert running.stdout.readline() == f"at {PATHS[number]}\n"
            if number == recorded and recorded in {0, 3}:
                break
            running.stdin.write("\n")
            if number == recorded:
                assert site.reached.wait(PATIENCE_S)
            else:
                site.released.set()
                assert running.stdout.readline() == f"this is /{PATHS[number]}\n"
                site.released.clear()
                site.reached.clear()
        wait_for(tmp_path / "rec.partial" / "traffic.http.yaml.partial", b"- request:", recorded)
        found = processes(running.pid)
        guards = {name: os.pidfd_open(pid) for name, pid in found.items()}
        os.kill(found[victim], signal.SIGKILL)
        wait_until_gone(found[victim])
        if victim in {"worker", "proxy"}:
            # The command ends by itself; what it requests is refused, not left to wait.
            wait_until_gone(found["proxy"])
            with suppress(BrokenPipeError):
                running.stdin.write("\n" * len(PATHS))
            running.stdin.close()
            site.released.set()
            out = running.stdout.read()
            assert "Connection refused" in out
            assert "this is" not in out
        site.released.set()
        err = running.stderr.read()
        code = running.wait(PATIENCE_S)
    for name, pid in found.items():
        wait_until_gone(pid)
        os.close(guards[name])
    assert content(tmp_path / "rec") == older
    assert "Traceback" not in err
    if victim in {"run", "command"}:
        assert code == -signal.SIGKILL
    else:
        assert code == 3
        assert f"the {'process of the proxy' if victim == 'proxy' else 'worker process of the proxy'} was killed" in err
    # The older recording is replayed; the new one can be recovered as far as it was made.
    code, out, err = run(tmp_path, site, "--mode=none")
    assert (code, out.count("this is")) == (0, len(PATHS)), err
    if recorded == 0 and not (tmp_path / "rec.partial").exists():
        return
    code, out, err = recorder(tmp_path, "recover", "rec.partial", "-o", "new")
    if code != 0:
        assert "nothing to recover" in err
        assert recorded <= 1
        return
    assert code == 0, err
    header = yaml.safe_load((tmp_path / "new" / "recording.yaml").read_text())
    assert header["recovered"].startswith("missing: ")
    assert not (tmp_path / "rec.partial").exists()
    interactions = yaml.safe_load((tmp_path / "new" / "traffic.http.yaml").read_text())["interactions"]
    complete = [each["request"]["uri"].rpartition("/")[2] for each in interactions if not each.get("cut")]
    assert complete[:recorded] == list(PATHS[:recorded])


def test_an_interrupted_command_leaves_no_complete_recording_and_the_next_run_names_what_it_left(
    tmp_path: Path, site: Site, older: dict[str, bytes]
) -> None:
    shutil.rmtree(tmp_path / "rec")
    for number in (1, 2):
        running = subprocess.Popen(words(site), cwd=tmp_path, stdin=-1, stdout=-1, stderr=-1, text=True, bufsize=1)
        with running:
            assert running.stdin
            assert running.stdout
            assert running.stderr
            assert running.stdout.readline() == "at one\n"
            if number == 2:
                running.send_signal(signal.SIGTERM)  # before anything was recorded
            else:
                running.stdin.write("\n")
                assert running.stdout.readline() == "this is /one\n"
                running.send_signal(signal.SIGINT)
            assert running.wait(PATIENCE_S) == -(signal.SIGINT if number == 1 else signal.SIGTERM)
            err = running.stderr.read()
        assert not (tmp_path / "rec").exists()
        if number == 1:
            assert (
                "rec: not made, the command was interrupted by SIGINT; to make a recording of what was recorded" in err
            )
            assert (tmp_path / "rec.partial").exists()
        else:
            assert "rec.partial.1: an earlier recording was interrupted; to make a recording of it: ext-rec" in err
            assert "rec: not made, the command was interrupted by SIGTERM; nothing was recorded" in err
    assert sorted(path.name for path in tmp_path.glob("rec*")) == ["rec.partial.1"]
    code, out, err = recorder(tmp_path, "recover", "rec.partial.1")
    assert (code, out.splitlines()[0]) == (0, "rec: 1 HTTP interaction kept"), err
    code, out, err = run(tmp_path, site, "--mode=none")
    assert (code, out.count("this is")) == (3, 1)
    assert "rec was recovered from an interrupted run; missing: what the command did after that" in err


# 8 clients at once; each sends 600 requests, and fails unless each response is that to its request.
CLIENTS = """
import http.client, subprocess, sys, urllib.parse, os
if len(sys.argv) == 2:
    clients = [subprocess.Popen([sys.executable, *sys.argv, str(number)]) for number in range(8)]
    sys.exit(max(client.wait() for client in clients))
proxy, client = urllib.parse.urlsplit(os.environ["http_proxy"]), sys.argv[2]
connection = http.client.HTTPConnection(proxy.hostname, proxy.port)
for number in range(600):
    sent = f"{client}-{number}-" + "x" * (number % 7 * 300)
    method = ("GET", "POST", "PUT")[number % 3]
    path = f"{sys.argv[1]}{method}/{client}/{number}"
    connection.request(method, path, None if method == "GET" else sent, {"X-Client": client})
    response = connection.getresponse()
    body = response.read().decode()
    assert body == f"{method} {path} of {client}: {'' if method == 'GET' else sent}", (path, body[:200])
"""


class Echo(BaseHTTPRequestHandler):
    """Responds with the request."""

    protocol_version = "HTTP/1.1"

    def respond(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        url = f"http://{self.headers['Host']}{self.path}"
        text = f"{self.command} {url} of {self.headers['X-Client']}: ".encode() + body
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text) + text)

    do_GET = do_POST = do_PUT = respond  # noqa: N815 - names of http.server

    def log_message(self, *_: object) -> None:
        """Write nothing."""


def test_no_request_of_many_clients_is_lost_or_gets_the_response_to_another(tmp_path: Path) -> None:
    (tmp_path / "clients.py").write_text(CLIENTS)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Echo)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    command = ["rec", "--", sys.executable, "clients.py", f"http://127.0.0.1:{server.server_port}/"]
    code, _, err = recorder(tmp_path, "run", *command)
    server.shutdown()
    server.server_close()
    assert code == 0, err
    assert "4,800 requests" in err
    document = open_document(tmp_path / "rec" / "traffic.http.yaml")
    assert document.file is not None
    with document.file as file:
        paths = [interaction.uri.rpartition(":")[2].partition("/")[2] for _, interaction in file]
    expected = [f"{('GET', 'POST', 'PUT')[n % 3]}/{client}/{n}" for client in range(8) for n in range(600)]
    assert sorted(paths) == sorted(expected)
    code, _, err = recorder(tmp_path, "run", "--mode=none", *command)
    assert code == 0, err
    assert "4,800 of 4,800 requests" in err


def test_a_command_that_ends_well_after_a_signal_is_recorded(tmp_path: Path, site: Site) -> None:
    program = "import signal, sys; signal.signal(15, lambda *_: sys.exit(0)); print('up', flush=True); signal.pause()"
    program = f"import sys, urllib.request; urllib.request.urlopen(sys.argv[1] + 'one').read(); {program}"
    command = [*RECORDER, "run", "rec", "--", sys.executable, "-c", program, site.server.url]
    with subprocess.Popen(command, cwd=tmp_path, stdout=-1, stderr=-1, text=True) as running:
        assert running.stdout
        assert running.stdout.readline() == "up\n"
        running.send_signal(signal.SIGTERM)
        assert running.wait(PATIENCE_S) == 0
    assert yaml.safe_load((tmp_path / "rec" / "recording.yaml").read_text())["exit"] == 0


def test_a_recording_that_was_cut_off_names_the_interaction_and_the_command_that_records_it_again(
    tmp_path: Path, older: dict[str, bytes], site: Site
) -> None:
    traffic = tmp_path / "rec" / "traffic.http.yaml"
    text = older["traffic.http.yaml"].decode()
    traffic.write_text(text[: text.index("status", text.index("status") + 1)].rpartition("\n")[0] + "\n")
    code, _, err = run(tmp_path, site, "--mode", "none")

    assert code != 0
    assert "traffic.http.yaml: cut off or damaged at interaction " in err
    assert "(record it again: ext-recorder run --mode all " in err
    assert "KeyError" not in err


def test_a_command_that_does_not_exist_leaves_nothing(tmp_path: Path) -> None:
    code, _, err = recorder(tmp_path, "run", "rec", "--", "./missing")
    assert (code, list(tmp_path.iterdir())) == (127, [])
    assert err == "ext-recorder: ./missing: No such file or directory\n"
