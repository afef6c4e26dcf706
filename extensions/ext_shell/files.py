"""File access that operations share: working directory, private temporary directories, permissions, checksums."""

from __future__ import annotations

import fnmatch
import hashlib
import shutil
import stat
import tempfile
import threading
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta

from ext_sdk.args import Computed
from ext_sdk.files import Workdir, kind_of
from ext_sdk.result import OperationFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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
Mode = Annotated[
    str,
    Meta(pattern="^[0-7]{3,4}$", description="Permissions in octal, quoted", examples=["0644"]),
    Computed,
]
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


def readable_for(context: Context, path: str) -> Workdir:
    """Return the directory that a path to read is in: that of an artifact of this session, else see `workdir_for`."""
    artifacts = context.directory_of_artifact(path)
    return Workdir(artifacts) if artifacts else workdir_for(context, path)


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


def matching_paths(workdir: Workdir, pattern: str, deadline: Deadline) -> list[str]:
    """Return the paths that match a pattern, each directory after its contents. Symbolic links are not followed.

    Args:
        pattern: `*`, `?` and `[a-z]` match within a name, and no name that begins with a dot unless the pattern
            does; `**` as a complete component matches any number of directories, zero included.

    Raises:
        PathEscapes: the pattern leads out of the working directory.
        OperationFailed: the deadline passed.
    """
    parts = workdir.relative(pattern).split("/")
    try:
        paths = dict.fromkeys(_below(workdir, "", parts, deadline))
    except RecursionError:
        raise OperationFailed(
            "directories are nested too deeply", error=f"{pattern}: directories are nested too deeply to be searched"
        ) from None
    return sorted(paths, key=lambda path: (-path.count("/"), path))


def _below(workdir: Workdir, directory: str, parts: Sequence[str], deadline: Deadline) -> Iterator[str]:
    """Yield the paths in a directory that match the components `parts`; one may come twice."""
    check_time(deadline, f"searching {directory or '.'!r}")
    try:
        names = workdir.names(directory or ".")
    except FileNotFoundError:  # another process removed it
        return
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _below(workdir, directory, rest or ["*"], deadline)
    for name in names:
        path = f"{directory}/{name}" if directory else name
        if part == "**":
            if not name.startswith(".") and is_directory(workdir, path):
                yield from _below(workdir, path, parts, deadline)
        elif fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith(".")):
            if not rest:
                yield path
            elif is_directory(workdir, path):
                yield from _below(workdir, path, rest, deadline)


def is_directory(workdir: Workdir, path: str) -> bool:
    """Return True for a directory itself, not for a link to one."""
    return workdir.exists(path) and kind_of(workdir.stat(path, follow=False).st_mode) == "directory"
