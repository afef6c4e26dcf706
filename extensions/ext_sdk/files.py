"""Working directory: read, write and remove files beneath it, by paths of users.

No path and no symbolic link leads out of it. Links are followed if they stay inside. Linux opens such a path in one
call, openat2(2) with RESOLVE_BENEATH. Elsewhere, or in a sandbox that forbids the call, the path is walked component by
component, each opened relative to the one before and never through a link; the target of a link is walked in turn. Both
refuse absolute links, even those that point inside. Replacing a directory by a link meanwhile defeats neither: every
step starts from a directory that is already open.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import sys
from collections import deque
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath

from ext_sdk.core.atomic import NEW, NEW_FILE, atomic_write
from ext_sdk.result import OperationFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import BinaryIO

    Opener = Callable[[int, str, int, int], int]


class PathEscapes(OperationFailed):
    """Path that leads out of the working directory: by `..`, as an absolute path, or through a symbolic link."""

    def __init__(self, path: str, root: str, how: str) -> None:
        super().__init__(
            f"{path!r} is not a path inside the working directory",
            error=f"{path!r} is not a path inside the working directory {root}: {how}",
        )


class NotRegular(OperationFailed):
    """Path to something else than a regular file: reading a FIFO or a device could wait forever."""

    def __init__(self, path: str, kind: str) -> None:
        super().__init__(f"{path!r} is not a regular file", error=f"{path}: expected a regular file, got a {kind}")
        self.kind = kind


class TooLarge(OperationFailed):
    """File over a limit in bytes."""

    def __init__(self, path: str, limit: int, advice: str = "") -> None:
        remedy = f"; {advice}" if advice else ""
        super().__init__(f"{path!r} is too large", error=f"{path}: expected at most {limit:,} bytes, got more{remedy}")


@contextmanager
def os_errors(action: str, path: str, *, exists: str = "`overwrite: true` replaces it") -> Iterator[None]:
    """Convert an OSError to a failure of the operation.

    Args:
        action: the failed action, as a verb: `write`.
        path: as the user wrote it.
        exists: remedy for a file that exists already.

    Raises:
        OperationFailed: for any OSError.
    """
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"could not {action} {path!r}"
        if isinstance(error, FileExistsError):
            remedy = f"; {exists}"
        elif isinstance(error, FileNotFoundError):
            remedy = "; is the path right? It starts in the working directory"
            if action == "write":
                remedy += ", and `parents: true` makes its directories"
        elif isinstance(error, PermissionError):
            remedy = "; the user that runs the extension may not do this"
        else:
            remedy = ""
        raise OperationFailed(message, error=f"{message}: {reason}{remedy}") from error


_KINDS = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "symlink",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
}


def kind_of(mode: int) -> str:
    """Return the kind of an entry by its `st_mode`: file, directory, symlink, fifo, socket, device, or unknown."""
    return _KINDS.get(stat.S_IFMT(mode), "unknown")


CHUNK = 1024 * 1024  # bytes of one read
NEW_DIRECTORY = 0o777  # permissions, less the umask


class Workdir:
    """Files beneath a directory.

    Paths are those that users write: relative to the directory, or absolute and inside. `a/../b` is `b`. Symbolic links
    are followed if they stay inside and are relative. Every method raises PathEscapes for a path that leads out, and
    OSError if the operating system refuses.

    Args:
        root: the directory; it must exist once a method is called.
        opener: opens beneath it. Default: the best function of this system.
    """

    def __init__(self, root: Path, opener: Opener | None = None) -> None:
        self.root = root
        self._open_beneath = opener or safe_opener()

    def relative(self, text: str) -> str:
        """Return the path relative to the directory, without `.` and `..`; "." for the directory itself."""
        try:
            valid = bool(text) and b"\0" not in os.fsencode(text)
        except UnicodeEncodeError:
            valid = False
        if not valid:
            raise PathEscapes(text, str(self.root), "it is empty, or has a NUL or half a character")
        path = PurePosixPath(text)
        if path.is_absolute():
            root = next((root for root in (self.root, self.root.resolve()) if path.is_relative_to(root)), None)
            if root is None:
                raise PathEscapes(text, str(self.root), "it is absolute and elsewhere")
            path = path.relative_to(root)
        kept: list[str] = []
        for part in path.parts:
            if part == ".." and not kept:
                raise PathEscapes(text, str(self.root), "it has more `..` than directories")
            if part == "..":
                kept.pop()
            else:
                kept.append(part)
        return "/".join(kept) or "."

    def path(self, text: str) -> Path:
        """Return the absolute path of an existing entry, for programs that accept paths. It was inside when checked."""
        os.close(self.open(text, SEARCH))
        return self.root / self.relative(text)

    def open(self, text: str, flags: int, mode: int = NEW_FILE) -> int:
        """Return a file descriptor of an entry, closed on exec.

        Args:
            flags: of open(2).
            mode: permissions of a new file, less the umask.
        """
        return self._open(text, self.relative(text), flags, mode)

    def _open(self, text: str, relative: str, flags: int, mode: int = NEW_FILE) -> int:
        """Open a relative path, in which `..` after a link goes up from its target; `text` is the path of the user."""
        root = os.open(self.root, SEARCH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            return self._open_beneath(root, relative, flags, mode)
        except OSError as error:
            if error.errno == errno.EXDEV:
                raise PathEscapes(text, str(self.root), "a symbolic link leads there, or is absolute") from error
            raise
        finally:
            os.close(root)

    @contextmanager
    def parent(self, text: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
        """Open the directory that holds an entry, and yield it with the entry's name; the entry itself is not followed.

        Args:
            text: the path of the entry, which need not exist.
            make: make the directory, and those above it.

        Raises:
            PathEscapes: also for the working directory itself.
        """
        relative = PurePosixPath(self.relative(text))
        if relative == PurePosixPath():
            raise PathEscapes(text, str(self.root), "it is that directory itself")
        if make:
            self.mkdir(str(relative.parent))
        directory = self.open(str(relative.parent), SEARCH | os.O_DIRECTORY)
        try:
            yield directory, relative.name
        finally:
            os.close(directory)

    @contextmanager
    def _destination(self, text: str, *, make: bool) -> Iterator[tuple[int, str]]:
        """Open the directory of a file as `parent` does, but follow symbolic links; the target must be inside."""
        path = PurePosixPath(self.relative(text))
        with self.parent(text, make=make) as (parent, _):
            directory = os.dup(parent)
        try:
            links = 0
            while (existing := _lstat(path.name, directory)) and stat.S_ISLNK(existing.st_mode):
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), text)
                target = os.readlink(path.name, dir_fd=directory)
                if target.startswith("/"):
                    raise PathEscapes(text, str(self.root), "the symbolic link is absolute")
                path = path.parent / target
                if path.name in {"", ".."}:
                    raise NotRegular(text, "directory")
                entered = self._open(text, str(path.parent), SEARCH | os.O_DIRECTORY)
                os.close(directory)
                directory = entered
            yield directory, path.name
        finally:
            os.close(directory)

    def mkdir(self, text: str) -> None:
        """Make a directory and those above it; keep those that exist.

        Raises:
            NotADirectoryError: one of them exists and is not a directory.
        """
        parts = PurePosixPath(self.relative(text)).parts
        for length in range(1, len(parts) + 1):
            step = "/".join(parts[:length])
            with self.parent(step) as (directory, name):
                try:
                    os.mkdir(name, NEW_DIRECTORY, dir_fd=directory)
                except FileExistsError:
                    if not stat.S_ISDIR((existing := self.stat(step)).st_mode):
                        why = f"{step!r} is a {kind_of(existing.st_mode)}, not a directory"
                        raise NotADirectoryError(errno.ENOTDIR, why) from None

    def stat(self, text: str, *, follow: bool = True) -> os.stat_result:
        """Return the status of an entry.

        Args:
            follow: of the target of a symbolic link; False: of the link itself.
        """
        if not follow and self.relative(text) != ".":
            with self.parent(text) as (directory, name):
                return os.stat(name, dir_fd=directory, follow_symlinks=False)
        descriptor = self.open(text, SEARCH | (0 if SEARCH else os.O_NONBLOCK))
        try:
            return os.fstat(descriptor)
        finally:
            os.close(descriptor)

    def exists(self, text: str) -> bool:
        """Return True if an entry has this name; a symbolic link counts, whatever its target."""
        try:
            self.stat(text, follow=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def names(self, text: str) -> list[str]:
        """Return the names in a directory, sorted."""
        descriptor = self.open(text, os.O_RDONLY | os.O_DIRECTORY)
        try:
            with os.scandir(descriptor) as entries:
                return sorted(entry.name for entry in entries)
        finally:
            os.close(descriptor)

    def open_regular(self, text: str, flags: int = os.O_RDONLY) -> BinaryIO:
        """Open a regular file as a stream. Raises NotRegular at once for a FIFO, a device, a directory."""
        try:
            kind = kind_of(self.stat(text).st_mode)
        except FileNotFoundError:
            kind = "file"  # it is yet to be created, or opening it raises
        if kind == "file":
            descriptor = self.open(text, flags | os.O_NONBLOCK | os.O_NOCTTY)
            kind = kind_of(os.fstat(descriptor).st_mode)
            if kind == "file":
                return os.fdopen(descriptor, "wb" if flags & os.O_WRONLY else "rb")
            os.close(descriptor)
        raise NotRegular(text, kind)

    def read(self, text: str, *, limit: int, advice: str = "") -> bytes:
        """Return the bytes of a regular file.

        Args:
            advice: remedy for a file over the limit, if the limit is an argument.

        Raises:
            TooLarge: it has more than `limit` bytes.
        """
        data = bytearray()
        with self.open_regular(text) as file:
            while chunk := file.read(min(CHUNK, limit + 1 - len(data))):  # one more byte shows that it is too large
                data += chunk
        if len(data) > limit:
            raise TooLarge(text, limit, advice)
        return bytes(data)

    def write(
        self, text: str, data: bytes, *, mode: int | None = None, parents: bool = False, overwrite: bool = True
    ) -> None:
        """Write a regular file; for the arguments see `writing`."""
        with self.writing(text, mode=mode, parents=parents, overwrite=overwrite) as file:
            file.write(data)

    @contextmanager
    def writing(
        self, text: str, *, mode: int | None = None, parents: bool = False, overwrite: bool = True
    ) -> Iterator[BinaryIO]:
        """Open a regular file that appears, or replaces the old one, when the block succeeds.

        A symbolic link that stays inside is followed, as by cp and tee: its target is replaced, or created.

        Args:
            mode: permissions. Default: those of the file that is replaced, or 0666 less the umask.
            parents: make missing directories.
            overwrite: replace an existing file; False: raise FileExistsError.

        Raises:
            NotRegular: the path is that of something else than a file.
        """
        destination = self._destination(text, make=parents) if overwrite else self.parent(text, make=parents)
        with destination as (directory, name):
            existing = _lstat(name, directory)
            if existing and kind_of(existing.st_mode) not in {"file", "symlink"}:
                raise NotRegular(text, kind_of(existing.st_mode))
            if not overwrite:
                os.close(os.open(name, NEW, NEW_FILE, dir_fd=directory))  # reserves the name, or raises
            elif mode is None and existing and stat.S_ISREG(existing.st_mode):
                mode = stat.S_IMODE(existing.st_mode)
            with atomic_write(name, directory, mode) as file:
                yield file

    def append(self, text: str, data: bytes, *, mode: int | None = None, parents: bool = False) -> None:
        """Append to a regular file, which is created if missing; for the arguments see `write`."""
        if parents:
            with self.parent(text, make=True):
                pass
        with self.open_regular(text, os.O_WRONLY | os.O_APPEND | os.O_CREAT) as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)

    def remove(self, text: str) -> None:
        """Remove an entry: a directory with its content, a symbolic link without its target."""
        with self.parent(text) as (directory, name):
            if stat.S_ISDIR(os.stat(name, dir_fd=directory, follow_symlinks=False).st_mode):
                shutil.rmtree(name, dir_fd=directory)
            else:
                os.unlink(name, dir_fd=directory)


def _lstat(name: str, directory: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None


SYS_OPENAT2 = 437  # the same number on every architecture but Alpha, where the walk takes over
RESOLVE_NO_MAGICLINKS = 0x02
RESOLVE_BENEATH = 0x08
MOST_LINKS = 40  # the limit of Linux
MOST_ATTEMPTS = 50  # openat2 gives EAGAIN when a directory is renamed meanwhile
# Enough to traverse a directory, or to stat a file without opening it; without O_PATH it needs read permission.
SEARCH = getattr(os, "O_PATH", os.O_RDONLY)


@cache
def safe_opener() -> Opener:
    """Return the best function of this system."""
    by_kernel = _kernel_opener()
    if by_kernel is None:
        return open_by_walk
    directory = os.open("/", os.O_RDONLY)
    try:
        os.close(by_kernel(directory, ".", SEARCH, 0))
    except OSError:  # an older or another kernel, or a sandbox that filters calls
        return open_by_walk
    finally:
        os.close(directory)
    return by_kernel


def _kernel_opener() -> Opener | None:
    if sys.platform != "linux":  # the number is that of another call; macOS ends a process at an unknown one (SIGSYS)
        return None
    try:
        import ctypes

        syscall = ctypes.CDLL(None, use_errno=True).syscall
    except (ImportError, OSError, AttributeError):
        return None

    class OpenHow(ctypes.Structure):
        _fields_ = (("flags", ctypes.c_uint64), ("mode", ctypes.c_uint64), ("resolve", ctypes.c_uint64))

    def open_by_kernel(directory: int, path: str, flags: int, mode: int) -> int:
        creates = flags & os.O_CREAT
        how = OpenHow(flags | os.O_CLOEXEC, mode if creates else 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
        for _ in range(MOST_ATTEMPTS):
            descriptor: int = syscall(
                ctypes.c_long(SYS_OPENAT2),
                ctypes.c_int(directory),
                ctypes.c_char_p(os.fsencode(path)),
                ctypes.byref(how),
                ctypes.c_size_t(ctypes.sizeof(how)),
            )
            if descriptor >= 0:
                return descriptor
            if ctypes.get_errno() not in {errno.EAGAIN, errno.EINTR}:
                break
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), path)

    return open_by_kernel


def open_by_walk(directory: int, path: str, flags: int, mode: int) -> int:
    """Open a path component by component. Raises OSError, with EXDEV if the path escapes."""
    opened = [os.dup(directory)]
    parts = deque(_parts(path))
    links = 0
    try:
        while parts:
            part = parts.popleft()
            if part == "..":
                if len(opened) == 1:
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
                os.close(opened.pop())
                continue
            try:
                is_link = stat.S_ISLNK(os.stat(part, dir_fd=opened[-1], follow_symlinks=False).st_mode)
            except FileNotFoundError:
                is_link = False
            follows = is_link and (parts or not flags & os.O_NOFOLLOW)
            if target := os.readlink(part, dir_fd=opened[-1]) if follows else "":
                links += 1
                if links > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
                if target.startswith("/"):
                    raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
                parts.extendleft(reversed(_parts(target)))
            elif parts:
                opened.append(os.open(part, SEARCH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened[-1]))
            else:
                return os.open(part, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=opened[-1])
        return os.open(".", flags | os.O_CLOEXEC, mode, dir_fd=opened[-1])
    finally:
        for descriptor in opened:
            os.close(descriptor)


def _parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]
