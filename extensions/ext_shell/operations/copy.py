"""`copy`: files and directories within the working directory."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import PurePosixPath
from typing import Annotated

from msgspec import Meta

import ext_sdk
from ext_sdk.files import NotRegular, PathEscapes, Workdir, kind_of, os_errors
from ext_shell.files.common import CHUNK, FilePath, counted, in_time, workdir_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_sdk import Deadline


_PERMISSIONS = 0o777  # set-user-ID and its like are not copied


class Copy(ext_sdk.Args):
    """Arguments of `copy`."""

    source: FilePath
    destination: Annotated[FilePath, Meta(description="The copy itself, not a directory to put it in")]
    overwrite: Annotated[
        bool, Meta(description="Replace existing files; a directory is merged into an existing one")
    ] = True
    parents: Annotated[bool, Meta(description="Make missing directories of the destination")] = True
    preserve_mode: Annotated[bool, Meta(description="Copy permissions")] = True


def copy(args: Copy, context: ext_sdk.Context) -> ext_sdk.Result:
    """Copy a file, or a directory with all that is in it, inside the working directory.

    Symbolic links in a directory stay links; one that leads out of the working directory is a failure.
    """
    source, target = workdir_for(context, args.source), workdir_for(context, args.destination)
    work = _Copying(args, source, target, context.deadline)
    with os_errors("copy", args.source):
        work.copy()
    return ext_sdk.Result.ok(
        f"Copied {counted(work.files, 'file')} ({counted(work.size, 'byte')}) from {args.source} to {args.destination}",
        outputs={
            "path": str(target.root / target.relative(args.destination)),
            "files": work.files,
            "size": work.size,
        },
    )


class _Copying:
    """One copy, from one directory to another or the same, and how far it has come."""

    def __init__(self, args: Copy, source: Workdir, target: Workdir, deadline: Deadline) -> None:
        self._args = args
        self._source = source
        self._target = target
        self._deadline = deadline
        self._destination = (0, 0)  # device and inode of the directory that is made, not to copy it into itself
        self.files = 0
        self.size = 0  # bytes

    def copy(self) -> None:
        source, destination = self._source.relative(self._args.source), self._target.relative(self._args.destination)
        self._refuse_itself(source, destination)
        kind = kind_of(self._source.stat(source).st_mode)
        if kind == "directory":
            self._directory(source, destination, top=True)
        elif kind == "file":
            self._file(source, destination)
        else:
            raise NotRegular(source, kind)

    def _refuse_itself(self, source: str, destination: str) -> None:
        same_root = self._source.root == self._target.root
        if same_root and PurePosixPath(destination).is_relative_to(source):
            raise ext_sdk.OperationFailed(
                f"{source} can't be copied into itself",
                error=f"expected a destination outside of {source}, got {destination}",
            )

    def _directory(self, source: str, destination: str, *, top: bool = False) -> None:
        found = self._source.stat(source)
        if (found.st_dev, found.st_ino) == self._destination:
            raise ext_sdk.OperationFailed(f"{self._args.source} can't be copied into itself")
        if top and not self._args.overwrite and self._target.exists(destination):
            raise FileExistsError(errno.EEXIST, "the destination exists")
        if top and not self._args.parents:
            os.close(self._target.open(str(PurePosixPath(destination).parent), os.O_RDONLY | os.O_DIRECTORY))
        self._target.mkdir(destination)
        if top:
            made = self._target.stat(destination)
            self._destination = (made.st_dev, made.st_ino)
        for name in self._source.names(source):
            self._entry(f"{source}/{name}", f"{destination}/{name}")
        self._permissions_of_directory(found.st_mode, destination)

    def _entry(self, source: str, destination: str) -> None:
        in_time(self._deadline, f"copying {source!r}; {counted(self.files, 'file')} copied before")
        kind = kind_of(self._source.stat(source, follow=False).st_mode)
        if kind == "directory":
            self._directory(source, destination)
        elif kind == "symlink":
            self._link(source, destination)
        elif kind == "file":
            self._file(source, destination)
        else:
            raise NotRegular(source, kind)

    def _file(self, source: str, destination: str) -> None:
        with self._source.open_regular(source) as file:
            mode = os.fstat(file.fileno()).st_mode & _PERMISSIONS if self._args.preserve_mode else None
            args = self._args
            with self._target.writing(
                destination, mode=mode, parents=args.parents, overwrite=args.overwrite
            ) as written:
                while chunk := file.read(CHUNK):
                    in_time(self._deadline, f"copying {source!r}")
                    written.write(chunk)
                    self.size += len(chunk)
        self.files += 1

    def _link(self, source: str, destination: str) -> None:
        with self._source.parent(source) as (directory, name):
            text = os.readlink(name, dir_fd=directory)
        if text.startswith("/"):
            raise PathEscapes(source, str(self._source.root), f"it is a symbolic link to {text}")
        self._target.relative(f"{PurePosixPath(destination).parent}/{text}")  # raises where it leads out
        if self._args.overwrite and self._target.exists(destination):
            self._make_room(destination)
        with self._target.parent(destination) as (directory, name):
            os.symlink(text, name, dir_fd=directory)
        self.files += 1

    def _make_room(self, destination: str) -> None:
        kind = kind_of(self._target.stat(destination, follow=False).st_mode)
        if kind == "directory":
            raise NotRegular(destination, kind)
        self._target.remove(destination)

    def _permissions_of_directory(self, mode: int, destination: str) -> None:
        if self._args.preserve_mode:
            descriptor = self._target.open(destination, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fchmod(descriptor, stat.S_IMODE(mode) & _PERMISSIONS)
            finally:
                os.close(descriptor)
