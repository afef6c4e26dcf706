"""Bodies of any length in little memory: short ones stay there, long ones go to a file that has no name."""

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
    """Bytes, to be written once and read any number of times."""

    def __init__(self, data: bytes = b"") -> None:
        self._memory = bytearray(data)
        self._file: IO[bytes] | None = None
        self.size = len(data)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """More of it."""
        self.size += len(data)
        if self._file is None and self.size > IN_MEMORY:
            self._file = TemporaryFile()  # noqa: SIM115  (it lives as long as this does)
            self._file.write(self._memory)
            self._memory.clear()
        if self._file is None:
            self._memory += data
        else:
            self._file.write(data)

    def pieces(self) -> Iterator[bytes]:
        """All of it, piece by piece."""
        if self._file is None:
            for at in range(0, self.size, PIECE):
                yield bytes(self._memory[at : at + PIECE])
            return
        self._file.seek(0)
        while piece := self._file.read(PIECE):
            yield piece

    def whole(self) -> bytes:
        """All of it at once; ask for `size` first."""
        return bytes(self._memory) if self._file is None else b"".join(self.pieces())

    def starts_with(self, prefix: bytes) -> bool:
        """Whether it begins so."""
        return next(self.pieces(), b"").startswith(prefix)

    def close(self) -> None:
        """It is not needed any more."""
        self._memory.clear()
        if self._file is not None:
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


Headers = list[tuple[str, str]]
Call = int | str | float | None  # the id of a request of the host; None: none was at work
CONNECT = "CONNECT"  # the method of an interaction that tells of a connection which was not to be had
HEAD_LIMIT = 1024 * 1024  # bytes of the lines before a body
TEXT_LIMIT = 256 * 1024  # bytes of a body that is written as text; longer ones are streamed


def call_id(value: object) -> Call:
    """A value as the id of a request, where it can be one."""
    return value if isinstance(value, (int, str, float)) else None


@dataclass(slots=True)
class Interaction:
    """A request and what became of it.

    Attributes:
        method, uri, request_headers, request_body: the request.
        status, reason, headers, body: the answer; status 0: there was none.
        chunks: sizes of the pieces in which the body came, where it was chunked.
        reads: sizes of the pieces in which the child read the answer, head included, where there were several.
        call: whom it served.
        time: seconds since the start, when the request began.
        elapsed: seconds until the answer had come to its end.
        http_version: of the answer.
        error: the exception that ended it: type, errno, message.
        cut: the child did not read the body to its end.
        peer: the address that it was sent to.
        tls: version, alpn and certificate of the connection.
        socket: path of the unix socket, where it went over one.
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
