from __future__ import annotations

from tests.support.ext_shell import _shared, fresh, shell, tracker

__all__ = ["_shared", "fresh", "shell", "tracker"]
