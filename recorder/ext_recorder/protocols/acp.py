"""Agent Client Protocol: both sides send requests, with independent ids."""

from __future__ import annotations

from .dialect import Dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules

_SESSION = ("/params/sessionId",)

DIALECT = Dialect(
    "acp",
    "ndjson",
    "the Agent Client Protocol",
    bound={"session/new": {"cwd": "/params/cwd"}, "session/load": {"cwd": "/params/cwd"}},
    volatile={"initialize": ("/params/clientInfo", "/params/clientCapabilities"), "*": ("/params/_meta",)},
    references={"$/cancel_request": ("/params/requestId",)},
    # The agent generates the names of sessions (in the response to session/new).
    names={"": ("/result/sessionId",), "*": _SESSION},
    # The agent generates the ids of tool calls as well.
    handed={
        "session/update": ("/params/update/toolCallId",),
        "session/request_permission": ("/params/toolCall/toolCallId",),
    },
    session_scoped={"session/prompt": _SESSION, "session/load": _SESSION},
    controls={"session/cancel": _SESSION},
)


def rules() -> Rules:
    """Return the rules of the specification."""
    from .rules import ANY, LIST, OBJECT, TEXT, VERSION_2, WHOLE, Clause, OnlyWhileOpen, Rules, StateMachine, record

    return Rules(
        "Agent Client Protocol",
        {
            "initialize": Clause(
                "Initialization", "protocolVersion, a whole number, on both sides; the first request."
            ),
            "session": Clause("Session Setup", "cwd and mcpServers; the answer has sessionId."),
            "prompt": Clause("Prompt Turn", "sessionId and prompt; the answer has a stopReason."),
            "update": Clause("Prompt Turn", "sessionId and update."),
            "permission": Clause("Tool Calls, Requesting Permission", "sessionId, toolCall and options."),
            "stdout": Clause("Transports, stdio", "The agent writes only messages to stdout."),
        },
        envelope=VERSION_2,
        envelope_clause="version-2",
        messages={
            "> initialize": ("initialize", record(protocolVersion=WHOLE, clientCapabilities_=OBJECT)),
            "< = initialize": ("initialize", record(protocolVersion=WHOLE, agentCapabilities_=OBJECT)),
            "> session/new": ("session", record(cwd=TEXT, mcpServers=LIST)),
            "< = session/new": ("session", record(sessionId=TEXT)),
            "> session/prompt": ("prompt", record(sessionId=TEXT, prompt=LIST)),
            "< = session/prompt": ("prompt", record(stopReason=TEXT)),
            "> session/cancel": ("prompt", record(sessionId=TEXT)),
            "< session/update": ("update", record(sessionId=TEXT, update=record(sessionUpdate=TEXT))),
            "< session/request_permission": ("permission", record(sessionId=TEXT, toolCall=OBJECT, options=LIST)),
            "> = session/request_permission": ("permission", record(outcome=ANY)),
        },
        machines=(
            StateMachine(
                "initialize",
                "new",
                {
                    "new": {"> initialize": "initializing"},
                    "initializing": {"< = initialize": "ready", "< ! initialize": "new"},
                    "ready": {
                        "> session/new": "ready",
                        "> session/load": "ready",
                        "> session/prompt": "ready",
                        "> authenticate": "ready",
                    },
                },
            ),
        ),
        during=(OnlyWhileOpen("permission", ("< session/request_permission",), ("session/prompt",)),),
        junk="stdout",
    )
