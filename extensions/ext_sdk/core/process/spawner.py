"""Spawner of commands under supervision."""

from __future__ import annotations

import marshal
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from ext_sdk.core.process.supervisor.launcher import Launch

from .child import Child, CommandNotFound, ProcessError, SupervisionLost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

START_TIMEOUT = 15.0  # seconds for the first report of a supervisor, on a machine under heavy load
PROGRAM = Path(__file__).parent / "supervisor" / "__main__.py"


class Command:
    """Command to start.

    Args:
        argv: the command and its arguments; it is searched in the PATH of `env` unless it has a slash.
        env: its complete environment.
        directory: descriptor of the working directory; a path could be replaced after it was checked.
        limits: (soft, hard) by RLIMIT_ number.
        umask: None keeps that of this process.
        grace: seconds between SIGTERM and SIGKILL when the owner exits or closes the child, or the command leaves
            processes behind.
        keep: processes that the command leaves behind (daemons) run until a stop; else they are stopped.
    """

    __slots__ = ("argv", "directory", "env", "grace", "keep", "limits", "umask")

    def __init__(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        directory: int,
        limits: Mapping[int, tuple[int, int]] | None = None,
        umask: int | None = None,
        grace: float = 1.0,
        keep: bool = False,
    ) -> None:
        if not argv:
            raise ValueError("a command needs at least its name")
        self.argv = tuple(argv)
        self.env = dict(env)
        self.directory = directory
        self.limits = dict(limits or {})
        self.umask = umask
        self.grace = grace
        self.keep = keep


def find_executable(name: str, path: str) -> str:
    """Return the path of a command: unchanged if it has a slash, else the first executable file in PATH.

    Relative directories in PATH are skipped: they would depend on the working directory.

    Raises:
        CommandNotFound: no directory has it.
    """
    if "/" in name:
        return name
    for directory in path.split(os.pathsep):
        candidate = os.path.join(directory, name)  # noqa: PTH118 - a str is what exec gets
        if name and os.path.isabs(directory) and os.path.isfile(candidate) and os.access(candidate, os.X_OK):  # noqa: PTH113, PTH117
            return candidate
    raise CommandNotFound(name, path)


class _NotWatched(SupervisionLost):
    """Supervision that was lost before anything was started."""


class Spawner:
    """Starts commands through one fork server, each with a supervisor of its own. Thread-safe.

    The fork server starts with the first command, and again if it was killed; it exits after `close`, or after this
    process, as soon as no command is left.

    Args:
        contained: the system can contain a complete tree (Linux); False: only process groups.
    """

    def __init__(self, *, contained: bool = sys.platform == "linux") -> None:
        self._contained = contained
        self._lock = threading.Lock()
        self._server: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    def spawn(self, command: Command, *, stdin: int, stdout: int, stderr: int) -> Child:
        """Start a command.

        Args:
            stdin: descriptor; the caller keeps and closes its own copies of all three.

        Raises:
            CommandNotFound, CommandNotStarted: it does not run.
            SupervisionLost: it can't be supervised.
            ValueError: a NUL in an argument or a variable, or a name of a variable with "=".
        """
        env = {
            _encoded("a variable's name", name): _encoded(f"variable {name}", value)
            for name, value in command.env.items()
        }
        if any(not name or b"=" in name for name in env):
            raise ValueError("a variable's name is empty or has a '='")
        argv = [_encoded("an argument", text) for text in command.argv]  # a NUL is reported before a missing command
        launch = Launch(
            executable=os.fsencode(find_executable(command.argv[0], command.env.get("PATH", os.defpath))),
            argv=argv,
            env=env,
            limits=[(number, soft, hard) for number, (soft, hard) in command.limits.items()],
            umask=-1 if command.umask is None else command.umask,
            grace=command.grace,
            keep=command.keep,
        )
        message = marshal.dumps({name: getattr(launch, name) for name in Launch.__slots__})
        descriptors = [command.directory, stdin, stdout, stderr]
        try:
            return self._spawn(command.argv[0], message, descriptors)
        except _NotWatched:
            return self._spawn(command.argv[0], message, descriptors)  # by a new fork server

    def close(self) -> None:
        """Close the connection to the fork server, which exits after its last supervisor."""
        with self._lock:
            self._end_server()

    def _spawn(self, name: str, message: bytes, descriptors: list[int]) -> Child:
        ours, theirs = socket.socketpair()
        child = Child(ours, name)
        try:
            with theirs, self._lock:
                if self._server is None or self._server[0].poll() is not None:
                    self._end_server()
                    self._server = _start_server(self._contained)
                _, requests = self._server
                try:
                    socket.send_fds(requests, [len(message).to_bytes(4, "big")], [theirs.fileno(), *descriptors])
                    requests.sendall(message)
                except OSError as error:
                    raise _NotWatched(f"the fork server has ended: {error}") from error
            child.started(START_TIMEOUT)
        except SupervisionLost as error:
            child.close()
            self.close()
            raise error if child.watched else _NotWatched(str(error)) from error
        except BaseException:
            child.close()
            raise
        return child

    def _end_server(self) -> None:
        if self._server is not None:
            process, requests = self._server
            requests.close()
            self._server = None
            if process.poll() is None:  # it runs until its last supervisor has exited
                threading.Thread(target=process.wait, daemon=True, name="fork server").start()


def _start_server(contained: bool) -> tuple[subprocess.Popen[bytes], socket.socket]:
    ours, theirs = socket.socketpair()
    argv = [sys.executable, "-I", "-S", str(PROGRAM), *([] if contained else ["--group"])]
    with theirs:
        try:
            # No environment: commands can read that of their ancestors.
            # No stderr: a host that reads stderr to its end would wait for this process too.
            process = subprocess.Popen(
                argv,
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise ProcessError(f"can't start the supervisor of commands: {error}") from error
    return process, ours


def _encoded(what: str, text: str) -> bytes:
    if "\0" in text:
        raise ValueError(f"{what} has a NUL character, which a program can't receive; pass it by stdin or a file")
    return text.encode("utf-8", "surrogateescape")
