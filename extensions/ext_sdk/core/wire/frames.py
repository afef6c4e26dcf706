"""Frames, and what the decoders of all framings share: a buffer, header fields, lengths."""

from __future__ import annotations

# Junk is returned in pieces of this many bytes, so that a stream without any frame does not fill the memory.
JUNK_PIECE_BYTES = 65_536
# A longer header block is junk. LSP servers send two lines, some 80 bytes.
HEAD_LIMIT_BYTES = 8_192


class Frame:
    """Bytes of one message.

    Attributes:
        payload: the message, without its framing.
        wire: the exact bytes as received, framing included.
        head: the header lines without their line ends; () for framings that have none.
    """

    __slots__ = ("head", "payload", "wire")

    def __init__(self, payload: bytes, wire: bytes, head: tuple[str, ...] = ()) -> None:
        self.payload = payload
        self.wire = wire
        self.head = head

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Frame):
            return NotImplemented
        return (self.payload, self.wire, self.head) == (other.payload, other.wire, other.head)

    def __hash__(self) -> int:
        return hash((self.payload, self.wire, self.head))

    def __repr__(self) -> str:
        return f"Frame({self.payload!r})"


class Junk:
    """Bytes outside of frames.

    Attributes:
        wire: the exact bytes.
        reason: the reason for people.
    """

    __slots__ = ("reason", "wire")

    def __init__(self, wire: bytes, reason: str) -> None:
        self.wire = wire
        self.reason = reason

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Junk):
            return NotImplemented
        return (self.wire, self.reason) == (other.wire, other.reason)

    def __hash__(self) -> int:
        return hash((self.wire, self.reason))

    def __repr__(self) -> str:
        return f"Junk({self.wire!r}, {self.reason!r})"


class Overlong(Junk):
    """Piece of a frame over the limit.

    Attributes:
        wire, reason: see Junk.
        ends: True if the frame ends with this piece.
    """

    __slots__ = ("ends",)

    def __init__(self, wire: bytes, reason: str, *, ends: bool) -> None:
        super().__init__(wire, reason)
        self.ends = ends


class Buffer:
    """Received bytes with a read position, so that taking a frame does not move the rest."""

    __slots__ = ("data", "eof", "position")

    def __init__(self) -> None:
        self.data = bytearray()
        self.position = 0
        self.eof = False

    def receive_data(self, data: bytes) -> None:
        if self.position:
            del self.data[: self.position]
            self.position = 0
        self.data += data

    def receive_eof(self) -> None:
        self.eof = True

    def lone(self, data: bytes) -> bytes | None:
        return None

    def take_lines(self) -> list[bytes]:
        return []

    def __len__(self) -> int:
        return len(self.data) - self.position

    def take(self, count: int) -> bytes:
        start = self.position
        self.position = end = start + count
        return bytes(self.data[start:end])

    def tail(self, reason: str) -> Junk | None:
        """Return the remaining bytes as junk at end of file; None before it."""
        if self.eof and len(self):
            return Junk(self.take(len(self)), reason)
        return None


_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyz")  # RFC 9110, 5.6.2, in lower case


def header_field(line: bytes) -> tuple[str, str] | None:
    """Split `Name: value`, and return the name in lower case; None if the line is not a header field."""
    name, colon, value = line.decode("latin-1").partition(":")
    name = name.lower()
    if not colon or not name or not _TOKEN.issuperset(name):
        return None
    return name, value.strip(" \t")


def decimal_length(text: str) -> int:
    """Return the value of a length in decimal digits, or -1. 18 digits exceed any memory and still fit an int64."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else -1


def is_content_length(line: str) -> bool:
    """Return True for a Content-Length header line."""
    return line.partition(":")[0].lower() == "content-length"


def with_content_length(line: str, length: int) -> str:
    """Return a header line with `length` as its value if it is Content-Length, else unchanged."""
    if not is_content_length(line):
        return line
    name, _, value = line.partition(":")
    digits = value.strip(" \t")
    return f"{name}:{value.replace(digits, str(length), 1)}" if digits else f"{name}: {length}"
