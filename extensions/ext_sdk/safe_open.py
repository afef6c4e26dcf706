"""Safe open of a path beneath a directory: symbolic links are followed if they stay inside.

Linux does it in one call, openat2(2) with RESOLVE_BENEATH. Elsewhere, or in a sandbox that forbids the call, the path
is walked component by component, each opened relative to the one before and never through a link; the target of a link
is walked in turn. Both refuse absolute links, even those that point inside. Replacing a directory by a link meanwhile
defeats neither: every step starts from a directory that is already open.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from functools import cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # (descriptor of the directory, relative path, flags, mode) -> descriptor; OSError EXDEV: the path escapes
    Opener = Callable[[int, str, int, int], int]

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
