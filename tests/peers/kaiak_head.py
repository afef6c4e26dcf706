"""A reference server of Kaiak's later dialect, on stdio and on a Unix socket: as that server was seen to speak.

Methods of their own, one notification for all that it streams, logs in colour on stdout between the frames, header
lines that end by a line feed, errors without an id. But confirmations are heard while a fix goes on, which that server
can't.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from ext_sdk.core.wire.errors import RpcError
from tests.peers.rpc import INVALID_PARAMS, Later, RpcPeer, text
from tests.peers.transport import serve

if TYPE_CHECKING:
    from ext_sdk.core.wire.errors import Id
    from tests.peers.rpc import Params
    from tests.peers.transport import Write

NOT_FOUND, IN_USE = -32003, -32013
NOW = "2025-12-29T10:30:00+00:00"
FILE = "src/DataConverter.java"


class Fix:
    """A generate_fix that goes on."""

    def __init__(self, id: Id, session: str) -> None:
        self.id = id
        self.session = session
        self.request = str(uuid4())
        self.tool = f"call_{uuid4().hex[:8]}"
        self.waits = False
        about: Params = {"id": self.tool, "tool_name": "write_file"}
        asked = {"arguments": {"path": FILE}, "prompt": f"Write {FILE}?"}
        self.steps: list[tuple[str, Params]] = [
            ("thinking", {"thinking": "DatatypeConverter is gone since Java 9."}),
            ("ai_message", {"role": "Assistant", "text": "I'll use java.util.Base64."}),
            ("tool_call", about | {"arguments": {"path": FILE}}),
            ("user_interaction", {"interaction_type": "tool_confirmation"} | about | asked),
            ("tool_response", {"id": self.tool, "is_error": False, "content_count": 1}),
            ("error", {"error": "stream interrupted"}),
            ("system", {"notification_type": "InlineMessage", "message": "done"}),
        ]


class KaiakHead(RpcPeer):
    """One connection to the server.

    Args:
        sessions: of the server: session to "free" or "in use".
        write: takes the bytes to the host.
    """

    def __init__(self, sessions: dict[str, str], write: Write) -> None:
        methods = {
            "kaiak/generate_fix": self.generate_fix, "kaiak/delete_session": self.delete_session,
            "kaiak/client/user_message": self.user_message,
        }  # fmt: skip
        super().__init__("content-length", methods, write)
        self.fixes: list[Fix] = []
        self.sessions = sessions
        self.log("kaiak: starting")

    def generate_fix(self, id: Id, params: Params) -> object:
        workspace = params.get("agent_config")
        if not isinstance(workspace, dict) or "workspace" not in workspace:
            raise RpcError(INVALID_PARAMS, "Invalid params: missing field `agent_config`")
        session = str(params.get("session_id") or uuid4())
        if params.get("session_id") and session not in self.sessions:
            raise RpcError(NOT_FOUND, "Session not found", {"session_id": session})
        if self.sessions.get(session) == "in use":
            raise RpcError(IN_USE, "Session is currently in use", {"session_id": session, "in_use_since": NOW})
        self.sessions[session] = "in use"
        self.fixes.append(Fix(id, session))
        return Later()

    def delete_session(self, _: Id, params: Params) -> object:
        """A session that is not there is deleted as well, with a warning."""
        session = text(params, "session_id")
        known = self.sessions.pop(session, "") != ""
        results: Params = {"session_removed": known, "temp_files_cleaned": known, "logs_preserved": True}
        results |= {"warnings": [] if known else ["Session not found"], "files_removed": 5 if known else 0}
        return {"session_id": session, "status": "deleted", "cleanup_results": results, "deleted_at": NOW}

    def user_message(self, _: Id, params: Params) -> object:
        asked = cast("Params", params["payload"]).get("request_id")
        for fix in self.fixes:
            if fix.waits and fix.tool == asked:
                fix.waits = False
                said = {"success": True, "message": "Tool confirmation submitted"}
                return said | {"notification_id": str(uuid4())}
        return {"success": False, "message": f"No pending confirmation for {asked}"}

    def tick(self) -> bool:
        """One notification of each fix; then its answer."""
        for fix in [fix for fix in self.fixes if not fix.waits]:
            if fix.steps:
                kind, payload = fix.steps.pop(0)
                fix.waits = kind == "user_interaction"
                about = {"request_id": fix.request, "session_id": fix.session, "kind": kind, "payload": payload}
                self.notify("kaiak/generate_fix/data", about)
            else:
                self.fixes.remove(fix)
                self.sessions[fix.session] = "free"
                done = {"request_id": fix.request, "session_id": fix.session, "created_at": NOW}
                self.respond(fix.id, done)
        return any(not fix.waits for fix in self.fixes)

    def log(self, message: str) -> None:
        self.write(f"\x1b[2m{NOW}\x1b[0m \x1b[32m INFO\x1b[0m {message}\n".encode())

    def respond(self, id: Id, result: object) -> None:
        self.log("kaiak::server: answering")
        framed = self.connection.response(id, result)
        self.write(framed.replace(b"\r\n\r\n", b"\n\n", 1))

    def refuse(self, error: RpcError) -> None:
        body = b'{"jsonrpc":"2.0","error":{"code":%d,"message":"Parse error"}}' % error.code
        self.write(self.framing.encode(body))


if __name__ == "__main__":
    raise SystemExit(serve(partial(KaiakHead, {}), sys.argv[1:]))
