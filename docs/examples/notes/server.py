"""MCP server with two tools: `python server.py` on stdio, `python server.py PORT` over HTTP."""

import sys

from mcp.server.mcpserver import MCPServer

server = MCPServer("notes")
notes: list[str] = []


@server.tool()
def add(text: str) -> str:
    """Add a note."""
    notes.append(text)
    return f"{len(notes)} notes"


@server.tool()
def search(word: str) -> str:
    """Return the first note that contains a word."""
    return next((note for note in notes if word in note), "no such note")


if __name__ == "__main__":
    if sys.argv[1:]:
        server.run(transport="streamable-http", port=int(sys.argv[1]))
    else:
        server.run()
