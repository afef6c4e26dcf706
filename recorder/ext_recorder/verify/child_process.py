"""Live child under verification: a supervised process and the connections on which the recorded host uses it."""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from ext_recorder.errors import RecorderError
from ext_recorder.posix.channel import wait
from ext_recorder.posix.signals import signal_name, signal_number
from ext_recorder.posix.supervised_child import GONE_S, STOP_GRACE_S, SupervisedChild
from ext_sdk.core.process.output import Output
from ext_sdk.core.process.spawner import Spawner

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import TypeAlias

    from ext_recorder.posix.channel import ByteChannel

    from .host_script import HostScript

    # Records an event: seconds since the start; stream or mark; bytes, or the value of a mark.
    Note: TypeAlias = Callable[[float, str, bytes | str | int], None]

QUIET_S = 0.2  # after this time without output, an output that a process outside of the tree still has open is closed
LAST_WORDS_BYTES = 2_048  # of stderr, for a child that has failed


def send_due(script: HostScript, channel: ByteChannel, note: Callable[[str, bytes | str], None]) -> str:
    """Send the due messages of a script, as far as the child reads them, and record them.

    Returns:
        The name of a signal to send to the child before the next messages; "" if no further message is due.
    """
    while not channel.unsent:
        if not script.outbox:
            script.advance(monotonic())
        if not script.outbox:
            break
        action = script.take()
        if isinstance(action, str):
            return action
        if action is None:
            channel.end()
            note("in", b"")
        elif not channel.ended and not channel.error:
            note("in", action)
            channel.send(action)
    return ""


class VerifiedChild(SupervisedChild):
    """The child and the loop that moves its bytes. A context manager, which stops the child.

    Args:
        command: program and arguments; it runs in the current directory.
        environment: all of its variables.

    Raises:
        RecorderError: the child cannot be started.
    """

    def __init__(self, command: Sequence[str], environment: Mapping[str, str]) -> None:
        spawner = Spawner()
        try:
            super().__init__(spawner, command, environment, ".")
        finally:
            spawner.close()  # its process exits after the child
        self._words = Output(0)

    @property
    def status(self) -> int | str | None:
        """Return the exit code of the child, or the name of a signal; None while it runs."""
        status = self.process.status
        if status is None:
            return None
        return status.code if status.code is not None else signal_name(status.signal or 0)

    @property
    def last_words(self) -> str:
        """Return the end of its output on stderr."""
        return self._words.text[-LAST_WORDS_BYTES:].strip()

    @property
    def channels(self) -> list[ByteChannel]:
        """Return the channels to wait for, see `turn`."""
        return [self.channel, self.errors]

    @property
    def files(self) -> list[int]:
        """Return further descriptors to wait for, see `turn`."""
        return [] if self.process.gone else [self.process.fileno()]

    def play(self, script: HostScript, note: Note) -> bool:
        """Move bytes until the script is over and the child has exited.

        Returns:
            True if the child exited by itself, False if it was stopped after the deadline.
        """
        self.start(script, note)
        while not self.ended and not script.gave_up:
            now = monotonic()
            left = script.deadline() - now
            if left > 0:
                self.turn(left)
            elif script.over:
                break
            else:
                script.timed_out(now)
        return self.finish()

    def start(self, script: HostScript, note: Note) -> None:
        """Start the script."""
        self._script = script
        self._note = note
        self._started = self._quiet_since = monotonic()
        script.start(self._started)

    def turn(self, seconds: float) -> None:
        """Write pending messages, and wait for an event up to the given seconds."""
        record = partial(self._record, monotonic())
        while name := send_due(self._script, self.channel, record):
            number = signal_number(name)
            if number is None:
                raise RecorderError(f"the recorded host sent {name}, a signal that this system does not have")
            self.process.send_signal(number)
            record("signal", name)
        self._step(min(seconds, QUIET_S) if self.process.gone else seconds)

    def finish(self) -> bool:
        """Stop the child if it has not exited. Return True if it exited by itself."""
        until = monotonic() + STOP_GRACE_S
        while self._script.output_ended and not self.ended and monotonic() < until:
            self._step(QUIET_S)  # its exit status follows the end of its output
        by_itself = self.ended
        if not by_itself:
            self.stop()
            until = monotonic() + GONE_S
            while not self.ended and monotonic() < until:
                self._step(QUIET_S)
        if self.status is not None:
            self._record(monotonic(), "exit", self.status)
        return by_itself

    @property
    def ended(self) -> bool:
        """Return True if the child has exited with all processes that it started."""
        is_quiet = monotonic() - self._quiet_since >= QUIET_S
        return self.process.gone and (is_quiet or not any(channel.is_open for channel in self.channels))

    def _record(self, when: float, name: str, what: bytes | str | int) -> None:
        self._note(when - self._started, name, what)

    def _step(self, seconds: float) -> None:
        """Wait for an event, and handle it."""
        readable = wait(self.channels, seconds, self.files)
        for channel in self.channels:
            data = channel.read() if channel.source in readable else None
            if data is None:
                continue
            self._quiet_since = now = monotonic()
            self._record(now, "err" if channel is self.errors else "out", data)
            if channel is self.errors:
                self._words.write(data)
                self._script.receive_error(data)
            elif data:
                self._script.receive_data(data, now)
            else:
                self._script.receive_eof(now)
        was_gone = self.process.gone
        self.process.update()
        if self.process.gone and not was_gone:
            self._quiet_since = monotonic()
            self.channel.end()
