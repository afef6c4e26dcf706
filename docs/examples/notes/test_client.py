"""A test of the client, without the server once it is recorded: `pytest --record-mode=once`."""

import asyncio

import pytest
from client import remember


@pytest.mark.recorded("python", "server.py", protocol="mcp")
def test_a_note_is_found(recorded_command):
    assert asyncio.run(remember(recorded_command, "buy milk")) == "buy milk"
