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
    """Pipe that wakes the poll loop; it stays open until the process exits.

    Attributes:
        descriptor: readable when the loop has something to do.
    """

    def __init__(self) -> None:
        self.descriptor, self._write = os.pipe()
        os.set_blocking(self._write, False)

    def install_signal_handlers(self, handler: Callable[..., object]) -> None:
        """Write the number of each signal to the pipe; signals interrupt nothing.

        Args:
            handler: called too, in the main thread.
        """
        for number in SIGNALS:
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def wake(self) -> None:
        """Wake the loop. Thread-safe."""
        with suppress(BlockingIOError):  # the pipe is full: the loop will wake anyway
            os.write(self._write, b"\0")

    def drain(self) -> bool:
        """Empty the pipe, and return True if a signal arrived."""
        return any(number in SIGNALS for number in os.read(self.descriptor, 512))


IDLE_SECONDS = 30.0  # until an idle thread ends, so that many calls at once leave no threads behind


class Workers:
    """Thread pool that grows with the number of running tasks.

    Threads are daemons: one that hangs in a system call does not keep the extension running. `concurrent.futures` would
    wait for it.
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
        return self._tasks.get()  # `run` has counted on this thread meanwhile
