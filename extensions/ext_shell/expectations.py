"""Expectations on a command: exit code, signal, output, files, duration."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from ext_sdk.expect import (
    Check,
    DurationExpectation,
    Expectation,
    Integer,
    Searcher,
    Text,
    TextExpectation,
    check_duration,
    check_integer,
    check_text,
)
from ext_shell.files.check import AssertFile, FileCheck
from ext_shell.files.common import Mode, workdir_for

from .args import Part  # noqa: TC001 - msgspec reads it

if TYPE_CHECKING:
    from collections.abc import Mapping

    import ext_sdk
    from ext_sdk import Context

    from .runner import CommandRun


class FileExpectation(Expectation):
    """What a file must be, as for `assert-file`; all that is given must hold."""

    exists: Annotated[bool | UnsetType, Meta(description="false: there is nothing of this name")] = UNSET
    type: Literal["file", "directory", "symlink"] | UnsetType = UNSET
    content: Annotated[Text | UnsetType, Meta(description="A text, but for one line end; or an object")] = UNSET
    mode: Mode | UnsetType = UNSET
    size: Annotated[Integer | UnsetType, Meta(description="Bytes")] = UNSET
    sha256: Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")] | UnsetType = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        self.as_arguments("-")  # refuses what contradicts itself

    def as_arguments(self, path: str) -> AssertFile:
        """The arguments of `assert-file` that say the same of a path."""
        given = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET}
        return AssertFile(path=path, **given)


def check_files(expectations: Mapping[str, FileExpectation], context: Context, searcher: Searcher) -> list[Check]:
    """Look at the files once.

    Args:
        expectations: by path in the workdir.
        context: of the call.
        searcher: for regular expressions.

    Raises:
        OperationFailed: a path leads out of the workdir.
    """
    checks: list[Check] = []
    for path, wanted in expectations.items():
        checks += FileCheck(wanted.as_arguments(path), workdir_for(context, path), context, searcher).checks()
    return checks


class OutputExpectation(Expectation):
    """Expected end and output of a command; all that is given must hold."""

    exit_code: Annotated[Integer | UnsetType, Meta(description='0, [0, 1], "nonzero", {"lt": 3}')] = UNSET
    signal: Annotated[str | UnsetType, Meta(description="The signal that must have ended it, such as SIGTERM")] = UNSET
    stdout: Annotated[Text | UnsetType, Meta(description="A text that it must equal, or an object")] = UNSET
    stderr: Annotated[Text | UnsetType, Meta(description="A text that it must equal, or an object")] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        if self.signal is not UNSET:
            if self.exit_code is not UNSET:
                raise ValueError("expected one of exitCode and signal: a command that a signal ends has no exit code")
            signal_number(self.signal)


class RunExpectation(OutputExpectation):
    """What a command must have done; all that is given must hold."""

    files: Annotated[
        Annotated[dict[Part, FileExpectation], Meta(min_length=1)] | UnsetType,
        Meta(description="What files of the workdir must be, by path"),
    ] = UNSET
    duration: Annotated[DurationExpectation | UnsetType, Meta(description="How long it may have taken")] = UNSET


DEFAULT = RunExpectation(exit_code=0)


def signal_number(name: str) -> int:
    """The number of `SIGTERM`, `TERM` or `term`. Raises ValueError for none of them."""
    full = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    try:
        return signal.Signals[full].value
    except KeyError:
        raise ValueError(f"expected the name of a signal, such as SIGTERM, found {name!r:.40}") from None


def check_attempt(
    expectation: OutputExpectation,
    attempt: CommandRun,
    context: ext_sdk.Context,
    searcher: Searcher,
    *,
    running: bool = False,
    any_end: bool = False,
) -> list[Check]:
    """Hold what a command did against what was expected; secrets are not shown.

    Args:
        expectation: what was expected.
        attempt: what it did.
        context: of the call.
        searcher: for regular expressions.
        running: the command has not ended.
        any_end: exit code 0 is not the default, since the command still runs or was stopped.

    Raises:
        OperationFailed: the path of a file leads out of the workdir.
    """
    asked = expectation.exit_code is not UNSET or expectation.signal is not UNSET
    checks = _check_end(expectation, attempt, running=running) if asked or not any_end else []
    checks += _check_outputs(expectation, attempt, context, searcher)
    if isinstance(expectation, RunExpectation):
        if expectation.files is not UNSET:
            checks += check_files(expectation.files, context, searcher)
        if expectation.duration is not UNSET:
            checks += check_duration(expectation.duration, attempt.duration, where="duration")
    return checks


def _check_outputs(
    expectation: OutputExpectation, attempt: CommandRun, context: ext_sdk.Context, searcher: Searcher
) -> list[Check]:
    checks: list[Check] = []
    for name, output in attempt.outputs.items():
        wanted: Text | UnsetType = getattr(expectation, name)
        if wanted is not UNSET:
            checks += check_hidden(wanted, output.text, name, context.secrets, searcher)
            if output.lost:
                text = f"{output.size} bytes, of which {output.lost} were not kept (outputLimit)"
                checks.append(Check.failed("to be checked whole", text, where=name))
    return checks


def check_hidden(wanted: Text, text: str, where: str, secrets: ext_sdk.Secrets, searcher: Searcher) -> list[Check]:
    """Check a text; where a check fails, show what was expected and found without its secrets.

    Both are redacted before they are cut for a message, since half a secret would not be recognized.
    """
    checks = check_text(wanted, text, where=where, searcher=searcher)
    if all(check.ok for check in checks):
        return checks
    hidden, wanted_hidden = secrets.redact(text), _hidden(wanted, secrets)
    if (hidden, wanted_hidden) == (text, wanted):
        return checks
    shown = check_text(wanted_hidden, hidden, where=where, searcher=searcher)
    if len(shown) != len(checks):
        return [check if check.ok else _without_text(check) for check in checks]
    return [
        check if check.ok else _without_text(other) if other.ok else other
        for check, other in zip(checks, shown, strict=True)
    ]


def _hidden(wanted: Text, secrets: ext_sdk.Secrets) -> Text:
    """The expectation as it may be shown. A placeholder in a pattern is a pattern too."""
    if isinstance(wanted, str):
        return secrets.redact(wanted)
    text = msgspec.json.encode(wanted).decode()
    hidden = secrets.redact(text)
    return wanted if hidden == text else msgspec.json.decode(hidden, type=TextExpectation)


def redact_streams(checks: list[Check], streams: set[str]) -> list[Check]:
    """The checks with nothing shown of these streams."""
    hidden = [not check.ok and check.where.split()[0] in streams for check in checks]
    return [_without_text(check) if hide else check for check, hide in zip(checks, hidden, strict=True)]


def _without_text(check: Check) -> Check:
    found = "a text with a secret in it, not shown"
    return Check(False, check.what, check.expected, found, where=check.where)  # noqa: FBT003


def _check_end(expectation: OutputExpectation, attempt: CommandRun, *, running: bool) -> list[Check]:
    status = attempt.status
    unknown = "it still runs" if running else "no known end: its supervisor was killed"
    how = unknown if status is None else str(status)
    if isinstance(expectation.signal, str):
        number = signal_number(expectation.signal)
        ok = status is not None and status.signal == number
        return [Check(ok, "to be killed by", signal.Signals(number).name, how, where="the command")]
    wanted = 0 if expectation.exit_code is UNSET else expectation.exit_code
    if status is not None and status.code is not None:
        return check_integer(wanted, status.code, where="exitCode")
    return [
        Check(False, check.what, check.expected, f"none ({how})", where="exitCode")  # noqa: FBT003
        for check in check_integer(wanted, 0, where="exitCode")
    ]
