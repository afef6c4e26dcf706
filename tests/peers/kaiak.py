"""A reference server of spec 4 (Kaiak), on stdio and on a Unix socket. `kaiak_head` is one of its later dialect."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from ext_sdk.core.wire.errors import RpcError
from tests.peers.rpc import INVALID_PARAMS, Later, RpcPeer, text
from tests.peers.transport import serve

if TYPE_CHECKING:
    from ext_sdk.core.wire.errors import Id
    from tests.peers.rpc import Params
    from tests.peers.transport import Write

NOT_FOUND, CONFIGURATION, INTERACTION, IN_USE = -32003, -32014, -32009, -32016
NOW = "2025-12-24T10:30:00Z"


class Fix:
    """A generate_fix that goes on."""

    def __init__(self, id: Id, session: str, incidents: list[Params]) -> None:
        self.id = id
        self.session = session
        self.request = f"req-{uuid4()}"
        self.interaction = f"interaction-{uuid4()}"
        self.count = len(incidents)
        self.waits = False
        self.messages = 0
        self.steps = self._steps(incidents)

    def _steps(self, incidents: list[Params]) -> list[tuple[str, Params]]:
        file = "src/DataConverter.java"
        steps: list[tuple[str, Params]] = []
        for number, incident in enumerate(incidents):
            progress = {"percentage": 100 * number // len(incidents), "phase": "analyzing_incidents"}
            steps.append(("progress", progress | {"description": f"{incident['id']}", "total_steps": len(incidents)}))
        answer: Params = {"text": "I'll use java.util.Base64.", "partial": False, "confidence": 0.95, "tokens": 18}
        result = {"success": True, "output": "class …", "error": None, "execution_time": 50}
        call: Params = {"tool_name": "read_file", "operation": "read", "parameters": {"file_path": file}}
        asked: Params = {"interaction_type": "file_approval", "prompt": f"Apply this fix to {file}?"}
        change: Params = {
            "proposal_id": f"proposal-{uuid4()}",
            "file_path": file,
            "operation": "modify",
            "diff": "@@ -1 +1 @@",
        }
        problem: Params = {"error_code": "TOOL_EXECUTION_FAILED", "message": "Failed to read file", "recoverable": True}
        return [
            *steps,
            ("ai_response", answer),
            ("tool_call", call | {"status": "completed", "result": result}),
            ("error", problem),
            ("file_modification", change | {"risk_level": "low", "requires_approval": True}),
            (
                "user_interaction",
                {"interaction_id": self.interaction} | asked | {"options": ["approve", "deny"], "timeout": 30},
            ),
            ("system", {"message": "Agent processing completed", "level": "info", "component": "agent_manager"}),
        ]


class Kaiak(RpcPeer):
    """One connection to the server.

    Args:
        sessions: of the server: session to "free" or "in use".
        write: takes the bytes to the host.
    """

    def __init__(self, sessions: dict[str, str], write: Write) -> None:
        methods = {
            "workspace/executeCommand": self.command, "kaiak/client/user_message": self.user_message,
            "initialize": self.initialize, "shutdown": self.shutdown,
        }  # fmt: skip
        super().__init__("content-length", methods, write)
        self.commands = {
            "kaiak/configure": self.configure,
            "kaiak/generate_fix": self.generate_fix,
            "kaiak/delete_session": self.delete_session,
        }
        self.fixes: list[Fix] = []
        self.sessions = sessions

    def initialize(self, _: Id, params: Params) -> object:
        return {"capabilities": {"executeCommandProvider": {"commands": list(self.commands)}}}

    def shutdown(self, _: Id, params: Params) -> object:
        return None

    def notified(self, method: str, params: Params) -> None:
        self.ended = method == "exit"

    def command(self, id: Id, params: Params) -> object:
        command = self.commands.get(text(params, "command"))
        arguments = params.get("arguments")
        if command is None or not isinstance(arguments, list) or len(arguments) != 1:
            raise RpcError(INVALID_PARAMS, "Invalid params", {"command": params["command"]})
        return command(id, arguments[0])

    def configure(self, _: Id, argument: Params) -> object:
        configuration = cast("Params", argument["configuration"])
        workspace = cast("Params", configuration.get("workspace", {}))
        folder = workspace.get("working_dir")
        if not isinstance(folder, str) or not Path(folder).is_dir():
            details = f"Directory {folder!r} does not exist" if folder else "missing"
            data = {"field": "workspace.working_dir", "details": details}
            raise RpcError(CONFIGURATION, "Configuration error: Invalid workspace directory", data)
        done = {"status": "success", "message": "Agent configured successfully", "warnings": []}
        return done | {"configuration_applied": configuration, "timestamp": NOW}

    def generate_fix(self, id: Id, argument: Params) -> object:
        session = str(argument.get("session_id") or uuid4())
        if self.sessions.get(session) == "in use":
            data = {"session_id": session, "in_use_since": NOW}
            raise RpcError(IN_USE, "Session is currently in use by another client", data)
        self.sessions[session] = "in use"
        self.fixes.append(Fix(id, session, cast("list[Params]", argument["incidents"])))
        return Later()

    def delete_session(self, _: Id, argument: Params) -> object:
        session = text(argument, "session_id")
        if session not in self.sessions:
            raise RpcError(NOT_FOUND, "Session not found", {"session_id": session})
        del self.sessions[session]
        summary = {"session_removed": True, "messages_cleaned": 8, "temp_files_removed": 0, "errors": []}
        return {"session_id": session, "status": "deleted", "cleanup_summary": summary, "deleted_at": NOW}

    def user_message(self, _: Id, params: Params) -> object:
        payload = cast("Params", params["payload"])
        for fix in self.fixes:
            if fix.waits and fix.interaction == payload.get("request_id"):
                fix.waits = False
                return {}
        raise RpcError(INTERACTION, "Interaction not found", {"request_id": payload.get("request_id")})

    def tick(self) -> bool:
        """One notification of each fix; then its answer."""
        for fix in [fix for fix in self.fixes if not fix.waits]:
            if fix.steps:
                self.stream(fix, *fix.steps.pop(0))
            else:
                self.fixes.remove(fix)
                self.sessions[fix.session] = "free"
                self.respond(fix.id, self.result(fix))
        return any(not fix.waits for fix in self.fixes)

    def stream(self, fix: Fix, kind: str, content: Params) -> None:
        fix.waits = kind == "user_interaction"
        fix.messages += 1
        about = {"session_id": fix.session, "request_id": fix.request, "message_id": f"msg-{fix.messages}"}
        self.notify(f"kaiak/stream/{kind}", about | {"timestamp": NOW, "content": content})

    def result(self, fix: Fix) -> object:
        about = {"request_id": fix.request, "session_id": fix.session, "status": "completed"}
        return about | {"incident_count": fix.count, "completed_at": NOW}


if __name__ == "__main__":
    raise SystemExit(serve(partial(Kaiak, {}), sys.argv[1:]))
