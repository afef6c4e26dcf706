"""Messages on stdin and stdout, claimed at start so that nothing else in the process can write to them."""

from __future__ import annotations

import os

CHUNK_BYTES = 65_536
PIPE_BYTES = 262_144  # a pipe holds 65,536 bytes unless it is enlarged


class PeerGone(Exception):
    """The peer closed its end; nothing that is written will be read."""


class Stdio:
    """Private copies of the descriptors 0 and 1, which carry the messages of a child.

    Attributes:
        input: descriptor to read from.
        output: descriptor to write to.
    """

    __slots__ = ("_enlarged", "input", "output")

    def __init__(self, input: int, output: int) -> None:
        self.input = input
        self.output = output
        self._enlarged = False

    @classmethod
    def claim(cls, log: str = "") -> Stdio:
        """Copy the descriptors 0 and 1, which become /dev/null and a copy of stderr.

        After this, output of print, of libraries and of children goes to stderr, and no child reads the host's
        messages. Closed descriptors among 0, 1 and 2 are opened as /dev/null first: a file opened later would get that
        number, and receive the messages.

        Args:
            log: file that gets stderr if that is the pipe of stdout, as in the emulator of a G-Assist engine; "" to
                leave stderr as it is. If the file cannot be written, the output is lost.
        """
        while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(null, True)  # noqa: FBT003  (takes no keyword)
        stdio = cls(os.dup(0), os.dup(1))  # not inheritable (PEP 446)
        if log and os.path.sameopenfile(1, 2) and not os.isatty(1):
            try:
                file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            except OSError:
                file = os.dup(null)
            os.dup2(file, 2)
            os.close(file)
        os.dup2(null, 0)
        os.dup2(2, 1)
        os.close(null)
        return stdio

    def read(self) -> bytes:
        """Return up to CHUNK_BYTES; b"" at end of file, or after the connection broke."""
        while True:
            try:
                return os.read(self.input, CHUNK_BYTES)
            except BlockingIOError:
                _wait(self.input, for_input=True)
            except OSError:
                return b""

    def write(self, data: bytes) -> None:
        """Write all bytes. Raises PeerGone."""
        if len(data) > CHUNK_BYTES and not self._enlarged:
            self._enlarged = True  # else each part of the message waits until the host has read the one before
            enlarge(self.output, PIPE_BYTES)
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.output, view) :]
            except BlockingIOError:
                _wait(self.output, for_input=False)
            except OSError as error:
                raise PeerGone(f"the host reads no more: {error}") from error


def enlarge(pipe: int, size: int) -> None:
    """Make a pipe hold `size` bytes. An administrator may grant less; then more and smaller writes are needed."""
    import fcntl  # not needed before a long message

    if hasattr(fcntl, "F_SETPIPE_SZ"):
        try:  # noqa: SIM105 - contextlib would be imported for this line alone
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, size)
        except OSError:
            pass


def _wait(descriptor: int, *, for_input: bool) -> None:
    """Wait for a descriptor that a host made non-blocking; the mode is shared by all processes that have it."""
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN if for_input else select.POLLOUT)
    poll.poll()
