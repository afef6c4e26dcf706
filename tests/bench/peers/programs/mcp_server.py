"""A server of the official MCP SDK with one tool; run by the Python of the peers."""

from __future__ import annotations

from mcp.server import MCPServer  # type: ignore[import-not-found]  # it is among the peers

server = MCPServer("bench")


@server.tool()  # type: ignore[untyped-decorator]
def echo(number: int, text: str) -> str:
    """Return what was given."""
    return f"{number} {text}"


if __name__ == "__main__":
    server.run()
