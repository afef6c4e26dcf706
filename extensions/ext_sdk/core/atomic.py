"""Atomic writes: a file appears with all its bytes or not at all."""

from __future__ import annotations

import os
import secrets
from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC  # flags that create a file
NEW_FILE = 0o666  # permissions, less the umask


@contextmanager
def atomic_write(name: str, directory: int | None = None, mode: int | None = None) -> Iterator[BinaryIO]:
    """Open a temporary file that is renamed when the block succeeds, and removed when it fails.

    Args:
        directory: descriptor of the directory that the name is relative to; None: the working directory.
        mode: permissions; None: 0666 less the umask.

    Raises:
        OSError: it cannot be written, such as on a full disk; the error has the name.
    """
    temporary = os.path.join(os.path.dirname(name), f".{secrets.token_hex(8)}.tmp")  # noqa: PTH118, PTH120
    descriptor = os.open(temporary, NEW, NEW_FILE, dir_fd=directory)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if mode is not None:
                os.fchmod(descriptor, mode)
            yield file
        os.replace(temporary, name, src_dir_fd=directory, dst_dir_fd=directory)
    except BaseException as error:
        os.unlink(temporary, dir_fd=directory)
        if isinstance(error, OSError) and error.filename in {None, temporary}:  # as of write()
            error.filename = name
        raise
