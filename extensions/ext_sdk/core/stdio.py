"""Standard streams: messages on stdin and stdout, which nothing else can write to; streams that are closed or full."""

from __future__ import annotations

import io
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_NO_OUTPUT = 2  # standard output is closed, or cannot be written
EXIT_NO_READER = 141  # 128 + SIGPIPE, as after `show | head`
CLOSED = "standard output: closed; redirect it to a file or a pipe, or to /dev/null if it is not needed"
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
        claim_standard_files()
        null = os.open(os.devnull, os.O_RDWR)
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


class OutputFailed(BaseException):
    """Standard output cannot be written; `str()` is the message for the user.

    Not an Exception, because handlers of OSError would report it as an error of another file, or ignore it as argparse
    does.
    """


class _OutputFile(io.FileIO):
    """File of standard output, which raises OutputFailed; BrokenPipeError if its reader has closed it."""

    message = ""  # of the next write, which fails; "" to write

    def write(self, data: object, /) -> int:
        message, self.message = self.message, ""
        if message:
            raise OutputFailed(message)
        try:
            return super().write(data)  # type: ignore[arg-type]  # any buffer
        except (BrokenPipeError, BlockingIOError):
            raise
        except OSError as error:
            remedy = "free space there, or redirect it to another file"
            raise OutputFailed(f"standard output: {error.strerror}; {remedy}") from None


def run_program(program: str, main: Callable[[], int]) -> int:
    """Run a program whose standard streams may be closed or full, and write what its output has buffered.

    A closed standard input is empty, and what is written to a closed standard error is lost.

    Returns:
        The exit code of `main`; EXIT_NO_OUTPUT, after one line on standard error, if standard output is closed and the
        program writes to it, or if it cannot be written; EXIT_NO_READER if its reader has closed it.
    """
    _replace_streams()
    try:
        try:
            return main()
        finally:
            sys.stdout.flush()
    except (OutputFailed, BrokenPipeError) as failure:
        # What is buffered goes to /dev/null: the interpreter writes it at its end, and reports if that fails.
        os.dup2(os.open(os.devnull, os.O_RDWR), sys.stdout.fileno())
        if isinstance(failure, BrokenPipeError):
            return EXIT_NO_READER
        sys.stderr.write(f"{program}: {failure}\n")
        return EXIT_NO_OUTPUT


def _replace_streams() -> None:
    """Open closed standard streams, and replace standard output by one that raises OutputFailed.

    A standard output that is not that of the interpreter is kept: a program that runs this one reads it.
    """
    is_closed = sys.stdout is None
    claim_standard_files()
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    if not is_closed and sys.stdout is not sys.__stdout__:
        return
    file = _OutputFile(1, "w", closefd=False)
    if is_closed:
        file.message = CLOSED
        sys.stdout = io.TextIOWrapper(io.BufferedWriter(file), encoding="utf-8")
        return
    former = sys.stdout
    former.flush()
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(file),
        encoding=former.encoding,
        errors=former.errors,
        line_buffering=bool(former.line_buffering),
        write_through=bool(getattr(former, "write_through", False)),
    )


def claim_standard_files() -> None:
    """Open /dev/null for each of 0, 1 and 2 that is closed, so that no file that is opened later gets such a number."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)  # noqa: FBT003  (takes no keyword)
    os.close(fd)


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
