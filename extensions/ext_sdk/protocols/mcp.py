"""The Model Context Protocol over stdio."""

from __future__ import annotations

from .dialect import Dialect

DIALECT = Dialect(
    "mcp",
    "ndjson",
    "the Model Context Protocol",
    volatile={"initialize": ("/params/clientInfo/version",), "*": ("/params/_meta",)},
    references={"notifications/cancelled": ("/params/requestId",)},
    minted={"*": ("/params/_meta/progressToken",)},
    echoed={"notifications/progress": ("/params/progressToken",)},
    asides=("ping",),
    failed={"/result/isError": True},
    subject={"tools/call": "/params/name", "resources/read": "/params/uri", "prompts/get": "/params/name"},
)
