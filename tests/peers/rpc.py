"""A JSON-RPC server by a table of methods: what waza's, Kaiak's and G-Assist's reference peers stand on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_sdk.core.wire.connection import Connection, Malformed
from ext_sdk.core.wire.errors import RpcError
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.jsonrpc import Notification, Request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ext_sdk.core.wire.errors import Id
    from tests.peers.transport import Write

METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
Params = dict[str, object]


class Later:
    """In the place of a result: the answer comes another time, if at all."""


class RpcPeer:
    """One session of a server.

    Args:
        framing: its name.
        methods: method to what answers it: (id, params) to the result.
        write: takes the bytes to the host.
    """

    def __init__(self, framing: str, methods: Mapping[str, Callable[[Id, Params], object]], write: Write) -> None:
        self.framing = FRAMINGS[framing]
        self.connection = Connection(self.framing)
        self.methods = methods
        self.write = write
        self.ended = False

    def receive(self, data: bytes) -> None:
        """Bytes of the host."""
        if not data:
            self.connection.receive_eof()
        self.connection.receive_data(data)
        while not self.ended and (event := self.connection.next_event()):
            if isinstance(event, Request):
                self._answer(event)
            elif isinstance(event, Notification):
                self.notified(event.method, _params(event.params))
            elif isinstance(event, Malformed) and (code := getattr(event.error, "code", None)):
                self.refuse(RpcError(code, str(event.error)))

    def tick(self) -> bool:
        """Nothing goes on by itself."""
        return False

    def notified(self, method: str, params: Params) -> None:
        """A notification of the host."""

    def refuse(self, error: RpcError) -> None:
        """What could not be read is answered with id null."""
        self.write(self.connection.error(None, error))

    def notify(self, method: str, params: object) -> None:
        """Tell the host something."""
        self.write(self.connection.notification(method, params))

    def respond(self, id: Id, result: object) -> None:
        """Answer a request."""
        self.write(self.connection.response(id, result))

    def _answer(self, request: Request) -> None:
        method = self.methods.get(request.method)
        try:
            if method is None:
                raise RpcError(METHOD_NOT_FOUND, "Method not found", {"method": request.method})
            result = method(request.id, _params(request.params))
        except RpcError as error:
            self.write(self.connection.error(request.id, error))
            return
        if not isinstance(result, Later):
            self.respond(request.id, result)


def _params(value: object) -> Params:
    return value if isinstance(value, dict) else {}


def text(params: Params, name: str) -> str:
    """A parameter that has to be a text. Raises RpcError."""
    value = params.get(name)
    if not isinstance(value, str):
        raise RpcError(INVALID_PARAMS, "Invalid params", {"errors": [f"{name}: expected a string"]})
    return value
