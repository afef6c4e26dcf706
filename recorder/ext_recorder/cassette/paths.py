"""Files of a session: the cassette, its partial file and its HTTP traffic; and checks of files that are written."""

from __future__ import annotations

import os
import stat

from ext_recorder.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


SUFFIX = ".http.yaml"


def beside(cassette: str) -> str:
    """Return the HTTP file of a cassette: session.http.yaml for session.yaml; an HTTP file itself if it is given."""
    return cassette if cassette.endswith(SUFFIX) else cassette.removesuffix(".yaml") + SUFFIX


try:
    from fcntl import LOCK_EX, LOCK_NB, flock

    LOCKS = True
except ImportError:  # Windows: the creation of the file is the only lock, and a crash leaves the file
    LOCKS = False

PARTIAL_FLAGS: int = (
    (os.O_RDWR | os.O_CREAT | os.O_APPEND)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | (0 if LOCKS else os.O_EXCL)
)


def lock(fd: int) -> None:
    """Lock a partial file until it is closed by all processes that have it. Raises BlockingIOError if it is locked."""
    if LOCKS:
        flock(fd, LOCK_EX | LOCK_NB)


def hold_new(partial: str) -> int | None:
    """Create a partial file and lock it. Return its descriptor; None if that fails, or if the file has content."""
    if not LOCKS:
        return None
    fd = -1
    try:
        fd = os.open(partial, PARTIAL_FLAGS, 0o666)
        lock(fd)
        if os.fstat(fd).st_size == 0 and os.path.samestat(os.fstat(fd), os.lstat(partial)):
            return fd
    except OSError:  # the writer of the cassette reports the reason
        pass
    if fd >= 0:
        os.close(fd)
    return None


_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

_OPEN_FILES = ("/dev/", "/proc/")  # symbolic links here lead to open files: /dev/stdout


def target_of(name: str) -> str:
    """Return the file to write for a name: the name itself, or the target of a symbolic link.

    Raises:
        UsageError: the name belongs to something other than a file.
    """
    try:
        mode = os.lstat(name).st_mode
    except OSError:  # it does not exist; if its folder does not either, opening it reports that
        return name
    if stat.S_ISREG(mode):
        return name
    if not stat.S_ISLNK(mode):
        raise UsageError(f"{name}: expected a file to write, found {_KINDS.get(stat.S_IFMT(mode), 'something else')}")
    target = os.path.realpath(name)
    if is_open_file(name):
        raise UsageError(f"{name}: expected a file to write, found a name of an open file")
    if os.path.islink(target):  # noqa: PTH114
        raise UsageError(f"{name}: expected a file to write, found symbolic links in a circle")
    return target_of(target)


def expect_folder(option: str, name: str) -> None:
    """Raise UsageError if the folder of a file to write does not exist."""
    folder = os.path.dirname(name)  # noqa: PTH120 - pathlib costs 5 ms
    if folder and not os.path.isdir(folder):  # noqa: PTH112
        raise UsageError(f"{option} {name}: the folder {folder} does not exist; create it first")


def is_open_file(name: str) -> bool:
    """Return True for a name such as /dev/stdout: a link to an open file, which may be a terminal or a pipe."""
    return os.path.islink(name) and os.path.abspath(name).startswith(_OPEN_FILES)  # noqa: PTH100, PTH114


def partial_of(path: Path) -> Path:
    """Return the file to which a cassette is written until its session ends."""
    return path.with_name(path.name + ".partial")
