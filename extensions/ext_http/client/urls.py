"""URLs as they go over the wire: ASCII, all that has to be escaped escaped, by the parser that reads them to send."""

from __future__ import annotations

from functools import lru_cache

import httpx2

import ext_sdk


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
