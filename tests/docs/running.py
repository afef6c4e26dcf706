"""Run the commands of pages."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def run(command: Sequence[str], folder: Path, limit: float) -> subprocess.CompletedProcess[str]:
    """Run a command with our programs in its PATH; what it says on stderr is in stdout.

    Args:
        command: to run.
        folder: where.
        limit: seconds after which it counts as a hang.
    """
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return subprocess.run(
        command,
        cwd=folder,
        env=os.environ | {"PATH": path, "PYTEST_ADDOPTS": "-p no:cacheprovider"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=limit,
    )
