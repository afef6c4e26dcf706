"""Content codings undone, piece by piece: a few bytes may stand for gigabytes, and an end that is missing is told.

The library undoes them too, but takes what a broken connection or proxy has left of a body for all of it.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MOST_LAYERS = 5  # of codings; each may grow by a factor of a thousand
PIECE = 1024 * 1024  # bytes that come out at once
GZIP = 16 + zlib.MAX_WBITS
CODINGS: Mapping[str, int] = {"gzip": GZIP, "x-gzip": GZIP, "deflate": zlib.MAX_WBITS}  # RFC 9110, 8.4.1
RAW = -zlib.MAX_WBITS  # deflate without the frame of zlib, which some servers send


class Undecodable(ValueError):
    """A body is not in the coding that its answer names; str() says why."""


def decoded(pieces: Iterable[bytes], codings: Iterable[str]) -> Iterator[bytes]:
    """A body with its codings undone, in pieces of PIECE bytes at most where there are any codings.

    Args:
        pieces: of the body, as they come.
        codings: of CODINGS, in the order in which they were applied.

    Raises:
        Undecodable: it is in another coding, or ends too soon.
    """
    layers = [CODINGS[coding] for coding in codings]
    if len(layers) > MOST_LAYERS:
        raise Undecodable(f"it has more than {MOST_LAYERS} codings")
    for layer in reversed(layers):
        pieces = _inflated(pieces, layer)
    yield from pieces


def _inflated(pieces: Iterable[bytes], layer: int) -> Iterator[bytes]:
    """One coding undone."""
    stream = _Stream(layer)
    for piece in pieces:
        yield from stream.take(piece)
    yield from stream.end()


class _Stream:
    """One coding of one body. What comes after its end is left out, but for further members of gzip (RFC 1952, 2.2)."""

    def __init__(self, layer: int) -> None:
        self._layer = layer
        self._head = b""  # until there is enough of it to see which deflate it is
        self._inflate = zlib.decompressobj(layer)
        self._begun = self._over = False
        self._members = self._came_out = 0  # members that have ended, bytes of the one after them

    def take(self, data: bytes) -> Iterator[bytes]:
        """What comes out of a piece. Raises Undecodable."""
        if not self._begun:
            self._head += data
            if len(self._head) < 2:
                return
            self._inflate, self._begun, data = zlib.decompressobj(self._window()), True, self._head
        while data and not self._over:
            try:
                piece = self._inflate.decompress(data, PIECE)
            except zlib.error as error:
                if not self._members or self._came_out:
                    raise Undecodable(str(error)) from error
                self._over = True  # no member, but padding
                return
            self._came_out += len(piece)
            if piece:
                yield piece
            data = self._inflate.unconsumed_tail
            if self._inflate.eof:
                data = self._inflate.unused_data
                self._end_member()

    def end(self) -> Iterator[bytes]:
        """What is left. Raises Undecodable where the end is missing; a body without a byte has none."""
        while self._begun and not self._over:
            piece = self._inflate.decompress(self._inflate.unconsumed_tail, PIECE)
            if piece:
                yield piece
            elif self._members and not self._came_out:
                return
            else:
                raise Undecodable("it ends too soon")
            if self._inflate.eof:
                return
        if self._head and not self._begun:
            raise Undecodable("it ends too soon")

    def _end_member(self) -> None:
        self._over = self._layer != GZIP
        if not self._over:
            self._inflate = zlib.decompressobj(GZIP)
            self._members, self._came_out = self._members + 1, 0

    def _window(self) -> int:
        framed = self._head[0] & 15 == zlib.DEFLATED and int.from_bytes(self._head[:2], "big") % 31 == 0
        return self._layer if self._layer == GZIP or framed else RAW
