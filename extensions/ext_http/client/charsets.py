"""Text of a body in the charset that its Content-Type names, UTF-8 by default.

A server may name anything as a charset, also codecs of Python that fail in ways of their own (`idna`, `undefined`).
"""

from __future__ import annotations

from email.message import Message
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


FALLBACK = "utf-8"


class NotText(ValueError):
    """The body is not text in its charset.

    Attributes:
        what: the text that was expected: `text in utf-8`.
        found: the first byte that is not valid, or the unknown charset.
    """

    def __init__(self, what: str, found: str) -> None:
        super().__init__(f"not {what}: {found}")
        self.what = what
        self.found = found


def decoded(body: bytes, content_type: Sequence[str]) -> str:
    """Return the text of a body.

    Args:
        body: the bytes.
        content_type: values of the header Content-Type; the first counts.

    Raises:
        NotText: a byte is not valid in the charset, or the charset is unknown.
    """
    charset = _charset(content_type)
    try:
        return body.decode(charset)
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02x} at offset {error.start:,}"
        raise NotText(f"text in {charset}", found) from None
    except (LookupError, ValueError):
        raise NotText("text", f"the charset {charset!r:.40}, which is not known") from None


def readable(body: bytes, content_type: Sequence[str]) -> str:
    """Return the text of a body, with U+FFFD for each byte that is not valid; in UTF-8 if the charset is unknown."""
    try:
        return body.decode(_charset(content_type), "replace")
    except (LookupError, ValueError):
        return body.decode(FALLBACK, "replace")


def _charset(content_type: Sequence[str]) -> str:
    first = next(iter(content_type), "")
    if "charset" not in first.lower():  # most have none, and the parser takes longer than the rest
        return FALLBACK
    message = Message()
    message["Content-Type"] = first
    return message.get_content_charset() or FALLBACK
