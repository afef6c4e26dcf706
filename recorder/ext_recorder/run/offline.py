"""Network namespace without any network but loopback: the proof that a replay is offline."""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
from pathlib import Path

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000  # CLONE_NEWUSER, CLONE_NEWNET of unshare(2)
GET_FLAGS, SET_FLAGS, UP = 0x8913, 0x8914, 0x1  # SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP of netdevice(7)
ISOLATED = "isolated: the command ran without any network but loopback"
NOT_ISOLATED = "not isolated from the network ({}), so it was not checked that no program bypassed the proxy"


def isolate() -> str:
    """Move this process, and those that it starts, to a namespace with nothing but loopback.

    Another process tries it first: a process that has entered a namespace cannot leave it, and systems may forbid any
    of the later steps.

    Returns:
        "" if it is done, or the reason why this system does not allow it.
    """
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write, _enter().encode() or b"\0")
        finally:
            os._exit(0)
    os.close(write)
    result = os.read(read, 1024)
    os.close(read)
    os.waitpid(pid, 0)
    return _enter() if result == b"\0" else result.decode() or "it could not be tried"


def remark(reason: str) -> str:
    """Return the line of the summary for the result of `isolate`."""
    return NOT_ISOLATED.format(reason) if reason else ISOLATED


def _enter() -> str:
    """Enter a namespace with nothing but loopback. Return "", or the reason why this is not possible."""
    user, group = os.getuid(), os.getgid()
    try:
        unshare = ctypes.CDLL(None, use_errno=True).unshare
    except (AttributeError, OSError):
        return "this system has no network namespaces"
    if unshare(NEW_NETWORK) != 0:
        if unshare(NEW_USER | NEW_NETWORK) != 0:
            return f"namespaces: {os.strerror(ctypes.get_errno())}"
        try:
            # The process keeps its user and group, and must not change them.
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
        except OSError as error:
            return f"users in a namespace: {error.strerror}"
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
            request = struct.pack("16sh14x", b"lo", 0)
            flags = struct.unpack("16sh14x", fcntl.ioctl(control, GET_FLAGS, request))[1]
            fcntl.ioctl(control, SET_FLAGS, struct.pack("16sh14x", b"lo", flags | UP))
    except OSError as error:
        return f"loopback in a namespace: {error.strerror}"
    return ""
