"""Operations `snapshot` and `assert-changes`: keep the state of a folder, and check what differs later."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from itertools import zip_longest
from typing import TYPE_CHECKING, Annotated, NamedTuple

from msgspec import Meta, field

import ext_sdk
from ext_sdk.core.text import counted
from ext_sdk.expect.changes import (
    DEFAULT_NAME,
    ChangesArgs,
    Name,
    Pattern,
    Snapshots,
    compare,
    conclude_changes,
    matches,
)
from ext_sdk.files import kind_of, os_errors
from ext_shell.files import CHUNK, FilePath, check_time, permissions_text, workdir_for

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_ENTRIES = 100_000  # of one snapshot, which is in memory
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Snapshot(ext_sdk.Args):
    """Arguments of `snapshot`."""

    name: Annotated[
        Name, Meta(description="Name for `assert-changes`; a previous snapshot of this name is replaced")
    ] = DEFAULT_NAME
    path: Annotated[FilePath, Meta(description="Folder; names in patterns and outputs are relative to it")] = "."
    exclude: Annotated[
        list[Pattern],
        Meta(
            description="Patterns of files and folders to leave out, now and in `assert-changes`: * ? [a-z] within "
            "names, ** for any number of folders, as in **/__pycache__"
        ),
    ] = field(default_factory=list)


class Entry(NamedTuple):
    """State of a file, a folder or another entry.

    Attributes:
        content: SHA-256 of a file, target of a symbolic link, "" otherwise.
    """

    kind: str
    mode: int
    owner: tuple[int, int]
    size: int
    content: str


class FolderState(NamedTuple):
    """Snapshot of a folder.

    Attributes:
        entries: by path, that of a folder with a slash at its end.
    """

    path: str
    exclude: list[str]
    entries: dict[str, Entry]

    def files(self) -> str:
        """Return the number of its files as text."""
        return counted(sum(not path.endswith("/") for path in self.entries), "file")


def snapshot(args: Snapshot, context: ext_sdk.Context) -> ext_sdk.Result:
    """Keep the names, contents, permissions, owners and link targets of all files in a folder, for `assert-changes`.

    Snapshots belong to the workdir and scope, and exist until the extension exits. Symbolic links are not followed.
    """
    snapshots = context.state(Snapshots[FolderState])
    with os_errors("read", args.path):
        state = FolderState(args.path, args.exclude, _entries(args.path, args.exclude, context))
    snapshots.keep(args.name, state)
    count = sum(not path.endswith("/") for path in state.entries)
    return ext_sdk.Result.ok(
        f"Kept the state of {state.files()} in {args.path} as {args.name!r}",
        outputs={"name": args.name, "path": str(workdir_for(context, args.path).path(args.path)), "files": count},
    )


def assert_changes(args: ChangesArgs, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check which files of a folder were added, changed or removed since `snapshot`; by default none may be.

    Modification times do not count, nor do folders whose contents are listed.
    """
    before = context.state(Snapshots[FolderState]).get(args.since)
    with os_errors("read", before.path):
        try:
            entries = _entries(before.path, before.exclude, context)
        except FileNotFoundError:
            entries = {}
    after = FolderState(before.path, before.exclude, entries)
    changes = compare(before.entries, after.entries, _difference)
    # A new or removed folder is listed by its contents, and by itself only if it has none.
    changes = changes._replace(added=_without_parents(changes.added), removed=_without_parents(changes.removed))
    return conclude_changes(
        args,
        changes,
        names=before.entries.keys() | after.entries.keys(),
        done=f"Compared {after.files()} in {before.path} with snapshot {args.since!r}",
        advice=f"patterns are relative to {'the working directory' if before.path == '.' else before.path}",
    )


def _without_parents(paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return sorted paths without the folders that contain others of them."""
    pairs = zip_longest(paths, paths[1:], fillvalue="")
    return tuple([path for path, after in pairs if not (path.endswith("/") and after.startswith(path))])


def _entries(folder: str, exclude: list[str], context: ext_sdk.Context) -> dict[str, Entry]:
    """Return the entries in a folder by path. Raises OSError, and OperationFailed if there are too many."""
    workdir = workdir_for(context, folder)
    try:
        descriptor = workdir.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except NotADirectoryError as error:
        raise NotADirectoryError(errno.ENOTDIR, "it is not a folder; use the folder of the file") from error
    entries: dict[str, Entry] = {}
    try:
        for path, name, directory in _walk(descriptor, exclude):
            check_time(context.deadline, f"reading {path!r}; `exclude` leaves out folders that do not matter")
            try:
                entry = _entry(name, directory, context.deadline)
            except FileNotFoundError:  # removed since its name was read
                continue
            except OSError as error:
                raise OSError(error.errno, f"{path}: {error.strerror}; `exclude` leaves it out") from error
            entries[f"{path}/" if entry.kind == "directory" else path] = entry
            if len(entries) > MOST_ENTRIES:
                raise ext_sdk.OperationFailed(
                    f"{folder} has too many files",
                    error=f"{folder}: expected at most {MOST_ENTRIES:,} files and folders, found more; `exclude` "
                    "leaves out folders that do not matter, such as node_modules",
                )
    except RecursionError:
        raise ext_sdk.OperationFailed(
            f"{folder} is nested too deeply", error=f"{folder}: folders are nested too deeply to be read completely"
        ) from None
    finally:
        os.close(descriptor)
    return entries


def _walk(descriptor: int, exclude: list[str]) -> Iterator[tuple[str, str, int]]:
    """Yield the path, the name and the open directory of all entries; excluded folders are not entered."""

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            raise error

    for root, folders, files, directory in os.fwalk(".", dir_fd=descriptor, onerror=fail):
        prefix = "" if root == "." else f"{root.removeprefix('./')}/"
        for names in (folders, files):
            names[:] = [name for name in names if not any(matches(each, prefix + name) for each in exclude)]
            yield from ((prefix + name, name, directory) for name in names)


def _entry(name: str, directory: int, deadline: ext_sdk.Deadline) -> Entry:
    status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    kind, content = kind_of(status.st_mode), ""
    if kind == "symlink":
        content = os.readlink(name, dir_fd=directory)
    elif kind == "file":
        digest = hashlib.sha256()
        with os.fdopen(os.open(name, _READ, dir_fd=directory), "rb") as file:
            status = os.fstat(file.fileno())
            while stat.S_ISREG(status.st_mode) and (chunk := file.read(CHUNK)):
                check_time(deadline, f"reading {name!r}; `exclude` leaves it out")
                digest.update(chunk)
        kind, content = kind_of(status.st_mode), digest.hexdigest()
    size = 0 if kind == "directory" else status.st_size
    return Entry(kind, stat.S_IMODE(status.st_mode), (status.st_uid, status.st_gid), size, content)


def _difference(before: Entry, after: Entry) -> str:
    """Return what differs, as text; "" if nothing does."""
    if before.kind != after.kind:
        return f"a {after.kind} instead of a {before.kind}"
    texts = []
    if before.content != after.content:
        if after.kind == "symlink":
            texts.append(f"target {after.content!r} instead of {before.content!r}")
        else:
            texts.append(f"content, {counted(after.size, 'byte')} instead of {before.size:,}")
    if before.mode != after.mode:
        texts.append(f"permissions {permissions_text(after.mode)} instead of {permissions_text(before.mode)}")
    if before.owner != after.owner:
        texts.append("owner {}:{} instead of {}:{}".format(*after.owner, *before.owner))
    return ", ".join(texts)
