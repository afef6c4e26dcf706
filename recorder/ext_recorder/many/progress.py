"""How far the work is: a bar on standard error, where that is a terminal.

Where it is none, the lines that a command prints about each cassette say it as well.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Self, TextIO

    from click.termui import ProgressBar  # type: ignore[attr-defined]

_CLEAR = "\r\x1b[K\x1b[?25h"  # the line, and click's hiding of the cursor


class Progress:
    """A bar for so many cassettes; nothing for a single one, or without a terminal.

    Args:
        total: how many.
        file: where to; None: standard error.
    """

    def __init__(self, total: int, file: TextIO | None = None) -> None:
        self._file = file or sys.stderr
        self._bar: ProgressBar[int] | None = None
        if total > 1 and self._file.isatty():
            import click

            self._bar = click.progressbar(length=total, file=self._file, show_pos=True, width=24)

    def __enter__(self) -> Self:
        if self._bar:
            self._bar.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar:
            self._clear()

    def advance(self) -> None:
        """One more is done."""
        if self._bar:
            self._bar.update(1)

    def aside(self) -> None:
        """Take the bar away, because something else is written; the next step brings it back."""
        if self._bar:
            self._clear()

    def _clear(self) -> None:
        self._file.write(_CLEAR)
        self._file.flush()
