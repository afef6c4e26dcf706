"""Files of a working directory. No path and no symbolic link leads out of it."""

from __future__ import annotations

from .errors import NotRegular, PathEscapes, TooLarge, os_errors
from .workdir import Workdir, kind_of

__all__ = ["NotRegular", "PathEscapes", "TooLarge", "Workdir", "kind_of", "os_errors"]
