"""Folder of one recording: `recording.yaml`, the header, `traffic.http.yaml`, and cassettes in `children/`.

A recording is made in FOLDER.partial, which is renamed when the command has ended. So FOLDER is complete, or missing.
If a recorder was killed, `ext-recorder recover FOLDER.partial` makes a recording of what there is.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ext_recorder.cassette.recording import HEADER, TRAFFIC, encode_header, is_recording, read_header
from ext_recorder.cassette.writer import claim
from ext_recorder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ext_recorder.cassette.recording import RunHeader

PARTIAL, PREVIOUS = ".partial", ".previous"


class RecordingFolder:
    """Folder of one recording.

    Args:
        path: as the user gives it.
    """

    def __init__(self, path: str) -> None:
        self.path = Path(path.rstrip("/"))
        self._partial = self.path.with_name(self.path.name + PARTIAL)
        self._previous = self.path.with_name(self.path.name + PREVIOUS)

    @property
    def exists(self) -> bool:
        """Return True if there is a complete recording.

        Raises:
            UsageError: the folder has other files, or is a file.
        """
        if is_recording(self.path):
            return True
        if self.path.is_dir() and not any(self.path.iterdir()):
            return False
        if self.path.exists():
            raise UsageError(f"{self.path}: expected the folder of a recording, with {HEADER}, or a new folder")
        return False

    def begin(self) -> Path:
        """Create the folder in which the recording is made, and return it.

        Raises:
            CassetteInUse: another process records it.
            OSError: it can't be created.
        """
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self._partial.exists():
            claim(self._partial / TRAFFIC)  # fails if its recorder still runs
            shutil.rmtree(self._partial)
        self._partial.mkdir()
        return self._partial

    def finish(self, header: RunHeader) -> None:
        """Write the header, and give the folder its name. A previous recording exists until this one is complete."""
        (self._partial / HEADER).write_text(encode_header(header), encoding="utf-8")
        if self.path.exists():
            shutil.rmtree(self._previous, ignore_errors=True)
            self.path.rename(self._previous)
        self._partial.rename(self.path)
        shutil.rmtree(self._previous, ignore_errors=True)

    def header(self) -> RunHeader:
        """Return the header. Raises CassetteError."""
        return read_header(self.path)


def traffic_of(folder: Path) -> Path:
    """Return the file of HTTP traffic in a folder."""
    return folder / TRAFFIC


def same_command(recorded: Sequence[str], command: Sequence[str]) -> bool:
    """Return True if a recording is of this command."""
    return tuple(recorded) == tuple(command)
