"""A system like macOS, as far as Python shows it: hides what only Linux has. For PYTHONPATH of processes under test.

Not hidden in the fork server of commands, which runs isolated: it gets the option `--group` instead. Not imitated: what
the kernel of macOS does in another way.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import resource
import select
import signal
import socket
import sys
import sysconfig
import types
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Callable

LINUX_ONLY = {
    os: """
        CLONE_NEWNET CLONE_NEWUSER EFD_CLOEXEC MFD_CLOEXEC O_DIRECT O_LARGEFILE O_NOATIME O_PATH O_TMPFILE SCHED_BATCH
        SCHED_IDLE copy_file_range eventfd eventfd_read eventfd_write fdatasync getrandom getresgid getresuid getxattr
        listxattr memfd_create pidfd_open pipe2 posix_fadvise posix_fallocate removexattr sched_getaffinity
        sched_getparam sched_getscheduler sched_param sched_rr_get_interval sched_setaffinity sched_setparam
        sched_setscheduler setns setresgid setresuid setxattr splice unshare
    """,
    signal: "SIGCLD SIGPOLL SIGPWR SIGRTMAX SIGRTMIN SIGSTKFLT pidfd_send_signal sigtimedwait sigwaitinfo",
    select: "EPOLLERR EPOLLET EPOLLHUP EPOLLIN EPOLLOUT EPOLL_CLOEXEC POLLRDHUP epoll",
    socket: """
        AF_ALG AF_NETLINK AF_PACKET AF_VSOCK MSG_CMSG_CLOEXEC MSG_ERRQUEUE MSG_NOSIGNAL SOCK_CLOEXEC SOCK_NONBLOCK
        SO_BINDTODEVICE SO_DOMAIN SO_PEERCRED SO_PROTOCOL TCP_CORK TCP_DEFER_ACCEPT TCP_INFO TCP_KEEPIDLE TCP_QUICKACK
        TCP_USER_TIMEOUT
    """,
    mmap: "MADV_DONTFORK MADV_HUGEPAGE MADV_MERGEABLE MADV_REMOVE MAP_POPULATE",
    fcntl: "F_ADD_SEALS F_GETPIPE_SZ F_GET_SEALS F_NOTIFY F_SETPIPE_SZ",
    resource: "RLIMIT_MSGQUEUE RLIMIT_NICE RLIMIT_RTPRIO RLIMIT_RTTIME RLIMIT_SIGPENDING RUSAGE_THREAD prlimit",
}
LINUX_SYMBOLS = ("gettid", "inotify_init", "memfd_create", "pidfd_open", "prctl", "unshare")
LINUX_FILES = ("/proc", "/sys")


def hide() -> None:
    """Hide the names, files and system calls."""
    sysconfig.get_config_vars()  # from a module that is named after the platform
    names = {module: hidden.split() for module, hidden in LINUX_ONLY.items()}
    if sys.version_info < (3, 13):
        names[os].append("waitid")
    for module, hidden in names.items():
        for name in hidden:
            if hasattr(module, name):
                delattr(module, name)
    if sys.version_info >= (3, 13):
        os.process_cpu_count = os.cpu_count  # as on a system without sched_getaffinity
    proxies = types.ModuleType("_scproxy")
    vars(proxies).update(_get_proxies=dict, _get_proxy_settings=dict)
    sys.modules["_scproxy"] = proxies
    sys.platform = "darwin"
    sys.addaudithook(_refuse)
    for name in ("access", "lstat", "stat"):
        setattr(os, name, _without_linux_files(getattr(os, name)))
    resource.setrlimit = _without_memory_limit(resource.setrlimit)


def _is_hidden(path: object) -> bool:
    text = os.fsdecode(path) if isinstance(path, bytes | str | os.PathLike) else ""
    return any(text == folder or text.startswith(f"{folder}/") for folder in LINUX_FILES)


def _missing(path: object) -> NoReturn:
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    if event in {"open", "os.listdir", "os.scandir"} and _is_hidden(arguments[0]):
        _missing(arguments[0])
    if event == "ctypes.dlsym" and arguments[1] in LINUX_SYMBOLS:
        raise AttributeError(f"symbol not found: {arguments[1]}")
    if event == "ctypes.dlsym" and arguments[1] == "syscall":
        os.kill(os.getpid(), signal.SIGSYS)  # as the kernel does at the number of an unknown call


def _without_linux_files(real: Callable[..., object]) -> Callable[..., object]:
    def call(path: object, *others: object, **named: object) -> object:
        if _is_hidden(path):
            _missing(path)
        return real(path, *others, **named)

    for supported in (os.supports_dir_fd, os.supports_effective_ids, os.supports_fd, os.supports_follow_symlinks):
        if real in supported:
            supported.add(call)
    return call


def _without_memory_limit(real: Callable[..., None]) -> Callable[..., None]:
    def call(number: int, limits: tuple[int, int]) -> None:
        if number in {resource.RLIMIT_AS, resource.RLIMIT_DATA}:
            raise ValueError("current limit exceeds maximum limit")
        real(number, limits)

    return call


hide()
del ctypes  # imported so that its own look-ups of symbols are over
