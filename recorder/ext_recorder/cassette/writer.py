"""Write a cassette: lock NAME.partial, append lines, rename it to NAME at the end.

The lock is the kernel's (flock), so it is gone with its process, however that ended. A partial file without a
lock is what a crashed recorder left: it is moved aside, not overwritten, for `ext-recorder recover`.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from ext_recorder.errors import CassetteInUse, UsageError

from .events import OWN_FILES, STDERR_FRAMING, Data, event_line, raw_line
from .header import Header, encode_header, encode_trailer
from .paths import partial_of, target_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import Self

    from ext_sdk.core.wire.framing import Framing

    from .events import Event


try:
    from fcntl import LOCK_EX, LOCK_NB, flock

    LOCKS = True
except ImportError:  # Windows: a claim is then the creation of the file alone, and a crash leaves it behind
    LOCKS = False


def claim(path: Path) -> tuple[int, Path | None]:
    """Create NAME.partial and hold it.

    Args:
        path: the cassette, NAME.

    Returns:
        The file descriptor, empty and ready for appending, and where an earlier recorder's leftovers were
        moved, if any.

    Raises:
        CassetteInUse: another process holds the claim.
        OSError: the file can't be created.
    """
    partial = partial_of(path)
    moved: Path | None = None
    while True:
        fd = os.open(partial, _FLAGS, 0o666)
        try:
            _lock(fd, path)
            # Else its writer finished, and renamed it, between our open and our lock.
            if _is_still(fd, partial):
                if os.fstat(fd).st_size == 0:
                    return fd, moved
                moved = _free_name(partial)
                partial.rename(moved)
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)


@contextmanager
def hold(partial: Path) -> Iterator[None]:
    """Lock an existing partial file. Raises CassetteInUse; OSError if it does not exist."""
    fd = os.open(partial, os.O_RDWR | getattr(os, "O_CLOEXEC", 0))
    try:
        _lock(fd, partial)
        yield
    finally:
        os.close(fd)


_FLAGS: int = (
    (os.O_RDWR | os.O_CREAT | os.O_APPEND)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | (0 if LOCKS else os.O_EXCL)
)


def _lock(fd: int, path: Path) -> None:
    if LOCKS:
        try:
            flock(fd, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            raise CassetteInUse(path) from None


def _is_still(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False


def _free_name(partial: Path) -> Path:
    number = 1
    while (name := partial.with_name(f"{partial.name}.{number}")).exists():
        number += 1
    return name


class Writer:
    """One cassette being written. A context manager: an exception leaves the partial file, without its lock.

        writer = Writer(path, header)
        writer.append([note(…), note(…)])
        writer.finish(redactor.fired)

    Args:
        path: the cassette. Its folder is made where it is missing.
        header: its first lines; secrets and machine paths are already out of it. None: `begin` will bring them.

    Attributes:
        path: the cassette.
        left_behind: where the partial file of a crashed recorder was moved to, or None.

    Raises:
        CassetteInUse: another recorder is writing it.
        UsageError: the path is that of something else than a file.
        OSError: it can't be created.
    """

    def __init__(self, path: Path, header: Header | None) -> None:
        self.path = path = type(path)(target_of(str(path)))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd, self.left_behind = claim(path)
        self._size = 0  # bytes of whole lines
        if header:
            self.begin(header)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def begin(self, header: Header) -> None:
        """Write the first lines, where they were not known from the start. What was written before is taken back.

        Raises:
            OSError: it can't be written.
        """
        os.ftruncate(self._fd, 0)
        self._size = 0
        self._write(encode_header(header))

    def append(self, lines: list[bytes]) -> None:
        """Append event lines by one write; a kill of this process loses none of them from then on.

        Raises:
            OSError: the disk is full, or the like; a line that got on the disk in part is taken back.
        """
        self._write(b"".join(lines))

    def seal(self, redacted: tuple[str, ...] = ()) -> None:
        """Write the last line: the partial file can be read from now on.

        Args:
            redacted: names of the redaction rules that took something out.
        """
        self._write(encode_trailer(redacted))

    def publish(self) -> None:
        """Give the cassette its name."""
        partial_of(self.path).replace(self.path)
        self.close()

    def finish(self, redacted: tuple[str, ...] = ()) -> None:
        """Write the last line, and give the cassette its name."""
        self.seal(redacted)
        self.publish()

    def discard(self) -> None:
        """Nothing was recorded: take the partial file away."""
        partial_of(self.path).unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the file as it is and release the lock. Does nothing if the file is finished."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        written = 0
        try:
            while written < len(data):
                written += os.write(self._fd, view[written:])
        except OSError:
            written = data.rfind(b"\n", 0, written) + 1
            os.ftruncate(self._fd, self._size + written)
            raise
        finally:
            self._size += written


BATCH_LINES = 500  # lines per write


def write_cassette(
    path: Path, header: Header, lines: Iterable[bytes], redacted: Callable[[], tuple[str, ...]], *, replace: bool
) -> int:
    """Write a cassette atomically.

    Args:
        path: the file.
        header: its header; the `redacted` of the header is not written, because it is at the end.
        lines: its events.
        redacted: returns the redaction rules; called after the last event.
        replace: replace an existing file.

    Returns:
        The number of events.

    Raises:
        UsageError: the file exists.
        CassetteInUse: a recorder is writing it.
        OSError: the file cannot be written.
    """
    if path.exists() and not replace:
        raise UsageError(f"{path} is there already: choose another name, or replace it by --force")
    writer = Writer(path, header)
    count = 0
    try:
        batch: list[bytes] = []
        for line in lines:
            batch.append(line)
            count += 1
            if len(batch) >= BATCH_LINES:
                writer.append(batch)
                batch.clear()
        writer.append(batch)
        writer.finish(redacted())
    except BaseException:
        writer.discard()
        raise
    return count


def encode_event(event: Event, framing: Framing) -> bytes:
    """The line for an event, raw where YAML can't hold its text.

    Args:
        event: any; from another format, too.
        framing: of the session's messages.
    """
    try:
        return event_line(event)
    except ValueError:
        assert isinstance(event, Data)
        own = STDERR_FRAMING if event.kind == "err" or event.conn == OWN_FILES else framing
        return raw_line(event.kind, event.time, own.encode(event.payload, event.head), conn=event.conn)
