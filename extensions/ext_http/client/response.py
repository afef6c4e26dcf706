"""HTTP response, its text in the charset of the Content-Type (UTF-8 by default), and excerpts for messages and outputs.

A server may send any name as charset, also that of a Python codec with other exceptions (`idna`, `undefined`). Content
codings are decoded piece by piece: a few bytes may expand to gigabytes, and a missing end is an error. The library
decodes as well, but accepts a body that ends early as complete.
"""

from __future__ import annotations

import zlib
from datetime import datetime  # noqa: TC003 - msgspec reads it
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import msgspec

import ext_sdk
from ext_sdk.long_outputs import Sizes, write_excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

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


# Of the body in a result's line, next to the other outputs.
SIZES = Sizes(complete=32 * 1024, head=16 * 1024, tail=4 * 1024)
EXCERPT = 500  # characters of a body in an error


def show(response: Response, context: ext_sdk.Context) -> tuple[str, str]:
    """Return a body as an output, and the path of a redacted file with all bytes read; "" if the text is complete."""
    body, binary = response.body, _is_binary(response.body)
    if not binary and len(body) <= SIZES.complete and not response.truncated:
        return response.text, ""
    text, path = write_excerpt(body, "body", context, SIZES, file_name="body", all_kept=not response.truncated)
    size = f"{len(body):,} bytes{', and more that were not read (maxBody)' if response.truncated else ''}"
    if binary:
        return f"[binary: {size}]", path
    return f"{text}\n[... {size} ...]" if response.truncated else text, path


def whole(response: Response) -> str | ext_sdk.NotKept:
    """Return the complete body for later steps, or the reason why it is not kept."""
    size = f"{len(response.body):,} bytes"
    if response.truncated:
        return ext_sdk.NotKept(f"only the first {size} of the body were read; raise `maxBody`, or use `download`")
    if _is_binary(response.body):
        return ext_sdk.NotKept(f"the body is binary, {size}; use `download`")
    if isinstance(response.decoded, str):
        return response.decoded
    return ext_sdk.NotKept(f"the body is {response.decoded}; use `download`")


def status_line(response: Response) -> str:
    """Return status, reason and type: `503 Service Unavailable (text/html)`."""
    kind = next(iter(response.values("content-type")), "")
    return f"{response.status} {response.reason}".rstrip() + (f" ({kind:.80})" if kind else "")


def excerpt(response: Response, secrets: ext_sdk.Secrets) -> str:
    """Return the beginning of a body on one line, redacted, for an error; "" for an empty body."""
    if _is_binary(response.body):
        return f"[binary: {len(response.body):,} bytes]"
    text = " ".join(secrets.redact(response.body[: SIZES.head].decode("utf-8", "replace")).split())
    return text if len(text) <= EXCERPT else f"{text[:EXCERPT]} …"


def _is_binary(body: bytes) -> bool:
    return b"\0" in body[: SIZES.complete]


MAX_CODINGS = 5  # of one body; each may expand by a factor of a thousand
PIECE = 1024 * 1024  # bytes, at most, of a decoded piece
GZIP = 16 + zlib.MAX_WBITS
CODINGS: Mapping[str, int] = {"gzip": GZIP, "x-gzip": GZIP, "deflate": zlib.MAX_WBITS}  # RFC 9110, 8.4.1
RAW = -zlib.MAX_WBITS  # deflate without zlib's header, which some servers send


class Undecodable(ValueError):
    """A body is not valid in the coding of its Content-Encoding; str() is the reason."""


def decode(pieces: Iterable[bytes], codings: Iterable[str]) -> Iterator[bytes]:
    """Yield the decoded body, in pieces of at most PIECE bytes if there are codings.

    Args:
        codings: of CODINGS, in the order in which they were applied.

    Raises:
        Undecodable: the body is in another coding, or incomplete.
    """
    layers = [CODINGS[coding] for coding in codings]
    if len(layers) > MAX_CODINGS:
        raise Undecodable(f"it has more than {MAX_CODINGS} codings")
    for layer in reversed(layers):
        pieces = _Inflater(layer).decode(pieces)
    return iter(pieces)


class _Inflater:
    """Decoder of one coding of one body. Ignores bytes after the end, except gzip members (RFC 1952, 2.2)."""

    def __init__(self, layer: int) -> None:
        self._layer = layer
        self._head = b""  # the first bytes, until the kind of deflate is known
        self._inflate = zlib.decompressobj(layer)
        self._begun = self._over = False
        self._members = self._member_size = 0  # complete members, and decoded bytes of the current one

    def decode(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for data in pieces:
            yield from self._decode_piece(data)
        while self._begun and not self._over:
            piece = self._inflate.decompress(self._inflate.unconsumed_tail, PIECE)
            if piece:
                yield piece
            elif self._members and not self._member_size:
                return
            else:
                raise Undecodable("it ends too soon")
            if self._inflate.eof:
                return
        if self._head and not self._begun:  # a body of one byte; an empty one is complete
            raise Undecodable("it ends too soon")

    def _decode_piece(self, data: bytes) -> Iterator[bytes]:
        if not self._begun:
            self._head += data
            if len(self._head) < 2:
                return
            has_header = self._head[0] & 15 == zlib.DEFLATED and int.from_bytes(self._head[:2], "big") % 31 == 0
            self._inflate = zlib.decompressobj(self._layer if self._layer == GZIP or has_header else RAW)
            self._begun, data = True, self._head
        while data and not self._over:
            try:
                piece = self._inflate.decompress(data, PIECE)
            except zlib.error as error:
                if not self._members or self._member_size:
                    raise Undecodable(str(error)) from error
                self._over = True  # padding after the last member
                return
            self._member_size += len(piece)
            if piece:
                yield piece
            data = self._inflate.unconsumed_tail
            if self._inflate.eof:
                data = self._inflate.unused_data
                self._over = self._layer != GZIP
                if not self._over:
                    self._inflate = zlib.decompressobj(GZIP)
                    self._members, self._member_size = self._members + 1, 0
