"""What ends the wait of a loop, beside what it waits for: signals, and threads that have something for it."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
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
