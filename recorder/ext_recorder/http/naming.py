"""Where the HTTP traffic of a session is kept. Imports nothing: commands ask before they know what to do."""

from __future__ import annotations

SUFFIX = ".http.yaml"


def beside(cassette: str) -> str:
    """The file that belongs to a cassette: session.http.yaml for session.yaml, and itself for one of its own."""
    return cassette if cassette.endswith(SUFFIX) else cassette.removesuffix(".yaml") + SUFFIX
