"""Any protocol on JSON-RPC 2.0, with the conventions that LSP and MCP share."""

from __future__ import annotations

from .dialect import Dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules

# Notifications that name a running call of the same side by its id: the cancellations of LSP and MCP.
REFERENCES = {"$/cancelRequest": ("/params/id",), "notifications/cancelled": ("/params/requestId",)}

# Progress tokens of MCP and LSP: the host generates them in any request, and notifications of the child repeat them.
CLIENT_GENERATED = {"*": ("/params/_meta/progressToken", "/params/workDoneToken", "/params/partialResultToken")}
ECHOED_NAMES = {"notifications/progress": ("/params/progressToken",), "$/progress": ("/params/token",)}

DIALECT = Dialect(
    "jsonrpc",
    "ndjson",
    "any JSON-RPC 2.0",
    references=REFERENCES,
    client_generated=CLIENT_GENERATED,
    echoed_names=ECHOED_NAMES,
    final=("exit",),  # LSP: "A notification to ask the server to exit its process."
)


def rules() -> Rules:
    """Return the rules of the specification."""
    from .rules import VERSION_2, Rules

    return Rules("JSON-RPC 2.0", {}, envelope=VERSION_2, envelope_clause="version-2", messages={})
