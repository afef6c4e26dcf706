"""A system like Windows, as far as Python shows it: hides what only POSIX has. For PYTHONPATH of a process under test.

`os.name` stays: `pathlib` and others would need the functions of Windows. Modules of Windows that the standard library
and click import for `sys.platform` are empty.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import types
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

MODULES = frozenset(("fcntl", "grp", "pty", "pwd", "resource", "syslog", "termios", "tty"))
WINDOWS_MODULES = ("_overlapped", "_winapi", "click._winconsole", "msvcrt", "winreg")
POSIX_ONLY = {
    os: """
        O_CLOEXEC O_DIRECTORY O_NOCTTY O_NOFOLLOW O_NONBLOCK O_PATH fchdir fork forkpty getegid geteuid getgid getpgid
        getpgrp getuid killpg mkfifo nice pidfd_open posix_spawn posix_spawnp register_at_fork setsid tcgetpgrp
        tcsetpgrp uname wait wait3 wait4 waitid
    """,
    signal: """
        SIGALRM SIGBUS SIGCHLD SIGCONT SIGHUP SIGKILL SIGPIPE SIGQUIT SIGSTOP SIGSYS SIGTRAP SIGTSTP SIGTTIN SIGTTOU
        SIGUSR1 SIGUSR2 SIGWINCH SIGXCPU SIGXFSZ alarm pthread_kill pthread_sigmask setitimer sigpending sigtimedwait
        sigwait
    """,
    select: "PIPE_BUF POLLIN POLLOUT epoll poll",
    socket: "AF_UNIX CMSG_SPACE SCM_RIGHTS recv_fds send_fds",
}


class _Finder:
    """Finds that these modules do not exist."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: types.ModuleType | None = None) -> None:
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


class _Empty(types.ModuleType):
    """Module in which every constant is 0, and every function returns 0."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return 0 if name.isupper() else lambda *_: 0


sys.meta_path.insert(0, _Finder())
for hidden in MODULES:
    sys.modules.pop(hidden, None)
for empty in WINDOWS_MODULES:
    sys.modules[empty] = _Empty(empty)
for module, names in POSIX_ONLY.items():
    for implementation in (module, sys.modules.get(f"_{module.__name__}")):
        for each in names.split():
            if hasattr(implementation, each):
                delattr(implementation, each)
sys.platform = "win32"
