"""Supervisor of one command and all that it starts, until nothing of it is left."""

from __future__ import annotations

import os
import select
import time

from .process_tree import describe
from .syscalls import STOP_SIGNALS, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    import signal as _signal

    from .launcher import Launch
    from .process_tree import ProcessTree
else:
    import _signal

__all__ = ["Supervisor"]

LINGER = 0.25  # seconds for leftover processes to exit by themselves: bash does not wait for `>(tee log)`
LINGER_BUSY = 2.0  # seconds for those that are still busy: on a loaded machine they may not even have begun
LINGER_AGAIN = 0.05  # seconds between two polls of busy processes
STUCK = 2.0  # seconds after the first SIGKILL until survivors are reported
KILL_AGAIN = 5  # milliseconds between two rounds of SIGKILL
POLL_AGAIN = 100  # milliseconds between two polls of processes whose end is not reported, or that survive SIGKILL


class Supervisor:
    """Serves the control socket of one command."""

    def __init__(self, control: _socket.socket, launch: Launch, command: int, tree: ProcessTree) -> None:
        self._control = control
        self._launch = launch
        self._command = command
        self._tree = tree
        self._orders = b""  # beginning of an incomplete order
        self._owned = True
        self._sweep_at: float | None = None  # time to stop processes that the command left
        self._sweep_latest = 0.0  # time to stop them even if they are busy
        self._kill_at: float | None = None  # end of the grace period
        self._killing_since: float | None = None
        self._stuck = False

    def watch(self, wakeups: int) -> None:
        """Follow orders and reap processes; return when the tree is empty."""
        poll = select.poll()
        poll.register(wakeups, select.POLLIN)
        poll.register(self._control.fileno(), select.POLLIN)
        while True:
            ended, left = self._tree.reap()
            status = dict(ended).get(self._command)
            if status is not None:
                self.report(f"exit {status}")
                now = time.monotonic()
                self._sweep_at = None if self._launch.keep else now + LINGER
                self._sweep_latest = now + LINGER_BUSY
            if not left:
                break
            for descriptor, _ in poll.poll(self._act()):
                if descriptor == wakeups:
                    if any(number in STOP_SIGNALS for number in os.read(wakeups, 4096)):
                        self._stop(_signal.SIGTERM, self._launch.grace)
                elif not self._obey():
                    poll.unregister(descriptor)
                    self._stop(_signal.SIGTERM, self._launch.grace)
        self.report("gone")

    def report(self, line: str) -> None:
        """Send a line to the owner, if it has not exited."""
        if self._owned:
            try:
                self._control.sendall(line.encode() + b"\n")
            except OSError:
                self._owned = False

    def _act(self) -> int | None:
        """Do what is due; return the milliseconds until the next action, None for none."""
        now = time.monotonic()
        if self._killing_since is not None:
            self._tree.kill()
            if now - self._killing_since < STUCK:
                return KILL_AGAIN
            if not self._stuck:
                self._stuck = True
                self.report("stuck " + describe(self._tree.members()))
            return POLL_AGAIN
        if self._sweep_at is not None and now >= self._sweep_at:
            if now < self._sweep_latest and self._tree.busy():
                self._sweep_at = now + LINGER_AGAIN
            else:
                self.report("left " + describe(self._tree.members()))
                self._stop(_signal.SIGTERM, self._launch.grace)
        if self._kill_at is not None and now >= self._kill_at:
            self._killing_since = now
            return 0
        due = [int((at - now) * 1000) + 1 for at in (self._kill_at, self._sweep_at) if at is not None]
        if self._tree.silent:
            due.append(POLL_AGAIN)
        return max(0, min(due)) if due else None

    def _stop(self, number: int, grace: float) -> None:
        """Send the signal to the complete tree. Processes that its handlers start run until SIGKILL.

        A later stop may shorten the time that is left, never lengthen it.
        """
        self._sweep_at = None
        self._tree.send(number)
        kill_at = time.monotonic() + grace
        self._kill_at = kill_at if self._kill_at is None else min(kill_at, self._kill_at)

    def _obey(self) -> bool:
        """Follow the owner's orders; return False when the owner has closed the socket."""
        try:
            data = self._control.recv(4096)
        except OSError:
            data = b""
        *lines, self._orders = (self._orders + data).split(b"\n")
        for line in lines:
            verb, *values = line.split()
            if verb == b"stop":
                self._stop(int(values[0]), float(values[1]))
            elif verb == b"signal":
                send(self._command, int(values[0]))
        return bool(data)
