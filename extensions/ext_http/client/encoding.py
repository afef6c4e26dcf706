"""URLs and multipart bodies as they are sent, encoded by the HTTP library."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import httpx2

import ext_sdk

if TYPE_CHECKING:
    from collections.abc import Sequence


@lru_cache(maxsize=256)  # most tasks ask a few URLs many times
def normalized(url: str, field: str = "url") -> str:
    """A URL in ASCII: names by IDNA, all else percent-encoded where it has to be; without its fragment.

    Raises:
        InvalidArgs: it can't be read as a URL.
    """
    try:
        return str(httpx2.URL(url).copy_with(fragment=None))
    except (httpx2.InvalidURL, UnicodeError, ValueError) as error:
        raise ext_sdk.InvalidArgs(field, f"expected a URL, found {url!r:.200}: {error}") from None


def joined(base: str, reference: str) -> str:
    """Where a Location leads (RFC 9110, 10.2.2). Raises ValueError for one that can't be read."""
    try:
        return str(httpx2.URL(base).join(reference).copy_with(fragment=None))
    except httpx2.InvalidURL as error:
        raise ValueError(str(error)) from error


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
