"""A reference plugin of spec 2 (G-Assist). `--like sdk`: as plugins on the vendor's SDK behave."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING

from ext_sdk.core.wire.errors import RpcError
from tests.peers.rpc import INVALID_PARAMS, Later, RpcPeer, text
from tests.peers.transport import serve

if TYPE_CHECKING:
    from ext_sdk.core.wire.errors import Id
    from tests.peers.rpc import Params
    from tests.peers.transport import Write

PLUGIN_ERROR, RATE_LIMITED = -1, -3


class Plugin(RpcPeer):
    """One session of the plugin."""

    def __init__(self, write: Write) -> None:
        methods = {
            "initialize": self.initialize, "ping": self.ping, "execute": self.execute, "input": self.input,
            "shutdown": self.shutdown,
        }  # fmt: skip
        super().__init__("uint32", methods, write)
        self.work: list[tuple[str, Params]] = []
        self.awaits_input = False

    def initialize(self, _: Id, params: Params) -> object:
        text(params, "protocol_version")
        return {"name": "reference", "version": "1.0.0", "capabilities": ["streaming"]}

    def ping(self, _: Id, params: Params) -> object:
        return {"timestamp": params["timestamp"]}

    def execute(self, id: Id, params: Params) -> object:
        function = text(params, "function")
        about: Params = {"request_id": id}
        if function == "limited":
            failure = {"code": RATE_LIMITED, "message": "API rate limit exceeded"}
            self.work.append(("error", about | failure))
        elif function == "add":  # the form without streaming
            arguments = params.get("arguments")
            assert isinstance(arguments, dict)
            return {"success": True, "data": str(arguments["a"] + arguments["b"]), "keep_session": False}
        elif function == "search":
            self.work.append(("log", {"level": "info", "message": "Processing query..."}))
            self.work += [("stream", about | {"data": piece}) for piece in ("Searching", " for it…")]
            self.work.append(("complete", about | {"success": True, "data": "Found.", "keep_session": True}))
            self.awaits_input = True
        else:
            raise RpcError(-32601, "Method not found", {"function": function})
        return Later()

    def input(self, id: Id, params: Params) -> object:
        if not self.awaits_input:
            raise RpcError(INVALID_PARAMS, "Invalid params", {"reason": "no session is kept"})
        stays = text(params, "content") != "bye"
        self.awaits_input = stays
        about: Params = {"request_id": id}
        self.work.append(("stream", about | {"data": "More of it."}))
        self.work.append(("complete", about | {"success": True, "data": "", "keep_session": stays}))
        return {"acknowledged": True}

    def shutdown(self, id: Id, _: Params) -> object:
        self.respond(id, {})
        self.ended = True
        return Later()

    def notified(self, method: str, params: Params) -> None:
        self.ended = method == "shutdown"

    def tick(self) -> bool:
        """One piece of the work; pings are answered in between."""
        if self.work:
            method, params = self.work.pop(0)
            if method in {"complete", "error"} and isinstance(id := params.get("request_id"), int):
                self.connection.settle(id)
            self.notify(method, params)
        return bool(self.work)


class LikeSdk(Plugin):
    """No request_id in what ends a call; an execute that fails is told by `error`; shutdown is never answered."""

    def notify(self, method: str, params: object) -> None:
        assert isinstance(params, dict)
        if method in {"complete", "error"}:
            params = {name: value for name, value in params.items() if name != "request_id"}
        super().notify(method, params)

    def execute(self, id: Id, params: Params) -> object:
        try:
            return super().execute(id, params)
        except RpcError as error:
            self.work.append(("error", {"request_id": id, "code": PLUGIN_ERROR, "message": str(error)}))
            return Later()

    def shutdown(self, id: Id, params: Params) -> object:
        self.ended = True
        return Later()


KINDS = {"sdk": LikeSdk, "": Plugin}


def main(arguments: list[str]) -> int:
    """See the module."""
    like = arguments[arguments.index("--like") + 1] if "--like" in arguments else ""
    return serve(partial(KINDS[like]), arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
