"""The wire as file descriptors: claimed at start, so that nothing else in the process can write on it."""

from __future__ import annotations

import os

CHUNK_BYTES = 65_536


class PeerGone(Exception):
    """The other side closed its end; nothing that is written will be read."""


class Stdio:
    """The wire of a child: private copies of its descriptors 0 and 1.

    Attributes:
        input: descriptor to read from.
        output: descriptor to write to.
    """

    __slots__ = ("input", "output")

    def __init__(self, input: int, output: int) -> None:
        self.input = input
        self.output = output

    @classmethod
    def claim(cls) -> Stdio:
        """Move the wire away from 0 and 1, which become /dev/null and a copy of stderr.

        From here on a print, a library and a child started without care reach stderr, and no child reads the
        host's messages. Of 0, 1 and 2, what was closed is opened as /dev/null first: a file opened later would get
        that number, and be taken for the wire.
        """
        while (null := os.open(os.devnull, os.O_RDWR)) <= 2:
            os.set_inheritable(null, True)  # noqa: FBT003  (takes no keyword)
        wire = cls(os.dup(0), os.dup(1))  # not inheritable (PEP 446)
        os.dup2(null, 0)
        os.dup2(2, 1)
        os.close(null)
        return wire

    def read(self) -> bytes:
        """Some bytes, at most CHUNK_BYTES; b"" at end of file, or where the other side was torn away."""
        while True:
            try:
                return os.read(self.input, CHUNK_BYTES)
            except BlockingIOError:
                _wait(self.input, for_input=True)
            except OSError:
                return b""

    def write(self, data: bytes) -> None:
        """Write all of it. Raises PeerGone."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self.output, view) :]
            except BlockingIOError:
                _wait(self.output, for_input=False)
            except OSError as error:
                raise PeerGone(f"the host reads no more: {error}") from error


def _wait(descriptor: int, *, for_input: bool) -> None:
    """Wait for a descriptor that a host made non-blocking; the mode is shared by all who hold it."""
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN if for_input else select.POLLOUT)
    poll.poll()
