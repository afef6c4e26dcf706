from __future__ import annotations

from tests.support.ext_shell_files import host, workdir

__all__ = ["host", "workdir"]
