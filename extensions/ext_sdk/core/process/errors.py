"""Errors of commands that could not be started, or whose supervision failed.

- ProcessError
    - CommandNotFound: no such executable in PATH
    - CommandNotStarted: the system refused: not executable, no directory, a limit
    - SupervisionLost: the supervisor was killed; the fork server has killed what it left
"""

from __future__ import annotations

import errno
import os

_HINTS = {
    (errno.ENOENT, "exec"): "no such file, or its #! line names an interpreter that does not exist",
    (errno.EACCES, "exec"): "it is not executable (chmod +x) or a directory",
    (errno.ENOEXEC, "exec"): "it is neither a program for this machine nor begins with a #! line",
    (errno.E2BIG, "exec"): "arguments and environment are too long; pass long values by stdin",
    (errno.ENOMEM, "exec"): "the memory limit is too low to start it",
    (errno.ENOMEM, "limits"): "the memory limit is too low to start it",
    (errno.EAGAIN, "exec"): "the limit of processes is reached; it counts all processes of this user",
    (errno.EAGAIN, "fork"): "the system's limit of processes is reached",
    (errno.EACCES, "cwd"): "the working directory may not be entered",
}


class ProcessError(Exception):
    """Base class of these errors."""


class CommandNotFound(ProcessError):
    """No executable has this name.

    Args:
        path: the directories that were searched, in the form of PATH.
    """

    def __init__(self, name: str, path: str) -> None:
        super().__init__(f"command not found: {name!r}; searched PATH {path!r}")
        self.name = name
        self.path = path


class CommandNotStarted(ProcessError):
    """The system refused to start the command.

    Args:
        stage: the step that failed: fork, session, cwd, limits, exec, supervisor.
    """

    def __init__(self, name: str, number: int, stage: str) -> None:
        hint = _HINTS.get((number, stage))
        super().__init__(f"can't start {name!r}: {os.strerror(number)} ({stage})" + (f": {hint}" if hint else ""))
        self.name = name
        self.errno = number
        self.stage = stage


class SupervisionLost(ProcessError):
    """The supervisor ended before its command's tree; the state of the command is unknown."""
