"""Model Context Protocol over stdio: the revisions with a handshake, and 2026-07-28, which has none.

Since 2026-07-28 a session may begin with `server/discover`, and every request describes its client in `_meta`: name,
version, capabilities and trace context. All of that differs between clients and runs, so it is volatile, as is the
description of the client in `initialize`.
"""

from __future__ import annotations

from .dialect import Dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules

_SUBSCRIPTION = "_meta/io.modelcontextprotocol~1subscriptionId"
_NOTIFIED = (f"/params/{_SUBSCRIPTION}",)
# Sent for one subscription, whose id is that of the request `subscriptions/listen`.
_SUBSCRIBED = (
    "notifications/subscriptions/acknowledged",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
)

DIALECT = Dialect(
    "mcp",
    "ndjson",
    "the Model Context Protocol",
    volatile={
        "initialize": ("/params/clientInfo", "/params/capabilities", "/params/protocolVersion"),
        "*": ("/params/_meta",),
    },
    references={"notifications/cancelled": ("/params/requestId",)},
    probes={
        "server/discover": '{"jsonrpc":"2.0","id":%(/id)s,"error":{"code":-32601,"message":"Method not found"}}',
    },
    client_generated={"*": ("/params/_meta/progressToken",), "subscriptions/listen": ("/id",)},
    echoed_names={
        "notifications/progress": ("/params/progressToken",),
        "": (f"/result/{_SUBSCRIPTION}",),  # the end of a subscription
        **dict.fromkeys(_SUBSCRIBED, _NOTIFIED),
    },
    handed={
        "*": ("/result/nextCursor", "/result/requestState", "/result/task/taskId", "/result/taskId"),
        **dict.fromkeys(("tasks/get", "tasks/update", "tasks/result", "tasks/cancel"), ("/params/taskId",)),
    },
    keepalives=("ping",),
    failed={"/result/isError": True},
    subject={
        "tools/call": "/params/name",
        "resources/read": "/params/uri",
        "prompts/get": "/params/name",
        "tasks/get": "/params/taskId",
        "tasks/update": "/params/taskId",
        "tasks/result": "/params/taskId",
        "tasks/cancel": "/params/taskId",
    },
)


def rules() -> Rules:
    """Return the rules of the specification."""
    from .rules import (
        ANY,
        FLAG,
        LIST,
        NUMBER,
        OBJECT,
        TEXT,
        TEXTS,
        VERSION_2,
        WHOLE,
        Clause,
        Rules,
        StateMachine,
        either,
        list_of,
        record,
    )

    tool = record(name=TEXT, description_=TEXT, inputSchema=OBJECT)
    client = record(name=TEXT, version=TEXT)
    always = ("> ping", "< ping", "< notifications/message")
    requests = (
        "> tools/list", "> tools/call", "> resources/list", "> resources/read", "> prompts/list", "> prompts/get",
    )  # fmt: skip
    ready = (*always, *requests, "< sampling/createMessage", "< roots/list", "< elicitation/create")
    # Since 2026-07-28 each request names its revision, and no handshake comes before it.
    revision = "/params/_meta/io.modelcontextprotocol~1protocolVersion"
    self_contained = tuple(f"{request}:2026-07-28" for request in requests)
    input_required = record(resultType={"const": "input_required"})
    task = record(task=record(taskId=TEXT, status=TEXT))  # 2025-11-25
    return Rules(
        "Model Context Protocol",
        {
            "initialize": Clause(
                "Lifecycle, Initialization", "protocolVersion, capabilities, and a name, on both sides."
            ),
            "phases": Clause(
                "Lifecycle", "initialize, its answer, the initialized notification, then everything else."
            ),
            "discover": Clause(
                "Discovery", "The request names its revision in _meta; the result has supportedVersions."
            ),
            "tools": Clause("Server Features, Tools", "Tools have a name and a schema, results content."),
            "subscriptions": Clause("Subscriptions", "Both sides name the notifications that are subscribed to."),
            "progress": Clause("Utilities, Progress", "progressToken and progress."),
            "cancelled": Clause("Utilities, Cancellation", "requestId of the request."),
            "logging": Clause("Utilities, Logging", "level and data."),
            "stdout": Clause("Transports, stdio", "The server writes only messages to stdout."),
        },
        envelope=VERSION_2,
        envelope_clause="version-2",
        messages={
            "> initialize": ("initialize", record(protocolVersion=TEXT, capabilities=OBJECT, clientInfo=client)),
            "< = initialize": ("initialize", record(protocolVersion=TEXT, capabilities=OBJECT, serverInfo=client)),
            "> server/discover": ("discover", record(_meta=OBJECT)),
            "< = server/discover": ("discover", record(supportedVersions=TEXTS, capabilities=OBJECT)),
            "< = tools/list": ("tools", record(tools=list_of(tool), nextCursor_=TEXT)),
            "> tools/call": ("tools", record(name=TEXT, arguments_=OBJECT)),
            "< = tools/call": ("tools", either(record(content=LIST, isError_=FLAG), input_required, task)),
            "> subscriptions/listen": ("subscriptions", record(notifications=OBJECT)),
            "< notifications/subscriptions/acknowledged": ("subscriptions", record(notifications=OBJECT)),
            "< notifications/progress": ("progress", record(progressToken=either(TEXT, WHOLE), progress=NUMBER)),
            "> notifications/cancelled": ("cancelled", record(requestId_=either(TEXT, WHOLE), reason_=TEXT)),
            "< notifications/message": ("logging", record(level=TEXT, data=ANY)),
        },
        machines=(
            StateMachine(
                "phases",
                "new",
                {
                    # A server of an older revision refuses `server/discover`; the client falls back to `initialize`.
                    "new": {"> initialize": "initializing", "> ping": "new", "> server/discover": "discovering"}
                    | dict.fromkeys(self_contained, "discovered"),
                    "discovering": {"< = server/discover": "discovered", "< ! server/discover": "new"}
                    | {"< notifications/message": "discovering"},
                    "discovered": {"> server/discover": "discovering", "> initialize": "initializing"}
                    | dict.fromkeys((*self_contained, "< notifications/message"), "discovered"),
                    "initializing": dict.fromkeys(always, "initializing")
                    | {"< = initialize": "initialized", "< ! initialize": "new"},
                    "initialized": {"> notifications/initialized": "ready"} | dict.fromkeys(always, "initialized"),
                    "ready": dict.fromkeys(ready, "ready"),
                },
            ),
        ),
        split=dict.fromkeys(requests, revision),
        junk="stdout",
        excuses=("notifications/cancelled",),
    )
