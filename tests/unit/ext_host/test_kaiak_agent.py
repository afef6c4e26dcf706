"""Agents with Kaiak's API: both dialects, sockets and standard streams, questions, and servers that fail."""

from __future__ import annotations

import json
import os
import random
import re
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ext_host.files import HostError
from ext_host.kaiak_agent import KaiakAgent
from ext_sdk.core.wire.connection import Connection
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.jsonrpc import Request
from ext_sdk.polling import Deadline

if TYPE_CHECKING:
    from ext_host.commands import AgentResult

ROOT = Path(__file__).parents[3]
ENVIRON = os.environ | {"PYTHONPATH": str(ROOT)}


def server(name: str, *args: str) -> list[str]:
    return [sys.executable, "-m", f"tests.peers.{name}", *args]


def run(agent: KaiakAgent, workdir: Path, shown: list[str] | None = None, seconds: float = 60) -> AgentResult:
    result = agent.run("Migrate.", workdir, ENVIRON, (shown if shown is not None else []).append, Deadline(seconds))
    result.close()
    return result


def steps(result: AgentResult) -> list[tuple[str, str]]:
    found = result.details["steps"]
    assert isinstance(found, list)
    return [(step["type"], step["text"]) for step in found]


def test_a_server_of_the_specification_is_configured_asked_and_answered(tmp_path: Path) -> None:
    shown: list[str] = []
    result = run(KaiakAgent(command=server("kaiak")), tmp_path, shown)
    assert (result.output, result.error) == ("I'll use java.util.Base64.", "")
    assert result.details["status"] == "completed"
    assert steps(result) == [
        ("tool_call", "read_file"),
        ("error", "Failed to read file"),
        ("file_modification", "src/DataConverter.java"),
        ("user_interaction", "allowed: Apply this fix to src/DataConverter.java?"),
        ("system", "Agent processing completed"),
    ]
    assert shown[:2] == ["I'll use java.util.Base64.", "\n[tool_call: read_file]\n"]


def test_a_server_of_the_later_dialect_is_recognized_through_its_log_lines(tmp_path: Path) -> None:
    result = run(KaiakAgent(command=server("kaiak_head"), permissions="deny"), tmp_path)
    assert (result.output, result.error) == ("I'll use java.util.Base64.", "")
    assert ("user_interaction", "denied: Write src/DataConverter.java?") in steps(result)


def test_one_server_on_a_socket_does_several_tasks_and_forgets_their_sessions(tmp_path: Path) -> None:
    address = tmp_path / "kaiak.sock"
    with subprocess.Popen(server("kaiak", "--listen", f"unix:{address}"), stderr=subprocess.PIPE, cwd=ROOT) as process:
        assert process.stderr
        assert b"listening" in process.stderr.readline()
        agent = KaiakAgent(address=str(address))
        results = [run(agent, tmp_path) for _ in range(2)]
        process.terminate()
    assert [result.error for result in results] == ["", ""]
    with pytest.raises(HostError, match="cannot connect to the Unix socket"):
        run(agent, tmp_path)


class Scripted(threading.Thread):
    """Server on a socket with a response, or an error, for each method or command; it stores the requests."""

    def __init__(self, address: Path, responses: dict[str, Any]) -> None:
        super().__init__(daemon=True)
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(address))
        self.listener.listen()
        self.responses = responses
        self.requests: list[tuple[str, Any]] = []
        self.start()

    def run(self) -> None:
        channel, _ = self.listener.accept()
        connection = Connection(FRAMINGS["content-length"])
        with suppress(BrokenPipeError, ConnectionResetError), channel, self.listener:  # the client may close it first
            while data := channel.recv(65_536):
                connection.receive_data(data)
                while event := connection.next_event():
                    if isinstance(event, Request):
                        self.respond(channel, event)

    def respond(self, channel: socket.socket, request: Request) -> None:
        params: Any = request.params
        name = params["command"].removeprefix("kaiak/") if "command" in params else request.method
        self.requests.append((name, params["arguments"][0] if "command" in params else params))
        for message in self.responses.get(name, [{"result": {}}]):
            members = {"jsonrpc": "2.0"} | ({} if "method" in message else {"id": request.id}) | message
            channel.sendall(FRAMINGS["content-length"].encode(json.dumps(members).encode()))

    def seen(self) -> list[str]:
        self.join()
        return [name for name, _ in self.requests]


@pytest.fixture
def address(tmp_path: Path) -> Path:
    return tmp_path / "scripted.sock"


def stream(kind: str, session: str, **content: object) -> dict[str, object]:
    return {"method": f"kaiak/stream/{kind}", "params": {"session_id": session, "content": content}}


def test_a_server_that_requires_the_handshake_gets_it(tmp_path: Path, address: Path) -> None:
    refusal = {"error": {"code": -32002, "message": "Server not initialized"}}

    class Greeted(Scripted):
        def respond(self, channel: socket.socket, request: Request) -> None:
            self.responses["configure"] = [{"result": {}} if self.requests else refusal]
            super().respond(channel, request)

    scripted = Greeted(address, {})
    assert run(KaiakAgent(address=str(address)), tmp_path).error == ""
    assert scripted.seen() == ["configure", "initialize", "configure", "generate_fix", "delete_session"]
    assert scripted.requests[0][1]["configuration"] == {"workspace": {"working_dir": str(tmp_path)}}
    assert [incident["message"] for incident in scripted.requests[3][1]["incidents"]] == ["Migrate."]


def test_parts_of_a_message_are_joined_and_those_of_other_sessions_ignored(tmp_path: Path, address: Path) -> None:
    class Streaming(Scripted):
        def respond(self, channel: socket.socket, request: Request) -> None:
            params: Any = request.params
            own = params["arguments"][0].get("session_id", "")
            self.responses["generate_fix"] = [
                stream("ai_response", own, text="I ", partial=True),
                stream("ai_response", "another", text="not mine"),
                stream("ai_response", own, text="fix it."),
                stream("ai_response", own, text="Done."),
                {"result": {"session_id": own, "status": "completed"}},
            ]
            super().respond(channel, request)

    Streaming(address, {})
    assert run(KaiakAgent(address=str(address)), tmp_path).output == "I fix it.\nDone."


@pytest.mark.parametrize(
    ("responses", "expected"),
    [
        (
            {"configure": [{"error": {"code": -32014, "message": "Configuration error", "data": {"field": "model"}}}]},
            'it responded to configure with error -32014: Configuration error ({"field":"model"})',
        ),
        (
            {"generate_fix": [{"error": {"code": -32006, "message": "Agent initialization failed"}}]},
            "it responded to generate_fix with error -32006: Agent initialization failed",
        ),
        ({"generate_fix": [{"result": {"status": "failed"}}]}, "responded to generate_fix with status 'failed'"),
    ],
)
def test_an_error_of_the_server_is_the_reason(
    tmp_path: Path, address: Path, responses: dict[str, Any], expected: str
) -> None:
    Scripted(address, responses)
    assert expected in run(KaiakAgent(address=str(address)), tmp_path).error


@pytest.mark.parametrize("seed", [1, 2])
def test_mutated_notifications_do_not_change_the_result(tmp_path: Path, address: Path, seed: int) -> None:
    chance = random.Random(seed)
    values: list[object] = [None, 0, True, "", "x" * 300, "\ud800", [], {}, ["a"], {"text": 1}]

    class Mutated(Scripted):
        def respond(self, channel: socket.socket, request: Request) -> None:
            params: Any = request.params
            own = params["arguments"][0].get("session_id", "") if "arguments" in params else ""
            for number in range(200 if self.requests else 0):
                kind = chance.choice(["ai_response", "tool_call", "user_interaction", "error", "none"])
                message: Any = stream(kind, own, interaction_id=f"i-{number}", prompt="?", text=chance.choice(values))
                for place in (message, message["params"]):
                    if chance.random() < 0.3:
                        place[chance.choice(list(place))] = chance.choice(values)
                payload = bytearray(json.dumps(message).encode())
                if chance.random() < 0.2:
                    payload[chance.randrange(len(payload))] = chance.randrange(256)
                junk = b"log line\n" if chance.random() < 0.1 else b""
                channel.sendall(junk + FRAMINGS["content-length"].encode(bytes(payload)))
            super().respond(channel, request)

    Mutated(address, {"generate_fix": [{"result": {"status": "completed"}}]})
    result = run(KaiakAgent(address=str(address)), tmp_path)
    assert (result.error, result.details["status"]) == ("", "completed")


def test_a_stopped_run_deletes_the_session_by_force(tmp_path: Path, address: Path) -> None:
    scripted = Scripted(address, {"generate_fix": []})
    result = run(KaiakAgent(address=str(address)), tmp_path, seconds=1)
    assert re.match(r"the agent was stopped after \d+\.\d s, without a response to .*generate_fix", result.error)
    assert scripted.seen() == ["configure", "generate_fix", "delete_session"]
    assert scripted.requests[-1][1]["force"] is True


def test_a_program_that_ends_or_is_missing_is_reported(tmp_path: Path) -> None:
    ended = run(KaiakAgent(command=["sh", "-c", "echo no model >&2; exit 4"]), tmp_path)
    assert "it ended (exit code 4) before it responded to configure" in ended.error
    assert ended.error.endswith("its standard error ends with:\nno model")
    missing = KaiakAgent(command=["no-such-server"])
    assert "command not found: 'no-such-server'" in missing.check()
    with pytest.raises(HostError, match="command not found"):
        run(missing, tmp_path)
