"""Errors that users of the recorder see. Their messages state what was expected and found, where, and the remedy.

RecorderError
├── CassetteError     a cassette cannot be read: file, line, problem, advice
├── CassetteInUse     another recorder is writing this cassette
├── PatternTooSlow    a search for a regular expression takes too long
└── UsageError        options cannot be combined, a file is missing
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

# Option that records again, for remedies. A program that runs the recorder, such as ext-host, names its own option.
# `ext-recorder replay` does not record, so its remedy names the command that does.
BY_ANOTHER_PROGRAM = "EXT_RECORDER_AGAIN" in os.environ
RECORD_AGAIN = os.environ.get(
    "EXT_RECORDER_AGAIN", "ext-recorder record --mode all" if sys.argv[1:2] == ["replay"] else "--mode all"
)


class RecorderError(Exception):
    """Base of the errors of this package. Its `str()` is the message for the user, on one line."""


class CassetteError(RecorderError):
    """A cassette cannot be read.

    Attributes:
        path: the file.
        line: the line, counted from 1; 0 for the whole file.
        problem: the cause.
        advice: the remedy; "" if it is obvious.
    """

    def __init__(self, path: Path | str, line: int, problem: str, advice: str = "") -> None:
        where = f"{path}:{line}" if line else str(path)
        super().__init__(f"{where}: {problem}" + (f" ({advice})" if advice else ""))
        self.path = str(path)
        self.line = line
        self.problem = problem
        self.advice = advice


class CassetteInUse(RecorderError):
    """Another recorder is writing this cassette, or this recording.

    Args:
        path: the file, or the folder of the recording.
        problem: the cause and the remedy.
    """

    def __init__(
        self,
        path: Path | str,
        problem: str = "another recorder is writing this cassette; give each session a cassette of its own",
    ) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = str(path)


class PatternTooSlow(RecorderError):
    """Search for a regular expression of a user or of a file that takes too long on a text."""


class UsageError(RecorderError):
    """Wrong command line, option or file; nothing has been started."""
