"""Operation `make-temp`: create a file or directory with a new name."""

from __future__ import annotations

import os
import secrets
from typing import Annotated, Literal

from msgspec import Meta

import ext_sdk
from ext_sdk.files import Workdir, os_errors
from ext_shell.files import PrivateTemps, workdir_for

_ATTEMPTS = 100
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class MakeTemp(ext_sdk.Args):
    """Arguments of `make-temp`."""

    kind: Annotated[Literal["directory", "file"], Meta(description="Kind of the new entry")] = "directory"
    location: Annotated[
        Literal["workdir", "private"],
        Meta(
            description="workdir: in the working directory, where it stays; private: outside of it, readable by this "
            "user only, removed when the extension exits"
        ),
    ] = "workdir"
    prefix: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{0,64}$", description="Beginning of the name")] = "tmp-"
    suffix: Annotated[str, Meta(pattern=r"^[A-Za-z0-9_.-]{0,64}$", description="End of the name")] = ""


def make_temp(args: MakeTemp, context: ext_sdk.Context) -> ext_sdk.Result:
    """Create an empty file or directory; file operations accept its absolute path, the output `path`."""
    with os_errors("create", "a temporary entry"):
        if args.location == "private":
            workdir = Workdir(context.state(PrivateTemps).make())
        else:
            workdir = workdir_for(context, ".")
        for _ in range(_ATTEMPTS):
            name = f"{args.prefix}{secrets.token_hex(4)}{args.suffix}"
            try:
                with workdir.parent(name) as (directory, entry):
                    if args.kind == "directory":
                        os.mkdir(entry, 0o700, dir_fd=directory)
                    else:
                        os.close(os.open(entry, _FLAGS, 0o600, dir_fd=directory))
            except FileExistsError:
                continue
            break
        else:
            raise ext_sdk.OperationFailed(f"all {_ATTEMPTS} tried names that begin with {args.prefix!r} exist")
    path = str(workdir.root / name)
    return ext_sdk.Result.ok(f"Created {args.kind} {path}", outputs={"path": path, "name": name})
