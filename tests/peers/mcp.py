"""A server of MCP 2026-07-28: no handshake, a list in pages, input required, progress, a subscription, a task.

Cursors, states and task ids are random, as they are in real servers, and clients send them back.
"""

from __future__ import annotations

import sys
import uuid
from typing import TYPE_CHECKING, Any, cast

from ext_sdk.core.wire.connection import Connection
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.jsonrpc import Request
from tests.peers.transport import serve

if TYPE_CHECKING:
    from ext_sdk.core.wire.errors import Id
    from tests.peers.transport import Write

Members = dict[str, Any]

PREFIX = "io.modelcontextprotocol"
TOOLS = ("greet", "count", "rename", "build")
POLLS = 2  # a task is completed at the second question
ELICITATION = {
    "method": "elicitation/create",
    "params": {
        "mode": "form",
        "message": "What is your name?",
        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
    },
}


def text(said: str) -> Members:
    """The result of a tool."""
    return {"resultType": "complete", "content": [{"type": "text", "text": said}], "isError": False}


class Mcp:
    """One session."""

    def __init__(self, write: Write) -> None:
        self.connection = Connection(FRAMINGS["ndjson"])
        self.write = write
        self.ended = False
        self.state = self.cursor = self.task = ""
        self.polls = 0
        self.listener: Id = None

    def receive(self, data: bytes) -> None:
        """Bytes of the host. A subscription that it cancels gets no response."""
        self.ended = not data
        self.connection.receive_data(data)
        while event := self.connection.next_event():
            if isinstance(event, Request):
                self.call(event.id, event.method, cast("Members", event.params))

    def answer(self, id: Id, result: Members) -> None:
        self.write(self.connection.response(id, result))

    def notify(self, method: str, **params: object) -> None:
        self.write(self.connection.notification(f"notifications/{method}", params))

    def subscription(self) -> Members:
        return {"_meta": {f"{PREFIX}/subscriptionId": self.listener}}

    def call(self, id: Id, method: str, params: Members) -> None:
        """Answer a request."""
        if f"{PREFIX}/protocolVersion" not in params.get("_meta", {}):
            self.write(self.connection.error(id, RpcError(-32602, "no protocol version in _meta")))
        elif method == "server/discover":
            about = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}
            self.answer(id, {"resultType": "complete", **about})
        elif method == "tools/list":
            self.list(id, params.get("cursor"))
        elif method == "tools/call":
            self.use(id, params)
        elif method == "subscriptions/listen":
            self.listener = id
            self.notify("subscriptions/acknowledged", notifications=params["notifications"], **self.subscription())
        elif method == "tasks/get" and params["taskId"] == self.task:
            self.polls += 1
            self.answer(id, {"resultType": "complete", **self.about()})
        elif method == "tasks/result" and params["taskId"] == self.task:
            self.answer(id, text("built"))
        else:
            self.write(self.connection.error(id, RpcError(-32601, "Method not found")))

    def list(self, id: Id, cursor: str | None) -> None:
        """One half of the tools."""
        if cursor not in {None, self.cursor}:
            self.write(self.connection.error(id, RpcError(-32602, "unknown cursor")))
            return
        some = TOOLS[:2] if cursor is None else TOOLS[2:]
        self.cursor = self.cursor or str(uuid.uuid4())
        more = {"nextCursor": self.cursor} if cursor is None else {}
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in some]
        self.answer(id, {"resultType": "complete", "tools": tools, **more})

    def use(self, id: Id, params: Members) -> None:
        """Use a tool."""
        name = params["name"]
        if name == "greet" and "inputResponses" not in params:
            self.state = str(uuid.uuid4())
            asked = {"inputRequests": {"who": ELICITATION}, "requestState": self.state}
            self.answer(id, {"resultType": "input_required", **asked})
        elif name == "greet" and params["requestState"] == self.state:
            self.answer(id, text(f"Hello, {params['inputResponses']['who']['content']['name']}"))
        elif name == "count":
            for number in (1, 2):
                self.notify("progress", progressToken=params["_meta"]["progressToken"], progress=number, total=2)
            self.answer(id, text("counted"))
        elif name == "rename":
            self.notify("tools/list_changed", **self.subscription())
            self.answer(id, text("renamed"))
        elif name == "build":
            self.task = str(uuid.uuid4())
            self.answer(id, {"resultType": "complete", "task": self.about()})
        else:
            self.write(self.connection.error(id, RpcError(-32602, "unknown tool, or another state")))

    def about(self) -> Members:
        """The task."""
        return {"taskId": self.task, "status": "completed" if self.polls >= POLLS else "working", "pollInterval": 1}

    def tick(self) -> bool:
        """Nothing goes on by itself."""
        return False


if __name__ == "__main__":
    raise SystemExit(serve(Mcp, sys.argv[1:]))
