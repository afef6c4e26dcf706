"""What a directory entry is."""

from __future__ import annotations

import stat

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
    """The kind of an entry by its `st_mode`: file, directory, symlink, fifo, socket, device, or unknown."""
    return _KINDS.get(stat.S_IFMT(mode), "unknown")
