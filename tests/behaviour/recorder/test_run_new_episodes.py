"""`run --mode new_episodes`: replays what is recorded, and adds the rest to the recording at the end."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import trustme
import yaml

from tests.support.host import PATIENCE_S
from tests.support.raw_server import RawServer
from tests.support.recorder_process import RECORDER

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

# Requests the URLs of a variable, on one connection for each; then starts a child as often as another one says.
CLIENT = """
import json, os, signal, subprocess, sys, urllib.request
for word in os.environ["URLS"].split():
    if word == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    url, _, body = word.partition("|")
    with urllib.request.urlopen(url, body.encode() or None) as response:
        print(response.read().decode())
server = json.load(open(sys.argv[1]))["mcpServers"]["child"]
for number in range(int(os.environ.get("CHILDREN", "0"))):
    child = subprocess.Popen([server["command"], *server["args"]], stdin=-1, stdout=-1, text=True)
    request = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "say", "params": {"number": number}})
    print(child.communicate(request + "\\n")[0].strip())
"""
CHILD = """
import json, sys
message = json.loads(sys.stdin.readline())
print(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"said": message["params"]["number"]}}), flush=True)
"""


def respond(connection: socket.socket, head: bytes) -> None:
    text = b"live " + b" ".join(head.split(b"\r\n")[0].split()[:2])
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(text), text))


class Project:
    """A folder with the client, and two servers."""

    def __init__(self, folder: Path, plain: RawServer, secure: RawServer, authority: str) -> None:
        self.folder = folder
        self.plain, self.secure = plain, secure
        self._authority = authority
        (folder / "client.py").write_text(CLIENT)
        (folder / "child.py").write_text(CHILD)
        server = {"command": sys.executable, "args": ["child.py"]}
        (folder / "mcp.json").write_text(json.dumps({"mcpServers": {"child": server}}))

    def run(self, mode: str, *paths: str, children: int = 0) -> tuple[int, list[str], str]:
        """Run the client with these paths; `s/x` is one of the server with TLS, `x|text` sends a body."""
        urls = []
        for path in paths:
            base = self.secure.url.replace("127.0.0.1", "localhost") if path.startswith("s/") else self.plain.url
            urls.append(path if path == "kill" else base + path)
        done = subprocess.run(
            [
                *RECORDER,
                "run",
                "--wrap=mcp.json",
                f"--mode={mode}",
                "rec",
                "--",
                sys.executable,
                "client.py",
                "mcp.json",
            ],
            cwd=self.folder,
            env={**os.environ, "URLS": " ".join(urls), "CHILDREN": str(children), "SSL_CERT_FILE": self._authority},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        return done.returncode, done.stdout.splitlines(), done.stderr

    def content(self) -> dict[str, bytes]:
        paths = sorted(path for path in self.folder.glob("rec*/**/*") if path.is_file())
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in paths}

    def requests(self) -> list[bytes]:
        """Return what the servers were asked since the last call."""
        found = [head.split()[1] for server in (self.plain, self.secure) for head in server.heads]
        self.plain.heads.clear()
        self.secure.heads.clear()
        return found


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    authority, context = trustme.CA(), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    with RawServer(respond) as plain, RawServer(respond, context) as secure:
        yield Project(tmp_path, plain, secure, str(tmp_path / "ca.pem"))


def test_new_requests_and_new_sessions_are_added_and_the_others_are_replayed(project: Project) -> None:
    code, _, err = project.run("new_episodes", "a", "s/b", children=1)  # there is no recording: it is made
    assert code == 0, err
    assert project.requests() == [b"/a", b"/s/b"]
    before = project.content()
    paths = ("a", "c", "s/b", "s/d", "a?x=1|body")
    code, out, err = project.run("new_episodes", *paths, children=2)
    assert code == 0, err
    assert out[:5] == ["live GET /a", "live GET /c", "live GET /s/b", "live GET /s/d", "live POST /a?x=1"]
    assert sorted(project.requests()) == [b"/a?x=1", b"/c", b"/s/d"]
    assert "recorded: 3 new requests" in err
    after = project.content()
    assert set(after) == {*before, "rec/children/child-2.yaml"}
    assert after["rec/children/child.yaml"] == before["rec/children/child.yaml"]
    old, new = (yaml.safe_load(each["rec/traffic.http.yaml"]) for each in (before, after))
    assert new["interactions"][:2] == old["interactions"]
    assert [each["request"]["body"] for each in new["interactions"]].count("body") == 1
    header = yaml.safe_load(after["rec/recording.yaml"])
    assert header["children"][0]["cassettes"] == ["children/child.yaml", "children/child-2.yaml"]
    assert sum(each["requests"] for each in header["endpoints"]) == 5
    # All of it is replayed without the servers.
    code, out, err = project.run("none", *paths, children=2)
    assert code == 0, err
    assert out[:5] == ["live GET /a", "live GET /c", "live GET /s/b", "live GET /s/d", "live POST /a?x=1"]
    assert project.requests() == []


def test_without_anything_new_the_recording_stays_as_it_is(project: Project) -> None:
    assert project.run("once", "a", "b", children=1)[0] == 0
    before = project.content()
    code, out, err = project.run("new_episodes", "b")  # not all of it, either
    assert (code, out) == (0, ["live GET /b"]), err
    assert "nothing new" in err
    assert project.content() == before


# Starts an MCP server of its own at a free port, calls it as an agent does, and starts a child.
OWN_SERVER = (
    """
import json, subprocess, sys, threading, urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Tools(BaseHTTPRequestHandler):
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        result = {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "own", "version": "1"}}
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *_):
        pass
server = ThreadingHTTPServer(("127.0.0.1", 0), Tools)
threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
for number, method in enumerate(["initialize", "tools/list"]):
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": {}}).encode()
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    request = urllib.request.Request(f"http://127.0.0.1:{server.server_port}/mcp", body, headers)
    with urllib.request.urlopen(request) as response:
        print(json.load(response)["result"]["serverInfo"]["name"])
"""
    + CLIENT
)


def test_servers_that_the_command_starts_at_another_port_each_time_are_not_new(project: Project) -> None:
    (project.folder / "client.py").write_text(OWN_SERVER)
    code, recorded, err = project.run("once", "a", children=1)
    assert (code, recorded[:3]) == (0, ["own", "own", "live GET /a"]), err
    before = project.content()
    for mode in ("new_episodes", "new_episodes", "none"):
        code, out, err = project.run(mode, "a", children=1)
        assert (code, out) == (0, recorded), err
        assert project.content() == before


def test_what_is_new_is_said_to_be_lost_if_a_child_differed(project: Project) -> None:
    assert project.run("once", "a", children=1)[0] == 0
    before = project.content()
    (project.folder / "client.py").write_text(CLIENT.replace('"number": number', '"number": "edited"'))
    code, _, err = project.run("new_episodes", "a", "c", children=1)
    assert code == 3
    assert "recorded: 1 new request" not in err
    assert "rec: not changed, because children differed from the recording; not kept: 1 new request; to record" in err
    assert project.content() == before


def test_an_interrupted_addition_leaves_the_recording_as_it_is(project: Project) -> None:
    assert project.run("once", "a")[0] == 0
    before = project.content()
    code, _, err = project.run("new_episodes", "a", "c", "kill")
    assert code == -signal.SIGKILL
    after = project.content()
    assert {name: text for name, text in after.items() if not name.startswith("rec.partial/")} == before
    assert "rec: not changed, the command was interrupted by SIGKILL; to make a recording of" in err
    recovered = subprocess.run(
        [*RECORDER, "recover", "rec.partial", "-o", "both"], cwd=project.folder, capture_output=True, check=False
    )
    assert recovered.stdout.startswith(b"both: 2 HTTP interactions"), recovered.stderr


def test_a_new_server_with_an_invalid_certificate_is_refused_by_the_program(project: Project) -> None:
    assert project.run("once", "a")[0] == 0
    other = trustme.CA()
    other.cert_pem.write_to_path(project._authority)  # the program trusts another authority now
    code, _, _ = project.run("new_episodes", "s/x")
    assert code == 1
    assert project.requests() == [b"/a"]
