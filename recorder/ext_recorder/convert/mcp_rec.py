"""mcp-rec 0.1: JSON lines.

`{"ts": seconds, "dir": "client->server", "msg": …}`; `msg` of a line that is no JSON is `{"_raw": text, "_unparsed":
true}`. There is no version in it. A second recording into the same file follows the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.errors import CassetteError

from .foreign import Said, envelopes, seconds, side

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ext_recorder.cassette.events import Stream

_SIDES: dict[str, Stream] = {"client->server": "in", "server->client": "out"}


def read(path: Path) -> Iterator[Said]:
    """What was said. Raises CassetteError."""
    for number, line in envelopes(path):
        message, text = line.value("msg"), line.member_text("msg")
        if text is None:
            raise CassetteError(path, number, "expected `ts`, `dir` and `msg`")
        if isinstance(message, dict) and message.get("_unparsed") is True:
            text = str(message.get("_raw", ""))
        yield Said(side(path, number, line.value("dir"), _SIDES), seconds(path, number, line.value("ts")), text)
