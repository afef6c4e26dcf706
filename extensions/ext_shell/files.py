"""File access that operations share: working directory, private temporary directories, permissions, checksums."""

from __future__ import annotations

import hashlib
import shutil
import stat
import tempfile
import threading
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ext_sdk.errors import OperationFailed
from ext_sdk.files import Workdir

if TYPE_CHECKING:
    from ext_sdk.context import Context
    from ext_sdk.polling import Deadline


class PrivateTemps:
    """Private temporary directories of one working directory. Thread-safe.

    Each is readable by its owner only. `close()` removes them all; an extension that is killed leaves them behind.
    """

    def __init__(self) -> None:
        self._directories: list[Path] = []
        self._lock = threading.Lock()

    def make(self) -> Path:
        """Create an empty directory. Raises OSError."""
        directory = Path(tempfile.mkdtemp(prefix="ext-shell-")).resolve()
        with self._lock:
            self._directories.append(directory)
        return directory

    def directory_of(self, path: str) -> Path | None:
        """Return the private directory that contains an absolute path, or is that path."""
        with self._lock:
            directories = (path_ for path_ in self._directories if PurePosixPath(path).is_relative_to(path_))
            return next(directories, None)

    def close(self) -> None:
        """Remove all directories and their contents; entries that cannot be removed stay."""
        with self._lock:
            directories, self._directories = self._directories, []
        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)


FilePath = Annotated[
    str, Meta(min_length=1, description="Path in the working directory, or one below the output of make-temp")
]
Mode = Annotated[str, Meta(pattern="^[0-7]{3,4}$", description="Permissions in octal, quoted", examples=["0644"])]
MaxSize = Annotated[int, Meta(ge=0, description="Maximum size in bytes; the operation fails for a larger file")]
DEFAULT_MAX_SIZE = 10 * 1024 * 1024  # bytes; whole files are held in memory
CHUNK = 1024 * 1024  # bytes


def workdir_for(context: Context, path: str) -> Workdir:
    """Return the directory that a user's path is in: a private temporary one, else the task's working directory.

    Raises:
        OperationFailed: the working directory does not exist.
    """
    private = context.state(PrivateTemps).directory_of(path)
    if private:
        return Workdir(private)
    if not context.workdir.is_dir():
        raise OperationFailed(
            "the working directory does not exist",
            error=f"the working directory {context.workdir} does not exist or is not a directory; "
            "the host must create it before the call",
        )
    return Workdir(context.workdir)


def permissions_text(mode: int) -> str:
    """Return permissions as four octal digits."""
    return f"{stat.S_IMODE(mode):04o}"


def sha256_of(workdir: Workdir, path: str, deadline: Deadline) -> str:
    """Return the SHA-256 of a regular file, in hexadecimal. Raises OperationFailed if the deadline passes before."""
    digest = hashlib.sha256()
    with workdir.open_regular(path) as file:
        while chunk := file.read(CHUNK):
            check_time(deadline, f"reading {path!r}")
            digest.update(chunk)
    return digest.hexdigest()


def check_time(deadline: Deadline, doing: str) -> None:
    """Raise OperationFailed if the deadline has passed."""
    if deadline.expired:
        raise OperationFailed(f"the time was up while {doing}")
