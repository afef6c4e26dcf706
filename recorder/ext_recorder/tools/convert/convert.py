"""The formats by name, and which of them a file is.

A file is known by how it begins; nothing of its name counts. What none of them begins like is refused.
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
    """A format of another program.

    Attributes:
        title: for people.
        members: of its first line, or of its document, by which it is known.
        document: it is one JSON document, and not lines.
        read: what was said; raises CassetteError.
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
    for name, each in IMPORTS.items():
        if not each.document and each.members <= line.keys():
            return name
    if begins_a_cassette(head) and head.strip():
        return CASSETTE
    for name, each in IMPORTS.items():
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


STDOUT = "-"


class Options:
    """How recordings of other programs become cassettes.

    Attributes:
        protocol: what their messages are.
        redact: what is redacted.
        bind: paths that get a neutral spelling, by name.
    """

    __slots__ = ("bind", "protocol", "redact")

    def __init__(
        self, *, protocol: str = "", redact: Redaction | None = None, bind: Mapping[str, str] | None = None
    ) -> None:
        self.protocol = protocol or PROTOCOL
        self.redact = redact or Redaction()
        self.redact.require()
        self.bind = dict(bind or {})


def convert(path: Path, target: str, options: Options, *, source: str = "", to: str = "", replace: bool = False) -> str:
    """Convert one file.

    Args:
        path: the file.
        target: where to; "-" for standard output, which is for JSON lines.
        options: for what other programs have recorded.
        source: its format; "" to find out.
        to: the other format; "" for JSON lines of a cassette, and a cassette of anything else.
        replace: a file that is there gives way.

    Returns:
        What became of it, for people; "" where that would be in the way.

    Raises:
        CassetteError, UsageError, OSError: it can't be read, or written.
    """
    source = known(source) if source else format_of(path)
    to = to or (JSONL if source == CASSETTE else CASSETTE)
    if to == CASSETTE and target == STDOUT:
        raise UsageError("a cassette is a file: expected -o FILE")
    with closing(_opened(path, source, options)) as opened:
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


def _opened(path: Path, source: str, options: Options) -> Source:
    if source == CASSETTE:
        return Reader(path)
    return JsonLines(path) if source == JSONL else _Import(path, source, options)


class _Import:
    """What another program has recorded, redacted, and with neutral paths."""

    def __init__(self, path: Path, source: str, options: Options) -> None:
        self._said = IMPORTS[source].read(path)
        self._redactor = options.redact.redactor()
        dialect = DIALECTS[options.protocol]
        self._bindings = RecordBindings(dialect, options.bind, os.environ.get("HOME", ""))
        self.header = Header(dialect.name, FRAMING, recorder=__version__, bindings=self._bindings.neutral())

    @property
    def redacted(self) -> tuple[str, ...]:
        """The rules that took something out so far."""
        return self._redactor.fired

    def __iter__(self) -> Iterator[Event]:
        for event in events(self._said):
            if event.kind == "in":
                self._bindings.observe(event.payload)
            payload = self._bindings.clean(self._redactor.redact(event.payload))
            yield Data(event.kind, event.time, payload)

    def close(self) -> None:
        """See Source."""


def _write(path: Path, lines: Iterator[str], *, replace: bool) -> None:
    """Write JSON lines; all of them, or nothing."""
    path = Path(target_of(str(path)))
    if path.exists() and not replace:
        raise UsageError(f"{path} is there already: choose another name, or replace it by --force")
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with fresh.open("x", encoding="utf-8") as file:
            file.writelines(lines)
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise
