"""The recordings that the site shows, and their pages."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from docs.demo import RECORDER, SCRIPTS, copy_booking, servers

if TYPE_CHECKING:
    from pathlib import Path


def record_eval(folder: Path) -> Path:
    """Record the eval of docs/examples/booking in this folder, with its model and service; returns the recording."""
    recording = folder / "recordings" / "book-a-trip"
    eval_folder = folder / "booking"
    copy_booking(eval_folder, SCRIPTS / "ext-http")
    command = [RECORDER, "run", "--wrap", "eval.yaml", str(recording), "--", "ext-host", "run", "eval.yaml"]
    path = os.pathsep.join((str(SCRIPTS), os.environ["PATH"]))
    with servers(eval_folder):
        subprocess.run(command, cwd=eval_folder, env=os.environ | {"PATH": path}, check=True, capture_output=True)
    return recording


def view(recording: Path, page: Path) -> None:
    """Write the HTML page of a cassette, or of the recording of a run."""
    subprocess.run([RECORDER, "view", "-o", str(page), str(recording)], check=True, capture_output=True)
