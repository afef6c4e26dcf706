"""Bodies of several parts (RFC 7578), as the library writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import httpx2

if TYPE_CHECKING:
    from collections.abc import Sequence


class Part(NamedTuple):
    """A part.

    Attributes:
        name: of the field.
        content: bytes.
        filename: None for a field that is no file.
        content_type: None to leave it out, or to guess it from the name of a file.
    """

    name: str
    content: bytes
    filename: str | None = None
    content_type: str | None = None


def multipart(parts: Sequence[Part]) -> tuple[str, bytes]:
    """Content-Type, with a boundary that is in none of the parts, and the body."""
    files = [(part.name, (part.filename, part.content, part.content_type)) for part in parts]
    request = httpx2.Request("POST", "http://localhost", files=files)
    return request.headers["content-type"], request.read()
