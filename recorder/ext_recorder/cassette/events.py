r"""Events of a session, one on each line of the cassette.

    - {t: 0.000123, in: '{"jsonrpc":"2.0",…}'}   a message of the host: its payload, without framing
    - {t: 0.021000, out: '…'}                    a message of the child
    - {t: 0.021100, err: 'a line'}               a line on the child's stderr, without its line feed
    - {t: 0.022500, err: "\e[32mok\e[0m\r"}       a line with control characters, as escapes
    - {t: 0.023000, out: {text: '> '}}           exact bytes, framing included; also for in and err
    - {t: 0.023500, out: {raw: 'AP8='}}          the same in base64
    - {t: 0.140000, eof: in}                     no more bytes come in from the host; also out and err
    - {t: 0.100000, signal: SIGTERM}             a signal that the host sent
    - {t: 0.145000, omitted: 70000000 bytes of out}  a message over the limit, of which nothing is kept; also in
    - {t: 0.130000, files: 1}                    the child has changed files: patch 1 in NAME.patch
    - {t: 0.150000, exit: 0}                     the child's exit code, or what ended it: exit: SIGKILL
    - {t: 0.000100, conn: 2, open: in}           a second connection of a socket server
    - {t: 0.000110, conn: 0, err: 'a line'}      its own standard error
    - {t: 0.000200, conn: 2, out: '…', head: ['Content-Type: x', 'Content-Length: 9']}
                                                 header lines that are not the plain Content-Length alone
    - {t: 0.000100, in: '…', head: ['POST 1']}   a message over HTTP, see `http.proxy.mcp_recording`
    - {t: 0.000300, http: GET 3 405}             an HTTP exchange without a message, or the end of its stream

`t` is in seconds since the start, in six decimals. A message is kept as text if its bytes are what the framing
makes of that text (`head` included); everything else is exact bytes. Both are written as base64 if they are not UTF-8
or have so many control characters that base64 is shorter.
"""

from __future__ import annotations

from binascii import b2a_base64

from ext_sdk.core.wire.errors import FrameTooLong
from ext_sdk.core.wire.frames import Frame
from ext_sdk.core.wire.framing import FRAMINGS

from .yaml_scalars import escaped, holds, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Literal

    from ext_sdk.core.wire.frames import Junk
    from ext_sdk.core.wire.framing import Framing

    Stream = Literal["in", "out", "err"]
    MarkKind = Literal["eof", "exit", "signal", "open", "omitted", "files", "http"]

    Clean = Callable[[bytes], bytes]
else:
    Stream = MarkKind = str

STREAMS: tuple[Stream, ...] = ("in", "out", "err")
MARKS: tuple[MarkKind, ...] = ("eof", "exit", "signal", "open", "omitted", "files", "http")

# A message over this limit is left out, so that neither the writer's memory nor the file grows with it.
MESSAGE_LIMIT_BYTES = 67_108_864

# Bytes that are written between quotation marks unchanged.
PLAIN_BYTES = bytes(range(0x20, 0x7F)).replace(b"'", b"")

# Maximum bytes by which escapes make a text longer than base64: a short one is still read more easily.
_SLACK = 32

# The connection that a socket server's own standard files, its signals and its exit have: they belong to none.
OWN_FILES = 0

# stderr is lines, whatever the framing of the messages is.
STDERR_FRAMING = FRAMINGS["ndjson"]


class Data:
    """Bytes that one side wrote.

    Attributes:
        kind: the stream: "in" (the host's), "out" or "err" (the child's).
        time: seconds since the start.
        payload: a message or a stderr line without its framing; if `raw`, the exact bytes with framing.
        raw: see `payload`.
        head: header lines, if there are others than the plain Content-Length.
        conn: the connection, counted from 1; OWN_FILES.
    """

    __slots__ = ("conn", "head", "kind", "payload", "raw", "time")

    def __init__(
        self,
        kind: Stream,
        time: float,
        payload: bytes,
        *,
        raw: bool = False,
        head: tuple[str, ...] = (),
        conn: int = 1,
    ) -> None:
        self.kind = kind
        self.time = time
        self.payload = payload
        self.raw = raw
        self.head = head
        self.conn = conn

    def own_framing(self, framing: Framing) -> Framing:
        """Return the framing of this event: that of the session, or lines for stderr and a server's own files."""
        return STDERR_FRAMING if self.kind == "err" or self.conn == OWN_FILES else framing

    def items(self, framing: Framing) -> list[Frame | Junk]:
        """Return the messages or lines of this event and the bytes between them. The framing is the session's."""
        if not self.raw:
            return [Frame(self.payload, b"", self.head)]
        decoder = self.own_framing(framing).decoder()
        decoder.receive_data(self.payload)
        decoder.receive_eof()
        items = []
        while item := decoder.next_event():
            items.append(item)
        return items

    def payloads(self, framing: Framing) -> list[bytes]:
        """Return the messages or lines of this event, without the bytes between them."""
        if not self.raw:
            return [self.payload]
        return [item.payload for item in self.items(framing) if isinstance(item, Frame)]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Data):
            return NotImplemented
        return all(getattr(self, slot) == getattr(other, slot) for slot in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{slot}={getattr(self, slot)!r}" for slot in sorted(self.__slots__))
        return f"Data({shown})"


class Mark:
    """Event without bytes.

    Attributes:
        kind: "eof", "exit", "signal", "open", "omitted", "files" or "http".
        time: seconds since the start.
        value: the stream of eof and open, the exit code and the number of a patch as an int, the name of a signal
            ("SIGTERM"), the size and stream of an omitted message ("70000000 bytes of out"), or an exchange of HTTP
            ("GET 3 405").
        conn: the connection, counted from 1; OWN_FILES.
    """

    __slots__ = ("conn", "kind", "time", "value")

    def __init__(self, kind: MarkKind, time: float, value: int | str, conn: int = 1) -> None:
        self.kind = kind
        self.time = time
        self.value = value
        self.conn = conn

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mark):
            return NotImplemented
        return all(getattr(self, slot) == getattr(other, slot) for slot in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Mark({self.kind!r}, {self.time:.6f}, {self.value!r}, conn={self.conn})"


Event = Data | Mark


def omitted(mark: Mark) -> tuple[int, str]:
    """Return the size of the message that was left out, in bytes, and its stream."""
    words = str(mark.value).split()
    return int(words[0]), words[-1]


def omission(mark: Mark) -> str:
    """Describe a message that was left out."""
    size, stream = omitted(mark)
    whose = "the host" if stream == "in" else "the child"
    return f"a message of {whose} of {size} bytes was left out (the limit is {MESSAGE_LIMIT_BYTES} bytes)"


def note(kind: Stream, time: float, item: Frame | Junk, framing: Framing, clean: Clean, *, conn: int = 1) -> bytes:
    """Return the line for one item of a stream. This is the inner loop of the writer process.

    Args:
        item: from the decoder of the stream.
        framing: of the stream; STDERR_FRAMING for stderr.
        clean: removes secrets and machine paths from bytes.
    """
    if not isinstance(item, Frame):
        return raw_line(kind, time, clean(item.wire), conn=conn)
    payload = clean(item.payload)
    head: tuple[str, ...] = ()
    exact = False
    try:
        if framing.name == "http" or framing.encode(item.payload) != item.wire:
            head = item.head
            exact = framing.encode(item.payload, head) == item.wire
        else:
            exact = True
    except ValueError:
        pass
    if head:
        head = cleaned_head(head, clean)
    if exact:
        line = text_line(kind, time, payload, head, conn=conn, short=True)
        if line is not None:
            return line
    if payload == item.payload and head in ((), item.head):
        return raw_line(kind, time, item.wire, conn=conn)
    # The length before a redacted payload is no longer correct: frame it again. A header block in an unusual form loses
    # that form; a secret on the disk would be worse.
    try:
        wire = framing.encode(payload, head or item.head)
    except (ValueError, FrameTooLong):
        wire = clean(item.wire)
    return raw_line(kind, time, wire, conn=conn)


def cleaned_head(head: tuple[str, ...], clean: Clean) -> tuple[str, ...]:
    """Return header lines without secrets and machine paths."""
    data = "\r\n".join(head).encode("latin-1")
    cleaned = clean(data)
    return head if cleaned == data else tuple(cleaned.decode("latin-1").split("\r\n"))


def text_line(
    kind: Stream, time: float, payload: bytes, head: tuple[str, ...] = (), conn: int = 1, *, short: bool = False
) -> bytes | None:
    """Return the line for a message as text; None if it is not text, or with `short` if base64 is shorter."""
    if not head and conn == 1 and not payload.translate(None, PLAIN_BYTES):
        return b"- {t: %.6f, %b: '%b'}\n" % (time, kind.encode(), payload)
    text = _scalar(payload, short=short)
    if text is None or not all(holds(line) for line in head):
        return None
    connection = b" conn: %d," % conn if conn != 1 else b""
    tail = ", head: [" + ", ".join(quoted(line) for line in head) + "]" if head else ""
    return b"- {t: %.6f,%b %b: %b%b}\n" % (time, connection, kind.encode(), text, tail.encode())


def raw_line(kind: Stream, time: float, wire: bytes, *, conn: int = 1) -> bytes:
    """Return the line for exact bytes."""
    connection = b" conn: %d," % conn if conn != 1 else b""
    text = _scalar(wire, short=True)
    form, scalar = (b"raw", b"'%b'" % b2a_base64(wire, newline=False)) if text is None else (b"text", text)
    return b"- {t: %.6f,%b %b: {%b: %b}}\n" % (time, connection, kind.encode(), form, scalar)


def _scalar(data: bytes, *, short: bool) -> bytes | None:
    """Return bytes as a YAML text with its quotation marks; None if they are not UTF-8, or base64 is to be shorter."""
    if not data.translate(None, PLAIN_BYTES):
        return b"'%b'" % data
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    if holds(text):
        return b"'%b'" % data.replace(b"'", b"''")
    scalar = escaped(text).encode()
    return None if short and len(scalar) > len(data) * 4 // 3 + _SLACK else scalar


def mark_line(kind: MarkKind, time: float, value: int | str, *, conn: int = 1) -> bytes:
    """Return the line for an event without bytes."""
    connection = b" conn: %d," % conn if conn != 1 else b""
    return b"- {t: %.6f,%b %b: %b}\n" % (time, connection, kind.encode(), str(value).encode())


def event_line(event: Event) -> bytes:
    """Return the line for an event. Raises ValueError for a message that only raw bytes can represent."""
    if isinstance(event, Mark):
        return mark_line(event.kind, event.time, event.value, conn=event.conn)
    if event.raw:
        return raw_line(event.kind, event.time, event.payload, conn=event.conn)
    line = text_line(event.kind, event.time, event.payload, event.head, conn=event.conn)
    if line is None:
        raise ValueError(f"cannot be written as text, since it is not UTF-8: {event.payload!r}")
    return line
