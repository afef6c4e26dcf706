"""Byte channels to child processes and servers, and the wait that moves bytes over several of them.

Output is read while input is written: a child that writes more than a pipe holds would stop reading, and both sides
would wait forever.
"""

from __future__ import annotations

import os
from select import POLLIN, POLLOUT, poll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

READ_BYTES = 65_536


class ByteChannel:
    """Non-blocking byte stream to and from a child: two pipes, or a socket.

    Args:
        source: descriptor of its output; -1 for none.
        sink: descriptor of its input; -1 for none.
        end: ends its input.

    Attributes:
        unsent: bytes that the child has not read yet.
        ended: True after `end`.
        error: error of a write after the child has closed its input; None before. Further bytes are dropped.
        is_open: False after the end of the output.
        was_left: True if the child has ended its output before `end`.
    """

    def __init__(self, source: int, sink: int = -1, end: Callable[[], None] | None = None) -> None:
        self.source = source
        self.sink = sink
        self.unsent = memoryview(b"")
        self.ended = False
        self.error: OSError | None = None
        self.is_open = source >= 0
        self.was_left = False
        self._end = end
        for descriptor in (source, sink):
            if descriptor >= 0:
                os.set_blocking(descriptor, False)

    def send(self, data: bytes) -> None:
        """Write as much as the child reads; `wait` writes the rest."""
        self.unsent = memoryview(self.unsent.tobytes() + data if self.unsent else data)
        self.flush()

    def flush(self) -> None:
        """Write as much of the unsent bytes as the child reads."""
        if self.ended or self.error:
            self.unsent = memoryview(b"")
        try:
            while self.unsent:
                self.unsent = self.unsent[os.write(self.sink, self.unsent) :]
        except BlockingIOError:
            return
        except OSError as error:
            self.error = error
            self.unsent = memoryview(b"")

    def read(self) -> bytes | None:
        """Return available bytes; b"" at the end of the output or after an error; None if there are none."""
        try:
            data = os.read(self.source, READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            data = b""
        self.is_open = bool(data)
        self.was_left = not data and not self.ended
        return data

    def end(self) -> None:
        """End the input of the child; unsent bytes are dropped. May be called again."""
        if not self.ended and self._end:
            self._end()
        self.ended = True
        self.unsent = memoryview(b"")


def wait(channels: Iterable[ByteChannel], seconds: float, files: Iterable[int] = ()) -> set[int]:
    """Wait for output of a channel or a readable file, and write unsent bytes.

    Args:
        seconds: maximum wait; 0 or less to return at once.

    Returns:
        The readable descriptors. The set is empty after the maximum wait, or after unsent bytes were written.
    """
    writing = [channel for channel in channels if channel.unsent]
    events = dict.fromkeys(files, POLLIN) | {channel.source: POLLIN for channel in channels if channel.is_open}
    for channel in writing:
        events[channel.sink] = events.get(channel.sink, 0) | POLLOUT
    polled = poll()
    for descriptor, mask in events.items():
        polled.register(descriptor, mask)
    ready = dict(polled.poll(max(0.0, seconds) * 1_000 + 1))
    for channel in writing:
        if channel.sink in ready:
            channel.flush()
    return {descriptor for descriptor, event in ready.items() if event & ~POLLOUT}
