"""Knowing that nothing is left of what a test started, without looking for it."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE = 60.0  # seconds until a test gives up waiting for something that has to happen


class Canary:
    """A pipe that whatever a script starts holds open: it ends when nothing of it is left, and not before."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    @property
    def hold(self) -> str:
        """Shell text that takes hold of the canary as descriptor 9, which everything started later inherits."""
        return f"exec 9>'{self.path}'"

    def line(self) -> str:
        """Wait for what the script says with `echo ... >&9`: one line."""
        text = b""
        while not text.endswith(b"\n"):
            assert self._readable(PATIENCE), "the script did not say anything"
            text += os.read(self._reader, 1) or pytest.fail("the script ended without a word")
        return text.decode().strip()

    def left(self, patience: float = PATIENCE) -> bool:
        """Whether something still holds it when patience is over; nothing does, if nothing ever did."""
        os.close(os.open(self.path, os.O_WRONLY))  # from here on the reader is told when nobody writes
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
