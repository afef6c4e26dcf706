"""Operations `write-file` and `read-file`: the content of one file."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk.core.text import counted
from ext_sdk.files import os_errors
from ext_shell.files import DEFAULT_MAX_SIZE, FilePath, MaxSize, Mode, permissions_text, workdir_for


class WriteFile(ext_sdk.Args, one_of=("content", "base64", "json")):
    """Arguments of `write-file`."""

    path: FilePath
    content: Annotated[str | UnsetType, Meta(description="Text, written as UTF-8")] = UNSET
    base64: Annotated[str | UnsetType, Meta(description="Bytes in base64")] = UNSET
    json: Annotated[Any, Meta(description="Value, written as indented JSON")] = UNSET
    append: Annotated[bool, Meta(description="Append to an existing file")] = False
    overwrite: Annotated[bool, Meta(description="Replace an existing file; false: fail if it exists")] = True
    parents: Annotated[bool, Meta(description="Create missing parent directories")] = True
    mode: Mode | UnsetType = UNSET

    def __post_init__(self) -> None:
        if self.append and not self.overwrite:
            raise ValueError("`append` changes an existing file, which `overwrite: false` forbids")


def write_file(args: WriteFile, context: ext_sdk.Context) -> ext_sdk.Result:
    """Write a file in the working directory, completely or not at all.

    A relative symbolic link that stays in the working directory is followed: its target is written.
    """
    if isinstance(args.base64, str):
        try:
            data = base64.b64decode("".join(args.base64.split()), validate=True)
        except (binascii.Error, ValueError) as error:
            raise ext_sdk.InvalidArgs("base64", f"not valid base64: {error}") from error
    elif isinstance(args.content, str):
        data = _encoded("content", args.content)
    else:
        data = _encoded("json", json.dumps(args.json, ensure_ascii=False, indent=2) + "\n")
    workdir = workdir_for(context, args.path)
    mode = None if args.mode is UNSET else int(args.mode, 8)
    with os_errors("write", args.path):
        if args.append:
            workdir.append(args.path, data, mode=mode, parents=args.parents)
        else:
            workdir.write(args.path, data, mode=mode, parents=args.parents, overwrite=args.overwrite)
    done = "Appended" if args.append else "Wrote"
    return ext_sdk.Result.ok(
        f"{done} {counted(len(data), 'byte')} to {args.path}",
        outputs={
            "path": str(workdir.root / workdir.relative(args.path)),
            "size": len(data),
            "sha256": hashlib.sha256(data).hexdigest(),
        },
    )


def _encoded(field: str, text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        message = f"cannot be encoded in UTF-8: half a character (U+{ord(text[error.start]):04X})"
        raise ext_sdk.InvalidArgs(field, message) from error


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
        data = workdir.read(args.path, limit=args.max_size, advice="raise `maxSize`")
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
