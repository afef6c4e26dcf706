"""The spellings of a secret that must not be in any file."""

from __future__ import annotations

import base64
import json
from urllib.parse import quote


def spellings(secret: str) -> list[bytes]:
    """Literal, base64 at each offset (in both alphabets), URL-, JSON- and hex-escaped."""
    found = {secret.encode(), quote(secret, safe="").encode(), json.dumps(secret)[1:-1].encode()}
    found |= {secret.encode().hex().encode(), secret.encode().hex().upper().encode()}
    for offset in range(3):
        encoded = base64.b64encode(b"\0" * offset + secret.encode())
        first = -(-8 * offset // 6)
        core = encoded[first : 8 * (offset + len(secret)) // 6]
        found |= {core, core.replace(b"+", b"-").replace(b"/", b"_")}
    return sorted(found)
