"""`read-file`: what is in a file, for later steps."""

from __future__ import annotations

import base64
import hashlib
from typing import Annotated, Literal

from msgspec import Meta

import ext_sdk
from ext_sdk.files import os_errors
from ext_shell.files.common import DEFAULT_MAX_SIZE, FilePath, MaxSize, counted, permissions_text, workdir_for


class ReadFile(ext_sdk.Args):
    """Arguments of `read-file`."""

    path: FilePath
    encoding: Annotated[
        Literal["auto", "utf-8", "base64"],
        Meta(description="How bytes become text; auto: UTF-8 if they are, else base64"),
    ] = "auto"
    max_size: MaxSize = DEFAULT_MAX_SIZE


def read_file(args: ReadFile, context: ext_sdk.Context) -> ext_sdk.Result:
    """Read a file of the working directory into the output `content`.

    Content that does not fit an answer is cut, and whole in the file that the output `contentFile` names.
    """
    workdir = workdir_for(context, args.path)
    with os_errors("read", args.path):
        data = workdir.read(args.path, limit=args.max_size)
        mode = workdir.stat(args.path).st_mode
    content, encoding = _text(args, data)
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


def _text(args: ReadFile, data: bytes) -> tuple[str, str]:
    if args.encoding != "base64":
        try:
            return data.decode(), "utf-8"
        except UnicodeDecodeError as error:
            if args.encoding == "utf-8":
                raise ext_sdk.OperationFailed(
                    f"{args.path} is not UTF-8",
                    error=f"{args.path}: expected UTF-8, got byte 0x{data[error.start]:02x} at offset {error.start:,}; "
                    "read it with `encoding: base64`",
                ) from error
    return base64.b64encode(data).decode(), "base64"
