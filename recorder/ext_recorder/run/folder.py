"""Folder of one recording: `recording.yaml`, the header, `traffic.http.yaml`, and cassettes in `children/`.

A recording is made in FOLDER.partial, which is renamed when the command has ended. So FOLDER is complete, or missing.
If a recorder was killed, `ext-recorder recover FOLDER.partial` makes a recording of what there is.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import yaml

from ext_recorder.cassette.writer import claim
from ext_recorder.errors import CassetteError, UsageError

from .children import Child

if TYPE_CHECKING:
    from collections.abc import Sequence

VERSION = 1
HEADER, TRAFFIC = "recording.yaml", "traffic.http.yaml"
PARTIAL, PREVIOUS = ".partial", ".previous"
TITLE = "# A recorded run of a command. Replay it: ext-recorder run FOLDER -- COMMAND…\n"


class RunHeader(NamedTuple):
    """Header of a recording.

    Attributes:
        command: without secrets and machine paths.
        recorder: version of the recorder.
        recorded: time in UTC, such as "2026-11-21T21:00:00Z".
        seconds: duration of the command.
        exit: its exit code, or the name of the signal that has ended it.
        wrap: configuration files whose children were recorded.
        children: on stdio.
    """

    command: tuple[str, ...]
    recorder: str
    recorded: str
    seconds: float
    exit: int | str
    wrap: tuple[str, ...] = ()
    children: tuple[Child, ...] = ()


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
        if (self.path / HEADER).is_file():
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
        values = {"recording": VERSION, **header._asdict(), "command": list(header.command)}
        values |= {"wrap": list(header.wrap), "children": [_entry(child) for child in header.children]}
        values = {key: value for key, value in values.items() if value != []}
        text = yaml.safe_dump(values, sort_keys=False, default_flow_style=None, width=1 << 20)
        (self._partial / HEADER).write_text(TITLE + text, encoding="utf-8")
        if self.path.exists():
            shutil.rmtree(self._previous, ignore_errors=True)
            self.path.rename(self._previous)
        self._partial.rename(self.path)
        shutil.rmtree(self._previous, ignore_errors=True)

    def header(self) -> RunHeader:
        """Return the header. Raises CassetteError."""
        path = self.path / HEADER
        try:
            values = yaml.safe_load(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise CassetteError(path, 0, f"cannot be read: {error}") from None
        if not isinstance(values, dict) or values.get("recording") != VERSION:
            raise CassetteError(path, 0, f"expected `recording: {VERSION}`, as `ext-recorder run` writes it")
        ended = values.get("exit")
        return RunHeader(
            _words(values.get("command")),
            str(values.get("recorder") or ""),
            str(values.get("recorded") or ""),
            float(values.get("seconds") or 0),
            ended if isinstance(ended, (int, str)) else 0,
            _words(values.get("wrap")),
            tuple(
                Child(str(child.get("name")), _words(child.get("command")), _words(child.get("cassettes")))
                for child in values.get("children") or ()
                if isinstance(child, dict)
            ),
        )


def _entry(child: Child) -> dict[str, object]:
    return {"name": child.name, "command": list(child.command), "cassettes": list(child.cassettes)}


def _words(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def traffic_of(folder: Path) -> Path:
    """Return the file of HTTP traffic in a folder."""
    return folder / TRAFFIC


def same_command(recorded: Sequence[str], command: Sequence[str]) -> bool:
    """Return True if a recording is of this command."""
    return tuple(recorded) == tuple(command)
