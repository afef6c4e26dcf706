"""Operations `write-file` and `read-file` on the content of a file, and `copy`, `make-temp` and `remove`."""

from __future__ import annotations

import base64
import binascii
import errno
import hashlib
import json
import os
import secrets
import stat
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk.core.text import counted
from ext_sdk.files import NotRegular, PathEscapes, Workdir, kind_of, os_errors
from ext_shell.files import (
    CHUNK,
    DEFAULT_MAX_SIZE,
    FilePath,
    MaxSize,
    Mode,
    PrivateTemps,
    check_time,
    is_directory,
    matching_paths,
    permissions_text,
    readable_for,
    workdir_for,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ext_sdk import Deadline


class WriteFile(ext_sdk.Args, one_of=("content", "base64", "json")):
    """Arguments of `write-file`."""

    path: FilePath
    content: Annotated[str | UnsetType, Meta(description="Text, written as UTF-8")] = UNSET
    base64: Annotated[str | UnsetType, Meta(description="Bytes in base64")] = UNSET
    json: Annotated[Any, Meta(description="Value, written as indented JSON")] = UNSET
    append: Annotated[bool, Meta(description="Append to an existing file")] = False
    overwrite: Annotated[bool, Meta(description="Replace an existing file; false: fail if it exists")] = True
    parents: Annotated[bool, Meta(description="Create missing parent directories")] = True
    mode: Mode | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.append and not self.overwrite:
            raise ValueError("`append` changes an existing file, which `overwrite: false` forbids")


def write_file(args: WriteFile, context: ext_sdk.Context) -> ext_sdk.Result:
    """Write a file in the working directory, completely or not at all.

    A relative symbolic link that stays in the working directory is followed: its target is written.
    """
    if isinstance(args.base64, str):
        try:
            data = base64.b64decode("".join(args.base64.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise ext_sdk.InvalidArgs("base64", f"not valid base64: {error}") from error
    elif isinstance(args.content, str):
        data = _encoded("content", args.content)
    else:
        data = _encoded("json", json.dumps(args.json, ensure_ascii=False, indent=2) + "\n")
    workdir = workdir_for(context, args.path)
    mode = None if args.mode is UNSET else int(args.mode, 8)
    with os_errors("write", args.path):
        if args.append:
            workdir.append(args.path, data, mode=mode, parents=args.parents)
        else:
            workdir.write(args.path, data, mode=mode, parents=args.parents, overwrite=args.overwrite)
    done = "Appended" if args.append else "Wrote"
    return ext_sdk.Result.ok(
        f"{done} {counted(len(data), 'byte')} to {args.path}",
        outputs={
            "path": str(workdir.root / workdir.relative(args.path)),
            "size": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        },
    )


def _encoded(field: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        message = f"cannot be encoded in UTF-8: half a character (U+{ord(text[error.start]):04X})"
        raise ext_sdk.InvalidArgs(field, message) from error


class ReadFile(ext_sdk.Args):
    """Arguments of `read-file`."""

    path: FilePath
    encoding: Annotated[
        Literal["auto", "utf-8", "base64"],
        Meta(description="Encoding of the output `content`; auto: utf-8 if the file is valid UTF-8, else base64"),
    ] = "auto"
    max_size: MaxSize = DEFAULT_MAX_SIZE


def read_file(args: ReadFile, context: ext_sdk.Context) -> ext_sdk.Result:
    """Read a file of the working directory into the output `content`.

    Content that does not fit in a response is shortened; the output `contentFile` is the path of a file with all of it.
    """
    workdir = readable_for(context, args.path)
    with os_errors("read", args.path):
        data = workdir.read(args.path, limit=args.max_size, advice="raise `maxSize`")
        mode = workdir.stat(args.path).st_mode
    content, encoding = base64.b64encode(data).decode(), "base64"
    if args.encoding != "base64":
        try:
            content, encoding = data.decode(), "utf-8"
        except UnicodeDecodeError as error:
            if args.encoding == "utf-8":
                raise ext_sdk.OperationFailed(
                    f"{args.path} is not UTF-8",
                    error=f"{args.path}: expected UTF-8, got byte 0x{data[error.start]:02x} at offset {error.start:,}; "
                    "read it with `encoding: base64`",
                ) from error
    return ext_sdk.Result.ok(
        f"Read {counted(len(data), 'byte')} from {args.path}",
        outputs={
            "content": content,
            "encoding": encoding,
            "path": str(workdir.root / workdir.relative(args.path)),
            "size": len(data),
            "mode": permissions_text(mode),
            "sha256": hashlib.sha256(data).hexdigest(),
        },
    )


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


_ATTEMPTS = 100
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class MakeTemp(ext_sdk.Args):
    """Arguments of `make-temp`."""

    kind: Annotated[Literal["directory", "file"], Meta(description="Kind of the new entry")] = "directory"
    location: Annotated[
        Literal["workdir", "private"],
        Meta(
            description="workdir: in the working directory, where it stays; private: outside of it, readable by this "
            "user only, removed when the extension exits"
        ),
    ] = "workdir"
    prefix: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{0,64}$", description="Beginning of the name")] = "tmp-"
    suffix: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{0,64}$", description="End of the name")] = ""


def make_temp(args: MakeTemp, context: ext_sdk.Context) -> ext_sdk.Result:
    """Create an empty file or directory; file operations accept its absolute path, the output `path`."""
    with os_errors("create", "a temporary entry"):
        if args.location == "private":
            workdir = Workdir(context.state(PrivateTemps).make())
        else:
            workdir = workdir_for(context, ".")
        for _ in range(_ATTEMPTS):
            name = f"{args.prefix}{secrets.token_hex(4)}{args.suffix}"
            try:
                with workdir.parent(name) as (directory, entry):
                    if args.kind == "directory":
                        os.mkdir(entry, 0o700, dir_fd=directory)
                    else:
                        os.close(os.open(entry, _FLAGS, 0o600, dir_fd=directory))
            except FileExistsError:
                continue
            break
        else:
            raise ext_sdk.OperationFailed(f"all {_ATTEMPTS} tried names that begin with {args.prefix!r} exist")
    path = str(workdir.root / name)
    return ext_sdk.Result.ok(f"Created {args.kind} {path}", outputs={"path": path, "name": name})


class Remove(ext_sdk.Args, one_of=("path", "glob")):
    """Arguments of `remove`."""

    path: Annotated[str, Meta(description="Path to remove; of a symbolic link the link itself, not its target")] = ""
    glob: Annotated[
        str,
        Meta(
            description="Pattern of the paths to remove: * ? [a-z] within names, ** for any number of directories; "
            "symbolic links are not followed"
        ),
    ] = ""
    recursive: Annotated[bool, Meta(description="Remove directories with their contents")] = False
    ignore_missing: Annotated[bool, Meta(description="Succeed if nothing exists to remove")] = False


def remove(args: Remove, context: ext_sdk.Context) -> ext_sdk.Result:
    """Remove a file, a directory, or all that match a pattern; the working directory itself is never removed."""
    workdir = workdir_for(context, args.path or args.glob)
    paths = matching_paths(workdir, args.glob, context.deadline) if args.glob else [args.path]
    removed = 0
    for path in paths:
        check_time(context.deadline, f"removing {path!r}; {counted(removed, 'entry', 'entries')} removed before")
        with os_errors("remove", path):
            if not workdir.exists(path):
                continue
            names = workdir.names(path) if is_directory(workdir, path) else []
            if names and not args.recursive:
                raise ext_sdk.OperationFailed(
                    f"{path} is a directory that is not empty",
                    error=f"{path}: expected a file or an empty directory, got a directory with "
                    f"{counted(len(names), 'entry', 'entries')}; `recursive: true` removes it",
                )
            with suppress(FileNotFoundError):  # another process removed it first
                workdir.remove(path)
                removed += 1
    if not removed and not args.ignore_missing:
        raise ext_sdk.OperationFailed(
            "nothing to remove",
            error=f"{args.path or args.glob}: expected something to remove, got nothing; "
            "`ignoreMissing: true` accepts that",
            outputs={"removed": 0},
        )
    what = args.path if args.path and removed else f"{counted(removed, 'entry', 'entries')} of {args.path or args.glob}"
    return ext_sdk.Result.ok(f"Removed {what}", outputs={"removed": removed})
