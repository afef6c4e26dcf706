"""Threads of the server: a pool for calls, and a pipe that wakes the loop."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Wakeup:
    """A pipe that lasts as long as the process.

    Attributes:
        descriptor: can be read when the loop has to look again.
    """

    def __init__(self) -> None:
        self.descriptor, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def take_signals(self, handler: Callable[..., object]) -> None:
        """Let a signal be a byte in the pipe, its number, from now on; it interrupts nothing.

        Args:
            handler: is called too, in the main thread.
        """
        for number in SIGNALS:
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def wake(self) -> None:
        """Let the loop look again; for any thread."""
        with suppress(BlockingIOError):  # so many wake-ups wait already that one more tells nothing
            os.write(self._write, b"\0")

    def signalled(self) -> bool:
        """Take what has come. Returns whether a signal was among it."""
        return any(number in SIGNALS for number in os.read(self.descriptor, 512))


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
