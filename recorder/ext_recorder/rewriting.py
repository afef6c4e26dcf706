"""Making a cassette of another one: written beside it, and put in its place when it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .cassette.events import OWN_FILES, STDERR_FRAMING, Data, event_line, raw_line
from .cassette.writer import Writer
from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from ext_sdk.core.wire.framing import Framing

    from .cassette.events import Event
    from .cassette.header import Header

BATCH_LINES = 500  # are written at once


def write_cassette(
    path: Path, header: Header, lines: Iterable[bytes], redacted: Callable[[], tuple[str, ...]], *, replace: bool
) -> int:
    """Write a cassette; all of it, or nothing.

    Args:
        path: the file.
        header: its first lines; its own `redacted` is left out, because it stands at the end.
        lines: its events.
        redacted: asked when all of them are written.
        replace: a file that is there already gives way.

    Returns:
        The number of events.

    Raises:
        UsageError: the file is there already.
        CassetteInUse: a recorder is writing it.
        OSError: it can't be written.
    """
    if path.exists() and not replace:
        raise UsageError(f"{path} is there already: choose another name, or replace it by --force")
    writer = Writer(path, header)
    count = 0
    try:
        batch: list[bytes] = []
        for line in lines:
            batch.append(line)
            count += 1
            if len(batch) >= BATCH_LINES:
                writer.append(batch)
                batch.clear()
        writer.append(batch)
        writer.finish(redacted())
    except BaseException:
        writer.discard()
        raise
    return count


def line_of(event: Event, framing: Framing) -> bytes:
    """The line for an event, raw where YAML can't hold its text.

    Args:
        event: any; from another format, too.
        framing: of the session's messages.
    """
    try:
        return event_line(event)
    except ValueError:
        assert isinstance(event, Data)
        own = STDERR_FRAMING if event.kind == "err" or event.conn == OWN_FILES else framing
        return raw_line(event.kind, event.time, own.encode(event.payload, event.head), conn=event.conn)
