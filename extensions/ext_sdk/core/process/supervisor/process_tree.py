"""Processes that a command has started: find, signal, kill and reap them."""

from __future__ import annotations

import os

from .syscalls import send

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from collections.abc import Collection, Mapping
else:
    import _signal

__all__ = ["ProcessGroup", "ProcessTree", "Session", "describe"]

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
