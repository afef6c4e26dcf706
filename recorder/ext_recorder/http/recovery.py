"""The file of a session whose recorder was killed.

The process that writes it outlives the recorder and writes the end, so that only the name is missing. Where it was
killed too, what names, clocks and TLS said is lost, and no replay could be what the session was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_recorder.cassette.claim import hold
from ext_recorder.errors import CassetteError, UsageError
from ext_recorder.targets import target_of

from .reader import load
from .vcr import without_clients

if TYPE_CHECKING:
    from pathlib import Path

END = b"\nversion: 1\n"


def recover(partial: Path, path: Path, *, replace: bool = False) -> int:
    """Give a file its name.

    Args:
        partial: NAME.http.yaml.partial.
        path: the name.
        replace: overwrite a file that is there.

    Returns:
        How many interactions it has.

    Raises:
        UsageError: there is such a file already.
        CassetteInUse: it is still being recorded.
        CassetteError: it is not whole, or no such file.
        OSError: it can't be read or renamed.
    """
    path = type(path)(target_of(str(path)))
    if path.exists() and not replace:
        raise UsageError(f"{path} exists already: choose another name for the recovered file, or remove that one")
    with hold(partial):
        if END not in partial.read_bytes():
            raise CassetteError(
                partial,
                0,
                "its end is missing, in which a recording tells what names, clocks and TLS said: it can't be recovered",
                "record the session again, and remove this file",
            )
        without_clients()
        count = len(load(partial).interactions)
        partial.replace(path)
    return count
