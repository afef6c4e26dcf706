"""Descriptors of the directory and the input of a command, inside of the workdir; and the name of a place."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ext_sdk import OperationFailed
from ext_sdk.files import os_errors

from .files.common import workdir_for

if TYPE_CHECKING:
    from ext_sdk import Context

# Enough to enter a directory; elsewhere than on Linux it has to be readable as well.
_SEARCH = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC


def open_directory(context: Context, cwd: str) -> int:
    """Open the directory to run in: in the workdir, or one that make-temp gave.

    Raises:
        PathEscapes: it is somewhere else.
        OperationFailed: it is not there, or no directory.
    """
    workdir = workdir_for(context, cwd)
    try:
        return workdir.open(cwd, _SEARCH)
    except OSError as error:
        raise OperationFailed(
            f"can't run in {cwd!r}",
            error=f"cwd: expected a directory in {workdir.root}, found {cwd!r}: {error.strerror}; "
            "an earlier step has to make it",
        ) from error


def place_of(context: Context) -> str:
    """Return the workdir of a call, with its scope if there is one, for messages."""
    return f"scope {context.scope!r} of {context.workdir}" if context.scope else str(context.workdir)


def open_input(context: Context, path: str) -> int:
    """Open a file that a command reads. Raises OperationFailed where that is not possible."""
    with os_errors("read", path), workdir_for(context, path).open_regular(path) as file:
        return os.dup(file.fileno())
