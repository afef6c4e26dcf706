"""Files of a working directory. No path and no symbolic link leads out of it."""

from __future__ import annotations

from .workdir import NotRegular, PathEscapes, TooLarge, Workdir, kind_of, os_errors

__all__ = ["NotRegular", "PathEscapes", "TooLarge", "Workdir", "kind_of", "os_errors"]
