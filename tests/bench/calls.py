"""An operation that does nothing, called again and again in one process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.bench.load_driver import drive
from tests.bench.traffic import tool_call, write_requests

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.bench.harness import Bench, Series


def measure(bench: Bench) -> Series:
    """Calls a second and MiB: "extension calls/s", "extension early MiB", "extension last MiB", "echo calls/s".

    "mcp calls/s" is the extension over MCP.
    """
    requests = write_requests(bench.directory / "calls.jsonl", bench.scale.calls)
    early = bench.scale.early

    def extension() -> Mapping[str, float]:
        command = bench.programs.nothing
        driven = drive(bench, command, requests, None, early=early, cores=bench.one_core)
        return {
            "calls/s": bench.scale.calls / driven.seconds,
            "early MiB": driven.early_kib / 1024,
            "last MiB": driven.last_kib / 1024,
        }

    tool_calls = write_requests(bench.directory / "tool-calls.jsonl", bench.scale.calls, say=tool_call)

    def mcp() -> Mapping[str, float]:
        command = (*bench.programs.nothing, "serve", "--protocol", "mcp", "--allow", "*")
        driven = drive(bench, command, tool_calls, None, cores=bench.one_core)
        return {"calls/s": bench.scale.calls / driven.seconds}

    def echo() -> Mapping[str, float]:
        driven = drive(bench, bench.programs.echo_in_python, requests, requests, cores=bench.one_core)
        return {"calls/s": bench.scale.calls / driven.seconds}

    return bench.take_turns({"extension": extension, "mcp": mcp, "echo": echo}, warm_up=False)
