"""The Agent Client Protocol: both sides call each other, and count their ids each by itself."""

from __future__ import annotations

from .dialect import Dialect

_SESSION = ("/params/sessionId",)

DIALECT = Dialect(
    "acp",
    "ndjson",
    "the Agent Client Protocol",
    bound={"session/new": {"cwd": "/params/cwd"}, "session/load": {"cwd": "/params/cwd"}},
    volatile={"initialize": ("/params/clientInfo", "/params/clientCapabilities"), "*": ("/params/_meta",)},
    references={"$/cancel_request": ("/params/requestId",)},
    # The agent makes up sessions (the answer to session/new) and terminals are the client's; both are repeated since.
    names={"": ("/result/sessionId",), "*": _SESSION},
    # Tool calls, which the agent makes up, too.
    handed={
        "session/update": ("/params/update/toolCallId",),
        "session/request_permission": ("/params/toolCall/toolCallId",),
    },
    works={"session/prompt": _SESSION, "session/load": _SESSION},
    steers={"session/cancel": _SESSION},
)
