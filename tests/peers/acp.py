"""Agent of the Agent Client Protocol whose prompt is its script: a JSON list of [method of Agent, values…].

It is written without the SDK that ext-host uses, starts in milliseconds, and can break the protocol. Its messages name
what it got: the responses to its requests, as JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

SESSION = "session-1"


def write(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def send(**members: object) -> None:
    write(json.dumps({"jsonrpc": "2.0"} | members))


def update(kind: str, /, **members: object) -> None:
    send(method="session/update", params={"sessionId": SESSION, "update": {"sessionUpdate": kind} | members})


class Agent:
    """One session."""

    def __init__(self) -> None:
        self.settings = json.loads(os.environ.get("AGENT", "{}"))
        self.calls = 0
        self.opened: object = None
        self.terminal = ""
        self.is_authenticated = not self.settings.get("auth")

    def call(self, method: str, /, **params: object) -> dict[str, object]:
        """Send a request, and return its response."""
        self.calls += 1
        send(id=self.calls, method=method, params={"sessionId": SESSION} | params)
        for line in sys.stdin:
            message: dict[str, object] = json.loads(line)
            if message.get("id") == self.calls:
                return message
        raise SystemExit(0)

    def say(self, value: object) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        update("agent_message_chunk", content={"type": "text", "text": text})

    def think(self, text: str) -> None:
        update("agent_thought_chunk", content={"type": "text", "text": text})

    def tool(self, id: str, title: str) -> None:
        update("tool_call", toolCallId=id, title=title, kind="edit", status="pending")
        update("tool_call_update", toolCallId=id, status="completed")

    def ask(self, method: str, params: dict[str, object]) -> None:
        """Send a request; the response becomes a message of its own. A terminalId "" is that of the last terminal."""
        if params.get("terminalId") == "":
            params["terminalId"] = self.terminal
        response = self.call(method, **params)
        result = response.get("result", response.get("error"))
        if isinstance(result, dict):
            self.terminal = str(result.get("terminalId", self.terminal))
        self.tool(f"response-{self.calls}", "response")
        self.say(result)

    def show_opened(self) -> None:
        self.say(self.opened)

    def raw(self, line: str) -> None:
        write(line)

    def wait_for_cancel(self) -> None:
        if any(json.loads(line).get("method") == "session/cancel" for line in sys.stdin):
            self.say("cancelled as requested")

    def ignore(self) -> None:
        """Neither read nor end."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            signal.pause()

    def leave(self, folder: str) -> None:
        """Start a process that runs when the agent has ended."""
        process = subprocess.Popen(["sleep", "600"])
        Path(folder, "pid").write_text(str(process.pid))

    def die(self, code: int, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
        os._exit(code)

    def respond(self, message: dict[str, object]) -> object:
        method, params = message["method"], message["params"]
        assert isinstance(params, dict)
        if method == "initialize":
            version = self.settings.get("version", 1)
            return {"protocolVersion": version} | {
                "agentCapabilities": self.settings.get("capabilities", {}),
                "authMethods": self.settings.get("auth", []),
            }
        if method == "authenticate":
            self.is_authenticated = True
            return {}
        if method == "session/new":
            if not self.is_authenticated:
                raise PermissionError
            self.opened = params
            return {"sessionId": SESSION}
        for name, *values in json.loads(params["prompt"][0]["text"]):
            getattr(self, name)(*values)
        return self.settings.get("result", {"stopReason": "end_turn"})

    def run(self) -> None:
        for line in sys.stdin:
            message = json.loads(line)
            if "id" in message:
                try:
                    send(id=message["id"], result=self.respond(message))
                except PermissionError:
                    send(id=message["id"], error={"code": -32000, "message": "Authentication required"})


if __name__ == "__main__":
    Agent().run()
