"""Launch of a command (fork, limits, exec), and the system calls that all processes of this program share."""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Mapping, Sequence
    from typing import NoReturn
else:
    import _signal  # `signal` without its enums, whose import takes as long as the rest of this program

__all__ = ["STOP_SIGNALS", "Launch", "become_subreaper", "reset_signals", "send", "start", "wake_on"]

PR_SET_CHILD_SUBREAPER = 36
STOP_SIGNALS = (_signal.SIGHUP, _signal.SIGINT, _signal.SIGTERM)


def become_subreaper() -> None:
    """Make orphans below this process its children. Not inherited: each supervisor calls this for itself."""
    import ctypes

    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def reset_signals() -> None:
    """Reset every signal to its default: Python ignores SIGPIPE and SIGXFSZ, which exec would keep."""
    for number in range(1, _signal.NSIG):
        try:
            _signal.signal(number, _signal.SIG_DFL)
        except (OSError, ValueError):
            continue  # SIGKILL, SIGSTOP and those that the C library keeps for itself
    _signal.pthread_sigmask(_signal.SIG_SETMASK, ())


def send(pid: int, number: int) -> None:
    """Send a signal; skip a process that has ended or that this user may not signal."""
    try:  # noqa: SIM105 - importing contextlib takes as long as this complete program
        os.kill(pid, number)
    except OSError:
        pass


def wake_on(*signals: int) -> int:
    """Write these signals as bytes to a pipe, so that `poll` reports them; return the end to read."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    _signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in signals:
        _signal.signal(number, lambda number, frame: None)
    return reader


class Launch:
    """Command to start, and the handling of its end. The fields are those that `marshal` can carry."""

    __slots__ = ("argv", "env", "executable", "grace", "keep", "limits", "umask")

    def __init__(
        self,
        *,
        executable: bytes,
        argv: list[bytes],
        env: Mapping[bytes, bytes],
        limits: Sequence[tuple[int, int, int]],
        umask: int,
        grace: float,
        keep: bool,
    ) -> None:
        self.executable = executable
        self.argv = argv
        self.env = env
        self.limits = limits  # (resource, soft, hard), as for setrlimit
        self.umask = umask  # -1: as it is
        self.grace = grace  # seconds between SIGTERM and SIGKILL unless an order has its own
        self.keep = keep  # processes that the command leaves behind run until a stop


def start(launch: Launch, directory: int, streams: Sequence[int]) -> tuple[int, str]:
    """Fork and execute the command; close its descriptors here.

    Returns:
        Its process id, and the line that reports a failure to execute it; "" if it runs.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        _become(launch, directory, streams, writer)
    os.close(writer)
    for descriptor in {directory, *streams}:
        os.close(descriptor)
    failure = os.read(reader, 100)  # ends when exec closes the other end
    os.close(reader)
    return pid, failure.decode()


def _become(launch: Launch, directory: int, streams: Sequence[int], failures: int) -> NoReturn:
    """Turn this process into the command."""
    stage, number = "session", 0
    try:
        os.setsid()
        for target, descriptor in enumerate(streams):
            os.dup2(descriptor, target)
        stage = "cwd"
        os.fchdir(directory)
        stage = "limits"
        if launch.umask >= 0:
            os.umask(launch.umask)
        if launch.limits:
            import resource

            for limit, soft, hard in launch.limits:
                resource.setrlimit(limit, (soft, hard))
        stage = "exec"
        reset_signals()
        os.execve(launch.executable, launch.argv, launch.env)  # noqa: S606 - it is the caller's command
    except OSError as error:
        number = error.errno or errno.EIO
    except MemoryError:  # of the limit just set
        number = errno.ENOMEM
    except BaseException:  # noqa: BLE001 - there is no caller in this process
        number = errno.EINVAL
    os.write(failures, f"error {number} {stage}".encode())
    os._exit(127)
