"""The claim on a cassette: whoever writes NAME.partial holds a lock on it, so that two writers never mix.

The lock is the kernel's (flock), so it is gone with its process, however that ended. A partial file without a
lock is what a crashed recorder left: it is moved aside, not overwritten, for `ext-recorder recover`.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from ext_recorder.errors import CassetteInUse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

try:
    from fcntl import LOCK_EX, LOCK_NB, flock

    LOCKS = True
except ImportError:  # Windows: a claim is then the creation of the file alone, and a crash leaves it behind
    LOCKS = False


def partial_of(path: Path) -> Path:
    """Where a cassette is written until its session ends."""
    return path.with_name(path.name + ".partial")


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
    """Keep others off a partial file that is there. Raises CassetteInUse; OSError where there is none."""
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
