"""One file as another format: read event by event, written all at once or not at all."""

from __future__ import annotations

import os
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ext_recorder.bindings import Recording
from ext_recorder.cassette.events import Data
from ext_recorder.cassette.header import Header
from ext_recorder.cassette.reader import Reader
from ext_recorder.errors import UsageError
from ext_recorder.redaction import Redaction
from ext_recorder.rewriting import line_of, write_cassette
from ext_recorder.targets import target_of
from ext_sdk.core.version import __version__
from ext_sdk.core.wire.framing import FRAMINGS
from ext_sdk.protocols.dialect import DIALECTS

from .foreign import FRAMING, PROTOCOL, events
from .formats import CASSETTE, FOREIGN, JSONL, format_of, known
from .jsonl import JsonLines, written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ext_recorder.cassette.events import Event

STDOUT = "-"


class Source(Protocol):
    """A file being read.

    Attributes:
        header: what it says about itself.
        redacted: the rules that took something out, once all of it was read.
    """

    header: Header

    @property
    def redacted(self) -> tuple[str, ...] | None:
        """See the class."""

    def __iter__(self) -> Iterator[Event]: ...

    def close(self) -> None:
        """Close the file."""


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
            lines = (line_of(event, framing) for event in opened)
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
    return JsonLines(path) if source == JSONL else _Foreign(path, source, options)


class _Foreign:
    """What another program has recorded, redacted, and with neutral paths."""

    def __init__(self, path: Path, source: str, options: Options) -> None:
        self._said = FOREIGN[source].read(path)
        self._redactor = options.redact.redactor()
        dialect = DIALECTS[options.protocol]
        self._bindings = Recording(dialect, options.bind, os.environ.get("HOME", ""))
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
