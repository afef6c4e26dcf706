"""A peer of plain JSON-RPC 2.0: sums, a question to the host in the middle of a call, a job that can be cancelled."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ext_sdk.core.wire.connection import Answer, Connection
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.jsonrpc import Notification, Request
from tests.peers.transport import serve

if TYPE_CHECKING:
    from ext_sdk.core.wire.errors import Id
    from tests.peers.transport import Write

CANCELLED = -32800


class Calls:
    """One session."""

    def __init__(self, write: Write) -> None:
        self.connection = Connection(FRAMINGS["ndjson"])
        self.write = write
        self.ended = False
        self.greeted: dict[Id, Id] = {}  # the id of our question to that of the host's call

    def receive(self, data: bytes) -> None:
        """Bytes of the host."""
        self.ended = not data
        self.connection.receive_data(data)
        while event := self.connection.next_event():
            if isinstance(event, Request):
                self.call(event)
            elif isinstance(event, Answer):
                self.write(self.connection.response(self.greeted[event.request.id], f"Hello, {event.result}"))
            elif isinstance(event, Notification):
                assert isinstance(event.params, dict)
                self.write(self.connection.error(event.params["id"], RpcError(CANCELLED, "cancelled")))

    def call(self, request: Request) -> None:
        """Answer a call, now or later."""
        if request.method == "sum" and isinstance(request.params, list):
            self.write(self.connection.response(request.id, sum(request.params)))
        elif request.method == "greet":
            id, line = self.connection.request("name", {"of": "you"})
            self.greeted[id] = request.id
            self.write(line)
        elif request.method == "job":
            self.write(self.connection.notification("started", {}))
        else:
            self.write(self.connection.error(request.id, RpcError(-32601, "Method not found")))

    def tick(self) -> bool:
        """Nothing goes on by itself."""
        return False


if __name__ == "__main__":
    raise SystemExit(serve(Calls, sys.argv[1:]))
