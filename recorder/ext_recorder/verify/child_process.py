"""Live child under verification: a supervised process and its three files. All its processes are stopped at the end."""

from __future__ import annotations

import os
import select
import signal
from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.errors import RecorderError
from ext_recorder.posix.signals import signal_name, signal_number
from ext_sdk.core.process.errors import ProcessError
from ext_sdk.core.process.output import Output
from ext_sdk.core.process.spawner import Command, Spawner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self, TypeAlias

    from ext_sdk.core.process.child import Child

    from .host_script import HostScript

    # As a recorder's notes: seconds since the start; stream or mark; bytes, or the value of a mark.
    Note: TypeAlias = Callable[[float, str, bytes | str | int], None]

READ_BYTES = 65_536
STOP_GRACE_S = 2.0  # between SIGTERM and SIGKILL
GONE_S = 10.0  # how long the end of a killed tree is waited for
QUIET_S = 0.2  # silence after which an output is closed that a process outside of the tree still holds
LAST_WORDS_BYTES = 2_048  # of stderr, for a child that has failed


class VerifiedChild:
    """The child, and the loop that moves its bytes. A context manager, which stops the child.

    Args:
        command: program and arguments; it runs in the current directory.
        environment: all of its variables.

    Raises:
        RecorderError: the child cannot be started.
    """

    def __init__(self, command: tuple[str, ...], environment: Mapping[str, str]) -> None:
        self._spawner = Spawner()
        pipes = [os.pipe() for _ in range(3)]
        (in_read, self._in), (self._out, out_write), (self._err, err_write) = pipes
        theirs = (in_read, out_write, err_write)
        directory = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            self._child: Child = self._spawner.spawn(
                Command(command, env=environment, directory=directory, grace=STOP_GRACE_S),
                stdin=in_read,
                stdout=out_write,
                stderr=err_write,
            )
        except (ProcessError, ValueError) as failure:
            for fd in (self._in, self._out, self._err):
                os.close(fd)
            self._spawner.close()
            raise RecorderError(str(failure)) from failure
        finally:
            for fd in (*theirs, directory):
                os.close(fd)
        self._poll = select.epoll()
        self._sources = {self._out: "out", self._err: "err"}
        self._writing = False
        self._rest = memoryview(b"")
        self._words = Output(0)
        self._started = self._quiet_since = 0.0
        os.set_blocking(self._in, False)
        for fd in (*self._sources, self._child.fileno()):
            self._poll.register(fd, select.EPOLLIN)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop the child with all processes that it started."""
        if not self._child.gone:
            self._child.stop(signal.SIGTERM, STOP_GRACE_S)
            self._child.wait(GONE_S)
        self._close_input()
        for fd in list(self._sources):
            self._drop(fd)
        self._child.close()
        self._spawner.close()
        self._poll.close()

    def fileno(self) -> int:
        """Return a descriptor that is readable if `turn` has work to do."""
        return self._poll.fileno()

    @property
    def status(self) -> int | str | None:
        """Return the exit code of the child, or the name of a signal; None while it runs."""
        ended = self._child.status
        if ended is None:
            return None
        return ended.code if ended.code is not None else signal_name(ended.signal or 0)

    def has_ended(self) -> bool:
        """Return True if the child has exited."""
        self._child.update()
        return self._child.status is not None

    @property
    def last_words(self) -> str:
        """Return the end of its output on stderr."""
        return self._words.text[-LAST_WORDS_BYTES:].strip()

    def play(self, script: HostScript, note: Note) -> bool:
        """Move bytes until the script is over and the child has exited.

        Args:
            script: of the host.
            note: records all events.

        Returns:
            True if the child exited by itself, False if it was stopped after the deadline.
        """
        self.start(script)
        while not self.ended and not script.gave_up:
            now = monotonic()
            left = script.deadline() - now
            if left > 0:
                self.turn(script, note, left)
            elif script.over:
                break
            else:
                script.timed_out(now)
        return self.finish(script, note)

    def start(self, script: HostScript) -> None:
        """Start the script."""
        self._started = monotonic()
        script.start(self._started)

    def turn(self, script: HostScript, note: Note, patience: float) -> None:
        """Write pending messages, and wait for an event up to `patience` seconds."""
        self._write(script, note)
        self._step(script, note, min(patience, QUIET_S) if self._child.gone else patience)

    def finish(self, script: HostScript, note: Note) -> bool:
        """Stop the child if it has not exited. Return True if it exited by itself."""
        until = monotonic() + STOP_GRACE_S
        while script.output_ended and not self.ended and monotonic() < until:
            self._step(script, note, QUIET_S)  # its exit status comes after the end of its output
        by_itself = self.ended
        if not by_itself:
            self._child.stop(signal.SIGTERM, STOP_GRACE_S)
            until = monotonic() + GONE_S
            while not self.ended and monotonic() < until:
                self._step(script, note, QUIET_S)
        if self.status is not None:
            note(monotonic() - self._started, "exit", self.status)
        return by_itself

    @property
    def ended(self) -> bool:
        """Return True if the child has exited with all processes that it started."""
        return self._child.gone and (not self._sources or monotonic() - self._quiet_since >= QUIET_S)

    def _step(self, script: HostScript, note: Note, patience: float) -> None:
        """Wait for an event, and handle it."""
        for fd, _ in self._poll.poll(patience + 0.001):
            if fd in self._sources:
                self._read(fd, script, note)
        was_gone = self._child.gone
        self._child.update()
        if self._child.gone and not was_gone:
            self._poll.unregister(self._child.fileno())
            self._quiet_since = monotonic()
            self._close_input()

    def _read(self, fd: int, script: HostScript, note: Note) -> None:
        name = self._sources[fd]
        data = os.read(fd, READ_BYTES)
        self._quiet_since = now = monotonic()
        note(now - self._started, name, data)
        if name == "err":
            self._words.write(data)
            script.receive_error(data)
        elif data:
            script.receive_data(data, now)
        else:
            script.receive_eof(now)
        if not data:
            self._drop(fd)

    def _write(self, script: HostScript, note: Note) -> None:
        """Write as much as the child reads."""
        while self._rest or script.outbox:
            if not self._rest and not self._take(script, note):
                continue
            try:
                self._rest = self._rest[os.write(self._in, self._rest) :]
            except BlockingIOError:
                break
            except OSError:  # it has closed its input
                self._close_input()
            if not self._rest and not script.outbox:
                script.advance(monotonic())
        waiting = bool(self._rest)
        if waiting and not self._writing:
            self._poll.register(self._in, select.EPOLLOUT)
        elif self._writing and not waiting:
            self._poll.unregister(self._in)
        self._writing = waiting

    def _take(self, script: HostScript, note: Note) -> bool:
        """Run the next action of the outbox. Return True if there are bytes to write."""
        each = script.take()
        when = monotonic() - self._started
        if each is None:
            self._close_input()
            note(when, "in", b"")
        elif isinstance(each, str):
            self._child.send_signal(_number(each))
            note(when, "signal", each)
        elif self._in >= 0:
            self._rest = memoryview(each)
            note(when, "in", each)
        return bool(self._rest)

    def _close_input(self) -> None:
        if self._in >= 0:
            if self._writing:
                self._poll.unregister(self._in)
                self._writing = False
            os.close(self._in)
            self._in = -1
            self._rest = memoryview(b"")

    def _drop(self, fd: int) -> None:
        self._poll.unregister(fd)
        os.close(fd)
        del self._sources[fd]


def _number(name: str) -> int:
    found = signal_number(name)
    if found is None:
        raise RecorderError(f"the recorded host sent {name}, a signal that this system does not have")
    return found
