"""JSON-RPC 2.0 without a protocol above it, as data, with what its best-known users have in common."""

from __future__ import annotations

from ext_sdk.wire.jsonrpc import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FRAMING = "ndjson"

VOLATILE: dict[str, tuple[str, ...]] = {}

# Notifications that name a running call of the same side by its id: LSP's and MCP's ways to cancel.
REFERENCES = {"$/cancelRequest": ("/params/id",), "notifications/cancelled": ("/params/requestId",)}

# Names that the host makes up in a request ("*": any), and where its child's notifications repeat them: MCP's
# and LSP's progress.
MINTED = {"*": ("/params/_meta/progressToken", "/params/workDoneToken", "/params/partialResultToken")}
ECHOED = {"notifications/progress": ("/params/progressToken",), "$/progress": ("/params/token",)}

FINAL = ("exit",)  # LSP: "A notification to ask the server to exit its process."

# Of the codes that JSON-RPC leaves to servers (-32000 to -32099), one that neither spec 0 nor any peer gives
# a meaning.
NOT_RECORDED = -32099


def refusal(id_spelling: str, message: str, data: Mapping[str, object]) -> bytes:
    """An error response that says that nothing recorded answers this request.

    Args:
        id_spelling: the request's id, as it is spelled there.
        message: one line for a person.
        data: the same for a program.
    """
    error = dumps({"code": NOT_RECORDED, "message": message, "data": dict(data)})
    return f'{{"jsonrpc":"2.0","id":{id_spelling},"error":{error}}}'.encode("utf-8", "backslashreplace")
