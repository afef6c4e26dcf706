"""Operation `copy`: copy files and directories within the working directory."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import PurePosixPath
from typing import Annotated

from msgspec import Meta

import ext_sdk
from ext_sdk.core.text import counted
from ext_sdk.files import NotRegular, PathEscapes, Workdir, kind_of, os_errors
from ext_shell.files import CHUNK, FilePath, check_time, workdir_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_sdk import Deadline


_PERMISSIONS = 0o777  # set-user-ID, set-group-ID and the sticky bit are not copied


class Copy(ext_sdk.Args):
    """Arguments of `copy`."""

    source: FilePath
    destination: Annotated[FilePath, Meta(description="Path of the copy itself, not of a directory to put it in")]
    overwrite: Annotated[
        bool, Meta(description="Replace existing files; a directory is merged into an existing one")
    ] = True
    parents: Annotated[bool, Meta(description="Create missing parent directories of the destination")] = True
    preserve_mode: Annotated[bool, Meta(description="Copy permissions")] = True


def copy(args: Copy, context: ext_sdk.Context) -> ext_sdk.Result:
    """Copy a file, or a directory with its contents, within the working directory.

    Symbolic links in a directory stay links; a link that leads out of the working directory is a failure.
    """
    source, target = workdir_for(context, args.source), workdir_for(context, args.destination)
    copying = _Copying(args, source, target, context.deadline)
    with os_errors("copy", args.source):
        copying.copy()
    size = counted(copying.size, "byte")
    return ext_sdk.Result.ok(
        f"Copied {counted(copying.files, 'file')} ({size}) from {args.source} to {args.destination}",
        outputs={
            "path": str(target.root / target.relative(args.destination)),
            "files": copying.files,
            "size": copying.size,
        },
    )


class _Copying:
    """Progress of one copy, within one directory or from one to another."""

    def __init__(self, args: Copy, source: Workdir, target: Workdir, deadline: Deadline) -> None:
        self._args = args
        self._source = source
        self._target = target
        self._deadline = deadline
        self._created = (0, 0)  # device and inode of the new directory, which must not be copied into itself
        self.files = 0
        self.size = 0  # bytes

    def copy(self) -> None:
        source, destination = self._source.relative(self._args.source), self._target.relative(self._args.destination)
        if self._source.root == self._target.root and PurePosixPath(destination).is_relative_to(source):
            raise ext_sdk.OperationFailed(
                f"{source} cannot be copied into itself",
                error=f"expected a destination outside of {source}, got {destination}",
            )
        status = self._source.stat(source)
        if kind_of(status.st_mode) != "directory":
            self._entry(source, destination, status)
            return
        if not self._args.overwrite and self._target.exists(destination):
            raise FileExistsError(errno.EEXIST, "the destination exists")
        if not self._args.parents:
            os.close(self._target.open(str(PurePosixPath(destination).parent), os.O_RDONLY | os.O_DIRECTORY))
        self._target.mkdir(destination)
        created = self._target.stat(destination)
        self._created = (created.st_dev, created.st_ino)
        self._contents(source, destination, status)

    def _contents(self, source: str, destination: str, status: os.stat_result) -> None:
        """Copy the entries of a directory into an existing one, and then its permissions."""
        for name in self._source.names(source):
            path = f"{source}/{name}"
            check_time(self._deadline, f"copying {path!r}; {counted(self.files, 'file')} copied before")
            self._entry(path, f"{destination}/{name}", self._source.stat(path, follow=False))
        if self._args.preserve_mode:
            descriptor = self._target.open(destination, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fchmod(descriptor, stat.S_IMODE(status.st_mode) & _PERMISSIONS)
            finally:
                os.close(descriptor)

    def _entry(self, source: str, destination: str, status: os.stat_result) -> None:
        kind = kind_of(status.st_mode)
        if kind == "directory":
            if (status.st_dev, status.st_ino) == self._created:
                raise ext_sdk.OperationFailed(f"{self._args.source} cannot be copied into itself")
            self._target.mkdir(destination)
            self._contents(source, destination, status)
        elif kind == "symlink":
            with self._source.parent(source) as (directory, name):
                text = os.readlink(name, dir_fd=directory)
            if text.startswith("/"):
                raise PathEscapes(source, str(self._source.root), f"it is a symbolic link to {text}")
            self._target.relative(f"{PurePosixPath(destination).parent}/{text}")  # raises PathEscapes if it leads out
            if self._args.overwrite and self._target.exists(destination):
                existing = kind_of(self._target.stat(destination, follow=False).st_mode)
                if existing == "directory":
                    raise NotRegular(destination, existing)
                self._target.remove(destination)
            with self._target.parent(destination) as (directory, name):
                os.symlink(text, name, dir_fd=directory)
            self.files += 1
        elif kind == "file":
            with self._source.open_regular(source) as file:
                mode = os.fstat(file.fileno()).st_mode & _PERMISSIONS if self._args.preserve_mode else None
                parents, overwrite = self._args.parents, self._args.overwrite
                with self._target.writing(destination, mode=mode, parents=parents, overwrite=overwrite) as written:
                    while chunk := file.read(CHUNK):
                        check_time(self._deadline, f"copying {source!r}")
                        written.write(chunk)
                        self.size += len(chunk)
            self.files += 1
        else:
            raise NotRegular(source, kind)
