"""Event encoder: assembles messages from chunks, and encodes them as redacted lines of a cassette.

A secret may be split over chunks, or over pieces of bytes that are not messages. So an incomplete message is held back,
and so are the last bytes of what is not a message.
"""

from __future__ import annotations

from collections import deque

from ext_recorder.cassette.events import (
    MESSAGE_LIMIT_BYTES,
    OWN_FILES,
    PLAIN_BYTES,
    STDERR_FRAMING,
    STREAMS,
    mark_line,
    note,
    raw_line,
    text_line,
)
from ext_sdk.core.wire.frames import Frame, Junk, Overlong
from ext_sdk.core.wire.framing import UINT32_LIMIT_BYTES, LineDecoder

from .note_queue import FILES
from .split_secrets import SplitSecrets, StreamedText, may_be_delta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_recorder.cassette.events import Clean, MarkKind, Stream
    from ext_recorder.cassette.git_patch import PatchFile
    from ext_recorder.messages.path_bindings import RecordBindings as Bindings
    from ext_recorder.replay.unanswered import CompletenessCheck
    from ext_sdk.core.wire.framing import Framing

    from .note_queue import Note
    from .split_secrets import Replacements

# Bytes that are not a message are written when they reach this number,
LOOSE_BYTES = 1_048_576
# except this number of them, because a secret may begin there. The longest are private keys, about 3 KB in base64.
HELD_BACK_BYTES = 16_384


def limit(framing: Framing) -> int:
    """Return the size of the longest message that is kept as one, in bytes: at most what the framing can replay."""
    return UINT32_LIMIT_BYTES if framing.name == "uint32" else MESSAGE_LIMIT_BYTES


# Name of the note that ends a session without a child process.
END = "end"
# Between a message and its header lines, and between these; JSON has neither of them.
_HEAD, _NEXT = b"\x1e", b"\x1f"


class _HeadedLineDecoder(LineDecoder):
    """Decoder of lines that end with header lines."""

    __slots__ = ()

    def take_lines(self) -> list[bytes]:
        return []

    def next_event(self) -> Frame | Junk | None:
        item = super().next_event()
        if not isinstance(item, Frame):
            return item
        payload, _, head = item.payload.partition(_HEAD)
        return Frame(payload, item.wire, tuple(line.decode() for line in head.split(_NEXT)) if head else ())


class HeadedLines:
    """Lines with header lines: the form of messages of HTTP in notes. The cassette has the header lines as `head`."""

    name = "ndjson"

    def decoder(self, limit: int | None = None) -> LineDecoder:
        """Return a new decoder."""
        return _HeadedLineDecoder(limit)

    def encode(self, payload: bytes, head: tuple[str, ...] = ()) -> bytes:
        """Return the bytes of one message."""
        return payload + (_HEAD + _NEXT.join(line.encode() for line in head) if head else b"") + b"\n"


class _Part:
    """One direction of one connection.

    Attributes:
        stream: "in", "out" or "err".
        conn: the connection.
        framing: of its messages.
        decoder: where their bytes go.
        may_stream: messages may be pieces of one text, so that a secret may be split over them.
        omits: messages over the limit are left out; if False, they are kept as bytes.
        omitted: bytes so far of a message over the limit.
    """

    __slots__ = ("conn", "decoder", "framing", "may_stream", "omits", "omitted", "stream")

    def __init__(self, stream: Stream, conn: int, framing: Framing, *, may_stream: bool, omits: bool) -> None:
        self.stream = stream
        self.may_stream = may_stream
        self.omits = omits
        self.conn = conn
        self.framing = framing
        self.decoder = framing.decoder(limit(framing))
        self.omitted = 0


class EventEncoder:
    """Encoder of the lines of one session.

    A note names its stream: "in" of the only connection on stdio, "in:2" of the second connection of a socket server.
    Connection 0 is the standard files of a socket server, which contain lines.

    Args:
        framing: framing of the messages, in both directions.
        clean: replaces secrets and machine paths in bytes.
        bindings: reads the messages of the host, because they contain paths of the machine.
        since: time of the first note, in seconds since the start of the session.
        replacements: finds secrets in a text; if given, secrets that are split over notifications are found.
        keeps_long: lines of the child over the limit are kept as bytes in pieces, because they are not messages.
        check: reads the messages and marks as well.
        patches: writes changed files; None if they are not recorded.

    Attributes:
        counts: number of messages so far, by stream; of stderr, lines.
        strays: host or child have sent something that is not a message.
        finished: the exit of the child is recorded.
        omitted: sizes of the messages that are not recorded.
    """

    def __init__(
        self,
        framing: Framing,
        clean: Clean,
        bindings: Bindings,
        *,
        since: float = 0.0,
        replacements: Replacements | None = None,
        keeps_long: bool = False,
        check: CompletenessCheck | None = None,
        patches: PatchFile | None = None,
    ) -> None:
        self._framing = framing
        self._patches = patches
        self._parts: dict[str, _Part] = {}
        self._clean = clean
        self._bindings = bindings
        self._lines: list[bytes | StreamedText] = []
        self._replacements = replacements
        self._deltas: dict[str, SplitSecrets] = {}
        self._loose: tuple[float, str, bytes] | None = None
        self._since = self._time = since
        self.counts: dict[Stream, int] = dict.fromkeys(STREAMS, 0)
        self.strays = False
        self.omitted: list[int] = []
        self._keeps_long = keeps_long
        self._check = check
        self._methods: dict[int, deque[str]] = {}  # by connection: those of HTTP requests without a response
        self.finished = False

    def lines(self, queue: list[Note]) -> list[bytes]:
        """Return the lines that these notes complete; without notes, those of all that is held back."""
        if not queue:
            for deltas in self._deltas.values():
                deltas.release()
        for time, name, what in queue:
            # Notes of one turn of the proxy may be some µs out of order.
            self._time = max(time + self._since, self._time)
            if name == FILES and isinstance(what, bytes):
                if self._patches and self._patches.append(self._time, what):
                    self._write_mark("files", self._patches.count, 1)
                continue
            if not isinstance(what, bytes):
                kind, conn = _named(name)
                if kind in {"exit", END}:
                    self._end()
                    self.finished = True
                if kind != END:
                    self._write_mark(kind, what, conn)  # type: ignore[arg-type]  # what has no bytes is a mark
                continue
            part = self._parts.get(name) or self._begin(name)
            if what:
                part.decoder.receive_data(what)
                self._take(name, part)
            else:
                self._end_part(name, part)
                self._write_mark("eof", part.stream, part.conn)
        return self._take_lines()

    def close(self) -> list[bytes]:
        """Return the lines of all that is held back, because the session was interrupted."""
        self._end()
        return self._take_lines()

    def _take_lines(self) -> list[bytes]:
        ready: list[bytes] = []
        for line in self._lines:
            text = line if isinstance(line, bytes) else line.line
            if text is None:  # held back, and with it what comes after it
                break
            ready.append(text)
        del self._lines[: len(ready)]
        return ready

    def _begin(self, name: str) -> _Part:
        stream, conn = _named(name)
        lines = stream == "err" or conn == OWN_FILES
        may_stream = stream == "out" and not lines and self._replacements is not None
        framing = STDERR_FRAMING if lines else self._framing
        omits = stream == "in" or (stream == "out" and not lines and not self._keeps_long)
        part = self._parts[name] = _Part(stream, conn, framing, may_stream=may_stream, omits=omits)  # type: ignore[arg-type]
        if self._framing.name == "http" and not lines:
            part.decoder.methods = self._methods.setdefault(conn, deque())  # type: ignore[attr-defined]
        return part

    def _end(self) -> None:
        """Write what is held back of all streams: nothing more comes."""
        for name, part in self._parts.items():
            self._end_part(name, part)
        self._write_loose()

    def _end_part(self, name: str, part: _Part) -> None:
        part.decoder.receive_eof()
        self._take(name, part)
        self._release(name)
        self._write_omitted(part)

    def _take(self, name: str, part: _Part) -> None:
        """Write the complete messages of a decoder. The writer process spends its time here."""
        decoder, stream, conn = part.decoder, part.stream, part.conn
        if lines := decoder.take_lines():
            self._write_lines(name, part, lines)
        while item := decoder.next_event():
            if isinstance(item, Overlong) and part.omits:
                part.omitted += len(item.wire)
                if item.ends:
                    self._write_omitted(part)
                continue
            if isinstance(item, Junk):
                self.strays = True  # all of stderr is lines, and none of them junk
                self._keep_loose(name, item.wire)
                continue
            if self._loose:
                self._write_loose()
            self.counts[stream] += 1
            if stream == "in":
                self._bindings.observe(item.payload)
            if self._check and stream != "err":
                self._check.add_message(conn, stream, item.payload)
            if not (part.may_stream and self._is_held(name, part, item)):
                self._lines.append(note(stream, self._time, item, part.framing, self._clean, conn=conn))

    def _write_lines(self, name: str, part: _Part, lines: list[bytes]) -> None:
        """Write messages that are lines, which takes a third of the time of `note`."""
        if self._loose:
            self._write_loose()
        stream, conn, time, clean = part.stream, part.conn, self._time, self._clean
        self.counts[stream] += len(lines)
        observe = self._bindings.observe if stream == "in" else None
        check = self._check.add_message if self._check and stream != "err" else None
        may_stream, deltas = part.may_stream, self._deltas
        plain, before, append = PLAIN_BYTES, b"- {t: %.6f, %b: '" % (time, stream.encode()), self._lines.append
        for payload in lines:
            if observe:
                observe(payload)
            if check:
                check(conn, stream, payload)
            may_be_piece = may_stream and (deltas or b'"id"' not in payload)
            if may_be_piece and self._is_held(name, part, Frame(payload, payload + b"\n")):
                continue
            text = clean(payload)
            if conn == 1 and not text.translate(None, plain):
                append(before + text + b"'}\n")
            else:
                line = text_line(stream, time, text, conn=conn, short=True)
                append(line or raw_line(stream, time, text + b"\n", conn=conn))

    def _is_held(self, name: str, part: _Part, item: Frame) -> bool:
        """Hold a message back that may be a piece of a text; release those before it if it is not."""
        if b'"id"' in item.payload or not may_be_delta(item.payload):
            self._release(name)
            return False
        deltas = self._deltas.get(name)
        if deltas is None:

            def write(delta: StreamedText, payload: bytes) -> bytes:
                def clean(data: bytes) -> bytes:
                    return self._clean(data.replace(delta.item.payload, payload))  # header lines have none of it

                return note(part.stream, delta.time, delta.item, part.framing, clean, conn=part.conn)

            assert self._replacements is not None
            deltas = self._deltas[name] = SplitSecrets(self._replacements, write)
        delta = StreamedText(self._time, item)
        deltas.take(delta)
        self._lines.append(delta)
        return True

    def _release(self, name: str) -> None:
        if deltas := self._deltas.get(name):
            deltas.release()

    def _write_omitted(self, part: _Part) -> None:
        if not part.omitted:
            return
        self.omitted.append(part.omitted)
        self._write_mark("omitted", f"{part.omitted} bytes of {part.stream}", part.conn)
        part.omitted = 0

    def _write_mark(self, kind: MarkKind, value: int | str, conn: int) -> None:
        self._write_loose()
        if self._check:
            self._check.add_mark(kind, value)
        self._lines.append(mark_line(kind, self._time, value, conn=conn))

    # Bytes that are not a message arrive in chunks. They are redacted as one text, and written as few events.

    def _keep_loose(self, name: str, wire: bytes) -> None:
        if self._loose and self._loose[1] != name:
            self._write_loose()
        time, _, kept = self._loose or (self._time, name, b"")
        self._loose = (time, name, kept + wire)
        if len(kept) > LOOSE_BYTES:
            self._write_loose(hold_back=HELD_BACK_BYTES)

    def _write_loose(self, hold_back: int = 0) -> None:
        if not self._loose:
            return
        time, name, kept = self._loose
        part = self._parts[name]
        clean = self._clean(kept)
        cut = max(0, len(clean) - hold_back)
        self._lines.append(raw_line(part.stream, time, clean[:cut], conn=part.conn))
        self._loose = (time, name, clean[cut:]) if hold_back else None


def _named(name: str) -> tuple[str, int]:
    """Return a stream or the kind of a mark, and its connection."""
    kind, _, conn = name.partition(":")
    return kind, int(conn or 1)
