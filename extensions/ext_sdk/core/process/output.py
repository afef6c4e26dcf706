"""Output of a command in bounded memory, and the poll loop that moves its input and output."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .child import Child
    from .spawner import Command, Spawner

TAIL_BYTES = 64 * 1024


class Output:
    """Beginning of a stream up to a limit, and the last 64 KiB of the rest.

    It stays in memory, because a file could hold secrets that only become known when the command has ended.

    Args:
        cap: limit of the beginning, in bytes.

    Attributes:
        size: bytes written so far, kept or not.
    """

    __slots__ = ("_cap", "_head", "_tail", "size")

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._head = bytearray()
        self._tail = bytearray()
        self.size = 0

    def write(self, data: bytes) -> None:
        """Append output."""
        self.size += len(data)
        room = self._cap - len(self._head)
        if room > 0:
            self._head += data[:room]
        if room < len(data):
            self._tail += data[max(0, room) :]
            del self._tail[:-TAIL_BYTES]

    def copy(self) -> Output:
        """Return a snapshot, for reading while the output grows."""
        copied = Output(self._cap)
        copied._head, copied._tail, copied.size = self._head[:], self._tail[:], self.size
        return copied

    def since(self, offset: int) -> tuple[bytes, int]:
        """Return the output from an offset on, as far as it was kept, and the next offset."""
        tail_begins = self.size - len(self._tail)
        tail = self._tail[max(0, offset - tail_begins) :] if offset < self.size else b""
        return bytes(self._head[offset:]) + bytes(tail), self.size

    @property
    def lost(self) -> int:
        """Number of bytes that were not kept."""
        return self.size - len(self._head) - len(self._tail)

    @property
    def data(self) -> bytes:
        """All bytes that were kept; a note replaces missing ones."""
        if not self._tail:
            return bytes(self._head)
        note = f"\n[... {self.lost} of {self.size} bytes were not kept ...]\n".encode() if self.lost else b""
        return bytes(self._head) + note + bytes(self._tail)

    @property
    def text(self) -> str:
        """`data` as text; bytes that are not UTF-8 are replaced by U+FFFD."""
        return self.data.decode("utf-8", "replace")

    @property
    def exact(self) -> bool:
        """True if `text` is complete: every byte was kept, and is UTF-8."""
        if self.lost:
            return False
        try:
            self.data.decode()
        except UnicodeDecodeError:
            return False
        return True


class LineSplitter:
    """Splits a stream into lines while it is read.

    Args:
        limit: longest line that is returned, in bytes; longer ones are cut.
    """

    __slots__ = ("_limit", "_pending", "_skipping")

    def __init__(self, limit: int = 64 * 1024) -> None:
        self._limit = limit
        self._pending = b""
        self._skipping = False  # inside a line whose beginning was returned

    def feed(self, data: bytes) -> list[str]:
        """Append output, and return the lines that it completes, without their line endings."""
        *ends, rest = data.split(b"\n")
        lines = []
        for end in ends:
            line, self._pending = self._pending + end, b""
            if self._skipping:
                self._skipping = False
            else:
                lines.append(_text(line[: self._limit]))
        if not self._skipping:
            self._pending += rest
            if len(self._pending) > self._limit:
                lines += self.finish()
                self._skipping = True
        return lines

    def skip(self, data: bytes) -> int:
        """Append output, and return the number of lines that `feed` would return, without splitting them."""
        ends = data.count(b"\n")
        if not ends:
            return len(self.feed(data))
        ended = ends - self._skipping
        self._pending, self._skipping = b"", False
        return ended + len(self.feed(data[data.rfind(b"\n") + 1 :]))

    def finish(self) -> list[str]:
        """Return the last line if it had no line ending."""
        line, self._pending = self._pending[: self._limit], b""
        return [_text(line)] if line else []


def _text(line: bytes) -> str:
    return line.removesuffix(b"\r").decode("utf-8", "replace")


READ_BYTES = 65_536
QUIET = 0.1  # seconds without output after which the outputs of an ended command are closed

Sink = Callable[[bytes], object]


def start_piped(
    spawner: Spawner,
    command: Command,
    stdout: Sink,
    stderr: Sink,
    *,
    stdin: int | None = None,
    data: bytes | None = None,
) -> tuple[Child, Pump]:
    """Start a command; the pump passes its output to the sinks.

    Args:
        stdin: descriptor that the command reads, which stays open here.
        data: input, if there is no `stdin`; None: the command reads from /dev/null.

    Raises:
        ProcessError, ValueError: as Spawner.spawn.
        OSError: the system has no more descriptors.
    """
    with ExitStack() as theirs, ExitStack() as ours:
        feed = None
        if stdin is None and data is not None:
            stdin, feed = os.pipe()
            theirs.callback(os.close, stdin)
            ours.callback(os.close, feed)
        elif stdin is None:
            stdin = os.open(os.devnull, os.O_RDONLY)
            theirs.callback(os.close, stdin)
        readers, writers = zip(os.pipe(), os.pipe(), strict=True)
        for reader, writer in zip(readers, writers, strict=True):
            theirs.callback(os.close, writer)
            ours.callback(os.close, reader)
        child = spawner.spawn(command, stdin=stdin, stdout=writers[0], stderr=writers[1])
        ours.pop_all()  # the pump closes them
        return child, Pump(child, dict(zip(readers, (stdout, stderr), strict=True)), stdin=feed, data=data or b"")


class Pump:
    """One poll loop over a child's streams and its supervisor's reports.

    Args:
        child: as spawned; from now on its reports are read here.
        outputs: sink of each descriptor to read; the descriptors are closed at end of file.
        stdin: descriptor to write `data` to; closed when all is written or the command has closed it; None for none.
    """

    def __init__(
        self, child: Child, outputs: Mapping[int, Sink], *, stdin: int | None = None, data: bytes = b""
    ) -> None:
        self._child = child
        self._sinks = dict(outputs)
        self._stdin = stdin
        self._data = memoryview(data)
        self._poll = select.poll()
        self._poll.register(child.fileno(), select.POLLIN)
        self._watching = True
        self._last_byte = time.monotonic()
        for descriptor in outputs:
            self._poll.register(descriptor, select.POLLIN)
        if stdin is not None:
            os.set_blocking(stdin, False)
            self._poll.register(stdin, select.POLLOUT)

    @property
    def done(self) -> bool:
        """True if no process of the command is left and all its output was read."""
        return self._child.gone and not self._sinks

    def step(self, timeout: float) -> bool:
        """Move available bytes; wait for the first of them up to `timeout` seconds.

        Returns:
            True if there was output to read.
        """
        if self.done:
            return False
        read = False
        if self._child.gone:
            timeout = min(timeout, QUIET)
        ready = self._poll.poll(timeout * 1000)
        for descriptor, _ in ready:
            if descriptor == self._stdin:
                self._write(descriptor)
            elif descriptor in self._sinks:
                read = True
                if data := os.read(descriptor, READ_BYTES):
                    self._last_byte = time.monotonic()
                    self._sinks[descriptor](data)
                else:
                    self._drop(descriptor)
        self._child.update()
        if self._child.gone:
            self._after_the_end(silent=not ready)
        return read

    def run(self, until: Callable[[], bool], tick: float = 0.05) -> bool:
        """Move bytes until the command has ended or `until()`, which is called every `tick` seconds, returns True.

        Returns:
            True if the command has ended.
        """
        while not self.done:
            if until():
                return False
            self.step(tick)
        return True

    def close(self) -> None:
        """Close all descriptors; the child is unaffected."""
        for descriptor in list(self._sinks):
            self._drop(descriptor)
        self._close_stdin()

    def _after_the_end(self, *, silent: bool) -> None:
        """Close outputs that a process outside the tree holds open.

        Args:
            silent: the last poll found no output; without this, a thread that waited for a processor would measure
                silence that was none.
        """
        self._close_stdin()
        if self._watching:
            self._poll.unregister(self._child.fileno())
            self._watching = False
            self._last_byte = time.monotonic()
        if silent and time.monotonic() - self._last_byte >= QUIET:
            for descriptor in list(self._sinks):
                self._drop(descriptor)

    def _write(self, stdin: int) -> None:
        try:
            self._data = self._data[os.write(stdin, self._data[:READ_BYTES]) :]
        except BlockingIOError:
            return
        except OSError:  # the command closed its stdin, which is not an error
            self._data = self._data[:0]
        if not self._data:
            self._close_stdin()

    def _close_stdin(self) -> None:
        if self._stdin is not None:
            self._poll.unregister(self._stdin)
            os.close(self._stdin)
            self._stdin = None

    def _drop(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        os.close(descriptor)
        del self._sinks[descriptor]
