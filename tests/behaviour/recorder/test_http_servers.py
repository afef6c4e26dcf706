"""HTTP/1.1 servers: sessions recorded with --framing http, readable, and replayed whatever connections clients use."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from ext_recorder.messages.redaction import Redaction
from ext_recorder.replay.player import EXIT_DIFFERS
from ext_recorder.tools.scrub import scrub
from tests.support.host import PATIENCE_S, Session
from tests.support.recorder_process import RECORDER
from tests.unit.ext_recorder.sockets.test_server import Relay, running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOKEN = "Zk4nQ8vR2mX7pL1w9s"


class Handler(BaseHTTPRequestHandler):
    """Answers by length, in chunks as events, and up to the end of the connection."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/events":
            self._head("text/event-stream", ("Transfer-Encoding", "chunked"))
            for number in range(3):
                data = b"data: %d\n\n" % number
                self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))
            self.wfile.write(b"0\r\n\r\n")
        elif self.path == "/old":
            self._head("text/plain", ("Connection", "close"))
            self.wfile.write(b"to the end")
        else:
            self._answer(f"this is {self.path}\nline two\n".encode(), "text/plain")

    do_HEAD = do_GET  # noqa: N815 - the name that the base class calls

    def do_PUT(self) -> None:
        """Refuse a request without its body; the base class has sent 100 Continue if that was expected."""
        if self.headers["Expect"]:
            self.do_POST()
        else:
            self.close_connection = True
            self._head("text/plain", ("Content-Length", "0"))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(json.dumps({"got": json.loads(body)}).encode(), "application/json")

    def _answer(self, body: bytes, kind: str) -> None:
        self._head(kind, ("Content-Length", str(len(body))))
        if self.command != "HEAD":
            self.wfile.write(body)

    def _head(self, kind: str, *headers: tuple[str, str]) -> None:
        self.send_response(200)
        for name, value in (("Content-Type", kind), *headers):
            self.send_header(name, value)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.daemon_threads = True
    thread = threading.Thread(target=made.serve_forever)
    thread.start()
    yield f"tcp:127.0.0.1:{made.server_port}"
    made.shutdown()
    thread.join()
    made.server_close()


@contextmanager
def recording(path: Path, server: str) -> Iterator[Relay]:
    with running("record", "--framing", "http", f"--connect={server}", str(path)) as relay:
        yield relay
        assert relay.end() == 0


def connected(relay: Relay) -> http.client.HTTPConnection:
    _, host, port = relay.address.split(":")
    return http.client.HTTPConnection(host, int(port), timeout=PATIENCE_S)


def ask(client: http.client.HTTPConnection, method: str, target: str, body: object = None) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    client.request(method, target, None if body is None else json.dumps(body), headers)
    response = client.getresponse()
    return response.status, response.read()


def once(relay: Relay, method: str, target: str, body: object = None) -> tuple[int, bytes]:
    """Send one request over a connection of its own."""
    with closing(connected(relay)) as client:
        return ask(client, method, target, body)


REQUESTS: list[tuple[str, str, object]] = [
    ("GET", "/a", None), ("HEAD", "/b", None), ("POST", "/rpc", {"jsonrpc": "2.0", "id": 1, "method": "m"}),
    ("GET", "/events", None), ("GET", "/a", None), ("GET", "/old", None),
]  # fmt: skip


def ask_all(relay: Relay, *, apart: bool = False) -> list[tuple[int, bytes]]:
    """Send the requests: over one connection as far as possible, or each over its own."""
    client, answers = connected(relay), []
    for method, target, body in REQUESTS:
        if apart:
            client.close()
        answers.append(ask(client, method, target, body))
    client.close()
    return answers


def test_a_session_is_recorded_as_messages(server: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with recording(path, server) as relay:
        answers = ask_all(relay)
    text = path.read_text()

    assert [body for _, body in answers[:2]] == [b"this is /a\nline two\n", b""]
    assert "protocol: http\nframing: http\n" in text
    assert """ in: 'POST /rpc {"jsonrpc": "2.0", "id": 1, "method": "m"}', head: ['HTTP/1.1', """ in text
    assert """ out: '200 {"got": {"jsonrpc": "2.0", "id": 1, "method": "m"}}', head: ['HTTP/1.1 OK', """ in text
    assert ' out: "200 this is /a\\nline two\\n", head: ' in text
    assert " out: \"data: 1\\n\\n\", head: ['chunk']}" in text
    assert "raw: " not in text
    assert TOKEN not in text
    assert "'Authorization: Bearer [redacted:bearer#1]'" in text


@pytest.mark.parametrize("order", ["strict", "any"])
@pytest.mark.parametrize("apart", [False, True])
def test_it_is_replayed_over_any_connections(server: str, tmp_path: Path, order: str, apart: bool) -> None:
    path = tmp_path / "c.yaml"
    with recording(path, server) as relay:
        answers = ask_all(relay)

    with running("replay", "--order", order, str(path)) as relay:
        assert ask_all(relay, apart=apart) == answers
        assert relay.end() == -15
    assert relay.said == b""


def test_overlapping_requests_come_in_any_order(server: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    targets = [f"/{number}" for number in range(8)]
    with recording(path, server) as relay, ThreadPoolExecutor(8) as pool:
        assert [status for status, _ in pool.map(lambda each: once(relay, "GET", each), targets)] == [200] * 8
    with running("replay", "--order", "any", str(path)) as relay:
        for target in reversed(targets):
            assert once(relay, "GET", target) == (200, f"this is {target}\nline two\n".encode())
        assert relay.end() == -15


def test_a_request_without_a_match_is_answered_by_an_error(server: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with recording(path, server) as relay:
        ask_all(relay)

    with running("replay", str(path)) as relay, closing(connected(relay)) as client:
        status, body = ask(client, "POST", "/rpc", {"jsonrpc": "2.0", "id": 2, "method": "m"})
        assert status == 499
        assert json.loads(body)["reason"] == "arguments-differ"
        assert json.loads(body)["pointers"] == ["/body/id"]
        status, body = ask(client, "GET", "/nowhere")
        assert json.loads(body)["reason"] == "never-recorded"
        assert ask(client, "GET", "/a")[0] == 200
        assert relay.end() == EXIT_DIFFERS
    assert b"POST /rpc: arguments differ" in relay.said


def test_out_of_turn_is_a_miss_in_strict_order(server: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with recording(path, server) as relay:
        ask_all(relay)

    with running("replay", str(path)) as relay, closing(connected(relay)) as client:
        assert json.loads(ask(client, "GET", "/events")[1])["reason"] == "out-of-turn"
        assert ask(client, "GET", "/a")[0] == 200
        assert relay.end() == EXIT_DIFFERS


def test_http_is_recognised(server: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with running("record", f"--connect={server}", str(path)) as relay:
        once(relay, "GET", "/a")
        assert relay.end() == 0
    assert "protocol: http\nframing: http\n" in path.read_text()


def test_another_client_of_the_model_context_protocol_matches(server: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"

    def initialize(version: str) -> object:
        params = {"clientInfo": {"name": "c", "version": version}, "_meta": {"traceparent": version}}
        return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}

    with recording(path, server) as relay:
        answer = once(relay, "POST", "/mcp", initialize("1"))
    with running("replay", str(path)) as relay:
        assert once(relay, "POST", "/mcp", initialize("2")) == answer
        assert relay.end() == -15


def put(relay: Relay, head: str, *, body_first: bool) -> bytes:
    """Send a request whose body follows after 100 Continue, or at once; return the status lines of the responses.

    Responses are read to their end: a recorder does not get the rest for a client that has closed its connection.
    """
    _, host, port = relay.address.split(":")
    with socket.create_connection((host, int(port)), PATIENCE_S) as client, client.makefile("rb") as lines:

        def status() -> bytes:
            first = lines.readline().rstrip()
            lines.read(int(http.client.parse_headers(lines).get("Content-Length", "0")))
            return first

        client.sendall(f"PUT /x HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n{head}\r\n".encode())
        if body_first:
            client.sendall(b"{}")
        first = status()
        if b" 100 " not in first:
            return first
        client.sendall(b"{}")
        return first + b"|" + status()


@pytest.mark.parametrize("order", ["strict", "any"])
def test_a_response_may_come_before_the_body_of_its_request(server: str, tmp_path: Path, order: str) -> None:
    path = tmp_path / "c.yaml"
    with recording(path, server) as relay:
        assert put(relay, "", body_first=False) == b"HTTP/1.1 200 OK"
        answer = put(relay, "Expect: 100-continue\r\n", body_first=False)
        assert answer == b"HTTP/1.1 100 Continue|HTTP/1.1 200 OK"
        assert once(relay, "HEAD", "/a") == (200, b"")

    with running("replay", "--order", order, str(path)) as relay:
        assert put(relay, "", body_first=True) == b"HTTP/1.1 200 OK"
        assert put(relay, "Expect: 100-continue\r\n", body_first=False) == answer
        assert once(relay, "HEAD", "/a") == (200, b"")
        assert relay.end() == -15


def test_a_place_in_a_body_is_ignored_on_request(server: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with recording(path, server) as relay:
        once(relay, "POST", "/x", {"seed": 1, "name": "a"})

    with running("replay", "--ignore", "/body/seed", str(path)) as relay:
        status, body = once(relay, "POST", "/x", {"name": "a", "seed": 2})
        assert (status, json.loads(body)) == (200, {"got": {"seed": 1, "name": "a"}})
        assert relay.end() == -15


def test_a_server_is_verified(server: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with recording(path, server) as relay:
        ask_all(relay)

    done = run_command("verify", f"--connect={server}", str(path))
    assert done.out.startswith(b"ok "), done.out + done.err


def test_header_lines_are_scrubbed(server: str, tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    with recording(path, server) as relay:
        once(relay, "GET", "/a")
    path.write_text(path.read_text().replace("[redacted:bearer#1]", TOKEN))

    assert scrub(path, str(path), redaction=Redaction()).replaced == {"bearer": 1}
    assert TOKEN not in path.read_text()


@pytest.mark.parametrize("words", [["--", "cat"], ["--protocol", "mcp", "--listen", "tcp:0", "--connect", "tcp:1"]])
def test_it_is_for_socket_servers(tmp_path: Path, words: list[str]) -> None:
    done = run_command("record", "--framing", "http", str(tmp_path / "c.yaml"), *words)
    assert done.code == 2
    assert b"--framing http is for a socket server" in done.err


def run_command(*words: str) -> Session:
    done = subprocess.run([*RECORDER, *words], capture_output=True, timeout=PATIENCE_S, check=False)
    return Session(done.returncode, done.stdout, done.stderr)
