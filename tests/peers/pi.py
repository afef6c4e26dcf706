"""A reference extension of spec 1 (Pi), a message a line: two tools, a slash command, and calls of its own to the host.

`--like rust`: envelope ids as pi_agent_rust makes them, and all arrays of `register`.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, cast

from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import dumps, loads
from tests.peers.transport import serve

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.peers.transport import Write

Fields = dict[str, object]


class Pi:
    """One session of the extension."""

    def __init__(self, write: Write) -> None:
        self.ended = False
        self.write = write
        self.decoder = FRAMINGS["ndjson"].decoder()
        self.count = 0
        self.waiting: dict[str, Callable[[Fields], None]] = {}  # by the call_id of a host_call
        self.pieces: dict[str, list[str]] = {}
        self.handlers = {
            "tool_call": self.tool_call, "slash_command": self.slash_command, "event_hook": self.event_hook,
            "host_result": self.host_result,
        }  # fmt: skip
        self.say("register", self.registration())

    def registration(self) -> Fields:
        tools = [{"name": name} for name in ("shout", "count-lines")]
        commands = [{"name": "hello"}]
        about = {"name": "reference", "version": "1.0.0", "api_version": "1.0"}
        return about | {"tools": tools, "slash_commands": commands, "event_hooks": ["turn_end"]}

    def say(self, type: str, payload: object, id: str = "") -> None:
        self.count += 1
        envelope = {"id": id or f"ext-{self.count}", "version": "1.0", "type": type, "payload": payload}
        self.write(dumps(envelope).encode() + b"\n")

    def receive(self, data: bytes) -> None:
        """Bytes of the host."""
        self.decoder.receive_data(data)
        self.ended = not data
        while item := self.decoder.next_event():
            if isinstance(item, Frame):
                self.hear(item.payload)

    def tick(self) -> bool:
        """Nothing goes on by itself."""
        return False

    def hear(self, line: bytes) -> None:
        try:
            message = cast("Fields", loads(line.decode()))
            self.handlers[str(message["type"])](str(message["id"]), cast("Fields", message["payload"]))
        except (MessageError, KeyError, TypeError) as error:
            self.say("error", {"code": "invalid_request", "message": str(error)})

    def tool_call(self, id: str, payload: Fields) -> None:
        call, name, input = str(payload["call_id"]), payload["name"], cast("Fields", payload["input"])
        if name == "shout":
            self.result(id, call, {"text": str(input["text"]).upper()})
        elif name == "count-lines":
            self.log(f"reading {input['path']}", call)
            self.ask(
                f"{call}/read",
                "read",
                "tool",
                {"name": "read", "path": input["path"]},
                partial(self.count_lines, id, call),
            )
        else:
            self.result(id, call, {"error": f"no such tool: {name}"}, is_error=True)

    def count_lines(self, id: str, call: str, payload: Fields) -> None:
        if payload["is_error"]:
            self.result(id, call, {"error": payload["error"]}, is_error=True)
            return
        pieces = self.pieces.setdefault(call, [])
        pieces.append(str(cast("Fields", payload["output"])["text"]))
        if cast("Fields", payload.get("chunk", {})).get("is_last", True):
            self.result(id, call, {"lines": "".join(self.pieces.pop(call)).count("\n")})

    def slash_command(self, id: str, payload: Fields) -> None:
        args = cast("list[str]", payload.get("args", []))
        known = payload["name"] == "hello"
        output = {"text": f"Hello, {' '.join(args)}!"} if known else {"error": "no such command"}
        self.say("slash_result", {"output": output, "is_error": not known}, id)

    def event_hook(self, _: str, payload: Fields) -> None:
        self.log(f"saw {payload['event']}", "")

    def host_result(self, _: str, payload: Fields) -> None:
        call = str(payload["call_id"])
        handler = self.waiting[call]
        if cast("Fields", payload.get("chunk", {})).get("is_last", True):
            del self.waiting[call]
        handler(payload)

    def ask(self, call: str, capability: str, method: str, params: Fields, then: Callable[[Fields], None]) -> None:
        self.waiting[call] = then
        self.say("host_call", {"call_id": call, "capability": capability, "method": method, "params": params})

    def result(self, id: str, call: str, output: Fields, *, is_error: bool = False) -> None:
        self.say("tool_result", {"call_id": call, "output": output, "is_error": is_error}, id)

    def log(self, message: str, call: str) -> None:
        correlation = {"extension_id": "reference", "scenario_id": "none"} | ({"tool_call_id": call} if call else {})
        about = {"schema": "pi.ext.log.v1", "ts": "2026-01-01T00:00:00Z", "level": "info", "event": "work"}
        self.say("log", about | {"message": message, "correlation": correlation})


class LikeRust(Pi):
    """Ids that repeat the call's, and `register` with all its arrays."""

    def registration(self) -> Fields:
        return super().registration() | {"capabilities": [], "shortcuts": [], "flags": []}

    def say(self, type: str, payload: object, id: str = "") -> None:
        call = cast("Fields", payload).get("call_id")
        super().say(type, payload, f"{type}:{call}" if call else id)


KINDS = {"rust": LikeRust, "": Pi}


def main(arguments: list[str]) -> int:
    """See the module."""
    like = arguments[arguments.index("--like") + 1] if "--like" in arguments else ""
    return serve(partial(KINDS[like]), arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
