"""Clients of `ext-host agent --protocol kaiak`."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, cast

from tests.peers.conversations import answers, inside
from tests.support.host import PATIENCE_S, MessageHost, MessageStream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.host import Message

AGENT = [sys.executable, "-P", "-m", "ext_host", "agent", "--protocol=kaiak"]


class Client:
    """Client of a server, in either dialect.

    Attributes:
        stream: its messages.
    """

    def __init__(self, stream: MessageStream, *, head: bool = False) -> None:
        self.stream = stream
        self.head = head
        self.id = 0
        self._asked = 0  # messages that are before the next question

    def ask(self, method: str, params: object) -> int:
        """Send a request; return its id."""
        self.id += 1
        self.stream.send({"jsonrpc": "2.0", "id": self.id, "method": method, "params": params})
        return self.id

    def command(self, name: str, **argument: object) -> int:
        """Send one of the three commands; return the id of the request."""
        if self.head:
            return self.ask(f"kaiak/{name}", argument)
        return self.ask("workspace/executeCommand", {"command": f"kaiak/{name}", "arguments": [argument]})

    def configure(self, folder: Path, **sections: object) -> Message:
        """Configure a workspace; return the result."""
        workspace = {"working_dir": str(folder)} | cast("Message", sections.pop("workspace", {}))
        return self.result(self.command("configure", configuration={"workspace": workspace, **sections}))

    def fix(self, session: str = "s", **argument: object) -> int:
        """Send generate_fix; return the id of the request."""
        incidents = [{"id": "1", "message": "Use of old()"}]
        return self.command("generate_fix", **{"session_id": session, "incidents": incidents, **argument})

    def reply(self, asked: Message, action: str, **more: object) -> Message:
        """Respond to a question; return the response to that."""
        params = inside(asked)
        about = inside(params, "payload")["id"] if self.head else inside(params, "content")["interaction_id"]
        payload = {"request_id": about, "action": action, **more}
        return self.response(self.say(params["session_id"], payload))

    def say(self, session: object, payload: object, kind: str = "tool_confirmation") -> int:
        """Send a user_message; return the id of the request."""
        params = {"session_id": session, "kind": kind, "timestamp": "2026-01-01T00:00:00Z", "payload": payload}
        return self.ask("kaiak/client/user_message", params)

    def response(self, id: int) -> Message:
        """Wait for the response to a request."""
        for message in self.stream.received:
            if answers(id)(message):
                return message
        return self.stream.until(answers(id))[-1]

    def result(self, id: int) -> Message:
        """Wait for the result of a request."""
        return inside(self.response(id), "result")

    def error(self, id: int) -> tuple[object, Message]:
        """Wait for the error of a request; return its code and data."""
        error = inside(self.response(id), "error")
        return error["code"], cast("Message", error.get("data", {}))

    def asked(self) -> Message:
        """Wait for a question to the user."""
        method = "kaiak/generate_fix/data" if self.head else "kaiak/stream/user_interaction"
        while True:
            if self._asked == len(self.stream.received):
                self.stream.next()
            message = self.stream.received[self._asked]
            self._asked += 1
            if message.get("method") == method and inside(message).get("kind") in {"user_interaction", None}:
                return message

    def streamed(self, kind: str) -> list[Message]:
        """Return the contents of the notifications of a kind that were received."""
        found = [inside(message) for message in self.stream.received if "params" in message]
        if self.head:
            return [inside(params, "payload") for params in found if params["kind"] == kind]
        methods = [message for message in self.stream.received if message.get("method") == f"kaiak/stream/{kind}"]
        return [inside(inside(message), "content") for message in methods]


@contextmanager
def on_stdio(script: str, *options: str, folder: Path | None = None) -> Iterator[Client]:
    """A server whose agent is a shell script."""
    with MessageHost([*AGENT, *options, "--", "sh", "-c", script], "content-length", cwd=folder) as host:
        yield Client(host, head="--dialect=kaiak-head" in options)
        assert host.end() == 0
        assert host.err == b""


@contextmanager
def on_socket(script: str, path: Path, *options: str) -> Iterator[subprocess.Popen[bytes]]:
    """A server that listens on a Unix socket."""
    command = [*AGENT, f"--socket={path}", *options, "--", "sh", "-c", script]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            assert cast("IO[bytes]", process.stderr).readline() == f"listening on unix:{path}\n".encode()
            yield process
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
                assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
                assert not path.exists()
        finally:
            process.kill()


@contextmanager
def connection(path: Path, *, head: bool = False) -> Iterator[Client]:
    """A connection to such a server."""
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(str(path))
        yield Client(MessageStream(link.fileno(), link.sendall, "content-length"), head=head)
