"""Bodies of any length in little memory: short ones stay there, long ones go to a file that has no name."""

from __future__ import annotations

import zlib
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

IN_MEMORY = 1024 * 1024  # bytes
PIECE = 64 * 1024  # bytes


class Body:
    """Bytes, to be written once and read any number of times."""

    def __init__(self, data: bytes = b"") -> None:
        self._file = SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115  (it lives as long as this does)
        self.size = 0
        if data:
            self.write(data)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """More of it."""
        self._file.write(bytes(data))
        self.size += len(data)

    def pieces(self) -> Iterator[bytes]:
        """All of it, piece by piece."""
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            yield piece

    def bytes(self) -> bytes:
        """All of it at once; ask for `size` first."""
        self._file.seek(0)
        return self._file.read()

    def starts_with(self, prefix: bytes) -> bool:
        """Whether it begins so."""
        self._file.seek(0)
        return self._file.read(len(prefix)) == prefix

    def close(self) -> None:
        """It is not needed any more."""
        self._file.close()


ENCODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 47}  # Content-Encoding to the window bits that zlib wants


def decoded(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """The content in an encoded body, in pieces of PIECE at most, however much it is.

    Args:
        pieces: the body.
        encoding: one of ENCODINGS.

    Raises:
        ValueError: it is not in this encoding. The end may be missing.
    """
    unpacking = zlib.decompressobj(ENCODINGS[encoding])
    try:
        for piece in pieces:
            data = piece
            while data:
                plain = unpacking.decompress(data, PIECE)
                if plain:
                    yield plain
                data = unpacking.unconsumed_tail
                if not plain and not data:
                    break
    except zlib.error as error:
        raise ValueError(f"no {encoding}: {error}") from error


def encoded(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """The reverse."""
    bits = 15 if encoding == "deflate" else 31
    packing = zlib.compressobj(wbits=bits)
    for piece in pieces:
        if data := packing.compress(piece):
            yield data
    yield packing.flush()


def collected(pieces: Iterable[bytes]) -> Body:
    """A body of pieces."""
    made = Body()
    for piece in pieces:
        made.write(piece)
    return made
