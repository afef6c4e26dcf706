"""Expectations on commands and files: exit, output, duration; kind, content, permissions, owner, size, times."""

from __future__ import annotations

import operator
import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
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
from ext_sdk.expect.changes import MOST_SHOWN, shown_name
from ext_sdk.expect.check import quoted
from ext_sdk.files import Workdir, kind_of, os_errors
from ext_sdk.process import CommandExpectation, check_command

from .args import Part  # noqa: TC001 - msgspec reads it
from .files import DEFAULT_MAX_SIZE, MaxSize, Mode, matching_paths, permissions_text, sha256_of, workdir_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ext_sdk import Context
    from ext_sdk.process import CommandRun


Kind = Annotated[Literal["file", "directory", "symlink"], Meta(description="Kind of the entry")]
Size = Annotated[Integer, Meta(description="Size in bytes")]
Sha256 = Annotated[
    str, Meta(pattern="^[0-9a-fA-F]{64}$", description="SHA-256 of the content, in hexadecimal"), ext_sdk.Computed
]
Content = Annotated[Text, Meta(description="Expected text, except for one final line ending; or an object")]
Owner = Annotated[str | int, Meta(description="Name or number of the user that owns it")]
Group = Annotated[str | int, Meta(description="Name or number of its group")]
Target = Annotated[Text, Meta(description="Target of the symbolic link, as it is written in the link; or an object")]
_NOUNS = {"owner": "user", "group": "group"}
_OF_CONTENT = ("type", "content", "mode", "size", "sha256", "owner", "group", "mtime", "target")


class TimeExpectation(Expectation):
    """Expected time; all given members must hold. Times are in RFC 3339 and compared to the microsecond."""

    equals: Annotated[str | UnsetType, Meta(description="This time, such as 2026-01-31T12:00:00Z")] = UNSET
    after: Annotated[str | UnsetType, Meta(description="Later than this time")] = UNSET
    before: Annotated[str | UnsetType, Meta(description="Earlier than this time")] = UNSET
    age: Annotated[DurationExpectation | UnsetType, Meta(description="Time from then until now")] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        for name in ("equals", "after", "before"):
            if isinstance(text := getattr(self, name), str):
                time_of(text, name)


# As users write it: a time that it equals, or an object.
Time = Annotated[str | TimeExpectation, Meta(description="Time of the last modification: a time, or an object")]


class AssertFile(ext_sdk.Args, one_of=("path", "glob")):
    """Arguments of `assert-file`."""

    path: Annotated[str, Meta(description="Path in the working directory, or one below the output of make-temp")] = ""
    glob: Annotated[
        str,
        Meta(
            description="Pattern of paths, as in `remove`: at least one must match, and all checks must hold for each"
        ),
    ] = ""
    count: Annotated[Integer | UnsetType, Meta(description="Number of paths that match `glob`")] = UNSET
    exists: Annotated[bool, Meta(description="false: no entry of this name exists, not even a broken link")] = True
    type: Kind | UnsetType = UNSET
    content: Content | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    size: Size | UnsetType = UNSET
    sha256: Sha256 | UnsetType = UNSET
    owner: Owner | UnsetType = UNSET
    group: Group | UnsetType = UNSET
    mtime: Time | UnsetType = UNSET
    target: Target | UnsetType = UNSET
    timeout: Annotated[
        ext_sdk.Duration | UnsetType,
        Meta(description="Maximum wait until all checks pass; if omitted, the file is checked once"),
    ] = UNSET
    on_timeout: ext_sdk.OnTimeout = "fail"
    max_size: MaxSize = DEFAULT_MAX_SIZE

    def __post_init__(self) -> None:
        more = [name for name in _OF_CONTENT if getattr(self, name) is not UNSET]
        if not self.exists and more:
            raise ValueError(f"`exists: false` excludes {' and '.join(more)}")
        if self.count is not UNSET and (self.path or not self.exists):
            raise ValueError(f"`count` requires `glob` and excludes {'path' if self.path else '`exists: false`'}")
        if self.on_timeout == "ok" and self.timeout is UNSET:
            raise ValueError("`onTimeout` requires `timeout`: without it the file is checked once")
        if isinstance(self.mtime, str):
            time_of(self.mtime, "mtime")
        if self.target is not UNSET and self.type not in {UNSET, "symlink"}:
            raise ValueError(f"`target` is that of a symlink, found `type: {self.type}`")


class FileExpectation(Expectation):
    """Expected file, as for `assert-file`; all given members must hold."""

    exists: Annotated[bool | UnsetType, Meta(description="false: no entry of this name exists")] = UNSET
    type: Kind | UnsetType = UNSET
    content: Content | UnsetType = UNSET
    mode: Mode | UnsetType = UNSET
    size: Size | UnsetType = UNSET
    sha256: Sha256 | UnsetType = UNSET
    owner: Owner | UnsetType = UNSET
    group: Group | UnsetType = UNSET
    mtime: Time | UnsetType = UNSET
    target: Target | UnsetType = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        self.as_arguments("-")  # refuses members that contradict each other

    def as_arguments(self, path: str) -> AssertFile:
        """Return the arguments of `assert-file` for the same checks of a path."""
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET}
        return AssertFile(path=path, **given)


def check_files(expectations: Mapping[str, str | FileExpectation], context: Context, searcher: Searcher) -> list[Check]:
    """Check files once, given the expectations by path. Raises OperationFailed if a path leads out of the workdir."""
    checks: list[Check] = []
    for path, expectation in expectations.items():
        workdir = workdir_for(context, path)
        wanted = FileExpectation(content=expectation) if isinstance(expectation, str) else expectation
        checks += FileCheck(wanted.as_arguments(path), workdir, context, searcher).checks()
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
        entry: os.stat_result | None = None
        with os_errors("check", path):
            try:
                follow = self._args.exists and self._args.type != "symlink" and self._args.target is UNSET
                status = self._workdir.stat(path, follow=follow)
                entry = self._workdir.stat(path, follow=False)
            except (FileNotFoundError, NotADirectoryError):
                status = None
            exists = status is not None
            self.outputs = {"path": str(self._workdir.root / self._workdir.relative(path)), "exists": exists}
            what = "to exist" if self._args.exists else "not to exist"
            found = self._missing() if status is None else f"a {kind_of(status.st_mode)}"
            checks = [Check(exists == self._args.exists, what, "", found, where=path)]
            if status and entry and self._args.exists:
                checks += self._check_status(status)
                self.outputs["type"] = kind_of(entry.st_mode)  # of the entry itself, while a link's target is checked
                try:
                    checks += self._check_content()
                except FileNotFoundError:  # removed since the first call
                    return [Check.failed("to exist", "nothing", where=path)]
            return checks

    def _missing(self) -> str:
        """Return what the path is if it does not exist: nothing, or a symbolic link to nothing."""
        try:
            target = self._target()
        except OSError:  # no entry, or not a link
            return "nothing"
        return f"a broken symlink to {quoted(target, self._context.secrets.redact)}"

    def _target(self) -> str:
        """Return the target of a symbolic link. Raises OSError for another entry."""
        with self._workdir.parent(self._args.path) as (directory, name):
            return os.readlink(name, dir_fd=directory)

    def _check_status(self, status: os.stat_result) -> list[Check]:
        args, path = self._args, self._args.path
        kind, mode = kind_of(status.st_mode), permissions_text(status.st_mode)
        self.outputs |= {"type": kind, "size": status.st_size, "mode": mode}
        checks = []
        if not isinstance(args.type, UnsetType):
            checks.append(Check(kind == args.type, "to be a", args.type, f"a {kind}", where=path))
        if not isinstance(args.mode, UnsetType):
            expected = permissions_text(int(args.mode, 8))
            checks.append(Check(mode == expected, "to be", expected, mode, where=f"mode of {path}"))
        if not isinstance(args.size, UnsetType):
            checks += check_integer(args.size, status.st_size, where=f"size of {path}")
        user, group = owner_names(status)
        for what, wanted, name, number in (
            ("owner", args.owner, user, status.st_uid),
            ("group", args.group, group, status.st_gid),
        ):
            if not isinstance(wanted, UnsetType):
                self.outputs[what] = name
                found = name if name == str(number) else f"{name} ({number})"
                if not is_known(what, str(wanted)):
                    found += f"; this machine has no {_NOUNS[what]} {str(wanted)!r}"
                checks.append(
                    Check(str(wanted) in {name, str(number)}, "to be", str(wanted), found, where=f"{what} of {path}")
                )
        if not isinstance(args.mtime, UnsetType):
            mtime = time_at(status.st_mtime_ns)
            self.outputs["mtime"] = time_text(mtime)
            checks += check_time_of(args.mtime, mtime, where=f"modification time of {path}")
        if not isinstance(args.target, UnsetType):
            checks += self._check_target(args.target, kind)
        return checks

    def _check_target(self, expected: Text, kind: str) -> list[Check]:
        if kind != "symlink":
            return [Check.failed("to be a symlink", f"a {kind}", where=self._args.path)]
        self.outputs["target"] = target = self._target()
        redact = self._context.secrets.redact
        return check_text(
            expected, target, where=f"target of {self._args.path}", searcher=self._searcher, redact=redact
        )

    def _check_content(self) -> list[Check]:
        args = self._args
        checks = []
        if not isinstance(args.sha256, UnsetType):
            sha256 = sha256_of(self._workdir, args.path, self._context.deadline)
            self.outputs["sha256"] = sha256
            expected = args.sha256.lower()
            checks.append(Check(sha256 == expected, "to be", expected, sha256, where=f"SHA-256 of {args.path}"))
        if not isinstance(args.content, UnsetType):
            data = self._workdir.read(args.path, limit=args.max_size, advice="raise `maxSize`")
            try:
                text = data.decode()
            except UnicodeDecodeError as error:
                found = f"byte 0x{data[error.start]:02x} at offset {error.start:,}"
                return [*checks, Check.failed("to be UTF-8", found, where=args.path)]
            redact = self._context.secrets.redact
            checks += check_text(
                args.content,
                text,
                where=args.path,
                searcher=self._searcher,
                redact=redact,
                workdir=self._context.workdir,
            )
        return checks


def check_matching(
    args: AssertFile, workdir: Workdir, context: Context, searcher: Searcher
) -> tuple[list[Check], dict[str, str | int | bool]]:
    """Check the file of `path`, or all files that match `glob`, once; return the checks and the outputs.

    Raises:
        OperationFailed: a path leads out of the workdir, or the deadline passed.
    """
    if args.path:
        file = FileCheck(args, workdir, context, searcher)
        return file.checks(), file.outputs
    paths = sorted(matching_paths(workdir, args.glob, context.deadline))
    names = [shown_name(path) for path in paths]
    outputs: dict[str, str | int | bool] = {"matches": "\n".join(names), "count": len(paths)}
    if not args.exists:
        found = ", ".join(names[:MOST_SHOWN])
        return [Check(not paths, "to match nothing", found=found, where=args.glob)], outputs
    if isinstance(args.count, UnsetType):
        checks = [Check(bool(paths), "to match at least one path", found="none", where=args.glob)]
    else:
        checks = check_integer(args.count, len(paths), where=f"number of paths that match {args.glob}")
    for path in paths:
        each = msgspec.structs.replace(args, path=path, glob="", count=UNSET)
        checks += FileCheck(each, workdir, context, searcher).checks()
    return checks, outputs


def owner_names(status: os.stat_result) -> tuple[str, str]:
    """Return the names of the user and the group that own a file; numbers if they have no names here."""
    import grp
    import pwd

    try:
        user = pwd.getpwuid(status.st_uid).pw_name
    except KeyError:
        user = str(status.st_uid)
    try:
        return user, grp.getgrgid(status.st_gid).gr_name
    except KeyError:
        return user, str(status.st_gid)


def is_known(what: str, name: str) -> bool:
    """Return True if this machine has such an owner (a user) or group, or if the name is a number."""
    import grp
    import pwd

    try:
        _ = name.isdigit() or (pwd.getpwnam(name) if what == "owner" else grp.getgrnam(name))
    except (KeyError, ValueError):  # ValueError: a NUL in the name
        return False
    return True


def time_of(text: str, field: str) -> datetime:
    """Return a time in RFC 3339. Raises ValueError for another text."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise ValueError(f"{field}: expected a time with its zone, such as 2026-01-31T12:00:00Z, found {text!r:.60}")
    return time


def time_at(nanoseconds: int) -> datetime:
    """Return a time of a file, to the microsecond; the nearest that has a date."""
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    try:
        return epoch + timedelta(microseconds=nanoseconds // 1000)
    except OverflowError:
        return datetime(9999, 12, 31, tzinfo=UTC) if nanoseconds > 0 else datetime(1, 1, 1, tzinfo=UTC)


def time_text(time: datetime) -> str:
    """Return a time in RFC 3339, in UTC."""
    return time.isoformat().replace("+00:00", "Z")


def check_time_of(expectation: str | TimeExpectation, found: datetime, *, where: str) -> list[Check]:
    """Check a time against an expectation."""
    wanted = TimeExpectation(equals=expectation) if isinstance(expectation, str) else expectation
    checks = []
    for name, what, holds in (
        ("equals", "to equal", operator.eq),
        ("after", "to be after", operator.gt),
        ("before", "to be before", operator.lt),
    ):
        if isinstance(text := getattr(wanted, name), str):
            checks.append(Check(holds(found, time_of(text, name)), what, text, time_text(found), where=where))
    if not isinstance(wanted.age, UnsetType):
        age = ext_sdk.Duration(int((datetime.now(UTC) - found).total_seconds() * 1e9))
        checks += check_duration(wanted.age, age, where=f"time since the {where}")
    return checks


class RunExpectation(CommandExpectation):
    """Expected exit, output, files and duration of a command; all given members must hold."""

    files: Annotated[
        Annotated[dict[Part, str | FileExpectation], Meta(min_length=1)] | UnsetType,
        Meta(description="Files in the working directory, by path: the expected text, or an object"),
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
        workdir=context.workdir,
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
    """Return the checks, of which those of the given streams, by their name in checks, show no text."""
    names = tuple(f"{stream} " for stream in streams)
    found = "a text that contains a secret, not shown"
    return [
        Check(False, check.what, check.expected, found, where=check.where)  # noqa: FBT003
        if not check.ok and f"{check.where} ".startswith(names)
        else check
        for check in checks
    ]
