"""Event loop of the proxy: one thread that waits for sockets, timers, other threads, and the end of the session.

Work without a deadline, such as writing a recording, is deferred until no event is ready, so that it does not delay
a connection. It is done earlier if too much of it waits.
"""

from __future__ import annotations

import heapq
import os
import selectors
import time
from collections import deque
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Work = Callable[[], None]
    Ready = Callable[[int], None]

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
MOST_DEFERRED_BYTES = 4 * 1024 * 1024  # of deferred work
MOST_DEFERRED = 256  # pieces of deferred work


class Timer:
    """Work for a later moment.

    Attributes:
        cancelled: it is not done any more.
    """

    __slots__ = ("cancelled", "work")

    def __init__(self, work: Work) -> None:
        self.work = work
        self.cancelled = False


class EventLoop:
    """Event loop of one thread. Only `post` may be called by others."""

    def __init__(self) -> None:
        self._select = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Timer]] = []
        self._numbers = count()
        self._deferred: deque[tuple[Work, int]] = deque()
        self._deferred_bytes = 0
        self._posted: deque[Work] = deque()
        wakeup, self._wake = os.pipe()
        os.set_blocking(wakeup, False)
        os.set_blocking(self._wake, False)
        self.watch(wakeup, READ, lambda _: self._on_wakeup(wakeup))

    def watch(self, fd: int, events: int, ready: Ready) -> None:
        """Call a function whenever a file descriptor is ready.

        Args:
            events: READ and WRITE, or one of them.
            ready: is called with the events.
        """
        self._select.register(fd, events, ready)

    def rewatch(self, fd: int, events: int, ready: Ready) -> None:
        """Change the events of a file descriptor; with 0 it is not watched until the next change."""
        if fd in self._select.get_map():
            if events:
                self._select.modify(fd, events, ready)
            else:
                self._select.unregister(fd)
        elif events:
            self._select.register(fd, events, ready)

    def unwatch(self, fd: int) -> None:
        """Stop watching a file descriptor; call it before it is closed."""
        with suppress(KeyError):
            self._select.unregister(fd)

    def after(self, seconds: float, work: Work) -> Timer:
        """Do something later, unless its timer is cancelled."""
        timer = Timer(work)
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._numbers), timer))
        return timer

    def post(self, work: Work) -> None:
        """Do something in the thread of the loop, as soon as possible. Other threads may call this."""
        self._posted.append(work)
        with suppress(BlockingIOError):  # it will wake up in any case
            os.write(self._wake, b"\0")

    def defer(self, work: Work, size: int = 0) -> None:
        """Do something when no event is ready.

        Args:
            size: bytes of memory that it holds.
        """
        self._deferred.append((work, size))
        self._deferred_bytes += size

    def turn(self, patience_s: float | None) -> bool:
        """Process the events that are ready, or wait for the next ones. Return True if there were any.

        Args:
            patience_s: longest wait; None for no limit.
        """
        if self._deferred:
            patience_s = 0
        elif self._timers:
            left = max(0.0, self._timers[0][0] - time.monotonic())
            patience_s = left if patience_s is None else min(patience_s, left)
        ready = self._select.select(patience_s)
        for key, events in ready:
            key.data(events)
        now = time.monotonic()
        due = False
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            due = True
            if not timer.cancelled:
                timer.work()
        if self._deferred and (
            not ready or len(self._deferred) > MOST_DEFERRED or self._deferred_bytes > MOST_DEFERRED_BYTES
        ):
            work, size = self._deferred.popleft()
            self._deferred_bytes -= size
            work()
            return True
        return bool(ready) or due

    def drain(self) -> None:
        """Do all deferred work."""
        while self._deferred:
            work, _ = self._deferred.popleft()
            work()
        self._deferred_bytes = 0

    def _on_wakeup(self, wakeup: int) -> None:
        with suppress(BlockingIOError):
            os.read(wakeup, 65_536)
        while self._posted:
            self._posted.popleft()()
