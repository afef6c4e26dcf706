"""Operation `read-file`: return the content of a file."""

from __future__ import annotations

import base64
import hashlib
from typing import Annotated, Literal

from msgspec import Meta

import ext_sdk
from ext_sdk.core.text import counted
from ext_sdk.files import os_errors
from ext_shell.files import DEFAULT_MAX_SIZE, FilePath, MaxSize, permissions_text, workdir_for


class ReadFile(ext_sdk.Args):
    """Arguments of `read-file`."""

    path: FilePath
    encoding: Annotated[
        Literal["auto", "utf-8", "base64"],
        Meta(description="Encoding of the output `content`; auto: utf-8 if the file is valid UTF-8, else base64"),
    ] = "auto"
    max_size: MaxSize = DEFAULT_MAX_SIZE


def read_file(args: ReadFile, context: ext_sdk.Context) -> ext_sdk.Result:
    """Read a file of the working directory into the output `content`.

    Content that does not fit in a response is shortened; the output `contentFile` is the path of a file with all of it.
    """
    workdir = workdir_for(context, args.path)
    with os_errors("read", args.path):
        data = workdir.read(args.path, limit=args.max_size)
        mode = workdir.stat(args.path).st_mode
    content, encoding = base64.b64encode(data).decode(), "base64"
    if args.encoding != "base64":
        try:
            content, encoding = data.decode(), "utf-8"
        except UnicodeDecodeError as error:
            if args.encoding == "utf-8":
                raise ext_sdk.OperationFailed(
                    f"{args.path} is not UTF-8",
                    error=f"{args.path}: expected UTF-8, got byte 0x{data[error.start]:02x} at offset {error.start:,}; "
                    "read it with `encoding: base64`",
                ) from error
    return ext_sdk.Result.ok(
        f"Read {counted(len(data), 'byte')} from {args.path}",
        outputs={
            "content": content,
            "encoding": encoding,
            "path": str(workdir.root / workdir.relative(args.path)),
            "size": len(data),
            "mode": permissions_text(mode),
            "sha256": hashlib.sha256(data).hexdigest(),
        },
    )
