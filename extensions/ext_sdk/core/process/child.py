"""Command that runs under a supervisor, as its owner sees it, and the errors of commands.

- ProcessError
    - CommandNotFound: no such executable in PATH
    - CommandNotStarted: the system refused: not executable, no directory, a limit
    - SupervisionLost: the supervisor was killed; the fork server has killed what it left
"""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Self

from ext_sdk.core.process.supervisor.supervisor import Session

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from types import TracebackType

_HINTS = {
    (errno.ENOENT, "exec"): "no such file, or its #! line names an interpreter that does not exist",
    (errno.EACCES, "exec"): "it is not executable (chmod +x) or a directory",
    (errno.ENOEXEC, "exec"): "it is neither a program for this machine nor begins with a #! line",
    (errno.E2BIG, "exec"): "arguments and environment are too long; pass long values by stdin",
    (errno.ENOMEM, "exec"): "the memory limit is too low to start it",
    (errno.ENOMEM, "limits"): "the memory limit is too low to start it",
    (errno.EAGAIN, "exec"): "the limit of processes is reached; it counts all processes of this user",
    (errno.EAGAIN, "fork"): "the system's limit of processes is reached",
    (errno.EINVAL, "limits"): "this system does not accept one of the limits; macOS has none for memory",
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


READ_BYTES = 4096
KILL_ROUNDS = 50  # processes may fork while a round kills others


class ExitStatus:
    """Exit status of a command.

    Attributes:
        code: its exit code; None if a signal ended it.
        signal: the number of that signal; None if it exited.
    """

    __slots__ = ("code", "signal")

    def __init__(self, status: int) -> None:
        self.code = status if status >= 0 else None
        self.signal = -status if status < 0 else None

    @property
    def signal_name(self) -> str:
        """Name of the signal, such as SIGTERM; "" if the command exited."""
        return "" if self.signal is None else signal_name(self.signal)

    def __str__(self) -> str:
        return f"exit code {self.code}" if self.signal is None else f"killed by {self.signal_name}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ExitStatus) and (self.code, self.signal) == (other.code, other.signal)

    def __hash__(self) -> int:
        return hash((self.code, self.signal))


def signal_name(number: int) -> str:
    """Return SIGTERM for 15; real-time signals have no names in Python: SIG40."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"


class Child:
    """Command and all processes that it starts, until none is left. Created by Spawner.spawn.

    `update` and `wait` read its reports, in one thread; any thread may send orders. Closing it, or the death of this
    process, ends the command's complete tree: SIGTERM, grace period, SIGKILL.

    Attributes:
        name: of the command, for messages.
        pid: id of the command's process, and of its process group.
        status: exit status of the command itself; None while it runs.
        left: names of the processes that it left behind and that were stopped; "" for none.
        stuck: names of processes that survive SIGKILL; "" for none.
        watched: a supervisor has begun; before that, nothing was started.
        gone: no process of it is left.
        lost: the supervisor was killed, and the rest of the tree with it; status may stay None.
    """

    def __init__(self, control: socket.socket, name: str) -> None:
        control.setblocking(False)  # noqa: FBT003 - the parameter has no name
        self._control = control
        self._pending = b""
        self._failure: CommandNotStarted | None = None
        self.name = name
        self.pid = 0
        self.status: ExitStatus | None = None
        self.left = ""
        self.stuck = ""
        self.watched = False
        self.gone = False
        self.lost = False

    def fileno(self) -> int:
        """Return a descriptor that is readable when `update` has reports to read; -1 when closed."""
        return self._control.fileno()

    def update(self) -> None:
        """Read the reports of the supervisor, without waiting."""
        while not self.gone:
            try:
                data = self._control.recv(READ_BYTES)
            except BlockingIOError:
                return
            except OSError:
                data = b""
            if not data:
                # The supervisor was killed. The fork server kills what it left, too, but may have been killed as well.
                session = Session(self.pid)
                for _ in range(KILL_ROUNDS if self.pid and sys.platform == "linux" else 0):
                    if not session.members():
                        break
                    session.kill()
                self.gone = self.lost = True
            *lines, self._pending = (self._pending + data).split(b"\n")
            for line in lines:
                self._take(line.decode())

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until no process of the command is left.

        Args:
            timeout: in seconds; None waits forever.

        Returns:
            True if none is left.
        """
        return self._wait(lambda: self.gone, timeout)

    def wait_for_exit(self, timeout: float | None = None) -> bool:
        """Wait until the command itself has exited; processes that it left may still run."""
        return self._wait(lambda: self.gone or self.status is not None, timeout)

    def started(self, timeout: float) -> None:
        """Wait until the command runs.

        Raises:
            CommandNotStarted: the system refused.
            SupervisionLost: the supervisor was killed, or did not respond.
        """
        known = self._wait(lambda: self.gone or bool(self.pid) or self._failure is not None, timeout)
        if self._failure:
            raise self._failure
        if not self.pid:
            reason = "was killed" if known else f"did not answer within {timeout:g} s"
            raise SupervisionLost(f"the supervisor of {self.name!r} {reason}")

    def send_signal(self, number: int) -> None:
        """Send a signal to the command alone."""
        self._order(f"signal {number}")

    def stop(self, number: int = signal.SIGTERM, grace: float = 2.0) -> None:
        """Send a signal to the whole tree, and SIGKILL after `grace` seconds. Does not wait."""
        self._order(f"stop {int(number)} {grace}")

    def close(self) -> None:
        """Close the control socket: the supervisor stops what is left, with the grace period of the launch."""
        self._control.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _order(self, line: str) -> None:
        with suppress(OSError):  # the supervisor has exited
            self._control.send(line.encode() + b"\n")

    def _take(self, line: str) -> None:
        verb, _, value = line.partition(" ")
        if verb == "watched":
            self.watched = True
        elif verb == "pid":
            self.pid = int(value)
        elif verb == "exit":
            self.status = ExitStatus(int(value))
        elif verb == "error":
            number, stage = value.split()
            self._failure = CommandNotStarted(self.name, int(number), stage)
        elif verb == "left":
            self.left = value
        elif verb == "stuck":
            self.stuck = value
        elif verb == "gone":
            self.gone = True

    def _wait(self, done: Callable[[], bool], timeout: float | None) -> bool:
        until = None if timeout is None else time.monotonic() + timeout
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        while True:
            self.update()
            if done():
                return True
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                return False
            poll.poll(None if left is None else left * 1000 + 1)
