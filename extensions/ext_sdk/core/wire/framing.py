"""Framings: boundaries of messages in a stream of bytes.

| name             | a frame                                                  | protocols                  |
|------------------|----------------------------------------------------------|----------------------------|
| `ndjson`         | one line, ended by a line feed                           | gevals, Pi, waza, MCP, ACP |
| `content-length` | header lines, an empty line, then that many bytes        | Kaiak, LSP, DAP            |
| `uint32`         | four bytes, big-endian: the length, then that many bytes | G-Assist                   |

A decoder stores received bytes (`receive_data`) and returns them piece by piece (`next_event`): as a `Frame`, or as
`Junk` for bytes outside of frames. No byte is lost: the `wire` bytes of all events, joined, are the bytes received, and
the events do not depend on how the bytes were split into chunks.
"""

from __future__ import annotations

from .errors import FrameTooLong
from .frames import (
    HEAD_LIMIT_BYTES,
    JUNK_PIECE_BYTES,
    Buffer,
    Frame,
    Junk,
    Overlong,
    decimal_length,
    header_field,
    is_content_length,
    with_content_length,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    class Decoder(Protocol):
        """Bytes in, frames out. One for each direction of each connection."""

        def receive_data(self, data: bytes) -> None:
            """Store bytes, without parsing them. Raises nothing."""

        def receive_eof(self) -> None:
            """Note the end of the input: the remaining bytes are returned as Junk."""

        def next_event(self) -> Frame | Junk | None:
            """Return the next piece, or None if more bytes are needed. Raises nothing, whatever the bytes."""

        def __len__(self) -> int:
            """Return the number of stored bytes that were not returned yet."""

        def lone(self, data: bytes) -> bytes | None:
            """Return the payload if these bytes are one frame and nothing is stored; three times as fast as events.

            None if not: the state is unchanged, and the bytes are for `receive_data`.
            """

        def take_lines(self) -> list[bytes]:
            """Take all complete frames at once if each is a line, and return their payloads; three times as fast.

            [] if `next_event` has to find out what is stored: nothing is taken.
            """

    class Framing(Protocol):
        """Rules that separate messages."""

        name: str

        def decoder(self, limit: int | None = None) -> Decoder:
            """Return a new decoder.

            A frame with a payload over `limit` bytes is Junk; None: the framing's own limit.
            """

        def encode(self, payload: bytes, head: tuple[str, ...] = ()) -> bytes:
            """Return the bytes of one frame.

            Raises:
                FrameTooLong: see there.
                ValueError: the framing can't carry the payload.
            """
else:
    Decoder = Framing = object


# Four bytes could carry 4 GiB. G-Assist allows 10 MB (protocol v2, "Message Framing").
UINT32_LIMIT_BYTES = 10_485_760


class LineDecoder(Buffer):
    """Newline-delimited frames. A line is a frame even if it is not JSON: parsing is left to the caller."""

    __slots__ = ("_limit", "_overlong", "_searched")

    def __init__(self, limit: int | None = None) -> None:
        super().__init__()
        self._limit = limit
        self._searched = 0  # bytes behind `position` that are known to hold no line feed
        self._overlong = False  # within a line that is over the limit: junk up to its end

    def lone(self, data: bytes) -> bytes | None:
        end = len(data) - 1
        if end < 1 or data.find(b"\n") != end or self._overlong or self.position != len(self.data):
            return None
        if self._limit is not None and end > self._limit:
            return None
        return None if data.isspace() else data[:end]

    def take_lines(self) -> list[bytes]:
        start = self.position
        end = self.data.rfind(b"\n", start + self._searched)
        if end < 0 or self._overlong or (self._limit is not None and end - start > self._limit):
            return []
        payloads = bytes(self.data[start:end]).split(b"\n")
        if not all(map(bytes.strip, payloads)):  # a blank line is not a frame
            return []
        self.position, self._searched = end + 1, 0
        return payloads

    def next_event(self) -> Frame | Junk | None:
        if self._overlong:
            return self._overlong_piece()
        start = self.position
        newline = self.data.find(b"\n", start + self._searched)
        if self._limit is not None and (len(self) if newline < 0 else newline - start) > self._limit:
            self._overlong, self._searched = True, 0
            return self._overlong_piece()
        if newline < 0:
            self._searched = len(self)
            if tail := self.tail("unterminated line"):
                self._searched = 0
            return tail
        self._searched = 0
        wire = self.take(newline + 1 - start)
        if wire == b"\n" or wire.isspace():
            return Junk(wire, "blank line")
        return Frame(wire[:-1], wire)

    def _overlong_piece(self) -> Junk | None:
        """Return the next piece of an overlong line, of a fixed size, so that the line is never in memory entirely."""
        start = self.position
        newline = self.data.find(b"\n", start, start + JUNK_PIECE_BYTES)  # the whole buffer would take quadratic time
        count = min(len(self), JUNK_PIECE_BYTES) if newline < 0 else newline + 1 - start
        if not count or (newline < 0 and count < JUNK_PIECE_BYTES and not self.eof):
            return None
        self._overlong = newline < 0
        return Overlong(self.take(count), f"part of a line over {self._limit} bytes", ends=newline >= 0)


class HeaderDecoder(Buffer):
    """Content-Length frames. Other lines between them (logs, mostly) are junk, line by line.

    Header names are compared without regard to case, a lone line feed ends a line as well, and further headers are
    kept: real peers send all three. The body of a frame over the limit is junk too, and is not parsed.
    """

    __slots__ = ("_limit", "_refused")

    def __init__(self, limit: int | None = None) -> None:
        super().__init__()
        self._limit = limit
        self._refused = 0  # bytes still to come of a body over the limit

    def next_event(self) -> Frame | Junk | None:
        if self._refused:
            return self._refused_piece()
        at = self.position
        lines: list[str] = []
        length = -1
        while (newline := self.data.find(b"\n", at, at + HEAD_LIMIT_BYTES)) >= 0:
            line = bytes(self.data[at:newline]).removesuffix(b"\r")
            at = newline + 1
            if not line and length >= 0:
                return self._body(at, length, tuple(lines))
            field = header_field(line)
            if field is None or at - self.position > HEAD_LIMIT_BYTES:
                between = "text between frames" if line else "blank line"
                reason = "a header block without Content-Length" if lines else between
                # After a wrong header, the next one follows the body on its line.
                if (glued := self.data.find(b"Content-Length:", self.position + 1, at)) > 0 and not lines:
                    at = glued
                return Junk(self.take(at - self.position), reason)
            lines.append(line.decode("latin-1"))
            if field[0] == "content-length":
                length = decimal_length(field[1])
                if length < 0:
                    return Junk(self.take(at - self.position), f"Content-Length {field[1]!r} is not a length")
        if len(self.data) - at >= HEAD_LIMIT_BYTES:
            return Junk(
                self.take(min(len(self), JUNK_PIECE_BYTES, at - self.position + HEAD_LIMIT_BYTES)),
                "no header line",
            )
        return self.tail("unterminated header")

    def _body(self, at: int, length: int, lines: tuple[str, ...]) -> Frame | Junk | None:
        if self._limit is not None and length > self._limit:
            self._refused = length
            reason = f"the header of {length} bytes, over the limit of {self._limit}"
            return Overlong(self.take(at - self.position), reason, ends=False)
        end = at + length
        if len(self.data) < end:
            return self.tail("unterminated body")
        payload = bytes(self.data[at:end])
        return Frame(payload, self.take(end - self.position), lines)

    def _refused_piece(self) -> Junk | None:
        count = min(self._refused, JUNK_PIECE_BYTES)
        if len(self) < count:
            tail = self.tail("unterminated body")
            return Overlong(tail.wire, tail.reason, ends=True) if tail else None
        self._refused -= count
        reason = f"part of a body over {self._limit} bytes"
        return Overlong(self.take(count), reason, ends=not self._refused)


class LengthDecoder(Buffer):
    """Frames after four bytes of length.

    After an impossible length the next frame can't be found: all further bytes are junk.
    """

    __slots__ = ("_limit", "_lost")

    def __init__(self, limit: int | None = None) -> None:
        super().__init__()
        self._limit = UINT32_LIMIT_BYTES if limit is None else limit
        self._lost = ""

    def next_event(self) -> Frame | Junk | None:
        if self._lost:
            return self._lost_piece()
        if len(self) < 4:
            return self.tail("unterminated length")
        start = self.position
        length = int.from_bytes(self.data[start : start + 4], "big")
        if length == 0:
            return Junk(self.take(4), "a frame of length zero")
        if length > self._limit:
            self._lost = (
                f"a frame length of {length} bytes, over the limit of {self._limit}: no frame can be found after it"
            )
            return Junk(self.take(4), self._lost)  # at once, so that a server need not wait for more
        if len(self) < 4 + length:
            return self.tail("unterminated frame")
        payload = bytes(self.data[start + 4 : start + 4 + length])
        return Frame(payload, self.take(4 + length))

    def _lost_piece(self) -> Junk | None:
        if len(self) >= JUNK_PIECE_BYTES:
            return Junk(self.take(JUNK_PIECE_BYTES), self._lost)
        return self.tail(self._lost)


class _NdJson:
    name = "ndjson"

    def decoder(self, limit: int | None = None) -> Decoder:
        return LineDecoder(limit)

    def encode(self, payload: bytes, head: tuple[str, ...] = ()) -> bytes:
        if b"\n" in payload or not payload or payload.isspace():
            raise ValueError("a line feed, or nothing but white space, can't be sent as one line")
        return payload + b"\n"


class _ContentLength:
    name = "content-length"

    def decoder(self, limit: int | None = None) -> Decoder:
        return HeaderDecoder(limit)

    def encode(self, payload: bytes, head: tuple[str, ...] = ()) -> bytes:
        """`head` gives the header lines; the number in its Content-Length becomes the payload's."""
        lines = [with_content_length(line, len(payload)) for line in head or ("Content-Length: 0",)]
        text = "\r\n".join([*lines, "", ""])
        if not any(map(is_content_length, lines)) or text.count("\n") != len(lines) + 1:
            raise ValueError(f"header lines of a frame, one of them Content-Length, can't be {list(head)!r:.200}")
        return text.encode("latin-1") + payload


class _Uint32:
    name = "uint32"

    def decoder(self, limit: int | None = None) -> Decoder:
        return LengthDecoder(limit)

    def encode(self, payload: bytes, head: tuple[str, ...] = ()) -> bytes:
        if not payload:
            raise ValueError("a frame of length zero can't be sent")
        if len(payload) > UINT32_LIMIT_BYTES:
            raise FrameTooLong(f"a payload of {len(payload)} bytes; this framing carries {UINT32_LIMIT_BYTES}")
        return len(payload).to_bytes(4, "big") + payload


class _Framings(dict[str, Framing]):
    """Framings by name. That of HTTP, which only sockets use, is imported on demand and not listed."""

    def __missing__(self, name: str) -> Framing:
        if name != "http":
            raise KeyError(name)
        from .http_framing import FRAMING

        self_framing: Framing = FRAMING
        return self_framing

    def __contains__(self, name: object) -> bool:
        return name == "http" or super().__contains__(name)


FRAMINGS: dict[str, Framing] = _Framings(
    {framing.name: framing for framing in (_NdJson(), _ContentLength(), _Uint32())}
)
