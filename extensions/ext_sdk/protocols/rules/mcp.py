"""The Model Context Protocol: what its lifecycle and its most used messages are."""

from __future__ import annotations

from .rule import Clause, Machine, Rules
from .schema import ANY, FLAG, LIST, NUMBER, OBJECT, TEXT, VERSION_2, WHOLE, either, list_of, record

_TOOL = record(name=TEXT, description_=TEXT, inputSchema=OBJECT)
_CLIENT = record(name=TEXT, version=TEXT)
_ALWAYS = ("> ping", "< ping", "< notifications/message")
_READY = (
    *_ALWAYS, "> tools/list", "> tools/call", "> resources/list", "> resources/read", "> prompts/list", "> prompts/get",
    "< sampling/createMessage", "< roots/list", "< elicitation/create",
)  # fmt: skip

RULES = Rules(
    "Model Context Protocol",
    {
        "initialize": Clause("Lifecycle, Initialization", "protocolVersion, capabilities, and a name, on both sides."),
        "phases": Clause("Lifecycle", "initialize, its answer, the initialized notification, then everything else."),
        "tools": Clause("Server Features, Tools", "Tools have a name and a schema, results content."),
        "progress": Clause("Utilities, Progress", "progressToken and progress."),
        "cancelled": Clause("Utilities, Cancellation", "requestId of the request."),
        "logging": Clause("Utilities, Logging", "level and data."),
        "stdout": Clause("Transports, stdio", "The server writes nothing to stdout that is no message."),
    },
    envelope=VERSION_2,
    envelope_clause="version-2",
    messages={
        "> initialize": ("initialize", record(protocolVersion=TEXT, capabilities=OBJECT, clientInfo=_CLIENT)),
        "< = initialize": ("initialize", record(protocolVersion=TEXT, capabilities=OBJECT, serverInfo=_CLIENT)),
        "< = tools/list": ("tools", record(tools=list_of(_TOOL), nextCursor_=TEXT)),
        "> tools/call": ("tools", record(name=TEXT, arguments_=OBJECT)),
        "< = tools/call": ("tools", record(content=LIST, isError_=FLAG)),
        "< notifications/progress": ("progress", record(progressToken=either(TEXT, WHOLE), progress=NUMBER)),
        "> notifications/cancelled": ("cancelled", record(requestId_=either(TEXT, WHOLE), reason_=TEXT)),
        "< notifications/message": ("logging", record(level=TEXT, data=ANY)),
    },
    machines=(
        Machine(
            "phases",
            "new",
            {
                "new": {"> initialize": "initializing", "> ping": "new"},
                "initializing": dict.fromkeys(_ALWAYS, "initializing")
                | {"< = initialize": "initialized", "< ! initialize": "new"},
                "initialized": {"> notifications/initialized": "ready"} | dict.fromkeys(_ALWAYS, "initialized"),
                "ready": dict.fromkeys(_READY, "ready"),
            },
        ),
    ),
    junk="stdout",
)  # fmt: skip
