"""From notes to the lines of a cassette: chunks become messages, and only whole messages are cleaned and written.

A secret may be cut in two by the chunks in which it came, or by the pieces in which bytes without any framing come. So
an unfinished message waits, and so do the last bytes of what is no message.
"""

from __future__ import annotations

from ext_sdk.wire.framing import UINT32_LIMIT_BYTES, Junk

from .cassette.events import STDERR_FRAMING, mark_line, note, raw_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_sdk.wire.framing import Framing

    from .bindings import Recording as Bindings
    from .cassette.events import Clean, MarkKind, Stream
    from .notes import Note

# A message longer than this is kept as bytes, piece by piece, so that the scribe's memory stays bounded.
FRAME_LIMIT_BYTES = 67_108_864
# Bytes that are no message are written when they are so many,
LOOSE_BYTES = 1_048_576
# but for so many of them, because a secret may have only begun there. Long ones: private keys, some 3 KB in base64.
HELD_BACK_BYTES = 16_384


def limit(framing: Framing) -> int:
    """The longest message that is kept as one, in bytes: no longer than what the framing can say again at replay."""
    return UINT32_LIMIT_BYTES if framing.name == "uint32" else FRAME_LIMIT_BYTES


class Transcript:
    """The lines of one session.

    Args:
        framing: of the messages, in both directions.
        clean: takes secrets and machine paths out of bytes.
        bindings: told of the host's messages, because they name paths of the machine.

    Attributes:
        counts: messages so far, by stream; of stderr, lines.
        finished: whether the child's exit has been noted.
    """

    def __init__(self, framing: Framing, clean: Clean, bindings: Bindings) -> None:
        self._framings: dict[Stream, Framing] = {"in": framing, "out": framing, "err": STDERR_FRAMING}
        self._decoders = {name: each.decoder(limit(each)) for name, each in self._framings.items()}
        self._clean = clean
        self._bindings = bindings
        self._lines: list[bytes] = []
        self._loose: tuple[float, Stream, bytes] | None = None
        self._time = 0.0
        self.counts: dict[Stream, int] = dict.fromkeys(self._framings, 0)
        self.finished = False

    def lines(self, notes: list[Note]) -> list[bytes]:
        """The lines that these notes complete."""
        for time, kind, what in notes:
            self._time = max(time, self._time)  # what came in one turn of the tap may be some µs out of step
            if isinstance(what, bytes):
                self._receive(kind, what)  # type: ignore[arg-type]  # bytes come with the name of a stream
            else:
                self._mark(kind, what)  # type: ignore[arg-type]  # and everything else with that of a mark
        return self._take_lines()

    def close(self) -> list[bytes]:
        """The session has broken off: the lines for what was still waiting."""
        self._end()
        return self._take_lines()

    def _take_lines(self) -> list[bytes]:
        lines, self._lines = self._lines, []
        return lines

    def _receive(self, name: Stream, data: bytes) -> None:
        decoder = self._decoders[name]
        if data:
            decoder.receive_data(data)
            self._take(name)
        else:
            decoder.receive_eof()
            self._take(name)
            self._write_mark("eof", name)

    def _mark(self, kind: MarkKind, what: int | str) -> None:
        if kind == "exit":
            self._end()
            self.finished = True
        self._write_mark(kind, what)

    def _end(self) -> None:
        """Nothing more comes from anywhere."""
        for name, decoder in self._decoders.items():
            decoder.receive_eof()
            self._take(name)
        self._write_loose()

    def _take(self, name: Stream) -> None:
        """Write what the decoder has complete. The scribe spends its time here."""
        next_event, framing, clean, time = (
            self._decoders[name].next_event,
            self._framings[name],
            self._clean,
            self._time,
        )
        observe = self._bindings.observe if name == "in" else None
        append, count = self._lines.append, 0
        while item := next_event():
            if isinstance(item, Junk):
                self._keep_loose(name, item.wire)
                continue
            if self._loose:
                self._write_loose()
            if observe:
                observe(item.payload)
            append(note(name, time, item, framing, clean))
            count += 1
        self.counts[name] += count

    def _write_mark(self, kind: MarkKind, value: int | str) -> None:
        self._write_loose()
        self._lines.append(mark_line(kind, self._time, value))

    # Bytes that are no message come in pieces. They are cleaned as one, and written as few events.

    def _keep_loose(self, name: Stream, wire: bytes) -> None:
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
        clean = self._clean(kept)
        cut = max(0, len(clean) - hold_back)
        self._lines.append(raw_line(name, time, clean[:cut]))
        self._loose = (time, name, clean[cut:]) if hold_back else None
