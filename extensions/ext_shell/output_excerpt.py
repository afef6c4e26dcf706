"""Excerpts of output for results, and output as log notifications."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import ext_sdk
from ext_sdk.hiding import redacted_pieces
from ext_sdk.process import LineSplitter

if TYPE_CHECKING:
    from collections.abc import Callable

    from ext_sdk.process import Output


HEAD_BYTES = 10 * 1024  # of the beginning of an output that an answer shows; two outputs and the rest fit its line
TAIL_BYTES = 6 * 1024  # of its end
EXCERPT = 1000  # characters of the end of an output that the text of a failure shows
LOGGED_AT_ONCE = 100  # lines; a short run is logged whole, and always the same
LOGGED_EACH = 1.0  # seconds between two further lines
LOGGED_LENGTH = 2000  # characters of a line


class Shown:
    """An output as the answer has it, without secrets.

    Attributes:
        text: whole where it is short, else beginning and end around a note.
        path: of the file that has all that was kept; "" where the text says it all.
        whole: the output itself, for later steps: complete, with its secrets. NotKept if it is not available.
    """

    __slots__ = ("path", "text", "whole")

    def __init__(self, text: str, path: str = "", *, whole: str | ext_sdk.NotKept) -> None:
        self.text = text
        self.path = path
        self.whole = whole

    @property
    def excerpt(self) -> str:
        """The end of it, for the text of a failure."""
        text = self.text.strip()
        return text if len(text) <= EXCERPT else f"… {text[-EXCERPT:].lstrip()}"


def show(output: Output, name: str, context: ext_sdk.Context) -> Shown:
    """Make a text for the answer and, where that can't say it all, a file with every byte that was kept.

    Args:
        output: of a command.
        name: stdout or stderr.
        context: of the call.
    """
    whole = _whole(output, name)
    data = output.data
    if isinstance(whole, str) and len(data) <= HEAD_BYTES + TAIL_BYTES:
        return Shown(context.secrets.redact(whole), whole=whole)
    try:
        path = context.artifact(f"{name}.txt")
        with path.open("wb") as file:
            head, tail, size = _copied(data, context.secrets, file.write)
        where = str(path)
    except OSError as error:
        context.log.warn(f"the whole {name} could not be written to a file: {error}")
        head, tail, size = _copied(data, context.secrets, len)
        where = ""
    if size <= HEAD_BYTES + TAIL_BYTES:
        return Shown((head + tail).decode("utf-8", "replace"), where, whole=whole)
    hint = f"all of it is in {name}File" if where and not output.lost else f"{name}File has more" if where else "lost"
    note = f"\n[... {size - HEAD_BYTES - TAIL_BYTES} of {size} bytes left out; {hint} ...]\n"
    texts = [part.decode("utf-8", "replace").strip("\ufffd") for part in (head[:HEAD_BYTES], tail)]
    return Shown(note.join(texts), where, whole=whole)


def _whole(output: Output, name: str) -> str | ext_sdk.NotKept:
    """Return the complete output as text, or why there is none."""
    if output.lost:
        return ext_sdk.NotKept(
            f"{name} has {output.size:,} bytes, more than `outputLimit` keeps; raise that, or write {name} to a file"
        )
    try:
        return output.data.decode()
    except UnicodeDecodeError as error:
        return ext_sdk.NotKept(
            f"{name} is not UTF-8 (byte 0x{error.object[error.start]:02x} at offset {error.start:,}); write it to a "
            "file, which a later step reads by `stdinFile`"
        )


def _copied(data: bytes, secrets: ext_sdk.Secrets, write: Callable[[bytes], object]) -> tuple[bytes, bytes, int]:
    """Hand over all without secrets; return beginning, the end that follows it, and the size."""
    head, tail, size = b"", b"", 0
    for piece in redacted_pieces(data, secrets):
        write(piece)
        size += len(piece)
        room = HEAD_BYTES - len(head)
        head += piece[: max(0, room)]
        tail = (tail + piece[max(0, room) :])[-TAIL_BYTES:]
    return head, tail, size


class LineLog:
    """Logs lines of an output as they come: the first hundred, then one a second, and how many were not.

    Args:
        log: of the call.
        secrets: what must not be seen, taken out before a line is cut.
        stream: stdout or stderr; None logs nothing.
    """

    def __init__(self, log: ext_sdk.Log, secrets: ext_sdk.Secrets, stream: str | None) -> None:
        self._log = log
        self._secrets = secrets
        self._stream = stream
        self._lines = LineSplitter()
        self._count = 0
        self._next = 0.0
        self._skipped = 0

    def feed(self, data: bytes) -> None:
        """Take what came next."""
        if self._stream and self._waits():
            self._skipped += self._lines.skip(data)
        elif self._stream:
            self._send(self._lines.feed(data))

    def finish(self) -> None:
        """Log what has had no end, and how many lines were passed over."""
        if self._stream:
            self._send(self._lines.finish())
        if self._skipped:
            self._log.info(f"{self._skipped} lines of {self._stream} were not logged", stream=self._stream)

    def _waits(self) -> bool:
        """Return True if the next line is passed over."""
        return self._count >= LOGGED_AT_ONCE and time.monotonic() < self._next

    def _send(self, lines: list[str]) -> None:
        """Log lines that are complete, as far as they are not too many."""
        for line in lines:
            if self._waits():
                self._skipped += 1
                continue
            self._count += 1
            self._next = time.monotonic() + LOGGED_EACH
            text = self._secrets.redact(line)
            self._log.info(text if len(text) <= LOGGED_LENGTH else f"{text[:LOGGED_LENGTH]}…", stream=self._stream)
