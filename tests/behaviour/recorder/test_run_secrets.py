"""No secret of a run is on disk at any time, nor in its summary: not of HTTP, WebSockets, kubeconfigs or children."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Self

import pytest
import trustme
import yaml
from wsproto import ConnectionType, WSConnection
from wsproto.events import AcceptConnection, BytesMessage, CloseConnection, Request, TextMessage

from tests.support.host import PATIENCE_S
from tests.support.raw_server import RawServer
from tests.support.recorder_process import RECORDER, children_of, wait_for, wait_until_gone
from tests.support.secret_encodings import spellings

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator

# Values without any known format, and in no variable of the environment unless the name begins with "env".
NAMES = (
    "authorization", "x-api-key", "api-key", "x-goog-api-key", "key in URL", "token in URL", "password in URL",
    "cookie", "set-cookie", "basic password", "body password", "answer token", "split in chunks", "redirect",
    "websocket protocol", "websocket text", "websocket fragments", "websocket binary", "websocket deltas",
    "kubeconfig token", "env proxy password", "env model key", "env in deltas", "child argument", "child message",
    "child answer", "command line",
)  # fmt: skip
SECRETS = {name: f"q{hashlib.sha256(name.encode()).hexdigest()[:27]}Z" for name in NAMES}

CLIENT = """
import base64, http.client, json, os, ssl, subprocess, sys, tempfile, urllib.request, yaml
secrets = json.load(open(sys.argv[1]))
url = sys.argv[2]
def send(path, body=None, **headers):
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    with urllib.request.urlopen(urllib.request.Request(url + path, body, headers)) as response:
        return response.read()
send("plain", Authorization="Bearer " + secrets["authorization"], Cookie="a=b; sid=" + secrets["cookie"])
for name in ("x-api-key", "api-key", "x-goog-api-key"):
    send("v1/messages", b"{}", **{name: secrets[name], "authorization": "Bearer " + secrets["env model key"]})
send("v1beta/models/m:generateContent?alt=sse&key=" + secrets["key in URL"])
send("list?access_token=" + secrets["token in URL"])
send("basic", Authorization="Basic " + base64.b64encode(b"ada:" + secrets["basic password"].encode()).decode())
send("login", json.dumps({"user": "ada", "password": secrets["body password"]}).encode())
send("go?to=https://ada:" + secrets["password in URL"] + "@example.com/")
for path in ("answer", "chunks", "deltas"):
    assert b"data" in send(path)
config = yaml.safe_load(open(os.environ["KUBECONFIG"]))
cluster = config["clusters"][0]["cluster"]
context = ssl.create_default_context(cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
assert opener.open(cluster["server"] + "/api/v1/pods").read()
import test_client_socket
test_client_socket.talk(url, secrets)
server = json.load(open(sys.argv[3].removeprefix("--config=")))["mcpServers"]["child"]
command, environ = [server["command"], *server["args"]], {**os.environ, **server["env"]}
child = subprocess.Popen(command, stdin=-1, stdout=-1, text=True, env=environ)
request = {"jsonrpc": "2.0", "id": 1, "method": "login", "params": {"password": secrets["child message"]}}
out, _ = child.communicate(json.dumps(request) + "\\n")
assert secrets["child answer"] in out, out
print("done", flush=True)
sys.stdin.read()
"""
SOCKET = """
import os, socket, urllib.parse
from wsproto import ConnectionType, WSConnection
from wsproto.events import BytesMessage, CloseConnection, Request, TextMessage
def talk(url, secrets):
    proxy = urllib.parse.urlsplit(os.environ["http_proxy"])
    host = urllib.parse.urlsplit(url).netloc
    sock = socket.create_connection((proxy.hostname, proxy.port))
    sock.sendall(f"CONNECT {host} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n".encode())
    assert b" 200 " in sock.recv(4096)
    ws = WSConnection(ConnectionType.CLIENT)
    protocols = ["realtime", "openai-insecure-api-key." + secrets["websocket protocol"]]
    sock.sendall(ws.send(Request(host, "/socket", subprotocols=protocols)))
    ws.receive_data(sock.recv(65536))
    list(ws.events())
    half = len(secrets["websocket fragments"]) // 2
    first, last = secrets["websocket fragments"][:half], secrets["websocket fragments"][half:]
    sock.sendall(ws.send(TextMessage('{"token": "' + secrets["websocket text"] + '"}')))
    sock.sendall(ws.send(TextMessage('{"token": "' + first, message_finished=False)))
    sock.sendall(ws.send(TextMessage(last + '"}')))
    binary = b"\\x01Authorization: Bearer " + secrets["websocket binary"].encode() + b"\\r\\n"
    sock.sendall(ws.send(BytesMessage(binary)))
    replies = []
    while len(replies) < 8:
        ws.receive_data(sock.recv(65536))
        replies += [event.data for event in ws.events()]
    sock.sendall(ws.send(CloseConnection(1000)))
    sock.close()
"""
CHILD = """
import json, os, sys
request = json.loads(sys.stdin.readline())
print(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"is": os.environ["CHILD_TOKEN"]}}), flush=True)
"""


def serve(connection: socket.socket, head: bytes) -> None:
    path = head.split()[1].decode()
    if path == "/socket":
        echo(connection, head)
        return
    body, headers = b"data", [f"Set-Cookie: sid={SECRETS['set-cookie']}; Path=/"]
    if path == "/answer":
        body = json.dumps({"data": {"token": SECRETS["answer token"]}}).encode()
    elif path == "/go":
        headers.append(f"X-Next: https://ada:{SECRETS['redirect']}@example.com/")
    if path == "/chunks":
        text = f'event: x\ndata: {{"token": "{SECRETS["split in chunks"]}"}}\n\n'.encode()
        sse(connection, text[:35], text[35:])
    elif path == "/deltas":
        secret = SECRETS["env in deltas"]
        pieces = ["the key is ", secret[:12], secret[12:], " as you asked"]
        sse(connection, *(b"data: %s\n\n" % json.dumps({"delta": {"text": piece}}).encode() for piece in pieces))
    else:
        lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers, "", ""]
        connection.sendall("\r\n".join(lines).encode() + body)


def sse(connection: socket.socket, *pieces: bytes) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
    for piece in (*pieces, b""):
        connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))


def echo(connection: socket.socket, head: bytes) -> None:
    ws = WSConnection(ConnectionType.SERVER)
    ws.receive_data(head + b"\r\n\r\n")
    secret = SECRETS["websocket deltas"]
    while True:
        for event in ws.events():
            if isinstance(event, Request):
                connection.sendall(ws.send(AcceptConnection(subprotocol="realtime")))
            elif isinstance(event, TextMessage):
                connection.sendall(ws.send(TextMessage(event.data, message_finished=event.message_finished)))
            elif isinstance(event, BytesMessage):
                connection.sendall(ws.send(BytesMessage(event.data)))
                for piece in ("it is ", secret[:12], secret[12:], "!"):
                    connection.sendall(ws.send(TextMessage(json.dumps({"type": "delta", "delta": piece}))))
            elif isinstance(event, CloseConnection):
                connection.sendall(ws.send(event.response()))
                return
        data = connection.recv(65536)
        if not data:
            return
        ws.receive_data(data)


RECORDINGS = {("rec",), ("rec.partial",), ("rec.previous",)}


class Scanner:
    """Reads all files of a folder, again and again, and collects the secrets in them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._forms = {form: name for name, secret in SECRETS.items() for form in spellings(secret)}
        for name in ("env in deltas", "websocket deltas"):
            self._forms |= {half.encode(): name for half in (SECRETS[name][:12], SECRETS[name][12:])}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._scan, daemon=True)
        self.found: dict[str, str] = {}
        self.rounds = 0

    def scan(self) -> None:
        for folder, _, names in os.walk(self._folder):
            for name in names if Path(folder).relative_to(self._folder).parts[:1] in RECORDINGS else ():
                with suppress(OSError):  # it was renamed
                    data = Path(folder, name).read_bytes()
                    self.found |= {
                        secret: f"{form!r} in {name}" for form, secret in self._forms.items() if form in data
                    }
        self.rounds += 1

    def _scan(self) -> None:
        while not self._over.is_set():
            self.scan()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._over.set()
        self._thread.join(PATIENCE_S)
        self.scan()


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Serve the client; return its command, and its environment."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    (tmp_path / "client.py").write_text(CLIENT)
    (tmp_path / "test_client_socket.py").write_text(SOCKET)
    (tmp_path / "child.py").write_text(CHILD)
    (tmp_path / "secrets.json").write_text(json.dumps(SECRETS))
    child = {
        "command": sys.executable,
        "args": ["child.py", f"--api-key={SECRETS['child argument']}"],
        "env": {"CHILD_TOKEN": SECRETS["child answer"]},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"child": child}}))
    with RawServer(serve) as server, RawServer(serve, context) as cluster:
        kubeconfig = {
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "clusters": [{"name": "c", "cluster": {
                "server": cluster.url.rstrip("/"),
                "certificate-authority-data": base64.b64encode(authority.cert_pem.bytes()).decode(),
            }}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": {"token": SECRETS["kubeconfig token"]}}],
        }  # fmt: skip
        (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig))
        command = [sys.executable, "client.py", "secrets.json", server.url, "--config=mcp.json"]
        environ = {
            **os.environ,
            "KUBECONFIG": str(tmp_path / "kubeconfig"),
            "HTTPS_PROXY": f"http://ada:{SECRETS['env proxy password']}@127.0.0.1:9/",
            "ANTHROPIC_API_KEY": SECRETS["env model key"],
            "DELTA_SECRET": SECRETS["env in deltas"],
            "REALTIME_SECRET": SECRETS["websocket deltas"],
        }
        yield [*command, f"--token={SECRETS['command line']}"], environ


def test_no_secret_is_on_disk_during_a_run_after_it_or_after_a_kill(
    tmp_path: Path, site: tuple[list[str], dict[str, str]]
) -> None:
    command, environ = site
    words = [*RECORDER, "run", "--wrap=mcp.json", "--mode=all", "rec", "--", *command]
    for killed in (False, True):
        with (
            Scanner(tmp_path) as scanner,
            subprocess.Popen(words, cwd=tmp_path, env=environ, stdin=-1, stdout=-1, stderr=-1) as running,
        ):
            assert running.stdin
            assert running.stdout
            assert running.stderr
            assert running.stdout.readline() == b"done\n", running.stderr.read()
            if killed:
                processes = [*children_of(running.pid)]
                running.kill()
                for pid in processes:
                    wait_until_gone(pid)
            running.stdin.close()
            err = running.stderr.read()
            assert running.wait(PATIENCE_S) == (-signal.SIGKILL if killed else 0), err
        assert scanner.rounds > 1
        assert scanner.found == {}
        assert [name for name, secret in SECRETS.items() for form in spellings(secret) if form in err] == []
        if not killed:
            traffic = yaml.safe_load((tmp_path / "rec" / "traffic.http.yaml").read_text())
            assert len(traffic["interactions"]) == 14
    wait_for(tmp_path / "rec.partial" / "traffic.http.yaml.partial", b"redacted: ")
    replayed = subprocess.run(
        [*RECORDER, "run", "--mode=none", "rec", "--", *command],
        cwd=tmp_path, env=environ, input=b"", capture_output=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert b"child answer" not in replayed.stderr
    assert [name for name, secret in SECRETS.items() if secret.encode() in replayed.stderr] == []
