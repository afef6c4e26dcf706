"""Interactions and their bodies. A short body stays in memory, a long one is in a file without a name."""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


IN_MEMORY = 1024 * 1024  # bytes
PIECE = 64 * 1024  # bytes


class Body:
    """Bytes that are written once and read any number of times."""

    def __init__(self, data: bytes = b"") -> None:
        self._memory = bytearray(data)
        self._file: IO[bytes] | None = None
        self.size = len(data)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append bytes."""
        self.size += len(data)
        if self._file is None and self.size > IN_MEMORY:
            self._file = TemporaryFile()  # noqa: SIM115 - closed by `close`
            self._file.write(self._memory)
            self._memory.clear()
        if self._file is None:
            self._memory += data
        else:
            self._file.write(data)

    def pieces(self) -> Iterator[bytes]:
        """Yield the bytes, piece by piece."""
        if self._file is None:
            for at in range(0, self.size, PIECE):
                yield bytes(self._memory[at : at + PIECE])
            return
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            yield piece

    def whole(self) -> bytes:
        """Return all bytes; check `size` first."""
        return bytes(self._memory) if self._file is None else b"".join(self.pieces())

    def close(self) -> None:
        """Release the memory or the file."""
        self._memory.clear()
        if self._file is not None:
            self._file.close()


ENCODINGS = {"gzip": 31, "x-gzip": 31, "deflate": 47}  # Content-Encoding to the window bits of zlib


def decoded(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the content of an encoded body, in pieces of at most PIECE bytes.

    Args:
        encoding: one of ENCODINGS.

    Raises:
        ValueError: the body is not in this encoding. Its end may be missing.
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
        raise ValueError(f"not valid {encoding}: {error}") from error


def encoded(pieces: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the encoded form of a content, the inverse of `decoded`."""
    bits = 15 if encoding == "deflate" else 31
    packing = zlib.compressobj(wbits=bits)
    for piece in pieces:
        if data := packing.compress(piece):
            yield data
    yield packing.flush()


def collected(pieces: Iterable[bytes]) -> Body:
    """Return a body made of pieces."""
    body = Body()
    for piece in pieces:
        body.write(piece)
    return body


Headers = list[tuple[str, str]]
Call = int | str | float | None  # id of a request of the host; None: outside calls
CONNECT = "CONNECT"  # method of an interaction that records a failed connection
HEAD_LIMIT = 1024 * 1024  # bytes of the lines before a body
TEXT_LIMIT = 256 * 1024  # bytes of a body that is written as text; longer ones are streamed


def call_id(value: object) -> Call:
    """Return a value as the id of a request; None if it is not one."""
    return value if isinstance(value, (int, str, float)) else None


@dataclass(slots=True)
class Interaction:
    """Request with its response or error.

    Attributes:
        method, uri, request_headers, request_body: the request.
        status, reason, headers, body: the response; status 0 if there was none.
        chunks: sizes of the chunks of the body, if it was chunked.
        reads: sizes of the pieces in which the child read the response, head included, if there were several.
        call: call of the host that it served.
        time: seconds from the start to the beginning of the request.
        elapsed: seconds until the end of the response.
        http_version: of the response.
        error: exception that ended it: type, errno, message.
        cut: the child did not read the body to its end.
        peer: address that it was sent to.
        tls: version, alpn and certificate of the connection.
        socket: path of the Unix socket, if one was used.
    """

    method: str = ""
    uri: str = ""
    request_headers: Headers = field(default_factory=list)
    request_body: Body | None = None
    status: int = 0
    reason: str = ""
    headers: Headers = field(default_factory=list)
    body: Body | None = None
    chunks: list[int] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    call: Call = None
    time: float = 0.0
    elapsed: float = 0.0
    http_version: str = "1.1"
    error: dict[str, object] | None = None
    cut: bool = False
    peer: str = ""
    tls: dict[str, str] = field(default_factory=dict)
    socket: str = ""
