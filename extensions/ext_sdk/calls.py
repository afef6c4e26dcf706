"""The calls of a session that have no answer yet, and when each must have one."""

from __future__ import annotations

import threading
import time
from contextvars import ContextVar
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .session import Call
    from .wire import Id

# The id of the request that a thread works for. A recorder of HTTP traffic looks for a variable of this name.
CALL: ContextVar[Id | None] = ContextVar("jsonrpc_call", default=None)

LONGEST_WAIT_MILLISECONDS = 3_600_000  # poll() takes no more than 24 days; a timeout may be 292 years
_NEVER = float("inf")


class Running:
    """A call whose answer is not out yet.

    Attributes:
        id: of the request.
        call: what is performed.
        latest: when an answer must be out, on the monotonic clock.
    """

    __slots__ = ("call", "claimed", "id", "latest")

    def __init__(self, id: Id, call: Call) -> None:
        self.id = id
        self.call = call
        self.claimed = False
        self.latest = _NEVER if call.latest is None else time.monotonic() + call.latest


class Calls:
    """The running calls. Safe to use from several threads.

    An operation's thread and the loop that enforces deadlines may both want to answer a call: who claims it first
    does.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running: list[Running] = []

    def __bool__(self) -> bool:
        return bool(self._running)

    def begin(self, id: Id, call: Call) -> Running:
        """A call that runs from now on."""
        running = Running(id, call)
        with self._changed:
            self._running.append(running)
        return running

    def claim(self, running: Running) -> bool:
        """Whether the caller is the one to answer."""
        with self._changed:
            first, running.claimed = not running.claimed, True
        return first

    def end(self, running: Running) -> None:
        """The answer is out."""
        with self._changed:
            self._running.remove(running)
            self._changed.notify_all()

    def unclaimed(self) -> list[Running]:
        """Calls that nobody answers yet."""
        with self._changed:
            return [one for one in self._running if not one.claimed]

    def late(self) -> list[Running]:
        """Those of them whose time is over."""
        now = time.monotonic()
        return [one for one in self.unclaimed() if one.latest <= now]

    def milliseconds_left(self) -> int | None:
        """Until the next one is late, for poll(); None where none will be."""
        latest = min((one.latest for one in self.unclaimed()), default=_NEVER)
        if latest == _NEVER:
            return None
        return int(min(max(0.0, latest - time.monotonic()) * 1000 + 1, LONGEST_WAIT_MILLISECONDS))

    def stop(self) -> None:
        """Tell all operations to stop."""
        for one in self.unclaimed():
            one.call.context.deadline.stopped.set()

    def wait_for_none(self, seconds: float) -> None:
        """Wait until every answer is out, but not longer than this."""
        with self._changed:
            self._changed.wait_for(lambda: not self._running, seconds)
