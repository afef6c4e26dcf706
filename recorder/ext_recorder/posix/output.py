"""Non-blocking output to the host.

A recorder that blocks in `write` does not read, and a host that blocks in its own write would wait forever.
O_NONBLOCK alone does not solve this: it belongs to the open file, which the host and its other children may share (a
terminal, a log file), and would change it for them as well. So each kind of file has its own method.
"""

from __future__ import annotations

import os
import select
import stat
import sys
from functools import partial

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Send: TypeAlias = Callable[[bytes | memoryview], int]

# A pipe that poll() calls writable takes this many bytes without waiting.
SAFE_BYTES = select.PIPE_BUF
# Time that a message of the recorder waits until it can be written, in milliseconds.
TELL_MS = 1_000


class OutputSink:
    """Destination of bytes: a file that may be full, and the bytes that wait for room.

    Attributes:
        fd: file to poll until it is writable.
        send: writes as many bytes as possible without blocking, and returns their number. Raises BlockingIOError if it
            can write none, another OSError if the reader has closed the file.
        close: closes the file, so that the reader gets the end of file.
    """

    __slots__ = ("close", "fd", "send")

    def __init__(self, fd: int, send: Send, close: Callable[[], None]) -> None:
        self.fd = fd
        self.send = send
        self.close = close


def pipe_outlet(fd: int) -> OutputSink:
    """Return the destination for a non-blocking pipe that no other process shares."""
    return OutputSink(fd, partial(os.write, fd), partial(os.close, fd))


def host_outlet(fd: int) -> OutputSink:
    """Return the destination for standard output (1) or error (2). Closing it puts /dev/null in the place of `fd`."""
    kind = stat.S_IFMT(os.fstat(fd).st_mode)
    if kind == stat.S_IFSOCK:  # hosts that run on Node pass sockets
        import socket  # 5 ms, and most hosts pass pipes

        copy = socket.socket(fileno=os.dup(fd))

        def send(data: bytes | memoryview) -> int:
            return copy.send(data, socket.MSG_DONTWAIT)

        def close() -> None:
            copy.close()
            release(fd)

        return OutputSink(copy.fileno(), send, close)
    if kind in (stat.S_IFIFO, stat.S_IFCHR):
        try:
            own = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY)
        except OSError:  # not on Linux, a pipe of another user, or one without a reader
            return OutputSink(fd, partial(_cautious_write, fd), partial(release, fd))

        def close_both() -> None:
            os.close(own)
            release(fd)

        return OutputSink(own, partial(os.write, own), close_both)
    return OutputSink(fd, partial(os.write, fd), partial(release, fd))  # a file on a disk never blocks


def release(fd: int) -> None:
    """Close one of the descriptors 0, 1, 2, leaving /dev/null in its place."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, fd)
    os.close(null)


def open_files() -> set[int]:
    """Return the open descriptors of this process, except the standard files."""
    descriptors = set()
    for name in os.listdir("/dev/fd"):  # noqa: PTH208 - pathlib would be imported for this line alone
        try:
            os.fstat(int(name))
        except OSError:  # the descriptor of the listing itself
            continue
        descriptors.add(int(name))
    return descriptors - {0, 1, 2}


def unread(fd: int) -> int:
    """Return the number of bytes written to a file that its reader has not read yet; 0 if that is not known.

    For a TCP connection these are the bytes that the other machine has not acknowledged.

    Args:
        fd: the writing end.
    """
    from fcntl import ioctl
    from termios import FIONREAD, TIOCOUTQ

    kind = stat.S_IFMT(os.fstat(fd).st_mode)
    if kind not in (stat.S_IFIFO, stat.S_IFCHR, stat.S_IFSOCK):
        return 0
    try:
        answer = ioctl(fd, FIONREAD if kind == stat.S_IFIFO else TIOCOUTQ, bytes(4))
    except OSError:  # closed by its reader, or a device without a queue
        return 0
    return int.from_bytes(answer, sys.byteorder)


def _cautious_write(fd: int, data: bytes | memoryview) -> int:
    """Write at most the number of bytes that poll() guarantees."""
    poll = select.poll()
    poll.register(fd, select.POLLOUT)
    if not poll.poll(0):
        raise BlockingIOError
    return os.write(fd, data[:SAFE_BYTES])


def write_message(outlet: OutputSink, message: str) -> None:
    """Write one line for the user; give up after `TELL_MS` if it is not read.

    Args:
        message: without the name of the program; "" writes nothing.
    """
    rest = f"ext-recorder: {message}\n".encode(errors="backslashreplace") if message else b""
    room = select.poll()
    room.register(outlet.fd, select.POLLOUT)
    while rest and room.poll(TELL_MS):
        try:
            rest = rest[outlet.send(rest) :]
        except BlockingIOError:
            continue
        except OSError:
            return
