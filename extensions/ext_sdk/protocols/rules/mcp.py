"""The Model Context Protocol: its lifecycle and its most used messages, with and without a handshake."""

from __future__ import annotations

from .rule import Clause, Machine, Rules
from .schema import ANY, FLAG, LIST, NUMBER, OBJECT, TEXT, TEXTS, VERSION_2, WHOLE, either, list_of, record

_TOOL = record(name=TEXT, description_=TEXT, inputSchema=OBJECT)
_CLIENT = record(name=TEXT, version=TEXT)
_ALWAYS = ("> ping", "< ping", "< notifications/message")
_REQUESTS = (
    "> tools/list", "> tools/call", "> resources/list", "> resources/read", "> prompts/list", "> prompts/get",
)  # fmt: skip
_READY = (*_ALWAYS, *_REQUESTS, "< sampling/createMessage", "< roots/list", "< elicitation/create")
# Since 2026-07-28 each request names its revision, and no handshake comes before it.
_REVISION = "/params/_meta/io.modelcontextprotocol~1protocolVersion"
_SELF_CONTAINED = tuple(f"{request}:2026-07-28" for request in _REQUESTS)
_INPUT_REQUIRED = record(resultType={"const": "input_required"})
_TASK = record(task=record(taskId=TEXT, status=TEXT))  # 2025-11-25

RULES = Rules(
    "Model Context Protocol",
    {
        "initialize": Clause("Lifecycle, Initialization", "protocolVersion, capabilities, and a name, on both sides."),
        "phases": Clause("Lifecycle", "initialize, its answer, the initialized notification, then everything else."),
        "discover": Clause("Discovery", "The request names its revision in _meta; the result has supportedVersions."),
        "tools": Clause("Server Features, Tools", "Tools have a name and a schema, results content."),
        "subscriptions": Clause("Subscriptions", "Both sides name the notifications that are subscribed to."),
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
        "> server/discover": ("discover", record(_meta=OBJECT)),
        "< = server/discover": ("discover", record(supportedVersions=TEXTS, capabilities=OBJECT)),
        "< = tools/list": ("tools", record(tools=list_of(_TOOL), nextCursor_=TEXT)),
        "> tools/call": ("tools", record(name=TEXT, arguments_=OBJECT)),
        "< = tools/call": ("tools", either(record(content=LIST, isError_=FLAG), _INPUT_REQUIRED, _TASK)),
        "> subscriptions/listen": ("subscriptions", record(notifications=OBJECT)),
        "< notifications/subscriptions/acknowledged": ("subscriptions", record(notifications=OBJECT)),
        "< notifications/progress": ("progress", record(progressToken=either(TEXT, WHOLE), progress=NUMBER)),
        "> notifications/cancelled": ("cancelled", record(requestId_=either(TEXT, WHOLE), reason_=TEXT)),
        "< notifications/message": ("logging", record(level=TEXT, data=ANY)),
    },
    machines=(
        Machine(
            "phases",
            "new",
            {
                # A server of an older revision refuses `server/discover`, and the client falls back to `initialize`.
                "new": {"> initialize": "initializing", "> ping": "new", "> server/discover": "discovering"}
                | dict.fromkeys(_SELF_CONTAINED, "discovered"),
                "discovering": {"< = server/discover": "discovered", "< ! server/discover": "new"}
                | {"< notifications/message": "discovering"},
                "discovered": {"> server/discover": "discovering", "> initialize": "initializing"}
                | dict.fromkeys((*_SELF_CONTAINED, "< notifications/message"), "discovered"),
                "initializing": dict.fromkeys(_ALWAYS, "initializing")
                | {"< = initialize": "initialized", "< ! initialize": "new"},
                "initialized": {"> notifications/initialized": "ready"} | dict.fromkeys(_ALWAYS, "initialized"),
                "ready": dict.fromkeys(_READY, "ready"),
            },
        ),
    ),
    split=dict.fromkeys(_REQUESTS, _REVISION),
    junk="stdout",
    excuses=("notifications/cancelled",),
)  # fmt: skip
