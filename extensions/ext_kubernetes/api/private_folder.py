"""The private folder of a connection, for the certificates and keys that the `kubernetes` package writes to files.

A killed process can't remove its folder, so the next connection does. A folder in use is locked: unlike a process id,
that also holds for processes of other containers that share the directory for temporary files.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import ExitStack, suppress
from pathlib import Path

PREFIX = "ext-kubernetes-credentials-"
LOCK = "lock"
YOUNGEST_SECONDS = 60.0  # a folder that is not locked may be a new one


class PrivateFolder:
    """A new folder that only this user can read; folders of processes that were killed are removed first.

    Attributes:
        path: of the folder.
    """

    def __init__(self) -> None:
        remove_stale()
        self.path = tempfile.mkdtemp(prefix=PREFIX)
        self._lock = os.open(Path(self.path, LOCK), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def remove(self) -> None:
        """Remove the folder and its contents."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):  # removed before
            os.close(self._lock)


def remove_stale(directory: str = "", now: float | None = None) -> None:
    """Remove folders of this user that no process has locked.

    Args:
        directory: their parent; default: the directory for temporary files.
        now: seconds since 1970.
    """
    before = (time.time() if now is None else now) - YOUNGEST_SECONDS
    with suppress(OSError), os.scandir(directory or tempfile.gettempdir()) as entries:
        for entry in entries:
            if not entry.name.startswith(PREFIX):
                continue
            with suppress(OSError), ExitStack() as stack:
                status = entry.stat(follow_symlinks=False)
                is_own = entry.is_dir(follow_symlinks=False) and status.st_uid == os.getuid()
                if not is_own or status.st_mtime > before:
                    continue
                with suppress(FileNotFoundError):  # killed before it had a lock
                    lock = os.open(Path(entry.path, LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
                    stack.callback(os.close, lock)
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # raises BlockingIOError if it is in use
                shutil.rmtree(entry.path, ignore_errors=True)
