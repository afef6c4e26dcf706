"""The formats by name, and which of them a file is.

A file is known by how it begins; nothing of its name counts. What none of them begins like is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.many.names import begins_a_cassette
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.json_codec import loads

from . import mcp_cassette, mcp_rec, mcpsnoop, typescript

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .foreign import Said

CASSETTE = "cassette"
JSONL = "jsonl"
HEAD_BYTES = 65_536


class Foreign:
    """A format of another program.

    Attributes:
        title: for people.
        members: of its first line, or of its document, by which it is known.
        document: it is one JSON document, and not lines.
        read: what was said; raises CassetteError.
    """

    __slots__ = ("document", "members", "read", "title")

    def __init__(
        self, title: str, members: frozenset[str], read: Callable[[Path], Iterator[Said]], *, document: bool = False
    ) -> None:
        self.title = title
        self.members = members
        self.read = read
        self.document = document


FOREIGN = {
    "mcp-rec": Foreign("mcp-rec: JSON lines", frozenset({"ts", "dir", "msg"}), mcp_rec.read),
    "mcp-cassette-ts": Foreign(
        "mcp-cassette for TypeScript: JSON lines, versions 1 and 2",
        frozenset({"type", "cassetteVersion"}),
        typescript.read,
    ),
    "mcp-cassette": Foreign(
        "mcp-cassette for Python: a JSON document, versions 1 to 3",
        frozenset({"format_version", "messages"}),
        mcp_cassette.read,
        document=True,
    ),
    "mcpsnoop": Foreign("mcpsnoop: session logs", frozenset({"session_id", "direction", "ts"}), mcpsnoop.read),
}
NAMES = (CASSETTE, JSONL, *FOREIGN)


def format_of(path: Path) -> str:
    """The name of a file's format.

    Raises:
        CassetteError: it is none of them, or there is no such file.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise CassetteError(path, 0, "no such file", "record it first: ext-recorder record") from None
    first = head.partition(b"\n")[0]
    line = _members(first)
    if "cassette" in line and ("framing" in line or "protocol" in line) and b"events" not in first:
        return JSONL
    for name, each in FOREIGN.items():
        if not each.document and each.members <= line.keys():
            return name
    if begins_a_cassette(head) and head.strip():
        return CASSETTE
    for name, each in FOREIGN.items():
        if each.document and head.lstrip()[:1] == b"{" and b'"format_version"' in head:
            return name
    known = ", ".join(NAMES)
    raise CassetteError(path, 0, f"not known by its beginning; known are {known}", "--from NAME says what it is")


def _members(line: bytes) -> dict[str, object]:
    try:
        value = loads(line.decode())
    except (MessageError, UnicodeDecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def known(name: str) -> str:
    """The name, if it is one. Raises UsageError."""
    if name in NAMES:
        return name
    raise UsageError(f"--from {name}: expected one of {', '.join(NAMES)}")
