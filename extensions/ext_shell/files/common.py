"""What operations on files share: access beneath the working directory and private temporary folders."""

from __future__ import annotations

import hashlib
import shutil
import stat
import tempfile
import threading
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, UnsetType

from ext_sdk.errors import OperationFailed
from ext_sdk.files import Workdir

if TYPE_CHECKING:
    from ext_sdk.context import Context
    from ext_sdk.deadline import Deadline


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


FilePath = Annotated[str, Meta(min_length=1, description="In the working directory, or a path that make-temp gave")]
Mode = Annotated[str, Meta(pattern="^[0-7]{3,4}$", description="Permissions in octal, quoted", examples=["0644"])]
MaxSize = Annotated[int, Meta(ge=0, description="Bytes; a larger file is a failure, not read")]
DEFAULT_MAX_SIZE = 10 * 1024 * 1024  # bytes; whole files are held in memory
CHUNK = 1024 * 1024  # bytes


def workdir_for(context: Context, path: str) -> Workdir:
    """The directory that a path of the user is in: a private temporary one, or else the task's working directory.

    Raises:
        OperationFailed: the working directory is not there.
    """
    private = context.state(PrivateTemps).directory_of(path)
    if private:
        return Workdir(private)
    if not context.workdir.is_dir():
        raise OperationFailed(
            "the working directory does not exist",
            error=f"the working directory {context.workdir} does not exist, or is no directory; "
            "the host has to make it before it calls",
        )
    return Workdir(context.workdir)


def permissions(mode: str | UnsetType) -> int | None:
    """The number of permissions written in octal; None where none were given."""
    return None if isinstance(mode, UnsetType) else int(mode, 8)


def permissions_text(mode: int) -> str:
    """Permissions in octal, four digits."""
    return f"{stat.S_IMODE(mode):04o}"


def sha256_of(workdir: Workdir, path: str, deadline: Deadline) -> str:
    """The SHA-256 of a regular file, in hex. Raises OperationFailed where there is no time to read all of it."""
    digest = hashlib.sha256()
    with workdir.open_regular(path) as file:
        while chunk := file.read(CHUNK):
            in_time(deadline, f"reading {path!r}")
            digest.update(chunk)
    return digest.hexdigest()


def in_time(deadline: Deadline, doing: str) -> None:
    """Raise OperationFailed when the deadline is over."""
    if deadline.expired:
        raise OperationFailed(f"there was no time left while {doing}")


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 file`, `2 files`, `2 directories`."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
