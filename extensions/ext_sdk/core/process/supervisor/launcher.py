"""Launch of a command: fork, limits, exec."""

from __future__ import annotations

import errno
import os

from .syscalls import reset_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

__all__ = ["Launch", "start"]


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
