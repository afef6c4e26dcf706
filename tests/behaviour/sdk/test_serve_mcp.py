"""Operations as tools of MCP, for clients that others have written; and for a client that writes anything."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.host import PATIENCE_S, ExtensionHost, HostProcess, Message, request
from tests.support.process_tracker import ProcessTracker
from tests.support.program_packages import inspector, node_packages, python_packages

if TYPE_CHECKING:
    from collections.abc import Sequence

SHELL = Path(sys.executable).with_name("ext-shell")
SERVE = [str(SHELL), "serve", "--protocol", "mcp"]


def output(command: Sequence[str], cwd: Path, **environ: str) -> list[str]:
    """Run a client to its end, and return its lines. Raises CalledProcessError."""
    done = subprocess.run(
        command, cwd=cwd, env=os.environ | environ, capture_output=True, timeout=PATIENCE_S, check=False, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


PYTHON_SESSION = """
import asyncio, sys
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp_types import ListRootsResult, Root

async def main():
    async def roots(context):
        return ListRootsResult(roots=[Root(uri="file://" + sys.argv[1])])
    async def log(params):
        print("log", params.level, params.data["message"])
    async def progress(number, total, message):
        print("progress", number, message)
    server = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:])
    async with stdio_client(server) as (reader, writer):
        async with ClientSession(reader, writer, logging_callback=log, list_roots_callback=roots) as session:
            print((await session.initialize()).protocol_version)
            [run] = [tool for tool in (await session.list_tools()).tools if tool.name == "run"]
            print(run.title, run.annotations.destructive_hint)
            result = await session.call_tool("run", {"script": "pwd"}, progress_callback=progress)
            print(result.is_error, result.structured_content["outputs"]["stdout"].strip())
            result = await session.call_tool("run", {"command": ["false"]})
            print(result.is_error, result.content[0].text.splitlines()[1])
            result = await session.call_tool("run", {"commands": ["false"]})
            print(result.is_error, result.content[0].text)
            try:
                await session.call_tool("run", {"script": "sleep 600"}, read_timeout_seconds=0.01)
            except Exception as error:
                print(type(error).__name__)
            await session.send_ping()

asyncio.run(main())
"""
PYTHON_CLIENT = """
import asyncio, sys
from mcp import Client, StdioServerParameters, stdio_client
from mcp_types import ListRootsResult, Root

async def main():
    async def roots(context):
        return ListRootsResult(roots=[Root(uri="file://" + sys.argv[1])])
    async def progress(number, total, message):
        print("progress", number, message)
    server = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:])
    async with Client(stdio_client(server), list_roots_callback=roots) as client:
        print(client.protocol_version, len((await client.list_tools()).tools))
        result = await client.call_tool("run", {"script": "pwd"}, progress_callback=progress)
        print(result.is_error, result.structured_content["outputs"]["stdout"].strip())

asyncio.run(main())
"""
NODE_CLIENT = """
import { writeFileSync } from "node:fs";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import * as types from "@modelcontextprotocol/sdk/types.js";

let [root, other, command, ...args] = process.argv.slice(2);
const client = new Client({ name: "tests", version: "1" }, { capabilities: { roots: { listChanged: true } } });
client.setRequestHandler(types.ListRootsRequestSchema, async () => ({ roots: [{ uri: `file://${root}` }] }));
client.onerror = error => console.log("error", error.message);
await client.connect(new StdioClientTransport({ command, args, stderr: "ignore" }));
console.log(client.getServerVersion().name, Object.keys(client.getServerCapabilities()).sort().join(" "));
const call = async (args, options) => client.callTool({ name: "run", arguments: args }, undefined, options);
const where = async () => (await call({ script: "pwd" })).structuredContent.outputs.stdout.trim();
await client.listTools();  // with the output schemas, by which the client validates results
console.log(await where());
root = other;
await client.sendRootsListChanged();
console.log(await where());
// This SDK drops progress that is received together with the response, so the operation waits for the client.
const onprogress = ({ progress, message }) => { console.log(progress, message); writeFileSync("seen", ""); };
await call({ script: `echo one; until [ -e ${process.cwd()}/seen ]; do sleep 0.01; done` }, { onprogress });
console.log((await call({ command: ["false"] })).isError);
const stop = new AbortController();
client.setNotificationHandler(types.LoggingMessageNotificationSchema, () => stop.abort("enough"));
await call({ script: "echo started; sleep 600" }, { signal: stop.signal }).catch(error => console.log(error.message));
await call({ command: ["true"] });
await client.close();
"""


def test_the_sdk_for_python_with_a_handshake(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PYTHON_SESSION, str(tmp_path), *SERVE, "--allow", "run"]
    assert output(command, Path("/"), PYTHONPATH=str(python_packages())) == [
        "2025-11-25",
        "Run command True",
        f"log info {tmp_path}",
        f"progress 1.0 {tmp_path}",
        f"False {tmp_path}",
        "True exitCode: expected to equal 0, got 1",
        "True run: unknown argument 'commands'; did you mean 'command'?",
        "MCPError",
    ]


def test_the_sdk_for_python_without_a_handshake(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PYTHON_CLIENT, str(tmp_path), *SERVE, "--allow", "run", "--deny", "assert-*"]
    assert output(command, Path("/"), PYTHONPATH=str(python_packages())) == [
        "2026-07-28 4",
        f"progress 1.0 {tmp_path}",
        f"False {tmp_path}",
    ]


def test_the_sdk_for_typescript(tmp_path: Path) -> None:
    (tmp_path / "node_modules").symlink_to(node_packages() / "node_modules")
    (tmp_path / "client.mjs").write_text(NODE_CLIENT)
    command = ["node", "client.mjs", str(tmp_path), "/", *SERVE, "--allow", "*"]
    assert output(command, tmp_path) == [
        "ext-shell logging tools",
        str(tmp_path),
        "/",
        "1 one",
        "true",
        "MCP error -32001: enough",
    ]


def test_the_command_line_of_the_inspector(tmp_path: Path) -> None:
    inspect = ["node", str(inspector()), "--cli", *SERVE, "--allow", "write-file"]
    tools = json.loads("\n".join(output([*inspect, "--method", "tools/list"], tmp_path)))["tools"]
    assert "write-file" in {tool["name"] for tool in tools}
    call = [*inspect, "--method", "tools/call", "--tool-name", "write-file"]
    result = output([*call, "--tool-arg", "path=notes.txt", "--tool-arg", "content=milk"], tmp_path)
    assert json.loads("\n".join(result))["structuredContent"]["success"] is True
    assert (tmp_path / "notes.txt").read_text() == "milk"


def test_a_killed_client_leaves_no_process(tmp_path: Path) -> None:
    tracker = ProcessTracker(tmp_path / "pipe")
    script = f"{tracker.hold}; setsid sleep 600 & echo started >&9; sleep 600"
    program = f"""
import subprocess, sys
server = subprocess.Popen({[*SERVE, "--allow", "*"]!r}, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
server.stdin.write(sys.argv[1].encode())
server.stdin.flush()
server.wait()
"""
    calls = [
        request(1, "tools/call", {"name": "start", "arguments": {"name": "web", "script": script}}),
        request(2, "tools/call", {"name": "run", "arguments": {"script": script}}),
    ]
    lines = "".join(json.dumps(call) + "\n" for call in calls)
    with HostProcess([sys.executable, "-c", program, lines], cwd=tmp_path, start_new_session=True) as client:
        assert [tracker.line(), tracker.line()] == ["started", "started"]
        client.send_signal(signal.SIGKILL)
        client.wait(PATIENCE_S)
    assert not tracker.left()


# --- Any input -------------------------------------------------------------------------------------------------------

META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}}
CLIENT = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "x", "version": "1"}}
REQUESTS: list[Message] = [
    request(1, "initialize", CLIENT),
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": "roots-1", "result": {"roots": [{"uri": "file:///"}]}},
    request(2, "tools/list", {}),
    request(3, "tools/call", {"name": "read-file", "arguments": {"path": "a"}, "_meta": {"progressToken": "t"}}),
    request(4, "tools/call", {"name": "read-file", "arguments": {"path": "a"}, "_meta": META}),
    request(5, "logging/setLevel", {"level": "debug"}),
    {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}},
    request(6, "server/discover", {"_meta": META}),
]
VALUES: list[object] = [None, True, 0, -1, 1.5, 10**40, "", "x" * 300, "\0", "\ud800", "${x.y}", [], {}, [[[]]], ["a"]]


def mutated(chance: random.Random) -> bytes:
    """Return a message with other values, names or bytes."""
    message = json.loads(json.dumps(chance.choice(REQUESTS)))
    for _ in range(chance.randrange(3)):
        holder = message
        while (inner := [value for value in holder.values() if isinstance(value, dict) and value]) and (
            chance.random() < 0.6
        ):
            holder = chance.choice(inner)
        if holder:
            name = chance.choice(list(holder))
            holder[name if chance.random() < 0.9 else f"{name}s"] = chance.choice(VALUES)
    line = bytearray(json.dumps(message, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass"))
    for _ in range(chance.choice([0, 0, 1, 3])):
        at = chance.randrange(len(line))
        line[at : at + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
    return bytes(line).replace(b"\n", b"") + b"\n"


@pytest.mark.parametrize("seed", range(4))
def test_any_message_gets_an_error_or_a_result(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    with ExtensionHost([*SERVE, "--workdir", str(tmp_path)] if seed % 2 else SERVE) as peer:
        codes: set[object] = set()
        for number in range(20):
            peer.send(*(mutated(chance) for _ in range(10)), request(f"ping {number}", "ping"))
            while (answer := peer.message()).get("id") != f"ping {number}":
                error = answer.get("error")
                codes.add(error["code"] if isinstance(error, dict) else "result" if "result" in answer else "message")
            assert answer["result"] == {}
        assert {-32700, -32600, -32602, "result"} <= codes
        assert -32603 not in codes
        peer.eof()
        peer.rest()
        assert peer.exit_code() == 0
        assert "Traceback" not in peer.stderr
