"""Excerpts of output for results, and output as log notifications."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import ext_sdk
from ext_sdk.excerpt import Shown, Sizes, write_excerpt
from ext_sdk.process import LineSplitter

if TYPE_CHECKING:
    from ext_sdk.process import Output


SIZES = Sizes(complete=16 * 1024, head=10 * 1024, tail=6 * 1024)  # two outputs and the rest fit the line of a response
EXCERPT = 1000  # characters of the end of an output that the text of a failure shows
LOGGED_AT_ONCE = 100  # lines; a short run is logged whole, and always the same
LOGGED_EACH = 1.0  # seconds between two further lines
LOGGED_LENGTH = 2000  # characters of a line


def end_of(shown: Shown) -> str:
    """Return the end of an output for the text of a failure."""
    text = shown.text.strip()
    return text if len(text) <= EXCERPT else f"… {text[-EXCERPT:].lstrip()}"


def show(output: Output, name: str, context: ext_sdk.Context) -> Shown:
    """Make a text for the answer and, where that can't say it all, a file with every byte that was kept.

    Args:
        output: of a command.
        name: stdout or stderr.
        context: of the call.
    """
    whole = _whole(output, name)
    if isinstance(whole, str) and len(output.data) <= SIZES.complete:
        return Shown(context.secrets.redact(whole), whole=whole)
    text, path = write_excerpt(output.data, name, context, SIZES, file_name=f"{name}.txt", all_kept=not output.lost)
    return Shown(text, path, whole)


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
