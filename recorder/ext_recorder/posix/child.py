"""The recorded child on three pipes, and the exit of this process in the same way as the child exited.

`os.posix_spawn` instead of `subprocess`: it returns the raw wait status, and a session starts 10 ms sooner.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import signal

from ext_recorder.errors import RecorderError
from ext_sdk.core.stdio import enlarge

from .signals import signal_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

# The capacity of the child's stdin and stdout: a message of many megabytes takes a quarter fewer waits than by 64 KiB.
PIPE_BYTES = 262_144
# Exit codes of a shell for a command that cannot be executed, and for a command that does not exist.
EXIT_NOT_EXECUTABLE = 126
EXIT_NOT_FOUND = 127
# Of waitid(2), for a Python without it.
P_PID, WEXITED, WNOWAIT = 1, 4, getattr(os, "WNOWAIT", 0x20)
SIGINFO_BYTES = 128  # at least the size of siginfo_t, which stays empty while the child runs


class CommandError(RecorderError):
    """Error if the command cannot be started.

    Attributes:
        exit_code: exit code of a shell in this case, 126 or 127.
    """

    def __init__(self, message: str, exit_code: int) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Child:
    """A running child.

    Attributes:
        pid: its process id, which is not reused before `poll` has returned the status.
        stdin, stdout, stderr: the recorder's ends of the pipes, non-blocking.
    """

    __slots__ = ("pid", "stderr", "stdin", "stdout")

    def __init__(self, pid: int, stdin: int, stdout: int, stderr: int) -> None:
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr

    def poll(self) -> int | None:
        """Return the wait status if the child has exited, else None. Raises ChildProcessError after it was returned."""
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        return status if pid else None

    def send(self, number: int) -> None:
        """Send a signal; it is lost if the child has exited, as without a recorder."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)


def spawn(command: Sequence[str]) -> Child:
    """Start `command`, looked up in PATH, with the environment, folder and further inherited files of this process.

    Ignored signals stay ignored, as without a recorder. SIGPIPE and SIGXFSZ, which Python ignores by itself, are reset
    to their defaults.

    Extensions of one host share values, and this process is between: the owner of the child's standard input is the
    host. A variable would be in the environment that the child may send to its host.

    Raises:
        CommandError: the command does not exist, or cannot be executed.
    """
    pipes = [os.pipe() for _ in range(3)]
    (in_read, in_write), (out_read, out_write), (err_read, err_write) = pipes
    theirs, ours = (in_read, out_write, err_write), (in_write, out_read, err_read)
    with contextlib.suppress(OSError):  # the host may have ended
        fcntl.fcntl(in_read, fcntl.F_SETOWN, os.getppid())
    try:
        pid = os.posix_spawnp(
            command[0],
            tuple(command),
            os.environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in enumerate(theirs)],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],
        )
    except (OSError, ValueError) as failure:
        for fd in ours:
            os.close(fd)
        raise _explained(command[0], failure) from failure
    finally:
        for fd in theirs:
            os.close(fd)
    for fd in ours:
        os.set_blocking(fd, False)
    for fd in ours[:2]:
        enlarge(fd, PIPE_BYTES)
    return Child(pid, *ours)


def has_exited(pid: int) -> bool:
    """Return True if a child of this process has exited; its status can still be read."""
    if hasattr(os, "waitid"):
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    import ctypes  # Python has the call on macOS since 3.13

    information = ctypes.create_string_buffer(SIGINFO_BYTES)
    wait = ctypes.CDLL(None, use_errno=True).waitid
    if wait(P_PID, ctypes.c_uint(pid), information, WEXITED | os.WNOHANG | WNOWAIT) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return any(information.raw)


def _explained(name: str, failure: OSError | ValueError) -> CommandError:
    if not isinstance(failure, OSError):
        return CommandError(f"the command {name!r} cannot be executed: {failure}", EXIT_NOT_EXECUTABLE)
    if not isinstance(failure, FileNotFoundError):
        hint = "; a script needs a first line like #!/bin/sh" if failure.errno == errno.ENOEXEC else ""
        return CommandError(f"the command {name!r} cannot be executed: {failure.strerror}{hint}", EXIT_NOT_EXECUTABLE)
    if "/" not in name:
        return CommandError(f"the command {name!r} is not in PATH", EXIT_NOT_FOUND)
    if os.path.exists(name):  # noqa: PTH110 - pathlib would be imported for this line alone
        return CommandError(
            f"the command {name!r} exists, but the interpreter in its first line does not", EXIT_NOT_FOUND
        )
    return CommandError(f"the command {name!r} does not exist", EXIT_NOT_FOUND)


def exit_status(status: int) -> int | str:
    """Convert a wait status to the value in cassettes: the exit code, or the name of the signal."""
    return signal_name(os.WTERMSIG(status)) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def exit_like(status: int) -> NoReturn:
    """End this process like the child: with the same exit code, or by the same signal."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # only the core dump of the child is useful
        if number not in (signal.SIGKILL, signal.SIGSTOP):
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
        os.kill(os.getpid(), number)
        os._exit(128 + number)  # process 1 of a container ignores the default action of its own signals
    os._exit(os.WEXITSTATUS(status))
