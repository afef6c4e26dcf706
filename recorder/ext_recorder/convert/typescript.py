"""mcp-cassette for TypeScript, cassetteVersion 1 and 2: a header, then entries with `t` in milliseconds.

`frame` holds a message, `raw` a line that is none. Entries of HTTP (`chunks`), and kinds that later versions may add,
are refused: half a session would play wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.errors import CassetteError

from .foreign import NOT_STDIO, Said, envelopes, seconds, side

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ext_recorder.cassette.events import Stream

VERSIONS = (1, 2)
_SIDES: dict[str, Stream] = {"c2s": "in", "s2c": "out"}


def read(path: Path) -> Iterator[Said]:
    """What was said. Raises CassetteError."""
    lines = envelopes(path)
    number, header = next(lines)
    version = header.value("cassetteVersion")
    if version not in VERSIONS:
        raise CassetteError(path, number, f"cassetteVersion {version!r}; known are 1 and 2", "record the session anew")
    if header.value("transport") == "http":
        raise CassetteError(path, number, NOT_STDIO)
    for number, entry in lines:
        kind = entry.value("type")
        if kind not in {"frame", "raw"}:
            raise CassetteError(path, number, f"an entry of type {kind!r}; known on stdio are frame and raw")
        text = entry.member_text("frame") if kind == "frame" else entry.value("data")
        if not isinstance(text, str):
            raise CassetteError(path, number, f"an entry of type {kind} without its content")
        time = seconds(path, number, entry.value("t"), 1e-3)
        yield Said(side(path, number, entry.value("dir"), _SIDES), time, text)
