"""Sanitizer: removes secrets and paths of the machine from an interaction before it is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .interaction import ENCODINGS, Body, collected, decoded, encoded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .interaction import Headers, Interaction

    Clean = Callable[[bytes], bytes]

WHOLE = 4 * 1024 * 1024  # bytes of content examined as one text
WINDOW = 1024 * 1024  # bytes of longer content examined together
HELD_BACK = 16 * 1024  # bytes of the previous window: a secret may begin in one window and end in the next
GZIP = b"\x1f\x8b"


class Sanitizer:
    """Sanitizer of interactions.

    Args:
        clean: removes secrets and paths from one text.
    """

    def __init__(self, clean: Clean) -> None:
        self._clean = clean

    def text(self, text: str) -> str:
        """Return a text without secrets."""
        return self._clean(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def headers(self, headers: Headers) -> Headers:
        """Return headers without secrets. Name and value are examined together: the name may reveal a secret."""
        clean: Headers = []
        for name, value in headers:
            if name.lower() == "set-cookie":  # only the value is removed, so that a client can store the cookie
                cookie, equals, rest = value.partition("=")
                content, semicolon, attributes = rest.partition(";")
                hidden = self.text(f"{name}: {content}").removeprefix(f"{name}: ") if content else ""
                clean.append((name, f"{cookie}{equals}{hidden}{semicolon}{self.text(attributes)}"))
            else:
                clean.append((name, self.text(f"{name}: {value}").removeprefix(f"{name}: ")))
        return clean

    def interaction(self, interaction: Interaction) -> None:
        """Sanitize an interaction.

        Raises:
            ValueError: a part cannot be examined, so the interaction must not be written.
        """
        interaction.uri = self.text(interaction.uri)
        interaction.request_headers = self.headers(interaction.request_headers)
        interaction.request_body = self.body(interaction.request_body, interaction.request_headers)
        interaction.reason = self.text(interaction.reason)
        interaction.headers = self.headers(interaction.headers)
        before = interaction.body.size if interaction.body is not None else 0
        interaction.body = self.body(interaction.body, interaction.headers)
        if interaction.body is not None and interaction.body.size != before:
            interaction.chunks = []
            interaction.headers = with_length(interaction.headers, before, interaction.body.size)

    def body(self, body: Body | None, headers: Headers) -> Body | None:
        """Return a body without secrets, also in compressed content; the same object if there are none."""
        if body is None or not body.size:
            return body
        codings = [value.strip().lower() for name, value in headers if name.lower() == "content-encoding"]
        encoding = codings[0] if codings else ""
        if encoding in {"", "identity"}:
            # A compressed file without a Content-Encoding may contain secrets, too.
            is_gzip = next(body.pieces()).startswith(GZIP)
            return self._compressed(body, "gzip") if is_gzip else self._plain(body)
        if encoding not in ENCODINGS or len(codings) > 1 or "," in encoding:
            raise ValueError(f"a body in {', '.join(codings)}, which cannot be searched for secrets")
        return self._compressed(body, encoding)

    def _plain(self, body: Body) -> Body:
        if body.size <= WHOLE:
            data = body.whole()
            clean = self._clean(data)
            return body if clean is data or clean == data else Body(clean)
        if not self._changes(body.pieces()):
            return body
        return collected(self._windows(body.pieces()))

    def _compressed(self, body: Body, encoding: str) -> Body:
        """Return a compressed body without secrets; its content is examined in windows, whatever its size."""
        try:
            if not self._changes(decoded(body.pieces(), encoding)):
                return body
            return collected(encoded(self._windows(decoded(body.pieces(), encoding)), encoding))
        except ValueError:  # not in the declared encoding
            return self._plain(body)

    def _changes(self, pieces: Iterable[bytes]) -> bool:
        held = b""
        for window in _gathered(pieces):
            overlapping = held + window
            if self._clean(overlapping) != overlapping:
                return True
            held = window[-HELD_BACK:]
        return False

    def _windows(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        held = b""
        for window in _gathered(pieces):
            clean = self._clean(held + window)
            cut = max(0, len(clean) - HELD_BACK)
            yield clean[:cut]
            held = clean[cut:]
        yield held


def with_length(headers: Headers, before: int, after: int) -> Headers:
    """Return headers with a corrected Content-Length, if it was correct before."""
    return [
        (name, str(after)) if name.lower() == "content-length" and value.strip() == str(before) else (name, value)
        for name, value in headers
    ]


def _gathered(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield windows; the first is large, so that most contents are a single window."""
    gathered = bytearray()
    size = WHOLE
    for piece in pieces:
        gathered += piece
        if len(gathered) >= size:
            yield bytes(gathered)
            gathered.clear()
            size = WINDOW
    if gathered:
        yield bytes(gathered)
