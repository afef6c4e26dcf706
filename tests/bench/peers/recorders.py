"""Other recorders of a child's stdio: how each records and plays, and which can't be measured here, and why."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from tests.bench.traffic import LIVE_WORKDIR, answer, request

if TYPE_CHECKING:
    from collections.abc import Iterator

# The words before the child's, or the whole command of a replay: given a program and a file.
Words: TypeAlias = Callable[[str, Path], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Peer:
    """Another recorder.

    Attributes:
        name: as it calls itself.
        program: its file.
        record: the words before those of the child.
        replay: the command that plays a file; None: it can't.
        write: makes a recording of so many calls in its own format.
        without: why it may not be there.
    """

    name: str
    program: str
    record: Words
    replay: Words | None = None
    write: Callable[[Path, int], None] | None = None
    without: str = "needs Python 3.12 or newer, which is not in PATH"


def _said(count: int) -> Iterator[tuple[bool, int, dict[str, object]]]:
    """Whether the host says it, when in milliseconds, and what."""
    for number in range(count):
        yield True, number, json.loads(request(number, 1 + number, LIVE_WORKDIR))
        yield False, number, json.loads(answer(number, 1 + number, LIVE_WORKDIR))


def _write_mcp_rec(path: Path, count: int) -> None:
    with path.open("w") as file:
        for is_host, at, message in _said(count):
            side = "client->server" if is_host else "server->client"
            file.write(json.dumps({"ts": at / 1000, "dir": side, "msg": message}) + "\n")


def _write_mcp_cassette(path: Path, count: int) -> None:
    messages = [
        {
            "seq": number,
            "t_offset_ms": at,
            "sender": "client" if is_host else "server",
            "kind": "request" if is_host else "response",
            "method": message.get("method"),
            "msg_id": message["id"],
            "payload": message,
            "redacted": False,
            "exchange": None,
            "channel": None,
        }
        for number, (is_host, at, message) in enumerate(_said(count))
    ]
    head = {"format_version": 3, "recorded_at": "2026-01-01T00:00:00Z", "transport": "stdio"}
    path.write_text(json.dumps(head | {"messages": messages}))


PEERS = (
    Peer(
        "mcp-rec",
        "mcp-rec",
        lambda program, file: ("/usr/bin/env", "NO_NOTICE=1", program, "record", "-o", str(file), "--"),
        lambda program, file: ("/usr/bin/env", "NO_NOTICE=1", program, "replay", str(file)),
        _write_mcp_rec,
    ),
    Peer(
        "mcp-cassette",
        "mcp-cassette",
        lambda program, file: (program, "record", "--cassette", str(file), "--"),
        lambda program, file: (program, "serve", str(file)),
        _write_mcp_cassette,
    ),
    Peer(
        "mcp-vcr",
        "mcp-vcr",
        lambda program, file: (program, "record", "-o", str(file.with_suffix(".ndjson")), "--format", "ndjson", "--"),
    ),
    Peer(
        "mcpsnoop",
        "mcpsnoop",
        lambda program, file: (program, "--trace-file", str(file), "--"),
        without="not in PATH; it is a program in Go, which the module proxy does not serve",
    ),
)
ABSENT = {
    "mcp-cassette for TypeScript": "npm has no such package",
    "mcp-recorder": "its hosts have to speak HTTP: it is no stand-in for a child on stdio",
    "agent-vcr": "0.1.0 answers no call: it waits for 4,096 bytes of input first",
    "lsp-devtools": "0.4.0 does not end when its host closes its input",
}
