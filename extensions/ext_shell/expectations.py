"""Expectations on a command: exit code, signal, output, files, duration."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING, Annotated

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

from .args import Part  # noqa: TC001 - msgspec reads it
from .file_check import FileExpectation, check_files

if TYPE_CHECKING:
    import ext_sdk

    from .runner import CommandRun


class OutputExpectation(Expectation):
    """Expected exit and output of a command; all given members must hold."""

    exit_code: Annotated[Integer | UnsetType, Meta(description='Exit code: 0, [0, 1], "nonzero", {"lt": 3}')] = UNSET
    signal: Annotated[str | UnsetType, Meta(description="Signal that killed the command, such as SIGTERM")] = UNSET
    stdout: Annotated[Text | UnsetType, Meta(description="Standard output: a text that it equals, or an object")] = (
        UNSET
    )
    stderr: Annotated[Text | UnsetType, Meta(description="Standard error: a text that it equals, or an object")] = UNSET

    def __post_init__(self) -> None:
        self.refuse_empty()
        if self.signal is not UNSET:
            if self.exit_code is not UNSET:
                raise ValueError("expected one of exitCode and signal: a command that a signal kills has no exit code")
            signal_number(self.signal)


class RunExpectation(OutputExpectation):
    """Expected exit, output, files and duration of a command; all given members must hold."""

    files: Annotated[
        Annotated[dict[Part, FileExpectation], Meta(min_length=1)] | UnsetType,
        Meta(description="Files in the working directory, by path"),
    ] = UNSET
    duration: Annotated[DurationExpectation | UnsetType, Meta(description="Duration of the run")] = UNSET


DEFAULT = RunExpectation(exit_code=0)


def signal_number(name: str) -> int:
    """Return the number of `SIGTERM`, `TERM` or `term`. Raises ValueError for an unknown signal."""
    full = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    try:
        return signal.Signals[full].value
    except KeyError:
        raise ValueError(f"expected the name of a signal, such as SIGTERM, found {name!r:.40}") from None


def check_run(
    expectation: OutputExpectation,
    run: CommandRun,
    context: ext_sdk.Context,
    searcher: Searcher,
    *,
    running: bool = False,
    any_end: bool = False,
) -> list[Check]:
    """Check a command against an expectation; failures show no secrets.

    Args:
        expectation: of the command.
        run: the command.
        context: secrets and working directory.
        searcher: runs regular expressions.
        running: True if the command is still running.
        any_end: exit code 0 is not the default, because the command is still running or was stopped.

    Raises:
        OperationFailed: the path of a file leads out of the working directory.
    """
    given = expectation.exit_code is not UNSET or expectation.signal is not UNSET
    checks = _check_end(expectation, run, running=running) if given or not any_end else []
    for name, output in run.outputs.items():
        expected: Text | UnsetType = getattr(expectation, name)
        if not isinstance(expected, UnsetType):
            checks += check_redacted(expected, output.text, name, context.secrets, searcher)
            if output.lost:
                text = f"{output.size} bytes, of which {output.lost} were not kept (outputLimit)"
                checks.append(Check.failed("to be checked completely", text, where=name))
    if isinstance(expectation, RunExpectation):
        if expectation.files is not UNSET:
            checks += check_files(expectation.files, context, searcher)
        if expectation.duration is not UNSET:
            checks += check_duration(expectation.duration, run.duration, where="duration")
    return checks


def _check_end(expectation: OutputExpectation, run: CommandRun, *, running: bool) -> list[Check]:
    status = run.status
    unknown = "it is still running" if running else "its exit status is unknown, its supervisor was killed"
    found = unknown if status is None else str(status)
    if isinstance(expectation.signal, str):
        number = signal_number(expectation.signal)
        ok = status is not None and status.signal == number
        return [Check(ok, "to be killed by", signal.Signals(number).name, found, where="the command")]
    expected = 0 if expectation.exit_code is UNSET else expectation.exit_code
    if status is not None and status.code is not None:
        return check_integer(expected, status.code, where="exitCode")
    return [
        Check(False, check.what, check.expected, f"none ({found})", where="exitCode")  # noqa: FBT003
        for check in check_integer(expected, 0, where="exitCode")
    ]


def check_redacted(expected: Text, text: str, where: str, secrets: ext_sdk.Secrets, searcher: Searcher) -> list[Check]:
    """Check a text; failed checks show expected and actual text without secrets.

    Both are redacted as a whole, and compared again: a secret may be recognizable by its surroundings alone, and half a
    secret in a shortened text would not be recognized.
    """
    checks = check_text(expected, text, where=where, searcher=searcher)
    if all(check.ok for check in checks):
        return checks
    redacted, redacted_expected = secrets.redact(text), expected
    if isinstance(expected, str):
        redacted_expected = secrets.redact(expected)
    else:
        encoded = msgspec.json.encode(expected).decode()
        if (redacted_json := secrets.redact(encoded)) != encoded:  # a placeholder in a pattern is a valid pattern
            redacted_expected = msgspec.json.decode(redacted_json, type=TextExpectation)
    if (redacted, redacted_expected) == (text, expected):
        return checks
    shown = check_text(redacted_expected, redacted, where=where, searcher=searcher)
    if len(shown) != len(checks):
        return [check if check.ok else _without_text(check) for check in checks]
    return [
        check if check.ok else _without_text(other) if other.ok else other
        for check, other in zip(checks, shown, strict=True)
    ]


def withhold_streams(checks: list[Check], streams: set[str]) -> list[Check]:
    """Return the checks, of which those of the given streams show no text."""
    return [check if check.ok or check.where.split()[0] not in streams else _without_text(check) for check in checks]


def _without_text(check: Check) -> Check:
    found = "a text that contains a secret, not shown"
    return Check(False, check.what, check.expected, found, where=check.where)  # noqa: FBT003
