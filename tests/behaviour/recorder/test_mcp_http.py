"""MCP over Streamable HTTP: sessions are recorded between a client and a server, and replayed without the server."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager
from http.client import HTTPException
from socket import create_connection
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from ext_recorder.cassette.events import Data
from ext_recorder.cassette.reader import Reader
from tests.support.host import PATIENCE_S
from tests.support.mcp_http_server import McpClient, McpHttpServer
from tests.support.raw_server import RawServer
from tests.support.recorder_process import RECORDER
from tests.support.run_recordings import server_context

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.mcp_http_server import Message
    from tests.support.ports import NewPort

LISTEN = "http://127.0.0.1:0/here"
NAME = "mcp.yaml"


class Recorder:
    """A recorder that listens.

    Attributes:
        url: its endpoint.
        code, err: once it has ended.
    """

    def __init__(self, folder: Path, *words: str) -> None:
        self._process = subprocess.Popen([*RECORDER, *words], cwd=folder, stderr=subprocess.PIPE, text=True)
        assert self._process.stderr is not None
        line = self._process.stderr.readline()
        assert "listening on " in line, line + self._process.stderr.read()
        self.url = line.split("listening on ")[1].split(",")[0].strip()
        self.code, self.err = 0, ""

    def end(self, number: int = signal.SIGTERM) -> None:
        self._process.send_signal(number)
        _, self.err = self._process.communicate(timeout=PATIENCE_S)
        self.code = self._process.returncode

    @classmethod
    @contextmanager
    def of(cls, folder: Path, *words: str) -> Iterator[Recorder]:
        recorder = cls(folder, *words)
        try:
            yield recorder
        finally:
            recorder.end()


@contextmanager
def recording(folder: Path, server: McpHttpServer, *options: str) -> Iterator[Recorder]:
    with Recorder.of(folder, "record", *options, "--listen", LISTEN, "--connect", server.url, NAME) as recorder:
        yield recorder


@contextmanager
def replaying(folder: Path, *options: str, name: str = NAME) -> Iterator[Recorder]:
    with Recorder.of(folder, "replay", *options, "--listen", LISTEN, name) as recorder:
        yield recorder


def tool(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*RECORDER, *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )


def heads(cassette: Path) -> list[str]:
    """The exchanges of a session: of each message its direction and its head, of marks their values."""
    with Reader(cassette) as reader:
        return [
            f"{event.kind} {' '.join(event.head)}" if isinstance(event, Data) else f"{event.kind} {event.value}"
            for event in reader
        ]


def all_of_it(client: McpClient) -> list[object]:
    """Use all of the transport. Return what a client sees."""
    seen: list[object] = [client.listen(), client.call("tell"), client.received.get(timeout=PATIENCE_S)]
    seen.append(client.call("add", a=1, b=2))
    params = {"name": "count", "arguments": {"to": 2}, "_meta": {"progressToken": "own"}}
    counted = client.request("tools/call", params)
    seen += [[message.get("params", {}).get("progress") for message in counted], client.call("ask")]
    calls: list[Message] = [
        {"jsonrpc": "2.0", "id": f"b{number}", "method": "tools/call", "params": {"name": "add", "arguments": {"a": 7}}}
        for number in range(2)
    ]
    seen += [sorted(message["id"] for message in client.post(calls)), client.call("refuse"), client.status]
    return [*seen, client.end(), client.call("add", a=1, b=2), client.status]


EXPECTED = [
    200,
    "told",
    {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "told"}},
    "3",
    [0, 1, None],
    "the client said hello",
    ["b0", "b1"],
    "HTTP 401: no token",
    401,
    200,
    "Session not found",
    404,
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a recorded session, which used all of the transport."""
    folder = tmp_path_factory.mktemp("mcp")
    with McpHttpServer() as server, recording(folder, server) as recorder:
        client = McpClient(recorder.url, Authorization="Bearer sk-test-0123456789abcdefghij")
        seen = all_of_it(client)
        assert [*seen[:7], *seen[8:]] == [*EXPECTED[:7], *EXPECTED[8:]]  # the live 401 has no JSON
        (folder / "session").write_text(client.session)
    assert recorder.code == 0, recorder.err
    return folder


def test_a_session_is_an_ordinary_cassette_whose_messages_name_their_exchange(folder: Path) -> None:
    cassette = folder / NAME

    found = [head for head in heads(cassette) if head != "http GET 3 end"]  # before or after the response to DELETE
    assert set(found[4:7]) == {"in POST 4", "out GET 3", "out POST 4 json"}  # of two streams
    assert [*found[:4], *found[7:]] == [
        "in POST 1", "out POST 1 json session", "in POST 2", "http GET 3",
        "in POST 5", "out POST 5 json",
        "in POST 6", "out POST 6", "out POST 6", "out POST 6",
        "in POST 7", "out POST 7", "in POST 8", "out POST 7",
        "in POST 9", "in POST 9", "out POST 9 json", "out POST 9 json",
        "in POST 10", 'out POST 10 json 401 www-authenticate: Bearer realm="tests"',
        "http DELETE 11 200", "eof in", "exit 0",
    ]  # fmt: skip
    assert "protocol: mcp\nframing: ndjson" in cassette.read_text()


def test_no_credential_and_no_session_id_is_on_disk(folder: Path) -> None:
    everything = "".join(path.read_text() for path in folder.glob("*.yaml*"))

    assert "sk-test" not in everything
    assert (folder / "session").read_text() not in everything


def test_a_replay_has_all_of_the_transport_with_other_ids(folder: Path) -> None:
    with replaying(folder) as recorder:
        client = McpClient(recorder.url, number=70)
        seen = all_of_it(client)
        again = McpClient(recorder.url)  # one more than recorded

    assert seen == EXPECTED
    assert client.begun[0]["id"] == 70
    assert client.session != (folder / "session").read_text()
    assert again.session not in {"", client.session}
    assert recorder.code == 3
    assert recorder.err.startswith("ext-recorder: one session more than the 1 recorded: it replays mcp.yaml again\n")


def test_a_request_that_was_not_recorded_gets_an_error_at_once(folder: Path) -> None:
    with replaying(folder) as recorder:
        client = McpClient(recorder.url)
        answer = client.call("add", a=2, b=2)

    assert "arguments differ from the closest one" in answer
    assert recorder.code == 3
    assert "/params/arguments/a: recorded 1, now 2" in recorder.err


def test_a_session_of_http_is_replayed_on_stdio(folder: Path) -> None:
    with Reader(folder / NAME) as reader:
        requests = [event.payload for event in reader if isinstance(event, Data) and event.kind == "in"]
    done = subprocess.run(
        [*RECORDER, "replay", "--order", "any", NAME],
        cwd=folder,
        input=b"\n".join(requests) + b"\n",
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]

    assert done.returncode == 0, done.stderr
    assert sum("result" in answer or "error" in answer for answer in answers) == 8
    assert answers[0]["result"]["serverInfo"]["name"] == "tests"


STDIO_SERVER = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "stdio", "version": "1"}}
    if message["method"] == "tools/call":
        params = message["params"]
        if "_meta" in params:
            progress = {"progressToken": params["_meta"]["progressToken"], "progress": 1}
            print(json.dumps({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress}), flush=True)
        result = {"content": [{"type": "text", "text": str(params["arguments"].get("a"))}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


def test_a_session_of_stdio_is_replayed_over_http(tmp_path: Path) -> None:
    progress = {"name": "add", "arguments": {"a": 5}, "_meta": {"progressToken": 9}}
    messages: list[Message] = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": progress},
    ]
    command = [*RECORDER, "record", "--protocol", "mcp", NAME, "--", sys.executable, "-c", STDIO_SERVER]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        for message in messages:
            host.stdin.write(json.dumps(message) + "\n")
            host.stdin.flush()
            if "id" in message:
                host.stdout.readline()
        host.communicate(timeout=PATIENCE_S)

    with replaying(tmp_path) as recorder:
        client = McpClient(recorder.url)
        answer = client.request("tools/call", {**progress, "_meta": {"progressToken": "other"}})

    assert client.begun[0]["result"]["serverInfo"]["name"] == "stdio"
    assert answer[0]["params"] == {"progressToken": "other", "progress": 1}
    assert answer[1]["result"]["content"][0]["text"] == "5"
    assert recorder.code == 0, recorder.err


def test_a_stream_that_ended_early_is_resumed(tmp_path: Path) -> None:
    with McpHttpServer() as server, recording(tmp_path, server) as recorder:
        client = McpClient(recorder.url)
        assert client.request("tools/call", {"name": "later", "arguments": {}}) == []
        assert client.listen("later-0") == 200
        live = client.received.get(timeout=PATIENCE_S)
        client.end()
    assert recorder.code == 0, recorder.err
    assert "http POST 3 primed" in heads(tmp_path / NAME)
    assert "http GET 4 resumes 3" in heads(tmp_path / NAME)

    with replaying(tmp_path) as recorder:
        client = McpClient(recorder.url)
        body = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "later", "arguments": {}}}
        with client.open("POST", json.dumps(body).encode()) as response:
            stream = response.read().decode()
        last = stream.partition("id: ")[2].partition("\n")[0]
        assert last
        assert "result" not in stream
        assert client.listen(last) == 200
        assert client.received.get(timeout=PATIENCE_S)["result"] == live["result"]
    assert recorder.code == 0, recorder.err


def test_parallel_sessions_have_a_cassette_each(tmp_path: Path, new_port: NewPort) -> None:
    port = new_port()

    def conversation(url: str, *numbers: int) -> list[str]:
        clients = [McpClient(url) for _ in numbers]  # they begin alike
        sums = [client.call("add", a=number, b=0) for client, number in zip(clients, numbers, strict=True)]
        for client in clients:
            client.end()
        return sums

    with McpHttpServer(port) as server, recording(tmp_path, server) as recorder:
        assert conversation(recorder.url, 1, 2) == ["1", "2"]
    assert (tmp_path / "mcp-2.yaml").exists()

    with replaying(tmp_path) as recorder:
        assert conversation(recorder.url, 2, 1) == ["2", "1"]
    assert recorder.code == 0, recorder.err
    for options, code in (((), 0), (("--order", "strict"), 3)):
        with replaying(tmp_path, "--report", "told", *options) as recorder:
            conversation(recorder.url, 1)
        assert recorder.code == code
        unplayed = "mcp-2.yaml: no client has played this session"
        assert recorder.err.count(unplayed) == (tmp_path / "told").read_text().count(unplayed) == 1
        (tmp_path / "told").unlink()
    with replaying(tmp_path) as recorder:
        conversation(recorder.url, 1, 8)
    assert recorder.code == 3
    assert re.search(r"closest one, mcp-2\.yaml:\d+: /params/arguments/a: recorded 2, now 8", recorder.err)

    (tmp_path / "mcp-3.yaml").write_text((tmp_path / NAME).read_text().replace("http://", "https://"))  # another server
    with McpHttpServer(port) as server, recording(tmp_path, server, "--mode", "all") as recorder:
        assert conversation(recorder.url, 1) == ["1"]
    assert not (tmp_path / "mcp-2.yaml").exists()
    assert (tmp_path / "mcp-3.yaml").exists()


def test_a_session_of_another_protocol_is_not_replayed(tmp_path: Path) -> None:
    header = "cassette: 1\nprotocol: gevals\nframing: ndjson\nevents:\n"
    (tmp_path / NAME).write_text(f"{header}- {{t: 0.000000, exit: 0}}\nredacted: []\n")
    done = tool("replay", "--listen", LISTEN, NAME, folder=tmp_path)

    assert done.returncode == 2
    assert "expected a session of MCP, found one of gevals" in done.stderr


def test_failures_of_http_are_responses_of_the_cassette(tmp_path: Path) -> None:
    with McpHttpServer() as server, recording(tmp_path, server) as recorder:
        server.streams = False
        client = McpClient(recorder.url)
        assert client.listen() == 405
        client.call("expire")
        assert client.call("add", a=1, b=2) == "Session not found"
    assert recorder.code == 0, recorder.err
    assert heads(tmp_path / NAME)[3:] == [
        "http GET 3", "http GET 3 405", "in POST 4", "out POST 4 json", "in POST 5", "out POST 5 json 404",
        "eof in", "exit 0",
    ]  # fmt: skip

    with replaying(tmp_path) as recorder:
        client = McpClient(recorder.url)
        assert client.listen() == 405
        client.call("expire")
        assert (client.call("add", a=1, b=2), client.status) == ("Session not found", 404)


def test_a_crash_is_replayed_as_a_crash(tmp_path: Path) -> None:
    def crash(url: str) -> None:
        client = McpClient(url)
        with pytest.raises(ConnectionError):  # reset, or closed without a response
            client.call("crash")

    with McpHttpServer() as server, recording(tmp_path, server) as recorder:
        crash(recorder.url)
    assert recorder.code == 0, recorder.err
    with replaying(tmp_path) as recorder:
        crash(recorder.url)


def test_faults_change_the_messages(folder: Path) -> None:
    with replaying(folder, "--fault", "error=-32603@method=tools/call,nth=1") as recorder:
        client = McpClient(recorder.url)
        client.listen()
        broken = client.request("tools/call", {"name": "tell", "arguments": {}})
        again = client.call("tell")

    assert broken[-1]["error"]["code"] == -32603
    assert again == "told"


@pytest.mark.parametrize("fault", ["cut", "kill", "exit=4"])
def test_a_fault_that_ends_a_message_ends_its_connection(folder: Path, fault: str) -> None:
    with replaying(folder, "--fault", f"{fault}@method=tools/call,nth=1") as recorder:
        client = McpClient(recorder.url)
        with pytest.raises((OSError, HTTPException, ValueError)):
            client.call("tell")


def test_verify_finds_a_server_that_differs(folder: Path, tmp_path: Path) -> None:
    cassette = tmp_path / NAME
    cassette.write_text((folder / NAME).read_text())
    with McpHttpServer() as server:
        same = tool("verify", "--connect", server.url, "--header", "Authorization: Bearer one", NAME, folder=tmp_path)
        assert server.headers[-1]["Authorization"] == "Bearer one"
        cassette.write_text(cassette.read_text().replace('"text": "3"', '"text": "4"'))
        other = tool("verify", "--connect", server.url, NAME, folder=tmp_path)
        updated = tool("verify", "--update", "--connect", server.url, NAME, folder=tmp_path)
    gone = tool("verify", "--connect", server.url, NAME, folder=tmp_path)

    assert same.returncode == 0, same.stdout + same.stderr
    assert other.returncode == 1
    assert "answer to tools/call (id 3): /result/content/0/text" in other.stdout
    assert updated.returncode == 0, updated.stdout
    assert "start the server, or give its command" in gone.stdout + gone.stderr
    assert gone.returncode != 0


def test_verify_of_a_server_that_begins_no_session_gives_one_reason(folder: Path) -> None:
    with server_of(b"HTTP/1.1 404 Not Found\r\nContent-Length: 7\r\n\r\nno page") as server:
        missing = tool("verify", "--connect", server.url, NAME, folder=folder)
    with server_of(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\n\r\n<p/>") as server:
        page = tool("verify", "--connect", server.url, NAME, folder=folder)

    for done, reason in ((missing, "HTTP 404: no page"), (page, "HTTP 200 without a message")):
        assert done.returncode == 2
        assert f"/: no MCP session begins: {reason}\n" in done.stdout
        assert "answer to" not in done.stdout + done.stderr


def server_of(response: bytes) -> RawServer:
    def respond(connection: socket.socket, _: bytes) -> None:
        connection.sendall(response)

    return RawServer(respond)


def test_a_client_of_http2_gets_no_advice_that_record_does_not_have_and_the_exit_code_its_reason(
    tmp_path: Path,
) -> None:
    with McpHttpServer() as server, recording(tmp_path, server) as recorder:
        McpClient(recorder.url)
        parts = urlsplit(recorder.url)
        with create_connection((parts.hostname, parts.port), PATIENCE_S) as client:
            client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
            while client.recv(1024):
                pass

    assert recorder.code == 1
    assert "--pass-through" not in recorder.err
    assert re.search(
        "so the exit code is 1: .*HTTP/2 without HTTP/1.1, such as gRPC, can't be recorded\n", recorder.err
    )


@pytest.mark.parametrize("words", [("lint",), ("show",), ("stats",), ("view",), ("diff", NAME)])
def test_tools_read_the_cassette(folder: Path, words: tuple[str, ...]) -> None:
    done = tool(*words, NAME, folder=folder)

    assert done.returncode == 0, done.stdout + done.stderr


def test_a_killed_recorder_leaves_what_it_forwarded(tmp_path: Path) -> None:
    with McpHttpServer() as server:
        recorder = Recorder(tmp_path, "record", "--listen", LISTEN, "--connect", server.url, NAME)
        client = McpClient(recorder.url)
        assert client.call("add", a=1, b=2) == "3"
        recorder.end(signal.SIGKILL)
    assert not (tmp_path / NAME).exists()
    while (done := tool("recover", f"{NAME}.partial", folder=tmp_path)).returncode and "in use" in done.stderr:
        os.sched_yield()  # the writer process is about to end

    assert done.returncode == 0, done.stderr
    assert heads(tmp_path / NAME)[-1] == "out POST 3 json"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--listen", LISTEN, "--connect", "tcp:127.0.0.1:1"), "expected two URLs of MCP endpoints, or two addresses"),
        (("--listen", "https://127.0.0.1:0/", "--connect", "http://127.0.0.1:1/"), "expected http:"),
        (("--listen", LISTEN, "--connect", "http://127.0.0.1:x/"), "expected the URL of an MCP endpoint"),
        (("--listen", LISTEN, "--connect", "http://127.0.0.1:1/", "--framing", "ndjson"), "omit --protocol, --framing"),
        (
            ("--listen", "http://192.0.2.1:0/", "--connect", "http://127.0.0.1:1/"),
            "; expected an address of this machine",
        ),
        (
            ("--listen", "tcp:0", "--connect", "127.0.0.1:1/mcp"),
            "tcp:127.0.0.1:4711; or a URL for MCP, such as http://",
        ),
    ],
)
def test_wrong_addresses_are_explained(tmp_path: Path, words: tuple[str, ...], problem: str) -> None:
    done = tool("record", *words, NAME, folder=tmp_path)

    assert done.returncode == 2
    assert problem in done.stderr


def test_a_server_that_is_not_there_is_a_bad_gateway(tmp_path: Path, new_port: NewPort) -> None:
    with McpHttpServer(new_port()) as server:
        pass
    with recording(tmp_path, server) as recorder:
        assert McpClient(recorder.url).status == 502

    assert recorder.code == 1
    assert f"no connection to {server.url}: Connection refused" in recorder.err


def test_the_transport_of_2024_11_05_is_refused(tmp_path: Path) -> None:
    def old(connection: socket.socket, head: bytes) -> None:
        body = b"event: endpoint\ndata: /messages?session=1\n\n"
        status = b"200 OK\r\nContent-Type: text/event-stream" if head.startswith(b"GET") else b"405 Not Allowed"
        connection.sendall(b"HTTP/1.1 %b\r\nContent-Length: %d\r\n\r\n%b" % (status, len(body), body))

    with RawServer(old) as server:
        url = f"{server.url}sse"
        with Recorder.of(tmp_path, "record", "--listen", LISTEN, "--connect", url, NAME) as recorder:
            request = Request(recorder.url, headers={"Accept": "text/event-stream"})
            assert b"/messages" in urlopen(request, timeout=PATIENCE_S).read()

    assert recorder.code == 1
    assert f"{url} uses the transport HTTP+SSE of 2024-11-05, which is not recorded as a session" in recorder.err


def test_the_certificate_of_the_server_is_verified_and_its_query_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with McpHttpServer() as server:
        context = server_context(tmp_path, "127.0.0.1")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        url = f"{server.url.replace('http:', 'https:')}?key=token-in-a-query"
        words = ("record", "--listen", LISTEN, "--connect", url, NAME)
        with Recorder.of(tmp_path, *words) as distrustful:
            assert McpClient(distrustful.url).status == 502
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
        with Recorder.of(tmp_path, *words) as recorder:
            assert McpClient(recorder.url).call("add", a=1, b=2) == "3"

    assert "its certificate is not valid (untrusted); SSL_CERT_FILE names a file" in distrustful.err
    assert recorder.code == 0, recorder.err
    assert server.paths == {"/mcp?key=token-in-a-query"}
    assert "token-in-a-query" not in recorder.err + (tmp_path / NAME).read_text()
