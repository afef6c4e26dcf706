"""HTTP/1.1 as a framing: each message is one frame, with a payload that people can read.

    POST /mcp {"jsonrpc":"2.0",…}     a request: method, target, body
    200 {"jsonrpc":"2.0",…}           a response: status, body
    data: {…}                         a chunk of a streamed body (server-sent events, lines of JSON)

The rest of the start line, the header lines and the sizes of the chunks are the head of the frame, so that `encode`
writes the bytes that were received. No library is used: those that parse HTTP keep neither the bytes nor the chunks.
"""

from __future__ import annotations

from collections import deque

from .frames import (
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

# Longest head of a message; servers refuse heads of more than 8 to 32 KB.
HEAD_LIMIT_BYTES = 131_072
_SIZE_LINE_BYTES = 256  # a chunk size with its extensions
# Bodies of these types are streams: their complete events are returned as they arrive.
_STREAMS = {"text/event-stream": (b"\n\n", b"\r\n\r\n", b"\r\r")}
_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/stream+json")
_UPPER = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ-_")
_HEX = frozenset("0123456789abcdefABCDEF")
_CHUNK, _CHUNKS = "chunk", "chunks"  # words of a head; a header line has a colon


class HttpDecoder(Buffer):
    """Messages of one direction of one connection.

    Attributes:
        methods: methods of the requests that wait for a response; shared by both directions, because the response to
            HEAD has no body. A response may arrive before the body of its request.
    """

    __slots__ = (
        "_announced",
        "_ends",
        "_last",
        "_limit",
        "_lost",
        "_parts",
        "_refused",
        "_scanned",
        "_sizes",
        "methods",
    )

    def __init__(self, limit: int | None = None) -> None:
        super().__init__()
        self._limit = limit
        self._announced = False  # the method of the request whose body is still to come is known
        self._lost = ""  # reason why no further message can be found
        self._refused = 0  # bytes still to come of a body over the limit
        self._ends: tuple[bytes, ...] = ()  # ends of a complete event in a streamed body
        self._scanned = 0  # bytes after `position` whose chunks are in `_parts`
        self._last = 0  # bytes of the last chunk and its trailers
        self._parts: list[bytes] = []
        self._sizes: list[str] = []
        self.methods: deque[str] = deque()

    def next_event(self) -> Frame | Junk | None:
        if self._lost:
            return Junk(self.take(min(len(self), JUNK_PIECE_BYTES)), self._lost) if len(self) else None
        if self._refused:
            count = min(self._refused, JUNK_PIECE_BYTES)
            if len(self) < count:
                tail = self.tail("unterminated body")
                return Overlong(tail.wire, tail.reason, ends=True) if tail else None
            self._refused -= count
            return Overlong(self.take(count), f"part of a body over {self._limit} bytes", ends=not self._refused)
        if self._ends:
            return self._streamed()
        return self._message()

    @property
    def expects(self) -> bool:
        """Return True if a client waits for `100 Continue` before it sends the body of its request."""
        if not self._announced:
            return False
        head = bytes(self.data[self.position : self.data.find(b"\r\n\r\n", self.position)])
        return b"\r\nexpect: 100-continue" in head.lower()

    def _message(self) -> Frame | Junk | None:
        start = self.position
        if self.data[start : start + 2] == b"\r\n":
            return Junk(self.take(2), "blank line")
        end = self.data.find(b"\r\n\r\n", start, start + HEAD_LIMIT_BYTES)
        if end < 0:
            data = bytes(self.data[start : start + 16])
            method = data.partition(b" ")[0].decode("latin-1")
            may_begin = b"HTTP/1.".startswith(data[:7]) or data.startswith(b"HTTP/1.") or _UPPER.issuperset(method)
            if may_begin and len(self) < HEAD_LIMIT_BYTES:
                return self.tail("unterminated head")
            return self._lose("not HTTP/1.1")
        line, *headers = bytes(self.data[start:end]).decode("latin-1").split("\r\n")
        fields = [header_field(header.encode("latin-1")) for header in headers]
        begun = _begun(line)
        if begun is None or None in fields:
            return self._lose("not HTTP/1.1")
        payload, first = begun
        known = dict(field for field in fields if field)
        return self._body(end + 4, payload, (first, *headers), known)

    def _body(self, at: int, payload: bytes, head: tuple[str, ...], fields: dict[str, str]) -> Frame | Junk | None:
        is_response = payload[:3].isdigit()
        if not is_response and not self._announced:
            self._announced = True
            self.methods.append(payload.partition(b" ")[0].decode("latin-1"))
        method = self.methods[0] if is_response and self.methods else ""
        status = int(payload[:3]) if is_response else 0
        bodiless = method == "HEAD" or 100 <= status < 200 or status in {204, 304}
        chunked = fields.get("transfer-encoding", "").lower().endswith("chunked")
        if status == 101 or (method == "CONNECT" and 200 <= status < 300):
            self._lost = "bytes of another protocol"
        elif chunked and not bodiless:
            return self._chunked(at, payload, head, fields)
        elif "content-length" in fields and not bodiless:
            length = decimal_length(fields["content-length"])
            if length < 0:
                return self._lose("a Content-Length that is not a length")
            if self._limit is not None and length > self._limit:
                self._refused = length
                return self._taken(
                    Overlong(self.take(at - self.position), "a body over the limit", ends=False), payload
                )
            if len(self.data) < at + length:
                return self.tail("unterminated body")
            body = bytes(self.data[at : at + length])
            at += length
            payload = payload + b" " + body if body else payload
        elif is_response and not bodiless:
            self._lost = "a body up to the end of the connection"
        return self._taken(Frame(payload, self.take(at - self.position), head), payload)

    def _taken(self, item: Frame | Overlong, payload: bytes) -> Frame | Overlong:
        """Forget the method of a request when its final response has arrived."""
        if not payload[:3].isdigit():
            self._announced = False
        elif self.methods and payload[:1] != b"1":
            self.methods.popleft()
        return item

    def _lose(self, reason: str) -> Frame | Junk | None:
        self._lost = reason
        return self.next_event()

    # Chunks

    def _chunked(self, at: int, payload: bytes, head: tuple[str, ...], fields: dict[str, str]) -> Frame | Junk | None:
        kind = fields.get("content-type", "").partition(";")[0].strip().lower()
        ends = _STREAMS.get(kind) or ((b"\n",) if kind in _LINES else ())
        if ends and payload[:3].isdigit():
            self._ends = ends
            return self._taken(Frame(payload, self.take(at - self.position), head), payload)
        if not self._scanned:
            self._scanned = at - self.position
        while (size := self._next_chunk()) is not None:
            if size < 0:
                return self._lose("a chunk without a size")
            if size == 0:
                body, sizes = b"".join(self._parts), " ".join([_CHUNKS, *self._sizes])
                payload = payload + b" " + body if body else payload
                return self._taken(Frame(payload, self._take_scanned(), (*head, sizes)), payload)
            if self._limit is not None and self._scanned > self._limit:
                return self._lose("a body over the limit")
        return self.tail("unterminated body")

    def _streamed(self) -> Frame | Junk | None:
        """Return the next chunks of a stream that make a complete event; the last one ends the message."""
        while (size := self._next_chunk()) is not None:
            if size < 0:
                return self._lose("a chunk without a size")
            held = b"".join(self._parts)
            if size == 0 and not self._parts:
                self._ends = ()
                return Frame(b"", self._take_scanned(), (_CHUNK,))
            if size == 0 or held.endswith(self._ends) or len(held) > JUNK_PIECE_BYTES:
                if size == 0:  # the end comes as a frame of its own
                    self._scanned -= self._last
                head = _CHUNK if self._sizes == [f"{len(held):x}"] else " ".join([_CHUNKS, *self._sizes])
                return Frame(held, self._take_scanned(), (head,))
        return self.tail("unterminated body")

    def _take_scanned(self) -> bytes:
        wire = self.take(self._scanned)
        self._scanned, self._parts, self._sizes = 0, [], []
        return wire

    def _next_chunk(self) -> int | None:
        """Skip the next chunk. Return its size, 0 at the end of the body, -1 if invalid; None until it has arrived."""
        at = self.position + self._scanned
        line_end = self.data.find(b"\r\n", at, at + _SIZE_LINE_BYTES)
        if line_end < 0:
            return None if len(self.data) - at < _SIZE_LINE_BYTES else -1
        text = bytes(self.data[at:line_end]).decode("latin-1")
        digits = text.partition(";")[0].strip()
        if not digits or not _HEX.issuperset(digits) or len(digits) > 15:
            return -1
        size, start = int(digits, 16), line_end + 2
        if size == 0:
            end = start if self.data[start : start + 2] == b"\r\n" else self.data.find(b"\r\n\r\n", start)
            if end < 0 or len(self.data) < start + 2:
                return None
            end += 2 if end == start else 4
            self._scanned, self._last = end - self.position, end - at
            return 0
        if len(self.data) < start + size + 2:
            return None
        self._parts.append(bytes(self.data[start : start + size]))
        self._sizes.append(text)
        self._scanned = start + size + 2 - self.position
        return size


def _begun(line: str) -> tuple[bytes, str] | None:
    """Return the beginning of a payload, and the rest of its start line; None if it is not a start line."""
    words = line.split(" ", 2)
    if len(words) < 3:
        return None
    one, two, three = words
    if one.startswith("HTTP/1.") and len(two) == 3 and two.isascii() and two.isdigit():
        return two.encode(), f"{one} {three}"
    if one and _UPPER.issuperset(one) and two and three.startswith("HTTP/1.") and " " not in three:
        return f"{one} {two}".encode("latin-1"), three
    return None


class _Http:
    name = "http"

    def decoder(self, limit: int | None = None) -> HttpDecoder:
        return HttpDecoder(limit)

    def encode(self, payload: bytes, head: tuple[str, ...] = ()) -> bytes:
        """Return the bytes of a message; one without a head gets a Content-Length."""
        first = head[0].split(" ") if head else [""]
        if first[0] in {_CHUNK, _CHUNKS}:
            return _in_chunks(payload, first[1:]) if payload else b"0\r\n\r\n"
        start, body = _start(payload, head[0] if head else "")
        headers = [line for line in head[1:] if ":" in line]
        sizes = next((line.split(" ")[1:] for line in head[1:] if line.partition(" ")[0] == _CHUNKS), None)
        if sizes is not None:
            tail = (_in_chunks(body, sizes) if body else b"") + b"0\r\n\r\n"
        else:
            tail = body
            if body and any(map(is_content_length, headers)):
                headers = [with_content_length(line, len(body)) for line in headers]
            elif body:
                headers += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
            elif not head and payload[:3].isdigit():
                headers.append("Content-Length: 0")
        text = "\r\n".join([start, *headers, "", ""])
        if text.count("\n") != len(headers) + 2:
            raise ValueError(f"header lines of a message can't be {list(head)!r:.200}")
        return text.encode("latin-1") + tail


def _start(payload: bytes, first: str) -> tuple[str, bytes]:
    """Return the start line, and the body."""
    word, _, rest = payload.partition(b" ")
    if len(word) == 3 and word.isdigit():
        version, _, reason = first.partition(" ")
        return f"{version or 'HTTP/1.1'} {word.decode()} {reason}", rest
    target, _, body = rest.partition(b" ")
    if not word or not target or not _UPPER.issuperset(word.decode("latin-1")):
        raise ValueError(f"neither `METHOD target body` nor `status body`: {payload!r:.200}")
    return f"{word.decode()} {target.decode('latin-1')} {first or 'HTTP/1.1'}", body


def _in_chunks(body: bytes, sizes: list[str]) -> bytes:
    """Return a body in chunks of these sizes; in a single one if it has another length."""
    try:
        lengths = [int(size.partition(";")[0], 16) for size in sizes]
    except ValueError:
        lengths = []
    if sum(lengths) != len(body):
        sizes, lengths = [f"{len(body):x}"], [len(body)]
    parts, at = [], 0
    for size, length in zip(sizes, lengths, strict=True):
        parts.append(size.encode("latin-1") + b"\r\n" + body[at : at + length] + b"\r\n")
        at += length
    return b"".join(parts)


FRAMING = _Http()
