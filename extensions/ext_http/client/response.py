"""HTTP response, and its text in the charset of the Content-Type, UTF-8 by default.

A server may send any name as charset, also that of a Python codec that fails in its own way (`idna`, `undefined`).
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads it
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence


DEFAULT_CHARSET = "utf-8"


class Response(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """Response to a request, or to the last request of a chain of redirects.

    Attributes:
        reason: phrase of the status line; "" if absent, as in HTTP/2.
        http_version: "HTTP/1.1" or "HTTP/2".
        headers: (name, value) in the order received, repeated headers repeated.
        body: after content decoding, up to the limit of the request.
        truncated: the body is longer than the limit.
        encoded_size: bytes of the body received, before content decoding.
        elapsed: seconds from the first byte sent, of the first hop, to the last byte received.
        url: of the last request.
        hops: URLs that redirected to `url`, in order.
        peer_certificate_expires: in UTC; None without TLS.
        excess: bytes that the server sent after the end of the response.
    """

    status: int
    reason: str = ""
    http_version: str = "HTTP/1.1"
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    truncated: bool = False
    encoded_size: int = 0
    elapsed: float = 0.0
    url: str = ""
    hops: tuple[str, ...] = ()
    peer_certificate_expires: datetime | None = None
    excess: bytes = b""

    def values(self, header: str) -> list[str]:
        """Return all values of a header, in order; its name is case-insensitive."""
        return values_of(header, self.headers)

    @cached_property
    def decoded(self) -> str | NotText:
        """Return the body as text, or the reason why it is not text."""
        return decode_text(self.body, self.values("content-type"))

    @property
    def text(self) -> str:
        """Return the body as text, with U+FFFD for each invalid byte; as UTF-8 if the charset is unknown."""
        if isinstance(self.decoded, str):
            return self.decoded
        try:
            return self.body.decode(_charset(self.values("content-type")), "replace")
        except (LookupError, ValueError):
            return self.body.decode(DEFAULT_CHARSET, "replace")


class NotText(NamedTuple):
    """Reason why a body is not text in its charset.

    Attributes:
        expected: such as `text in utf-8`.
        found: the first invalid byte, or the unknown charset.
    """

    expected: str
    found: str

    def __str__(self) -> str:
        return f"not {self.expected}: {self.found}"


def values_of(name: str, headers: Sequence[tuple[str, str]]) -> list[str]:
    """Return all values of a header, in order; its name is case-insensitive."""
    lower = name.lower()
    return [value for header, value in headers if header.lower() == lower]


def decode_text(body: bytes, content_type: Sequence[str]) -> str | NotText:
    """Return the text of a body, or NotText if a byte is not valid in the charset or the charset is unknown.

    Args:
        content_type: values of the header Content-Type; the first counts.
    """
    charset = _charset(content_type)
    try:
        return body.decode(charset)
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x} at offset {error.start:,}"
        return NotText(f"text in {charset}", found)
    except (LookupError, ValueError):
        return NotText("text", f"the unknown charset {charset!r:.40}")


def _charset(content_type: Sequence[str]) -> str:
    first = content_type[0] if content_type else ""
    if "charset" not in first.lower():  # usual, and the parser takes longer than the rest of the decoding
        return DEFAULT_CHARSET
    from email.message import Message

    message = Message()
    message["Content-Type"] = first
    return message.get_content_charset() or DEFAULT_CHARSET
