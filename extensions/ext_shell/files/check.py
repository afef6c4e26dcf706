"""Checks of one file: arguments of `assert-file` and of `expect.files`, and what they find."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk import expect
from ext_sdk.expect import Check
from ext_sdk.files import Workdir, kind_of, os_errors

from .common import DEFAULT_MAX_SIZE, FilePath, MaxSize, Mode, permissions_text, sha256_of

if TYPE_CHECKING:
    import os

    from ext_sdk import Context


_OF_CONTENT = ("type", "content", "mode", "size", "sha256")


class AssertFile(ext_sdk.Args):
    """Arguments of `assert-file`."""

    path: FilePath
    exists: Annotated[bool, Meta(description="false: there is nothing of this name, not even a broken link")] = True
    type: Literal["file", "directory", "symlink"] | UnsetType = UNSET
    content: Annotated[expect.Text | UnsetType, Meta(description="A text, but for one line end; or as follows")] = UNSET
    mode: Mode | UnsetType = UNSET
    size: Annotated[expect.Integer | UnsetType, Meta(description="Bytes")] = UNSET
    sha256: Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")] | UnsetType = UNSET
    timeout: Annotated[
        ext_sdk.Duration | UnsetType, Meta(description="Look again until all holds, this long; once where left out")
    ] = UNSET
    max_size: MaxSize = DEFAULT_MAX_SIZE

    def __post_init__(self) -> None:
        more = [name for name in _OF_CONTENT if getattr(self, name) is not UNSET]
        if not self.exists and more:
            raise ValueError(f"`exists: false` leaves nothing that {' and '.join(more)} could be about")


class FileCheck:
    """What is looked at. What can't become right by waiting, such as a path that leads outside, is raised at once.

    Attributes:
        outputs: what the last look saw.
    """

    def __init__(self, args: AssertFile, workdir: Workdir, context: Context, searcher: expect.Searcher) -> None:
        self._args = args
        self._workdir = workdir
        self._context = context
        self._searcher = searcher
        self.outputs: dict[str, str | int | bool] = {}

    def checks(self) -> list[Check]:
        """Look once. Raises OperationFailed for what waiting does not mend."""
        path = self._args.path
        with os_errors("look at", path):
            found = self._found()
            self.outputs = {"path": str(self._workdir.root / self._workdir.relative(path)), "exists": found is not None}
            what = "to exist" if self._args.exists else "not to exist"
            seen = "nothing" if found is None else f"a {kind_of(found.st_mode)}"
            checks = [Check((found is not None) == self._args.exists, what, "", seen, where=path)]
            if found and self._args.exists:
                try:
                    checks += self._of_entry(found)
                except FileNotFoundError:  # removed in the meantime
                    return [Check.failed("to exist", "nothing", where=path)]
            return checks

    def _found(self) -> os.stat_result | None:
        follow = self._args.exists and self._args.type != "symlink"
        try:
            return self._workdir.stat(self._args.path, follow=follow)
        except (FileNotFoundError, NotADirectoryError):
            return None

    def _of_entry(self, found: os.stat_result) -> list[Check]:
        args = self._args
        kind, mode = kind_of(found.st_mode), permissions_text(found.st_mode)
        self.outputs |= {"type": kind, "size": found.st_size, "mode": mode}
        checks = []
        if not isinstance(args.type, UnsetType):
            checks.append(Check(kind == args.type, "to be a", args.type, f"a {kind}", where=args.path))
        if not isinstance(args.mode, UnsetType):
            wanted = permissions_text(int(args.mode, 8))
            checks.append(Check(mode == wanted, "to be", wanted, mode, where=f"mode of {args.path}"))
        if not isinstance(args.size, UnsetType):
            checks += expect.check_integer(args.size, found.st_size, where=f"size of {args.path}")
        return checks + self._of_content()

    def _of_content(self) -> list[Check]:
        args = self._args
        checks = []
        if not isinstance(args.sha256, UnsetType):
            sha256 = sha256_of(self._workdir, args.path, self._context.deadline)
            self.outputs["sha256"] = sha256
            same = sha256 == args.sha256.lower()
            checks.append(Check(same, "to be", args.sha256.lower(), sha256, where=f"SHA-256 of {args.path}"))
        if not isinstance(args.content, UnsetType):
            data = self._workdir.read(args.path, limit=args.max_size)
            checks += self._of_text(data, args.content)
        return checks

    def _of_text(self, data: bytes, wanted: expect.Text) -> list[Check]:
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            found = f"byte 0x{data[error.start]:02x} at offset {error.start:,}"
            return [Check.failed("to be UTF-8", found, where=self._args.path)]
        return expect.check_text(
            wanted, text, where=self._args.path, searcher=self._searcher, redact=self._context.secrets.redact
        )
