"""The Agent Client Protocol: its initialization, sessions and turns."""

from __future__ import annotations

from .rule import Clause, During, Machine, Rules
from .schema import ANY, LIST, OBJECT, TEXT, VERSION_2, WHOLE, record

RULES = Rules(
    "Agent Client Protocol",
    {
        "initialize": Clause("Initialization", "protocolVersion, a whole number, on both sides; the first request."),
        "session": Clause("Session Setup", "cwd and mcpServers; the answer has sessionId."),
        "prompt": Clause("Prompt Turn", "sessionId and prompt; the answer has a stopReason."),
        "update": Clause("Prompt Turn", "sessionId and update."),
        "permission": Clause("Tool Calls, Requesting Permission", "sessionId, toolCall and options."),
        "stdout": Clause("Transports, stdio", "The agent writes nothing to stdout that is no message."),
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
        Machine(
            "initialize",
            "new",
            {
                "new": {"> initialize": "initializing"},
                "initializing": {"< = initialize": "ready", "< ! initialize": "new"},
                "ready": {"> session/new": "ready", "> session/load": "ready", "> session/prompt": "ready",
                          "> authenticate": "ready"},
            },
        ),
    ),
    during=(During("permission", ("< session/request_permission",), ("session/prompt",)),),
    junk="stdout",
)  # fmt: skip
