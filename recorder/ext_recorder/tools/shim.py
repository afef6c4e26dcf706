"""`shim`: an executable in the place of a child, for hosts that start a program by its path.

What a host passes to it is a part of the recorded command, so what was recorded of `get` is not replayed for `list`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys

from ext_recorder.cassette.paths import target_of
from ext_recorder.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TITLE = "# Written by `ext-recorder shim`. Edit nothing here: write it anew."


def script(words: Sequence[str]) -> str:
    """Return the text of a shim.

    Every path in it is absolute, because hosts start it in a folder of their choice. It replaces itself (`exec`), so
    that signals reach the recorder and the exit code is the recorder's. `-P` keeps Python from importing anything out
    of that folder.

    Args:
        words: the arguments of ext-recorder; what the host passes is appended to them, as a part of the command.
    """
    name, *others = words
    command = shlex.join([sys.executable, "-P", "-m", "ext_recorder", name])
    return f'#!/bin/sh\n{_TITLE}\nexec {command} --passed=$# {shlex.join(others)} "$@"\n'


def located(command: Sequence[str], shim: Path) -> list[str]:
    """The command with its program's absolute path.

    Raises:
        UsageError: it is not there, or it is the shim.
    """
    program, *arguments = command
    found = shutil.which(program)
    if found is None:
        raise UsageError(
            f"the command {program!r} is not there, or can't be executed; a shim that only replays needs none:"
            " leave out `-- COMMAND…`"
        )
    path = os.path.abspath(found)  # not resolved: a program may look at the name by which it was called  # noqa: PTH100
    if shim.exists() and shim.samefile(path):
        raise UsageError(f"the shim {shim} would start itself: give the recorded command by its full path")
    return [path, *arguments]


def write(shim: Path, text: str, *, force: bool = False) -> None:
    """Write an executable, all at once.

    Args:
        shim: the file.
        text: its content.
        force: replace a file that is no shim.

    Raises:
        UsageError: another file of this name is there.
        OSError: it can't be written.
    """
    shim = type(shim)(target_of(str(shim)))
    if shim.exists() and not force and not _is_shim(shim):
        raise UsageError(f"{shim} is there already, and no shim: choose another name, or replace it by --force")
    shim.parent.mkdir(parents=True, exist_ok=True)
    fresh = shim.with_name(f".{shim.name}.{os.getpid()}")
    try:
        with fresh.open("x", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        fresh.chmod(0o755)  # whatever the umask is: a program that can't be started is none
        fresh.replace(shim)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _is_shim(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _TITLE.encode() in file.read(len(_TITLE) + 64)
