"""Content decoding, piece by piece: a few bytes may expand to gigabytes, and a missing end is an error.

The library decodes as well, but accepts a body that ends early as complete.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

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
