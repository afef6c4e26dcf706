"""`shim`: write an executable that replaces a child, for hosts that start a program by its path.

The arguments that a host passes to it are a part of the recorded command, so a recording of `get` is not replayed for
`list`.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys

from ext_recorder.cassette.paths import target_of
from ext_recorder.errors import UsageError
from ext_sdk.core import own_arguments, own_program
from ext_sdk.core.atomic import atomic_write

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TITLE = "# Written by `ext-recorder shim`."


def script(words: Sequence[str]) -> str:
    """Return the text of a shim.

    All paths in it are absolute, because a host may start it in any folder. It replaces itself (`exec`), so that the
    recorder receives signals and its exit code is that of the shim. `-P` prevents imports from the current folder.

    Args:
        words: arguments of ext-recorder; the arguments of the host are appended, as a part of the command.
    """
    name, *others = words
    recorder = own_program("ext_recorder")
    if sys.flags.no_site and os.access(sys.argv[0], os.X_OK):  # the executable, whose unpacked files may be deleted
        recorder = [os.path.abspath(sys.argv[0]), *own_arguments]  # noqa: PTH100
    command = shlex.join([*recorder, name])
    return f'#!/bin/sh\n{_TITLE}\nexec {command} --passed=$# {shlex.join(others)} "$@"\n'


def located(command: Sequence[str], shim: Path) -> list[str]:
    """Return the command with the absolute path of its program.

    Raises:
        UsageError: the program is missing, or is the shim.
    """
    program, *arguments = command
    executable = shutil.which(program)
    if executable is None:
        raise UsageError(
            f"the command {program!r} does not exist, or is not executable; to write a shim that only replays, omit"
            " `-- COMMAND…`"
        )
    path = os.path.abspath(executable)  # links are kept: a program may read the name of its executable  # noqa: PTH100
    if shim.exists() and shim.samefile(path):
        raise UsageError(f"the shim {shim} would start itself; give the full path of the recorded command")
    return [path, *arguments]


def write(shim: Path, text: str, *, force: bool = False) -> None:
    """Write an executable atomically.

    Args:
        force: replace a file that is not a shim.

    Raises:
        UsageError: another file has this name.
        OSError: the file cannot be written.
    """
    shim = type(shim)(target_of(str(shim)))
    if shim.exists() and not force:
        head = b""
        if shim.is_file():
            with shim.open("rb") as existing:
                head = existing.read(len(_TITLE) + 64)
        if _TITLE.encode() not in head:
            raise UsageError(f"{shim} exists and is not a shim; choose another name, or replace it with --force")
    shim.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(str(shim), mode=0o755) as file:  # executable with any umask
        file.write(text.encode("utf-8", "surrogateescape"))
