"""Detection of processes that outlive a test, without a search of the process table."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 60.0  # seconds until a missing event counts as a hang


class ProcessTracker:
    """Named pipe that a script and all processes below it hold open; it reaches its end when the last of them exits."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    @property
    def hold(self) -> str:
        """Return shell text that opens the pipe as descriptor 9, which every later process inherits."""
        return f"exec 9>'{self.path}'"

    def line(self) -> str:
        """Wait for a line that the script writes with `echo ... >&9`, and return it."""
        text = b""
        while not text.endswith(b"\n"):
            assert self._readable(PATIENCE), "the script wrote nothing"
            text += os.read(self._reader, 1) or pytest.fail("the script exited without writing a line")
        return text.decode().strip()

    def left(self, patience: float = PATIENCE) -> bool:
        """Return True if a process still holds the pipe after `patience` seconds."""
        os.close(
            os.open(self.path, os.O_WRONLY)
        )  # from here on the reader sees the end of the pipe when no writer is left
        while self._readable(patience):
            if not os.read(self._reader, 4096):
                return False
        return True

    def _readable(self, patience: float) -> bool:
        poll = select.poll()
        poll.register(self._reader, select.POLLIN | select.POLLHUP)
        return bool(poll.poll(patience * 1000))

    def close(self) -> None:
        os.close(self._reader)
