"""`convert`: cassettes to JSON lines and back, and recordings of other programs to cassettes.

A format is detected from the first bytes of a file, not from its name.
"""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.batch.selection import begins_a_cassette
from ext_recorder.cassette.events import Data
from ext_recorder.cassette.header import Header
from ext_recorder.cassette.paths import target_of
from ext_recorder.cassette.reader import Reader
from ext_recorder.cassette.writer import encode_event, write_cassette
from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.messages.path_bindings import RecordBindings
from ext_recorder.messages.redaction import Redaction
from ext_recorder.protocols.dialect import DIALECTS
from ext_recorder.tools.convert import importers
from ext_sdk.core.version import __version__
from ext_sdk.core.wire.errors import MessageError
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.core.wire.json_codec import loads

from .importers import FRAMING, PROTOCOL, events
from .jsonl import JsonLines, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from ext_recorder.cassette.events import Event

    from .importers import ImportedMessage
    from .jsonl import Source


CASSETTE = "cassette"
JSONL = "jsonl"
HEAD_BYTES = 65_536


class ImportFormat:
    """Format of another program.

    Attributes:
        title: description.
        members: members of its first line, or of its document, by which it is detected.
        document: True if it is one JSON document, False if it is JSON lines.
        read: yields the messages; raises CassetteError.
    """

    __slots__ = ("document", "members", "read", "title")

    def __init__(
        self,
        title: str,
        members: frozenset[str],
        read: Callable[[Path], Iterator[ImportedMessage]],
        *,
        document: bool = False,
    ) -> None:
        self.title = title
        self.members = members
        self.read = read
        self.document = document


IMPORTS = {
    "mcp-rec": ImportFormat("mcp-rec: JSON lines", frozenset({"ts", "dir", "msg"}), importers.read_mcp_rec),
    "mcp-cassette-ts": ImportFormat(
        "mcp-cassette for TypeScript: JSON lines, versions 1 and 2",
        frozenset({"type", "cassetteVersion"}),
        importers.read_mcp_cassette_ts,
    ),
    "mcp-cassette": ImportFormat(
        "mcp-cassette for Python: a JSON document, versions 1 to 3",
        frozenset({"format_version", "messages"}),
        importers.read_mcp_cassette,
        document=True,
    ),
    "mcpsnoop": ImportFormat(
        "mcpsnoop: session logs", frozenset({"session_id", "direction", "ts"}), importers.read_mcpsnoop
    ),
}

NAMES = (CASSETTE, JSONL, *IMPORTS)


def format_of(path: Path) -> str:
    """Return the name of a file's format.

    Raises:
        CassetteError: the format is unknown, or the file does not exist.
    """
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except FileNotFoundError:
        raise CassetteError(path, 0, "no such file", "record it first: ext-recorder record") from None
    first = head.partition(b"\n")[0]
    try:
        value = loads(first.decode())
    except (MessageError, UnicodeDecodeError):
        value = {}
    members = value if isinstance(value, dict) else {}
    if "cassette" in members and ("framing" in members or "protocol" in members) and b"events" not in first:
        return JSONL
    for name, format in IMPORTS.items():
        if not format.document and format.members <= members.keys():
            return name
    if begins_a_cassette(head) and head.strip():
        return CASSETTE
    for name, format in IMPORTS.items():
        if format.document and head.lstrip()[:1] == b"{" and b'"format_version"' in head:
            return name
    raise CassetteError(path, 0, f"unknown format; known are {', '.join(NAMES)}", "name the format with --from")


def known(name: str) -> str:
    """Return the name of a format. Raises UsageError if it is unknown."""
    if name in NAMES:
        return name
    raise UsageError(f"--from {name}: expected one of {', '.join(NAMES)}")


STDOUT = "-"


class Options:
    """Options for recordings of other programs.

    Attributes:
        protocol: protocol of the messages.
        redact: redaction rules.
        bind: paths to replace by placeholders, by name.
        notes: about variables of a project file that do not exist.
    """

    __slots__ = ("bind", "notes", "protocol", "redact")

    def __init__(
        self, *, protocol: str = "", redact: Redaction | None = None, bind: Mapping[str, str] | None = None
    ) -> None:
        self.protocol = protocol or PROTOCOL
        self.redact = redact or Redaction()
        self.notes = self.redact.require(for_recording=False)
        self.bind = dict(bind or {})


def convert(path: Path, target: str, options: Options, *, source: str = "", to: str = "", replace: bool = False) -> str:
    """Convert one file.

    Args:
        path: the file.
        target: the new file; "-" for standard output, only for JSON lines.
        options: options for recordings of other programs.
        source: its format; "" to detect it.
        to: format of the new file; "" for JSON lines from a cassette, and for a cassette from all other formats.
        replace: replace an existing file.

    Returns:
        A message for the user; "" if the output is standard output.

    Raises:
        CassetteError, UsageError, OSError: the file cannot be read, or the new one written.
    """
    source = known(source) if source else format_of(path)
    to = to or (JSONL if source == CASSETTE else CASSETTE)
    if to == CASSETTE and target == STDOUT:
        raise UsageError("a cassette cannot be written to standard output; give a file with -o FILE")
    opened: Source = (
        Reader(path) if source == CASSETTE else JsonLines(path) if source == JSONL else _Import(path, source, options)
    )
    with closing(opened):
        if to == CASSETTE:
            framing = FRAMINGS[opened.header.framing]
            lines = (encode_event(event, framing) for event in opened)
            count = write_cassette(Path(target), opened.header, lines, lambda: opened.redacted or (), replace=replace)
            return f"{target}: {count} events, from {source}"
        if target == STDOUT:
            sys.stdout.writelines(written(opened))
            return ""
        _write(Path(target), written(opened), replace=replace)
    return f"{target}: JSON lines, from {source}"


class _Import:
    """Recording of another program: redacted, with placeholders for paths."""

    def __init__(self, path: Path, source: str, options: Options) -> None:
        self._messages = IMPORTS[source].read(path)
        self._redactor = options.redact.redactor()
        dialect = DIALECTS[options.protocol]
        self._bindings = RecordBindings(dialect, options.bind, os.environ.get("HOME", ""))
        self.header = Header(dialect.name, FRAMING, recorder=__version__, bindings=self._bindings.neutral())

    @property
    def redacted(self) -> tuple[str, ...]:
        """Redaction rules that have replaced something so far."""
        return self._redactor.fired

    def __iter__(self) -> Iterator[Event]:
        for event in events(self._messages):
            if event.kind == "in":
                self._bindings.observe(event.payload)
            payload = self._bindings.clean(self._redactor.redact(event.payload))
            yield Data(event.kind, event.time, payload)

    def close(self) -> None:
        """Do nothing: the iterator closes the file."""


def _write(path: Path, lines: Iterator[str], *, replace: bool) -> None:
    """Write JSON lines atomically."""
    path = Path(target_of(str(path)))
    if path.exists() and not replace:
        raise UsageError(f"{path} exists; choose another name, or replace it with --force")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("x", encoding="utf-8") as file:
            file.writelines(lines)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
