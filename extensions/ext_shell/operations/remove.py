"""Operation `remove`: remove files and directories, by path or by pattern."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from msgspec import Meta

import ext_sdk
from ext_sdk.core.text import counted
from ext_sdk.files import os_errors
from ext_shell.files import check_time, is_directory, matching_paths, workdir_for


class Remove(ext_sdk.Args, one_of=("path", "glob")):
    """Arguments of `remove`."""

    path: Annotated[str, Meta(description="Path to remove; of a symbolic link the link itself, not its target")] = ""
    glob: Annotated[
        str,
        Meta(
            description="Pattern of the paths to remove: * ? [a-z] within names, ** for any number of directories; "
            "symbolic links are not followed"
        ),
    ] = ""
    recursive: Annotated[bool, Meta(description="Remove directories with their contents")] = False
    ignore_missing: Annotated[bool, Meta(description="Succeed if nothing exists to remove")] = False


def remove(args: Remove, context: ext_sdk.Context) -> ext_sdk.Result:
    """Remove a file, a directory, or all that match a pattern; the working directory itself is never removed."""
    workdir = workdir_for(context, args.path or args.glob)
    paths = matching_paths(workdir, args.glob, context.deadline) if args.glob else [args.path]
    removed = 0
    for path in paths:
        check_time(context.deadline, f"removing {path!r}; {counted(removed, 'entry', 'entries')} removed before")
        with os_errors("remove", path):
            if not workdir.exists(path):
                continue
            names = workdir.names(path) if is_directory(workdir, path) else []
            if names and not args.recursive:
                raise ext_sdk.OperationFailed(
                    f"{path} is a directory that is not empty",
                    error=f"{path}: expected a file or an empty directory, got a directory with "
                    f"{counted(len(names), 'entry', 'entries')}; `recursive: true` removes it",
                )
            with suppress(FileNotFoundError):  # another process removed it first
                workdir.remove(path)
                removed += 1
    if not removed and not args.ignore_missing:
        raise ext_sdk.OperationFailed(
            "nothing to remove",
            error=f"{args.path or args.glob}: expected something to remove, got nothing; "
            "`ignoreMissing: true` accepts that",
            outputs={"removed": 0},
        )
    what = args.path if args.path and removed else f"{counted(removed, 'entry', 'entries')} of {args.path or args.glob}"
    return ext_sdk.Result.ok(f"Removed {what}", outputs={"removed": removed})
