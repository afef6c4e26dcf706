"""Threads that run operations: made when needed, kept for the next call, never in the way of the end."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

IDLE_SECONDS = 30.0  # an idle thread ends after this long; a wave of calls leaves no threads behind


class Workers:
    """A pool that grows with the number of tasks at work.

    Threads are daemons: one that hangs in a system call does not keep the extension from ending.
    `concurrent.futures` would wait for it.
    """

    def __init__(self) -> None:
        self._tasks: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._lock = threading.Lock()
        self._idle = 0

    def run(self, task: Callable[[], None]) -> None:
        """Run a task soon, in a thread. The task must not raise."""
        with self._lock:
            if self._idle:
                self._idle -= 1
                self._tasks.put(task)
                return
        threading.Thread(target=self._work, args=(task,), daemon=True, name="operation").start()

    def _work(self, task: Callable[[], None]) -> None:
        next_task: Callable[[], None] | None = task
        while next_task:
            next_task()
            next_task = self._next()

    def _next(self) -> Callable[[], None] | None:
        with self._lock:
            self._idle += 1
        try:
            return self._tasks.get(timeout=IDLE_SECONDS)
        except Empty:
            with self._lock:
                if self._idle:
                    self._idle -= 1
                    return None
        return self._tasks.get()  # claimed by `run` in the very moment
