"""Expectations on commands and files: exit, output, duration; kind, content, permissions, size, checksum."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk.expect import (
    Check,
    DurationExpectation,
    Expectation,
    Integer,
    Searcher,
    Text,
    check_duration,
    check_integer,
    check_text,
)
from ext_sdk.files import Workdir, kind_of, os_errors
from ext_sdk.process import CommandExpectation, check_command

from .args import Part  # noqa: TC001 - msgspec reads it
from .files import DEFAULT_MAX_SIZE, FilePath, MaxSize, Mode, permissions_text, sha256_of, workdir_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_sdk import Context
    from ext_sdk.process import CommandRun


Kind = Annotated[Literal["file", "directory", "symlink"], Meta(description="Kind of the entry")]
Size = Annotated[Integer, Meta(description="Size in bytes")]
Sha256 = Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$", description="SHA-256 of the content, in hexadecimal")]
Content = Annotated[Text, Meta(description="Expected text, except for one final line ending; or an object")]
_OF_CONTENT = ("type", "content", "mode", "size", "sha256")


class AssertFile(ext_sdk.Args):
    """Arguments of `assert-file`."""

    path: FilePath
    exists: Annotated[bool, Meta(description="false: no entry of this name exists, not even a broken link")] = True
    type: Kind | UnsetType = UNSET
    content: Content | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    size: Size | UnsetType = UNSET
    sha256: Sha256 | UnsetType = UNSET
    timeout: Annotated[
        ext_sdk.Duration | UnsetType,
        Meta(description="Maximum wait until all checks pass; if omitted, the file is checked once"),
    ] = UNSET
    max_size: MaxSize = DEFAULT_MAX_SIZE

    def __post_init__(self) -> None:
        more = [name for name in _OF_CONTENT if getattr(self, name) is not UNSET]
        if not self.exists and more:
            raise ValueError(f"`exists: false` excludes {' and '.join(more)}")


class FileExpectation(Expectation):
    """Expected file, as for `assert-file`; all given members must hold."""

    exists: Annotated[bool | UnsetType, Meta(description="false: no entry of this name exists")] = UNSET
    type: Kind | UnsetType = UNSET
    content: Content | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    size: Size | UnsetType = UNSET
    sha256: Sha256 | UnsetType = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        self.as_arguments("-")  # refuses members that contradict each other

    def as_arguments(self, path: str) -> AssertFile:
        """Return the arguments of `assert-file` for the same checks of a path."""
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET}
        return AssertFile(path=path, **given)


def check_files(expectations: Mapping[str, FileExpectation], context: Context, searcher: Searcher) -> list[Check]:
    """Check files once, given the expectations by path. Raises OperationFailed if a path leads out of the workdir."""
    checks: list[Check] = []
    for path, expectation in expectations.items():
        workdir = workdir_for(context, path)
        checks += FileCheck(expectation.as_arguments(path), workdir, context, searcher).checks()
    return checks


class FileCheck:
    """Repeatable check of one file.

    Attributes:
        outputs: properties of the file at the last check.
    """

    def __init__(self, args: AssertFile, workdir: Workdir, context: Context, searcher: Searcher) -> None:
        self._args = args
        self._workdir = workdir
        self._context = context
        self._searcher = searcher
        self.outputs: dict[str, str | int | bool] = {}

    def checks(self) -> list[Check]:
        """Check the file. Raises OperationFailed for permanent errors, such as a path that leads out of the workdir."""
        path = self._args.path
        with os_errors("check", path):
            try:
                follow = self._args.exists and self._args.type != "symlink"
                status = self._workdir.stat(path, follow=follow)
            except (FileNotFoundError, NotADirectoryError):
                status = None
            exists = status is not None
            self.outputs = {"path": str(self._workdir.root / self._workdir.relative(path)), "exists": exists}
            what = "to exist" if self._args.exists else "not to exist"
            found = "nothing" if status is None else f"a {kind_of(status.st_mode)}"
            checks = [Check(exists == self._args.exists, what, "", found, where=path)]
            if status and self._args.exists:
                args, kind, mode = self._args, kind_of(status.st_mode), permissions_text(status.st_mode)
                self.outputs |= {"type": kind, "size": status.st_size, "mode": mode}
                if not isinstance(args.type, UnsetType):
                    checks.append(Check(kind == args.type, "to be a", args.type, f"a {kind}", where=path))
                if not isinstance(args.mode, UnsetType):
                    expected = permissions_text(int(args.mode, 8))
                    checks.append(Check(mode == expected, "to be", expected, mode, where=f"mode of {path}"))
                if not isinstance(args.size, UnsetType):
                    checks += check_integer(args.size, status.st_size, where=f"size of {path}")
                try:
                    checks += self._check_content()
                except FileNotFoundError:  # removed since the first call
                    return [Check.failed("to exist", "nothing", where=path)]
            return checks

    def _check_content(self) -> list[Check]:
        args = self._args
        checks = []
        if not isinstance(args.sha256, UnsetType):
            sha256 = sha256_of(self._workdir, args.path, self._context.deadline)
            self.outputs["sha256"] = sha256
            expected = args.sha256.lower()
            checks.append(Check(sha256 == expected, "to be", expected, sha256, where=f"SHA-256 of {args.path}"))
        if not isinstance(args.content, UnsetType):
            data = self._workdir.read(args.path, limit=args.max_size)
            try:
                text = data.decode()
            except UnicodeDecodeError as error:
                found = f"byte 0x{data[error.start]:02x} at offset {error.start:,}"
                return [*checks, Check.failed("to be UTF-8", found, where=args.path)]
            redact = self._context.secrets.redact
            checks += check_text(args.content, text, where=args.path, searcher=self._searcher, redact=redact)
        return checks


class RunExpectation(CommandExpectation):
    """Expected exit, output, files and duration of a command; all given members must hold."""

    files: Annotated[
        Annotated[dict[Part, FileExpectation], Meta(min_length=1)] | UnsetType,
        Meta(description="Files in the working directory, by path"),
    ] = UNSET
    duration: Annotated[DurationExpectation | UnsetType, Meta(description="Duration of the run")] = UNSET


DEFAULT = RunExpectation(exit_code=0)


def check_run(
    expectation: CommandExpectation,
    run: CommandRun,
    context: ext_sdk.Context,
    searcher: Searcher,
    *,
    running: bool = False,
    any_end: bool = False,
) -> list[Check]:
    """Check a command against an expectation; failures show no secrets.

    Args:
        running, any_end: see check_command.

    Raises:
        OperationFailed: the path of a file leads out of the working directory.
    """
    checks = check_command(
        expectation,
        run,
        redact=context.secrets.redact,
        searcher=searcher,
        running=running,
        any_end=any_end,
    )
    if isinstance(expectation, RunExpectation):
        if expectation.files is not UNSET:
            checks += check_files(expectation.files, context, searcher)
        if expectation.duration is not UNSET:
            checks += check_duration(expectation.duration, run.duration, where="duration")
    return checks


def withhold_streams(checks: list[Check], streams: set[str]) -> list[Check]:
    """Return the checks, of which those of the given streams show no text."""
    found = "a text that contains a secret, not shown"
    return [
        Check(False, check.what, check.expected, found, where=check.where)  # noqa: FBT003
        if not check.ok and check.where.split()[0] in streams
        else check
        for check in checks
    ]
