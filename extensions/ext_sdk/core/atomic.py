"""A file that is there with all its bytes or not at all: written beside, then renamed."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC  # a file that nobody else has
NEW_FILE = 0o666  # permissions, less the umask


@contextmanager
def atomic_write(name: str, directory: int, mode: int | None) -> Iterator[BinaryIO]:
    """A stream to a temporary file that takes the name when the block ends well, and goes when it does not.

    Args:
        name: of the file, in the directory.
        directory: descriptor of it.
        mode: permissions; None: 0666 less the umask.
    """
    temporary = f".{secrets.token_hex(8)}.tmp"
    descriptor = os.open(temporary, NEW, NEW_FILE, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            yield file
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException:
        os.unlink(temporary, dir_fd=directory)
        raise
