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
        return [(name, self._header(name, value)) for name, value in headers]

    def _header(self, name: str, value: str) -> str:
        if name.lower() == "set-cookie":  # only the value is removed, so that a client can store the cookie
            cookie, equals, rest = value.partition("=")
            content, semicolon, attributes = rest.partition(";")
            hidden = self.text(f"{name}: {content}").removeprefix(f"{name}: ") if content else ""
            return f"{cookie}{equals}{hidden}{semicolon}{self.text(attributes)}"
        return self.text(f"{name}: {value}").removeprefix(f"{name}: ")

    def interaction(self, each: Interaction) -> None:
        """Sanitize an interaction.

        Raises:
            ValueError: a part can't be examined, so the interaction must not be written.
        """
        each.uri = self.text(each.uri)
        each.request_headers = self.headers(each.request_headers)
        each.request_body = self.body(each.request_body, each.request_headers)
        each.reason = self.text(each.reason)
        each.headers = self.headers(each.headers)
        before = each.body.size if each.body is not None else 0
        each.body = self.body(each.body, each.headers)
        if each.body is not None and each.body.size != before:
            each.chunks = []
            each.headers = with_length(each.headers, before, each.body.size)

    def body(self, body: Body | None, headers: Headers) -> Body | None:
        """Return a body without secrets, also in compressed content; the same object if there are none."""
        if body is None or not body.size:
            return body
        codings = [value.strip().lower() for name, value in headers if name.lower() == "content-encoding"]
        encoding = codings[0] if codings else ""
        if encoding in {"", "identity"}:
            # A compressed file without a Content-Encoding may contain secrets, too.
            return self._compressed(body, "gzip") if body.starts_with(GZIP) else self._plain(body)
        if encoding not in ENCODINGS or len(codings) > 1 or "," in encoding:
            raise ValueError(f"a body in {', '.join(codings)}, in which secrets can't be looked for")
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
        return any(window != self._clean(window) for window in _overlapping(pieces))

    def _windows(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        held = b""
        for window in _gathered(pieces, WHOLE):
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


def _gathered(pieces: Iterable[bytes], first: int) -> Iterator[bytes]:
    """Yield windows; the first is large, so that most contents are a single window."""
    gathered = bytearray()
    size = first
    for piece in pieces:
        gathered += piece
        if len(gathered) >= size:
            yield bytes(gathered)
            gathered.clear()
            size = WINDOW
    if gathered:
        yield bytes(gathered)


def _overlapping(pieces: Iterable[bytes]) -> Iterator[bytes]:
    held = b""
    for window in _gathered(pieces, WHOLE):
        yield held + window
        held = window[-HELD_BACK:]
