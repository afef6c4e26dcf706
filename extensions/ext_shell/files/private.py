"""Temporary directories outside of the working directory, removed when the extension ends."""

from __future__ import annotations

import shutil
import tempfile
import threading
from pathlib import Path, PurePosixPath


class PrivateTemps:
    """The private temporary directories of one working directory; safe to use from several threads.

    Each is readable by its owner only. `close()` removes them all; an extension that is killed leaves them behind.
    """

    def __init__(self) -> None:
        self._directories: list[Path] = []
        self._lock = threading.Lock()

    def make(self) -> Path:
        """A new, empty directory. Raises OSError."""
        directory = Path(tempfile.mkdtemp(prefix="ext-shell-")).resolve()
        with self._lock:
            self._directories.append(directory)
        return directory

    def directory_of(self, path: str) -> Path | None:
        """The private directory that an absolute path is in, or is."""
        with self._lock:
            return next((each for each in self._directories if PurePosixPath(path).is_relative_to(each)), None)

    def close(self) -> None:
        """Remove them, with all that is in them; what can't be removed stays."""
        with self._lock:
            directories, self._directories = self._directories, []
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)
