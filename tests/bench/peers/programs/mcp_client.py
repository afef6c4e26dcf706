"""A client of the official MCP SDK: mcp_client.py COUNT COMMAND...

Starts COMMAND as its server, calls its tool `echo` once, then COUNT times, one call after the other, and prints the
seconds of these. Run by the Python of the peers.
"""

from __future__ import annotations

import asyncio
import os
import sys
from time import perf_counter

from mcp import Client, StdioServerParameters  # type: ignore[import-not-found]  # it is among the peers

TEXT = "what a tool is given, and what it has to say about it afterwards; " * 4


async def main() -> None:
    count, command, *arguments = sys.argv[1:]
    server = StdioServerParameters(command=command, args=arguments, env=dict(os.environ))
    async with Client(server) as client:
        begin = 0.0
        for number in range(int(count) + 1):
            result = await client.call_tool("echo", {"number": number, "text": TEXT})
            if result.is_error or f"{number} {TEXT}" not in str(result.content):
                raise SystemExit(f"call {number}: {result.content}")
            begin = begin or perf_counter()
        sys.stdout.write(f"{perf_counter() - begin}\n")


if __name__ == "__main__":
    asyncio.run(main())
