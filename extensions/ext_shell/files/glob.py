"""Patterns for paths: what matches one in a working directory, without following symbolic links."""

from __future__ import annotations

import fnmatch

from ext_sdk.files import Workdir, kind_of

from .common import in_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ext_sdk.deadline import Deadline


def matches(workdir: Workdir, pattern: str, deadline: Deadline) -> list[str]:
    """The paths that match, an entry after what is in it.

    Args:
        workdir: where to look.
        pattern: `*`, `?` and `[a-z]` match within a name, and no name that begins with a dot unless the pattern
            does; `**` as a whole component matches any number of directories, none included.
        deadline: for large trees.

    Raises:
        PathEscapes: the pattern leads out of the working directory.
        OperationFailed: there was no time left.
    """
    parts = workdir.relative(pattern).split("/")
    found = dict.fromkeys(_below(workdir, "", parts, deadline))
    return sorted(found, key=lambda path: (-path.count("/"), path))


def _below(workdir: Workdir, directory: str, parts: Sequence[str], deadline: Deadline) -> Iterator[str]:
    in_time(deadline, f"looking into {directory or '.'!r}")
    part, rest = parts[0], parts[1:]
    if part == "**":
        yield from _any_depth(workdir, directory, rest, deadline)
        return
    for name in _names(workdir, directory):
        if fnmatch.fnmatchcase(name, part) and (part.startswith(".") or not name.startswith(".")):
            path = f"{directory}/{name}" if directory else name
            if not rest:
                yield path
            elif _is_directory(workdir, path):
                yield from _below(workdir, path, rest, deadline)


def _any_depth(workdir: Workdir, directory: str, rest: Sequence[str], deadline: Deadline) -> Iterator[str]:
    yield from _below(workdir, directory, rest or ["*"], deadline)
    for name in _names(workdir, directory):
        path = f"{directory}/{name}" if directory else name
        if not name.startswith(".") and _is_directory(workdir, path):
            yield from _any_depth(workdir, path, rest, deadline)


def _names(workdir: Workdir, directory: str) -> list[str]:
    try:
        return workdir.names(directory or ".")
    except FileNotFoundError:  # removed in the meantime
        return []


def _is_directory(workdir: Workdir, path: str) -> bool:
    return workdir.exists(path) and kind_of(workdir.stat(path, follow=False).st_mode) == "directory"
