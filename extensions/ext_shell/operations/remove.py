"""`remove`: files and directories."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

import ext_sdk
from ext_sdk.files import Workdir, kind_of, os_errors
from ext_shell.files.common import counted, in_time, workdir_for
from ext_shell.files.glob import matches


class Remove(ext_sdk.Args, one_of=("path", "glob")):
    """Arguments of `remove`."""

    path: Annotated[str, Meta(description="What to remove; a symbolic link itself, not what it leads to")] = ""
    glob: Annotated[
        str, Meta(description="Or all that match: * ? [a-z] in names, ** for any directories; links are not followed")
    ] = ""
    recursive: Annotated[bool, Meta(description="Also directories that are not empty")] = False
    ignore_missing: Annotated[bool, Meta(description="Whether finding nothing is no failure")] = False


def remove(args: Remove, context: ext_sdk.Context) -> ext_sdk.Result:
    """Remove a file, a directory, or all that matches a pattern, inside the working directory, never that itself."""
    workdir = workdir_for(context, args.path or args.glob)
    paths = matches(workdir, args.glob, context.deadline) if args.glob else [args.path]
    removed = 0
    for path in paths:
        in_time(context.deadline, f"removing {path!r}; {counted(removed, 'entry', 'entries')} removed before")
        with os_errors("remove", path):
            removed += _remove_one(workdir, path, recursive=args.recursive)
    if not removed and not args.ignore_missing:
        raise ext_sdk.OperationFailed(
            "nothing to remove",
            error=f"{args.path or args.glob}: expected something to remove, got nothing; "
            "`ignoreMissing: true` accepts that",
            outputs={"removed": 0},
        )
    what = args.path if args.path and removed else f"{counted(removed, 'entry', 'entries')} of {args.path or args.glob}"
    return ext_sdk.Result.ok(f"Removed {what}", outputs={"removed": removed})


def _remove_one(workdir: Workdir, path: str, *, recursive: bool) -> bool:
    if not workdir.exists(path):
        return False
    is_directory = kind_of(workdir.stat(path, follow=False).st_mode) == "directory"
    if is_directory and not recursive and workdir.names(path):
        raise ext_sdk.OperationFailed(
            f"{path} is a directory that is not empty",
            error=f"{path}: expected a file or an empty directory, got a directory with "
            f"{counted(len(workdir.names(path)), 'entry', 'entries')}; `recursive: true` removes it",
        )
    try:
        workdir.remove(path)
    except FileNotFoundError:  # somebody else was faster
        return False
    return True
