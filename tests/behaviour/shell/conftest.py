from __future__ import annotations

from tests.support.ext_shell import _shared, canary, fresh, shell

__all__ = ["_shared", "canary", "fresh", "shell"]
