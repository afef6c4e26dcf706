"""The Model Context Protocol over stdio: the revisions with a handshake, and 2026-07-28, which has none.

Since 2026-07-28 a session may begin with `server/discover`, and every request describes its client in `_meta`: name,
version, capabilities and trace context. All of that differs between clients and runs, so it is volatile, and so is
what `initialize` says of a client.
"""

from __future__ import annotations

from .dialect import Dialect

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
    minted={"*": ("/params/_meta/progressToken",), "subscriptions/listen": ("/id",)},
    echoed={
        "notifications/progress": ("/params/progressToken",),
        "": (f"/result/{_SUBSCRIPTION}",),  # the end of a subscription
        **dict.fromkeys(_SUBSCRIBED, _NOTIFIED),
    },
    handed={
        "*": ("/result/nextCursor", "/result/requestState", "/result/task/taskId", "/result/taskId"),
        **dict.fromkeys(("tasks/get", "tasks/update", "tasks/result", "tasks/cancel"), ("/params/taskId",)),
    },
    asides=("ping",),
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
