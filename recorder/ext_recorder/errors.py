"""Every error that a user of the recorder can meet: what was expected, what was found, where, what to do.

RecorderError
├── CassetteError     a cassette that can't be read: file, line, problem, advice
├── CassetteInUse     another recorder is writing this cassette
└── UsageError        options that don't go together, a missing file
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path


class RecorderError(Exception):
    """The base of the errors of this package. `str()` of it is the message for the user, on one line."""


class CassetteError(RecorderError):
    """A cassette that can't be read.

    Attributes:
        path: the file.
        line: the line, counted from 1; 0 where the whole file is meant.
        problem: what is wrong.
        advice: what to do about it; "" where that is plain.
    """

    def __init__(self, path: Path | str, line: int, problem: str, advice: str = "") -> None:
        where = f"{path}:{line}" if line else str(path)
        super().__init__(f"{where}: {problem}" + (f" ({advice})" if advice else ""))
        self.path = str(path)
        self.line = line
        self.problem = problem
        self.advice = advice


class CassetteInUse(RecorderError):
    """Another recorder holds the claim on this cassette."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(f"{path}: another recorder is writing this cassette; give each session a cassette of its own")
        self.path = str(path)


class UsageError(RecorderError):
    """What was asked for can't be done; nothing was started."""
