"""Operations of the sample extension that run until a test ends them: arguments `started` and `goOn`."""

from __future__ import annotations

import os
import select
from typing import TYPE_CHECKING

from .host import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path


class Fifo:
    """Named pipe between a test and an operation; neither side waits for the other to open it."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = str(path)
        self._descriptor = os.open(path, os.O_RDWR)

    def line(self) -> str:
        """Return the next line that an operation writes."""
        text = b""
        while not text.endswith(b"\n"):
            assert select.select([self._descriptor], [], [], PATIENCE_S)[0], "the operation says nothing"
            text += os.read(self._descriptor, 1)
        return text.decode().strip()

    def write(self, text: str) -> None:
        os.write(self._descriptor, text.encode() + b"\n")

    def close(self) -> None:
        os.close(self._descriptor)


class Meeting:
    """Operation that reports its start, and runs until the test writes to `go_on`."""

    def __init__(self, directory: Path, name: str) -> None:
        self.started = Fifo(directory / f"{name}-started")
        self.go_on = Fifo(directory / f"{name}-go-on")
        self.args = {"started": self.started.path, "goOn": self.go_on.path}

    def close(self) -> None:
        self.started.close()
        self.go_on.close()
