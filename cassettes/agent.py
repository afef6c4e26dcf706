"""A small agent, built with the SDK of the Agent Client Protocol, from which cassettes/acp is recorded.

It asks for a file and for a permission while it answers, so that calls go both ways at once, and each side counts its
own ids.
"""

from __future__ import annotations

import asyncio
from typing import Any

import acp
from acp import schema


class Reader(acp.Agent):
    """Agent that counts the lines of the file named in a prompt, if the client permits it."""

    def on_connect(self, conn: acp.Client) -> None:
        """Store the client."""
        self.client = conn

    async def initialize(self, protocol_version: int, **_: Any) -> acp.InitializeResponse:
        """Agree on the protocol."""
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **_: Any) -> acp.NewSessionResponse:
        """Begin a session."""
        self.cwd = cwd
        return acp.NewSessionResponse(session_id="session-1")

    async def prompt(self, prompt: list[Any], session_id: str, **_: Any) -> acp.PromptResponse:
        """Handle a prompt: request permission, read the file, report."""
        path = f"{self.cwd}/{prompt[0].text}"
        await self.client.session_update(session_id, acp.update_agent_message_text("I'll count its lines."))
        asked = await self.client.request_permission(
            session_id=session_id,
            tool_call=schema.ToolCallUpdate(tool_call_id="read-1", title=f"Read {path}"),
            options=[schema.PermissionOption(option_id="yes", name="Allow", kind="allow_once")],
        )
        if asked.outcome.outcome != "selected":
            return acp.PromptResponse(stop_reason="cancelled")
        read = await self.client.read_text_file(path=path, session_id=session_id)
        text = f"{path} has {len(read.content.splitlines())} lines."
        await self.client.session_update(session_id, acp.update_agent_message_text(text))
        return acp.PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(acp.run_agent(Reader()))
