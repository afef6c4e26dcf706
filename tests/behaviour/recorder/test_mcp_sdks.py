"""The official SDKs of MCP over Streamable HTTP, recorded with a server and replayed without it."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.support.host import PATIENCE_S
from tests.support.mcp_http_server import McpHttpServer
from tests.support.ports import reserved_port
from tests.support.program_packages import node_packages, python_packages
from tests.support.recorder_process import RECORDER
from tests.support.run_recordings import Recording, run_recorder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

PYTHON_SERVER = """
import sys
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("sdk")

@server.tool()
async def count(to: int, ctx: Context) -> str:
    for number in range(to):
        await ctx.report_progress(number, to)
    return "counted"

server.run(transport="streamable-http", port=int(sys.argv[1]))
"""
# Revision 2025-11-25, with a handshake and sessions.
PYTHON_SESSION = """
import asyncio, sys
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

async def main():
    async with streamable_http_client(sys.argv[1]) as (reader, writer, *_):
        async with ClientSession(reader, writer) as session:
            await session.initialize()
            print(*(tool.name for tool in (await session.list_tools()).tools))
            async def progress(*now):
                print(*now)
            result = await session.call_tool("count", {"to": 3}, progress_callback=progress)
            print(result.content[0].text)

asyncio.run(main())
"""
# Revision 2026-07-28, with neither.
PYTHON_CLIENT = """
import asyncio, sys
from mcp import Client

async def main():
    async with Client(sys.argv[1]) as client:
        print(*(tool.name for tool in (await client.list_tools()).tools))
        async def progress(*now):
            print(*now)
        result = await client.call_tool("count", {"to": 3}, progress_callback=progress)
        print(result.content[0].text)

asyncio.run(main())
"""
# Progress, and requests of the server: roots on the stream of GET, sampling and elicitation on that of the call.
NODE_CLIENT = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

const transport = new StreamableHTTPClientTransport(new URL(process.argv[2]));
const capabilities = { sampling: {}, elicitation: {}, roots: { listChanged: true } };
const client = new Client({ name: "tests", version: "1" }, { capabilities });
const asked = new Set();
const on = (schema, name, result) => client.setRequestHandler(schema, async () => { asked.add(name); return result; });
on(types.ListRootsRequestSchema, "roots", { roots: [{ uri: "file:///work", name: "work" }] });
on(types.CreateMessageRequestSchema, "sampling",
   { role: "assistant", model: "m", content: { type: "text", text: "sampled" } });
on(types.ElicitRequestSchema, "elicitation", { action: "accept", content: { name: "Ada", check: true } });
// The server asks for the roots after a time of its own, and in get-roots-list only if it does not have them yet.
const synchronized = new Promise(resolve => client.setNotificationHandler(
    types.LoggingMessageNotificationSchema,
    ({ params }) => String(params.data).startsWith("Roots updated") && resolve()));
client.onerror = error => console.log("error", error.message);
await client.connect(transport);
const call = async (name, args) => {
    let steps = 0;
    const result = await client.callTool({ name, arguments: args }, undefined, { onprogress: () => { steps++; } });
    console.log(name, steps, JSON.stringify(result.content[0]));
};
await call("echo", { message: "hi" });
await call("trigger-long-running-operation", { duration: 0.2, steps: 4 });
await call("trigger-sampling-request", { prompt: "x", maxTokens: 5 });
await call("trigger-elicitation-request", {});
await synchronized;
await call("get-roots-list", {});
console.log([...asked].sort().join(" "), transport.sessionId ? "session" : "no session");
await transport.terminateSession();
await client.close();
process.exit(0);
"""


@contextmanager
def running(command: Sequence[str], port: int, environ: Mapping[str, str]) -> Iterator[str]:
    """Run a server until the end of the block. Yield the URL of its endpoint."""
    with subprocess.Popen(
        command, env={**os.environ, **environ}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as server:
        try:
            while server.poll() is None:
                try:
                    socket.create_connection(("127.0.0.1", port), PATIENCE_S).close()
                except ConnectionRefusedError:
                    os.sched_yield()
                else:
                    break
            assert server.poll() is None, server.communicate()[1]
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.send_signal(signal.SIGKILL)
            server.communicate()


def check_sessions(folder: Path, events: Sequence[str]) -> None:
    """Check that the session is a cassette, and that its requests are not in the file of HTTP."""
    header = yaml.safe_load((folder / "rec" / "recording.yaml").read_text())
    [child] = header["children"]
    cassette = (folder / "rec" / child["cassettes"][0]).read_text()
    assert child["command"] == [line.split("'")[1] for line in cassette.splitlines() if line.startswith("command:")]
    for event in events:
        assert event in cassette
    assert "jsonrpc" not in (folder / "rec" / "traffic.http.yaml").read_text()


@pytest.mark.parametrize(
    ("client", "events"),
    [(PYTHON_SESSION, ["head: ['POST 1', 'session']", "http: DELETE"]), (PYTHON_CLIENT, ["server/discover"])],
)
def test_the_sdk_for_python(client: str, events: list[str], tmp_path: Path) -> None:
    environ = {"PYTHONPATH": str(python_packages())}
    recording = Recording(tmp_path, [], **environ)
    with reserved_port() as port, running([sys.executable, "-c", PYTHON_SERVER, str(port)], port, environ) as url:
        recording.command = [sys.executable, "-c", client, url]
        recorded = recording.record()

    assert recorded.out.splitlines() == ["count", "0.0 3.0 None", "1.0 3.0 None", "2.0 3.0 None", "counted"]
    check_sessions(tmp_path, events)
    recording.check_replay()


def test_the_sdk_for_typescript_with_a_server_of_others(tmp_path: Path) -> None:
    packages = node_packages() / "node_modules"
    (tmp_path / "node_modules").symlink_to(packages)
    (tmp_path / "client.mjs").write_text(NODE_CLIENT)
    everything = packages / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
    recording = Recording(tmp_path, [])
    server = ["node", str(everything), "streamableHttp"]
    with reserved_port() as port, running(server, port, {"PORT": str(port)}) as url:
        recording.command = ["node", "client.mjs", url]
        recorded = recording.record()
        cassette = next((tmp_path / "rec" / "children").glob("*.yaml"))
        verified = subprocess.run(
            [*RECORDER, "verify", "--connect", url, str(cassette)],
            capture_output=True,
            timeout=PATIENCE_S,
            text=True,
            check=False,
        )

    assert "elicitation roots sampling session" in recorded.out
    assert "trigger-long-running-operation 4" in recorded.out
    assert verified.returncode == 0, verified.stdout
    check_sessions(tmp_path, ["head: ['GET 3', 'id: ", "http: POST 1 primed", "sampling/createMessage"])
    recording.check_replay()


URLLIB_CLIENT = """
import json, sys
from urllib.request import Request, urlopen

def post(message, **headers):
    headers |= {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    with urlopen(Request(sys.argv[1], json.dumps({"jsonrpc": "2.0", **message}).encode(), headers)) as response:
        return response.headers, response.read()

headers, _ = post({"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}})
session = {"Mcp-Session-Id": headers["Mcp-Session-Id"]}
post({"method": "notifications/initialized"}, **session)
params = {"name": "add", "arguments": {"a": 1, "b": 2}}
print(json.loads(post({"id": 2, "method": "tools/call", "params": params}, **session)[1])["result"])
"""


def test_a_run_keeps_sessions_apart_from_other_http(tmp_path: Path) -> None:
    with McpHttpServer() as server:
        recording = Recording(tmp_path, [sys.executable, "-c", URLLIB_CLIENT, server.url])
        recorded = recording.record()

    assert "'text': '3'" in recorded.out
    check_sessions(tmp_path, ["head: ['POST 1', 'json', 'session']"])
    replayed = recording.check_replay()
    assert "child mcp-1: " in replayed.err


WITH_CHILD = """
import json, os, subprocess, sys
server = json.load(open(sys.argv[2]))["mcpServers"]["echo"]
hello = '{"jsonrpc": "2.0", "id": 1, "method": "ping"}\\n'
command = [server["command"], *server["args"]]
print(subprocess.run(command, input=hello, capture_output=True, text=True, check=True).stdout)
if "ALONE" in os.environ:
    sys.exit()
"""


def test_the_summary_of_a_replay_has_servers_over_http_and_children_on_stdio(tmp_path: Path) -> None:
    answer = """read line; echo '{"jsonrpc": "2.0", "id": 1, "result": {}}'"""
    servers = {"echo": {"command": "sh", "args": ["-c", answer]}}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with McpHttpServer() as server:
        command = ["rec", "--", sys.executable, "-c", WITH_CHILD + URLLIB_CLIENT, server.url, "mcp.json"]
        assert run_recorder(tmp_path, "--wrap", "mcp.json", *command).code == 0
    replayed = run_recorder(tmp_path, *command)
    assert replayed.code == 0, replayed.err
    assert "child echo: 1 of 1 session\next-recorder: child mcp-1: 1 of 1 session\n" in replayed.err
    # The client of a server may be a child, which does not run, so its sessions need not be requested.
    without = run_recorder(tmp_path, *command, ALONE="1")
    assert without.code == 0, without.err
    assert "child mcp-1: 0 of 1 session; a replayed child may be its client\n" in without.err
