"""`start`: processes that go on, when they are ready, and when they are not."""

from __future__ import annotations

import os
import shlex
import shutil
import socket
import socketserver
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.ext_shell import Extension
    from tests.support.ports import NewPort
    from tests.support.process_tracker import ProcessTracker

# A server that says what it does: `python -c SERVER [STATUS]`.
SERVER = """
import http.server, os, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(int(sys.argv[1]) if self.path == "/healthz" else 404)
        self.end_headers()
    def log_message(self, *args): pass
server = http.server.HTTPServer(("127.0.0.1", int(os.environ["PORT"])), Handler)
print("serving on", os.environ["PORT"], flush=True)
server.serve_forever()
"""


NGINX = shutil.which("nginx")
NGINX_CONF = """
pid DIR/nginx.pid;
error_log DIR/error.log;
events {}
http {
    access_log off;
    client_body_temp_path DIR/t1; proxy_temp_path DIR/t2; fastcgi_temp_path DIR/t3; uwsgi_temp_path DIR/t4;
    scgi_temp_path DIR/t5;
    server { listen 127.0.0.1:PORT; location / { return 200 "hello"; } }
}
"""


def _server(status: int = 200) -> list[str]:
    return [sys.executable, "-I", "-c", SERVER, str(status)]


@contextmanager
def _answering(answer: bytes) -> Iterator[int]:
    """The port of a server in this process, which is there from the first question on."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while self.rfile.readline().strip():
                pass
            self.wfile.write(answer)

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture(autouse=True)
def _stop_all(shell: Extension) -> Iterator[None]:
    yield
    for name in ("web", "other"):
        shell.call("stop", {"name": name, "ignoreMissing": True, "timeout": "100ms"})


def test_a_process_goes_on_after_the_call(shell: Extension, tracker: ProcessTracker) -> None:
    answer = shell.ok("start", name="web", script=f"{tracker.hold}; echo up >&9; exec sleep 3600")
    assert tracker.line() == "up"
    assert set(answer.outputs) == {"name", "pid", "logFile", "done"}
    assert Path(f"/proc/{answer.outputs['pid']}/exe").exists()  # a process that has ended has none
    assert answer.message.startswith("started web: bash script")
    assert shell.ok("run", command=["true"]).success
    assert tracker.left(0)


def test_its_output_is_in_a_log_file_without_secrets(shell: Extension) -> None:
    answer = shell.ok(
        "start",
        name="web",
        script="echo out; echo $MY_TOKEN >&2; sleep 3600",
        env={"MY_TOKEN": "rosebud-1950"},
        ready={"logLine": "redacted|rosebud"},
    )
    log = Path(answer.outputs["logFile"])
    assert log.read_text().splitlines()[0] == "out"
    assert "rosebud-1950" not in log.read_text()
    assert log.stat().st_mode & 0o777 == 0o600


def test_lines_are_logged_until_it_is_ready(shell: Extension) -> None:
    answer = shell.ok("start", name="web", script="echo one; echo ready; sleep 3600", ready={"logLine": "ready"})
    assert answer.log_messages == ["one", "ready"]


def test_names_are_of_a_workdir(shell: Extension, tmp_path: Path) -> None:
    shell.ok("start", name="web", command=["sleep", "3600"])
    answer = shell.failed("start", name="web", command=["sleep", "3600"])
    assert f"expected one that no process of {shell.workdir} has, found 'web'" in answer.error
    assert "a previous `start` ran sleep 3600 under it (pid " in answer.error
    assert "stop that process first, choose another name, or give each task" in answer.error
    (tmp_path / "elsewhere").mkdir()
    shell.workdir = tmp_path / "elsewhere"
    shell.ok("start", name="web", command=["sleep", "3600"])
    shell.ok("stop", name="web")
    shell.workdir = tmp_path


def test_names_are_of_a_scope(shell: Extension) -> None:
    """Tasks that share a folder, as one process of the extension serves them."""
    shell.ok("start", name="web", command=["sleep", "3600"], scope="a")
    assert f"no process of scope 'a' of {shell.workdir} has" in (
        shell.failed("start", name="web", command=["true"], scope="a").error
    )
    shell.ok("start", name="web", command=["sleep", "3601"], scope="b")
    shell.ok("stop", name="web", scope="b")
    answer = shell.failed("stop", name="web")
    assert f"none was started, or all were stopped; a process of this name belongs to scope 'a' of {shell.workdir}" in (
        answer.error
    )
    shell.ok("stop", name="web", scope="a")
    assert "a process of this name" not in shell.failed("stop", name="web").error


def test_a_name_is_free_again_when_its_process_has_ended(shell: Extension) -> None:
    shell.ok("start", name="web", command=["true"])
    shell.ok("wait", name="web")
    shell.ok("start", name="web", command=["sleep", "3600"])


class TestReadiness:
    @pytest.mark.parametrize(
        "ready",
        [
            {"port": True},
            {"http": "/healthz"},
            {"http": "/healthz", "httpStatus": 200},
            {"logLine": r"^serving on \d+$"},
            {"port": True, "http": "/healthz", "logLine": "serving"},
        ],
    )
    def test_by_a_port_an_answer_or_a_line(self, ready: dict[str, object], shell: Extension) -> None:
        answer = shell.ok("start", name="web", command=_server(), port="auto", ready=ready)
        with socket.create_connection(("127.0.0.1", int(answer.outputs["port"])), 60):
            pass
        assert ", ready after " in answer.message

    def test_by_the_number_of_a_port(self, shell: Extension, new_port: NewPort) -> None:
        port = new_port()
        answer = shell.ok("start", name="web", command=_server(), port=port, ready={"port": port})
        assert answer.outputs["port"] == str(port)

    def test_by_a_url(self, shell: Extension, new_port: NewPort) -> None:
        port = new_port()
        ready = {"http": f"http://localhost:{port}/healthz"}
        shell.ok("start", name="web", command=_server(302), env={"PORT": str(port)}, ready=ready)

    def test_by_a_file(self, shell: Extension) -> None:
        shell.ok("start", name="web", script="sleep 0.05; touch up; sleep 3600", ready={"file": "up"})
        assert (shell.workdir / "up").exists()

    def test_by_its_end_while_the_daemon_that_it_leaves_goes_on(
        self, shell: Extension, tracker: ProcessTracker
    ) -> None:
        script = f"{tracker.hold}; (setsid sh -c 'echo up >&9; exec sleep 3600' >/dev/null 2>&1 &); exit 0"
        shell.ok("start", name="web", script=script, ready={"exit": 0})
        assert tracker.line() == "up"
        assert shell.ok("wait", name="web").outputs["exitCode"] == "0"
        assert tracker.left(0)
        shell.ok("stop", name="web")
        assert not tracker.left()

    def test_by_its_end_and_by_a_port_of_the_daemon_that_it_leaves(
        self, shell: Extension, tracker: ProcessTracker, new_port: NewPort
    ) -> None:
        """As nginx and redis-server --daemonize do it: the server listens some time after the command has ended."""
        (shell.workdir / "server.sh").write_text(f"read -r _ <go; exec {shlex.join(_server())}")
        script = f"{tracker.hold}; (setsid sh server.sh >log 2>&1 &); exit 0"
        os.mkfifo(shell.workdir / "go")
        ready = {"exit": 0, "port": True, "http": "/healthz"}
        since = len(shell.host.lines)
        id = shell.send("start", {"name": "web", "script": script, "port": new_port(), "ready": ready})
        (shell.workdir / "go").write_text("listen\n")
        answer = shell.answer(id, since)
        assert answer.success, answer
        assert shell.ok("wait", name="web", **{"for": "ready"}).outputs["exitCode"] == "0"
        socket.create_connection(("127.0.0.1", int(answer.outputs["port"])), 60).close()
        shell.ok("stop", name="web")
        assert not tracker.left()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", int(answer.outputs["port"])), 60)

    @pytest.mark.skipif(not NGINX, reason="nginx is not installed")
    def test_nginx_as_a_daemon(self, shell: Extension) -> None:
        """The configuration is the usual one, but for paths in the workdir."""
        (shell.workdir / "nginx.conf").write_text(NGINX_CONF.replace("DIR", str(shell.workdir)))
        answer = shell.ok(
            "start",
            name="web",
            script=f'sed -i "s/PORT/$PORT/" nginx.conf; exec {NGINX} -p "$PWD" -c nginx.conf -e error.log',
            port="auto",
            ready={"exit": 0, "port": True, "http": "/"},
        )
        assert "ready after" in answer.message
        pid = int((shell.workdir / "nginx.pid").read_text())
        os.kill(pid, 0)
        shell.ok("stop", name="web", expect={"exitCode": 0})
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


class TestNextStep:
    """`onTimeout: ok`: the process continues to run, and `wait` waits for the conditions of `start`."""

    ARGS: ClassVar[dict[str, object]] = {"ready": {"file": "up"}, "onTimeout": "ok"}

    def test_a_process_may_be_ready_in_a_later_step(self, shell: Extension) -> None:
        os.mkfifo(shell.workdir / "go")
        script = "read -r line <go; touch $line; exec sleep 3600"
        first = shell.ok("start", name="web", script=script, timeout="100ms", **self.ARGS)
        assert first.outputs["done"] == "false"
        assert first.message.startswith("Not done yet: web: it was not ready before the deadline (")
        assert "it continues to run: `wait` for it with `for: ready`; last seen: waited for the file 'up'" in (
            first.message
        )
        (shell.workdir / "go").write_text("up\n")
        ready = shell.ok("wait", name="web", **{"for": "ready"})
        assert (ready.outputs["pid"], ready.outputs["done"]) == (first.outputs["pid"], "true")

    def test_a_process_that_ends_is_a_failure(self, shell: Extension) -> None:
        answer = shell.failed("start", name="web", script="exit 3", timeout="1h", **self.ARGS)
        assert "it ended before it was ready: exit code 3" in answer.error
        assert answer.outputs["done"] == "false"

    def test_there_must_be_something_to_wait_for(self, shell: Extension) -> None:
        told = shell.refused("start", name="web", command=["true"], onTimeout="ok")
        assert "`onTimeout` requires `ready`" in told


class TestFailures:
    def test_a_daemon_that_ends_before_its_port_opens_is_said_at_once(self, shell: Extension) -> None:
        ready = {"exit": 0, "port": True}
        answer = shell.failed("start", name="web", command=["true"], port="auto", ready=ready, timeout="1h")
        assert "it ended before it was ready: exit code 0, and all processes that it started have ended" in answer.error
        assert "to accept connections (last: Connection refused)" in answer.error

    def test_a_daemon_of_a_command_that_fails_is_stopped(self, shell: Extension, tracker: ProcessTracker) -> None:
        script = f"{tracker.hold}; (setsid sleep 3600 &); exit 1"
        answer = shell.failed("start", name="web", script=script, port="auto", ready={"exit": 0, "port": True})
        assert "expected it to exit with exit code 0, got exit code 1" in answer.error
        assert not tracker.left()

    def test_a_command_that_has_become_a_daemon_is_told_how_to_be_waited_for(self, shell: Extension) -> None:
        answer = shell.failed("start", name="web", command=["true"], port="auto", ready={"port": True})
        assert "for a program that puts itself into the background, add `exit: 0`" in answer.error

    def test_a_process_that_ends_before_it_is_ready_is_said_at_once(self, shell: Extension) -> None:
        answer = shell.failed(
            "start", name="web", script="echo bad luck >&2; exit 3", ready={"logLine": "never"}, timeout="1h"
        )
        assert "it ended before it was ready: exit code 3" in answer.error
        assert "it was stopped" not in answer.error
        assert (
            "waited for a line of its output that matches 'never' (last: 1 lines, none of which matches)"
            in answer.error
        )
        assert "stderr ends with: bad luck" in answer.error
        assert answer.outputs["logFile"]

    def test_a_line_of_a_process_that_has_ended_still_counts(self, shell: Extension) -> None:
        shell.ok("start", name="web", script="echo ready", ready={"logLine": "ready"})

    def test_a_process_that_is_not_ready_in_time_is_stopped(self, shell: Extension, tracker: ProcessTracker) -> None:
        answer = shell.failed(
            "start", name="web", script=f"{tracker.hold}; echo wait; sleep 3600", ready={"file": "up"}, timeout="2s"
        )
        assert "it was not ready before the deadline" in answer.error
        assert "waited for the file 'up' (last: it does not exist)" in answer.error
        assert "stdout ends with: wait" in answer.error
        assert "it was stopped; with `onTimeout: ok`, `wait` can wait for it longer" in answer.error
        assert not tracker.left()
        assert "process 'web' does not exist" in shell.failed("stop", name="web").message

    def test_a_wrong_answer_is_told(self, shell: Extension) -> None:
        args = {"command": _server(503), "port": "auto", "ready": {"http": "/healthz"}, "timeout": "3s"}
        answer = shell.failed("start", name="web", **args)
        assert "(last: status 503)" in answer.error

    def test_an_answer_that_is_no_http_is_told(self, shell: Extension) -> None:
        shell.ok("start", name="other", command=["sleep", "3600"])
        with _answering(b"SSH-2.0\n") as port:
            answer = shell.failed("wait", name="other", timeout="2s", **{"for": {"http": f"http://localhost:{port}/"}})
        assert "not an HTTP response: it begins with b'SSH-2.0" in answer.error

    def test_a_wrong_exit_code_is_told(self, shell: Extension) -> None:
        answer = shell.failed("start", name="web", command=["false"], ready={"exit": 0})
        assert "expected it to exit with exit code 0, got exit code 1" in answer.error

    def test_a_port_that_is_taken_is_no_readiness(self, shell: Extension, taken_port: int) -> None:
        answer = shell.failed("start", name="web", command=["touch", "ran"], ready={"port": taken_port})
        assert f"expected port {taken_port} to be free before 'web' starts" in answer.error
        assert "connections of another process of this machine" in answer.error
        assert not (shell.workdir / "ran").exists()

    @pytest.mark.parametrize("ready", [{}, {"ready": {"logLine": "x"}}, {"ready": {"http": "/"}}])
    def test_the_port_of_a_process_must_be_free_whatever_it_waits_for(
        self, ready: dict[str, object], shell: Extension, taken_port: int
    ) -> None:
        answer = shell.failed("start", name="web", command=["touch", "ran"], port=taken_port, **ready)
        assert f"expected port {taken_port} to be free" in answer.error
        assert not (shell.workdir / "ran").exists()

    def test_an_answer_of_another_server_is_no_readiness(self, shell: Extension, taken_port: int) -> None:
        url = f"http://localhost:{taken_port}/"
        assert "to be free" in shell.failed("start", name="web", command=["true"], ready={"http": url}).error

    def test_a_file_that_an_earlier_process_left_is_no_readiness(self, shell: Extension) -> None:
        (shell.workdir / "up").touch()
        answer = shell.failed("start", name="web", command=["touch", "ran"], ready={"file": "up"})
        assert "ready.file: expected the file 'up' not to exist before 'web' starts; `remove` it first" in answer.error
        assert not (shell.workdir / "ran").exists()

    def test_the_process_of_another_folder_that_has_the_port_is_named(self, shell: Extension, tmp_path: Path) -> None:
        old = shell.ok("start", name="web", command=_server(), port="auto", ready={"port": True})
        (tmp_path / "elsewhere").mkdir()
        shell.workdir = tmp_path / "elsewhere"
        port = int(old.outputs["port"])
        answer = shell.failed("start", name="web", command=_server(), port=port, ready={"port": port})
        shell.workdir = tmp_path
        assert f"'web' of {tmp_path} (pid {old.outputs['pid']}); stop that process" in answer.error

    def test_a_command_that_cannot_be_started_leaves_the_name_free(self, shell: Extension) -> None:
        assert "command not found" in shell.failed("start", name="web", command=["no-such-command"]).error
        shell.ok("start", name="web", command=["sleep", "3600"])

    @pytest.mark.parametrize(
        ("args", "said"),
        [
            ({"ready": {}}, "no condition is given"),
            ({"ready": {"port": False}}, "no condition is given"),
            ({"ready": {"httpStatus": 200, "file": "x"}}, "`httpStatus` requires `http`"),
            ({"ready": {"logLine": "("}}, "is not a regular expression"),
            ({"ready": {"port": 0}}, "ready.port"),
            ({"ready": {"port": 65536}}, "ready.port"),
            ({"ready": {"port": True}}, "true means the `port` of the process, which is not given"),
            ({"ready": {"http": "/x"}}, "the path '/x' requires `port`"),
            ({"ready": {"http": "http://example.com/"}}, "expected a path, or http://… on localhost"),
            ({"ready": {"http": "http://169.254.169.254/"}}, "expected a path, or http://… on localhost"),
            ({"ready": {"http": "https://localhost/"}}, "expected a path, or http://… on localhost"),
            ({"ready": {"http": "http://localhost:99999/"}}, "expected a path, or http://… on localhost"),
            ({"ready": {"http": "http://localhost/a b"}}, "expected a path, or http://… on localhost"),
            ({"port": "any"}, "port"),
            ({"name": "a b"}, "name"),
            ({"name": ""}, "name"),
            ({"expect": {"exitCode": 0}}, "unknown argument 'expect'"),
        ],
    )
    def test_wrong_arguments_are_refused_before_anything_runs(
        self, args: dict[str, object], said: str, shell: Extension
    ) -> None:
        assert said in shell.refused("start", **{"name": "web", "command": ["touch", "ran"], **args})
        assert not (shell.workdir / "ran").exists()

    def test_a_file_outside_of_the_workdir_is_no_condition(self, shell: Extension, tracker: ProcessTracker) -> None:
        script = f"{tracker.hold}; sleep 3600"
        answer = shell.failed("start", name="web", script=script, ready={"file": "../x"})
        assert "'../x' is not a path inside the working directory" in answer.error
        assert not tracker.left()


def test_the_log_is_capped_and_the_process_goes_on(shell: Extension, fresh: object) -> None:
    assert callable(fresh)
    shell = fresh(config={"outputLimit": "64KiB"})
    script = "head -c 1000000 /dev/zero | tr '\\0' '\\n'; touch done; sleep 3600"
    answer = shell.ok("start", name="web", script=script, ready={"file": "done"})
    shell.ok("stop", name="web")
    data = Path(answer.outputs["logFile"]).read_bytes()
    assert data.endswith(b"[... the log ends here: 65536 bytes are kept, see outputLimit ...]\n")
    assert len(data) < 66_000


def test_a_process_may_read_its_input(shell: Extension) -> None:
    os.mkfifo(shell.workdir / "out")
    shell.ok("start", name="web", script="cat >out; sleep 3600", stdin="x" * 200_000)
    assert (shell.workdir / "out").read_text() == "x" * 200_000


def test_a_line_is_found_before_any_number_of_others(shell: Extension) -> None:
    shell.ok("start", name="web", script="echo ready; seq 300000; sleep 3600", ready={"logLine": "^ready$"}, log=False)


def test_a_line_is_found_after_any_number_of_others(shell: Extension) -> None:
    shell.ok("start", name="web", script="seq 300000; echo ready; sleep 3600", ready={"logLine": "^ready$"}, log=False)


def test_a_pattern_that_never_ends_is_a_failure_and_the_process_is_stopped(
    shell: Extension, tracker: ProcessTracker
) -> None:
    script = f"{tracker.hold}; echo {'a' * 40}b; sleep 3600"
    answer = shell.failed("start", name="web", script=script, ready={"logLine": "^(a+)+$"})
    assert "logLine: " in answer.error
    assert "took longer than" in answer.error
    assert not tracker.left()
