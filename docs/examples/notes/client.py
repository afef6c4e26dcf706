"""MCP client: `python client.py URL`, or `python client.py COMMAND…`. Adds a note and searches for it."""

import asyncio
import os
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def remember(server: list[str], text: str) -> str:
    """Add a note, and return what the server finds for its last word."""
    if server[0].startswith("http"):
        transport = streamable_http_client(server[0])
    else:
        transport = stdio_client(StdioServerParameters(command=server[0], args=server[1:], env=dict(os.environ)))
    async with transport as (reader, writer, *_), ClientSession(reader, writer) as session:
        await session.initialize()
        await session.call_tool("add", {"text": text})
        result = await session.call_tool("search", {"word": text.rsplit(maxsplit=1)[-1]})
        return result.content[0].text


if __name__ == "__main__":
    print(asyncio.run(remember(sys.argv[1:], "buy milk")))
