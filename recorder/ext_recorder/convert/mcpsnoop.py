"""mcpsnoop's session logs: an envelope a line.

`ts` is a time of day, `raw` holds the message, `text` a line that is none. There is no version in it. A log is of one
session; an envelope of another one, of HTTP, or one whose message was cut, is refused.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from ext_recorder.errors import CassetteError

from .foreign import NOT_STDIO, Said, envelopes, side

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ext_recorder.cassette.events import Stream

_META = "meta"  # the command of the session; for people
_SIDES: dict[str, Stream] = {"c2s": "in", "s2c": "out", "stderr": "err"}


def read(path: Path) -> Iterator[Said]:
    """What was said. Raises CassetteError."""
    session: object = None
    for number, envelope in envelopes(path):
        session = envelope.value("session_id") if session is None else session
        if envelope.value("session_id") != session:
            raise CassetteError(path, number, "a second session", "convert each session from a file of its own")
        if envelope.value("transport") == "http":
            raise CassetteError(path, number, NOT_STDIO)
        if envelope.value("truncated") is True:
            raise CassetteError(path, number, "the message was cut by its recorder", "record the session anew")
        if envelope.value("direction") == _META:
            continue
        text = envelope.member_text("raw") or envelope.value("text")
        stream = side(path, number, envelope.value("direction"), _SIDES)
        yield Said(stream, _time(path, number, envelope.value("ts")), text if isinstance(text, str) else "")


def _time(path: Path, number: int, text: object) -> float:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        raise CassetteError(path, number, f"expected a time of day in `ts`, found {text!r}") from None
