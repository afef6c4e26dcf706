"""Outputs of commands: excerpts for results, and lines as log notifications."""

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
LOGGED_AT_ONCE = 100  # lines; so the log of a short run is complete, and the same each time
LOG_INTERVAL = 1.0  # seconds between two further lines
LOGGED_LENGTH = 2000  # characters of a line


def end_of(shown: Shown) -> str:
    """Return the end of an output for the text of a failure."""
    text = shown.text.strip()
    return text if len(text) <= EXCERPT else f"… {text[-EXCERPT:].lstrip()}"


def show(output: Output, name: str, context: ext_sdk.Context) -> Shown:
    """Return an output as a result has it; if it is long or not UTF-8, write all that was kept to a file.

    Args:
        output: of a command.
        name: stdout or stderr.
        context: secrets, and the directory of the file.
    """
    data = output.data
    whole: str | ext_sdk.NotKept
    try:
        whole = data.decode()
        if not output.lost and len(data) <= SIZES.complete:
            return Shown(context.secrets.redact(whole), whole=whole)
    except UnicodeDecodeError as error:
        whole = ext_sdk.NotKept(
            f"{name} is not UTF-8 (byte 0x{data[error.start]:02x} at offset {error.start:,}); write it to a file, "
            "which a later step reads with `stdinFile`"
        )
    if output.lost:
        whole = ext_sdk.NotKept(
            f"{name} has {output.size:,} bytes, more than `outputLimit` keeps; raise that, or write {name} to a file"
        )
    text, path = write_excerpt(data, name, context, SIZES, file_name=f"{name}.txt", all_kept=not output.lost)
    return Shown(text, path, whole)


class LineLog:
    """Log of the lines of an output: the first hundred, then one per second, and the number of omitted lines.

    Args:
        log: of the call.
        secrets: redacted before a line is cut.
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
        """Log the lines that further data completes."""
        if self._stream and self._omits_next():
            self._skipped += self._lines.skip(data)
        elif self._stream:
            self._send(self._lines.feed(data))

    def finish(self) -> None:
        """Log the last line, if it has no end, and the number of omitted lines."""
        if self._stream:
            self._send(self._lines.finish())
        if self._skipped:
            self._log.info(f"{self._skipped} lines of {self._stream} were not logged", stream=self._stream)

    def _omits_next(self) -> bool:
        """Return True if the next line is omitted."""
        return self._count >= LOGGED_AT_ONCE and time.monotonic() < self._next

    def _send(self, lines: list[str]) -> None:
        """Log complete lines, and count those to omit."""
        for line in lines:
            if self._omits_next():
                self._skipped += 1
                continue
            self._count += 1
            self._next = time.monotonic() + LOG_INTERVAL
            text = self._secrets.redact(line)
            self._log.info(text if len(text) <= LOGGED_LENGTH else f"{text[:LOGGED_LENGTH]}…", stream=self._stream)
