"""Lines that were made to fit, as a host reads them."""

from __future__ import annotations

import json

from ext_sdk.server.line_limit import LINE_LIMIT_BYTES


def read(line: bytes) -> dict[str, object]:
    """A line as the strictest host reads it."""
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert len(line) <= LINE_LIMIT_BYTES + 1
    message = json.loads(line)
    assert isinstance(message, dict)
    return message
