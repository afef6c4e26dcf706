"""mcp-cassette for Python, format_version 1 to 3: one JSON document, its messages with `t_offset_ms`.

`payload` is the message as a JSON value, or a text for a line that is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.errors import CassetteError
from ext_sdk.core.wire.json_codec import dumps

from .foreign import NOT_STDIO, Said, document, seconds, side

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ext_recorder.cassette.events import Stream

VERSIONS = (1, 2, 3)
_SIDES: dict[str, Stream] = {"client": "in", "server": "out"}


def read(path: Path) -> Iterator[Said]:
    """What was said. Raises CassetteError."""
    whole = document(path)
    version = whole.get("format_version") if isinstance(whole, dict) else None
    if not isinstance(whole, dict) or version not in VERSIONS:
        advice = "record the session anew"
        raise CassetteError(path, 0, f"format_version {version!r}; known are 1, 2 and 3", advice)
    if whole.get("transport") == "http":
        raise CassetteError(path, 0, NOT_STDIO)
    messages = whole.get("messages")
    for number, message in enumerate(messages if isinstance(messages, list) else [], 1):
        if not isinstance(message, dict) or "payload" not in message:
            raise CassetteError(path, 0, f"message {number}: expected an object with its payload")
        payload = message["payload"]
        text = payload if isinstance(payload, str) else dumps(payload)
        time = seconds(path, 0, message.get("t_offset_ms"), 1e-3)
        yield Said(side(path, 0, message.get("sender"), _SIDES), time, text)
