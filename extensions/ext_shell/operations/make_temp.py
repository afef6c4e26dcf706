"""`make-temp`: a new file or directory with a name that nothing has."""

from __future__ import annotations

import os
import secrets
from typing import Annotated, Literal

from msgspec import Meta

import ext_sdk
from ext_sdk.files import Workdir, os_errors
from ext_shell.files.common import PrivateTemps, workdir_for

_ATTEMPTS = 100


class MakeTemp(ext_sdk.Args):
    """Arguments of `make-temp`."""

    kind: Literal["directory", "file"] = "directory"
    location: Annotated[
        Literal["workdir", "private"],
        Meta(
            description="workdir: in the working directory, where it stays; private: outside, readable by this user "
            "only, removed when the extension ends"
        ),
    ] = "workdir"
    prefix: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{0,64}$", description="Beginning of the name")] = "tmp-"
    suffix: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{0,64}$", description="End of the name")] = ""


def make_temp(args: MakeTemp, context: ext_sdk.Context) -> ext_sdk.Result:
    """Make a new, empty file or directory; its absolute path is the output `path`, which all file operations take."""
    with os_errors("make", "a temporary entry"):
        if args.location == "private":
            workdir = Workdir(context.state(PrivateTemps).make())
        else:
            workdir = workdir_for(context, ".")
        name = _make(workdir, args)
    path = str(workdir.root / name)
    return ext_sdk.Result.ok(f"Made {args.kind} {path}", outputs={"path": path, "name": name})


def _make(workdir: Workdir, args: MakeTemp) -> str:
    for _ in range(_ATTEMPTS):
        name = f"{args.prefix}{secrets.token_hex(4)}{args.suffix}"
        try:
            with workdir.parent(name) as (directory, entry):
                _make_entry(args.kind, entry, directory)
        except FileExistsError:
            continue
        return name
    raise ext_sdk.OperationFailed(f"no free name was found that begins with {args.prefix!r}")


def _make_entry(kind: str, name: str, directory: int) -> None:
    if kind == "directory":
        os.mkdir(name, 0o700, dir_fd=directory)
    else:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        os.close(os.open(name, flags, 0o600, dir_fd=directory))
