"""Write a cassette: lock NAME.partial, append lines, rename it to NAME at the end.

The kernel releases the lock (flock) with its process, however that ends. A partial file without a lock was left by a
crashed recorder: it is renamed for `ext-recorder recover`, not overwritten.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress
from itertools import count

from ext_recorder.errors import CassetteInUse, UsageError

from .events import Data, event_line, raw_line
from .header import Header, encode_header, encode_trailer
from .paths import PARTIAL_FLAGS, lock, partial_of, target_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path
    from typing import Self

    from ext_sdk.core.wire.framing import Framing

    from .events import Event


def claim(path: Path) -> tuple[int, Path | None]:
    """Create NAME.partial and lock it.

    Returns:
        The descriptor of the empty file, opened for appending; and the new name of the partial file of a crashed
        recorder, if there was one.

    Raises:
        CassetteInUse: another process has locked it.
        OSError: the file cannot be created.
    """
    partial = partial_of(path)
    moved: Path | None = None
    while True:
        fd = os.open(partial, PARTIAL_FLAGS, 0o666)
        try:
            _lock(fd, path)
            # Its writer may have renamed it between the open and the lock.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(fd), partial.stat(follow_symlinks=False)):
                    if os.fstat(fd).st_size == 0:
                        return fd, moved
                    names = (partial.with_name(f"{partial.name}.{number}") for number in count(1))
                    moved = next(name for name in names if not name.exists())
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


def _lock(fd: int, path: Path) -> None:
    try:
        lock(fd)
    except BlockingIOError:
        raise CassetteInUse(path) from None


class Writer:
    """Writer of a cassette. A context manager: an exception leaves the partial file, without its lock.

        writer = Writer(path, header)
        writer.append([note(…), note(…)])
        writer.finish(redactor.fired)

    Args:
        path: the cassette. Its folder is created if it is missing.
        header: its header, without secrets and machine paths; None to call `begin` later.
        held: the empty partial file, from `hold_new`; None to create it.

    Attributes:
        path: the cassette.
        left_behind: new name of the partial file of a crashed recorder; None if there was none.

    Raises:
        CassetteInUse: another recorder is writing it.
        UsageError: the path belongs to something other than a file.
        OSError: the file cannot be created.
    """

    def __init__(self, path: Path, header: Header | None, *, held: int | None = None) -> None:
        self.path = path = type(path)(target_of(str(path)))
        path.parent.mkdir(parents=True, exist_ok=True)
        self._fd, self.left_behind = claim(path) if held is None else (held, None)
        self._size = 0  # bytes of complete lines
        if header:
            self.begin(header)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def begin(self, header: Header) -> None:
        """Write the header, in place of everything that was written so far. Raises OSError."""
        os.ftruncate(self._fd, 0)
        self._size = 0
        self._write(encode_header(header))

    def append(self, lines: list[bytes]) -> None:
        """Append event lines by one write; after it, a kill of this process loses none of them.

        Raises:
            OSError: the disk is full, for example; a line that was written in part is removed.
        """
        self._write(b"".join(lines))

    def seal(self, redacted: tuple[str, ...] = ()) -> None:
        """Write the last line, which lists the redaction rules: after it, the partial file is a readable cassette."""
        self._write(encode_trailer(redacted))

    def publish(self) -> None:
        """Rename the partial file to the cassette."""
        partial_of(self.path).replace(self.path)
        self.close()

    def finish(self, redacted: tuple[str, ...] = ()) -> None:
        """Write the last line, and rename the partial file to the cassette."""
        self.seal(redacted)
        self.publish()

    def discard(self) -> None:
        """Remove the partial file: nothing was recorded."""
        partial_of(self.path).unlink(missing_ok=True)
        self.close()

    def close(self) -> None:
        """Close the file as it is, and release the lock. Do nothing if the file is finished."""
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
        header: its `redacted` is not written, because it is at the end.
        lines: the lines of its events.
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
        raise UsageError(f"{path} exists already: choose another name, or replace it by --force")
    writer = Writer(path, header)
    written = 0
    try:
        batch: list[bytes] = []
        for line in lines:
            batch.append(line)
            written += 1
            if len(batch) >= BATCH_LINES:
                writer.append(batch)
                batch.clear()
        writer.append(batch)
        writer.finish(redacted())
    except BaseException:
        writer.discard()
        raise
    return written


def encode_event(event: Event, framing: Framing) -> bytes:
    """Return the line for an event; as raw bytes if YAML cannot represent its text."""
    try:
        return event_line(event)
    except ValueError:
        assert isinstance(event, Data)
        wire = event.own_framing(framing).encode(event.payload, event.head)
        return raw_line(event.kind, event.time, wire, conn=event.conn)
