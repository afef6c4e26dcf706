"""Supervisor of one command: find, signal, kill and reap all that it starts, until nothing of it is left."""

from __future__ import annotations

import os
import select
import time

from .launcher import STOP_SIGNALS, send

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _socket
    import signal as _signal
    from collections.abc import Collection, Mapping

    from .launcher import Launch
else:
    import _signal

__all__ = ["ProcessGroup", "ProcessTree", "Session", "Supervisor", "describe"]

FREEZE_ROUNDS = 50  # processes may fork while others are stopped; the caller kills again until nothing is left
NAMES_SHOWN = 10


class ProcessTree:
    """All descendants of this process, found in /proc (Linux).

    Between finding a process and signalling it, its id could be reused only if it were reaped and the kernel went
    through all process ids meanwhile; that chance is taken.
    """

    silent = False  # SIGCHLD reports the end of a member

    def __init__(self) -> None:
        self._root = os.getpid()

    def members(self, skip: Collection[int] = ()) -> dict[int, str]:
        """Return the names of the living descendants by process id; `skip` names branches to leave out."""
        return _with_descendants([self._root], _living(), skip)

    def busy(self) -> bool:
        """Return True if a descendant runs, or waits for a processor or its disk: it has not come to rest."""
        return any(_stat(str(pid))[2] in "RD" for pid in self.members())

    def send(self, number: int) -> None:
        """Send a signal to every descendant; continue stopped ones, or they would never receive it."""
        for pid in self.members():
            send(pid, number)
            send(pid, _signal.SIGCONT)

    def kill(self, skip: Collection[int] = ()) -> None:
        """Stop every descendant first, so that none can fork meanwhile, then kill them all."""
        frozen: set[int] = set()
        for _ in range(FREEZE_ROUNDS):
            running = self.members(skip).keys() - frozen
            if not running:
                break
            for pid in running:
                send(pid, _signal.SIGSTOP)
            frozen |= running
        for pid in frozen:
            send(pid, _signal.SIGKILL)

    def reap(self) -> tuple[list[tuple[int, int]], bool]:
        """Reap ended children as (process id, status); return also True if any member is left."""
        ended: list[tuple[int, int]] = []
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return ended, False
            if pid == 0:
                return ended, True
            ended.append((pid, os.waitstatus_to_exitcode(status)))


class Session(ProcessTree):
    """Processes of a session and all that they have started: what is left of a command without a supervisor.

    A daemon that has a session of its own, and whose parent has ended, is not among them.
    """

    def __init__(self, session: int) -> None:
        super().__init__()
        self._session = session

    def members(self, skip: Collection[int] = ()) -> dict[int, str]:
        living = _living()
        own = {pid: name for pid, (_, session, name) in living.items() if session == self._session and pid not in skip}
        return own | _with_descendants(list(own), living, skip)


class ProcessGroup(ProcessTree):
    """Process group of the command: all that can be reached without subreaper and /proc."""

    silent = True

    def __init__(self, group: int) -> None:
        super().__init__()
        self._group = group

    def members(self, skip: Collection[int] = ()) -> dict[int, str]:
        try:
            os.killpg(self._group, 0)
        except OSError:
            return {}
        return {self._group: "process group"}

    def busy(self) -> bool:
        return False  # unknown

    def send(self, number: int) -> None:
        send(-self._group, number)
        send(-self._group, _signal.SIGCONT)

    def kill(self, skip: Collection[int] = ()) -> None:
        send(-self._group, _signal.SIGKILL)

    def reap(self) -> tuple[list[tuple[int, int]], bool]:
        ended, children = super().reap()
        return ended, children or bool(self.members())


def _living() -> dict[int, tuple[int, int, str]]:
    """Return (parent, session, name) of every process by its id."""
    processes = {}
    for entry in os.listdir("/proc"):  # noqa: PTH208 - pathlib is as big as this program
        if entry.isdecimal():
            parent, session, state, name = _stat(entry)
            if state not in "ZX":
                processes[int(entry)] = parent, session, name
    return processes


def _with_descendants(
    roots: list[int], living: Mapping[int, tuple[int, int, str]], skip: Collection[int]
) -> dict[int, str]:
    """Return the names of the descendants of some processes by process id."""
    children: dict[int, list[tuple[int, str]]] = {}
    for pid, (parent, _, name) in living.items():
        children.setdefault(parent, []).append((pid, name))
    descendants: dict[int, str] = {}
    parents = roots
    while parents:
        for pid, name in children.get(parents.pop(), ()):
            if pid not in skip and pid not in descendants:
                descendants[pid] = name
                parents.append(pid)
    return descendants


def describe(members: Mapping[int, str]) -> str:
    """Return names of processes on one line, for people: `sleep(17), nginx(18)`."""
    shown = [f"{name.replace(chr(10), '?')}({pid})" for pid, name in list(members.items())[:NAMES_SHOWN]]
    more = len(members) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _stat(pid: str) -> tuple[int, int, str, str]:
    """Return (parent, session, state letter, name) of a process; one that has ended meanwhile counts as a zombie."""
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
        try:
            line = os.read(descriptor, 4096).decode("utf-8", "replace")
        finally:
            os.close(descriptor)
    except OSError:
        return 0, 0, "Z", ""
    head, _, tail = line.rpartition(")")  # the name may hold blanks and parentheses
    state, parent, _, session = tail.split(None, 4)[:4]
    return int(parent), int(session), state, head.partition("(")[2]


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
