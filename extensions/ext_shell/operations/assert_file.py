"""`assert-file`: what a file must be, now or in a while."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UnsetType

import ext_sdk
from ext_sdk import expect
from ext_shell.files.check import AssertFile, FileCheck
from ext_shell.files.common import workdir_for

if TYPE_CHECKING:
    from ext_sdk import Context
    from ext_sdk.expect import Check


FIRST_PAUSE = 0.05  # seconds between two looks at a file; each pause is half as long again as the one before
LONGEST_PAUSE = 1.0  # seconds


def assert_file(args: AssertFile, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check that a file exists, or does not, and what it is: type, content, JSON, mode, size, SHA-256."""
    workdir = workdir_for(context, args.path)
    with expect.Searcher() as searcher:
        look = FileCheck(args, workdir, context, searcher)
        checks, attempts = _until_passed(look, context, wait=not isinstance(args.timeout, UnsetType))
    result = expect.conclude(checks, done=f"Checked {args.path}", outputs=look.outputs | {"attempts": attempts})
    if attempts > 1 and not result.success:
        result.error += f" (looked {attempts} times until the timeout of {args.timeout})"
    return result


def _until_passed(look: FileCheck, context: Context, *, wait: bool) -> tuple[list[Check], int]:
    """FileCheck at once, then again and again, and a last time when the deadline is over.

    Returns:
        The checks of the last look, and how many looks there were.
    """
    attempts, pause, last = 0, FIRST_PAUSE, not wait
    while True:
        attempts += 1
        checks = look.checks()
        if last or expect.passed(checks):
            return checks, attempts
        last = not context.deadline.wait(pause)
        if context.deadline.stopped.is_set():
            return checks, attempts
        pause = min(pause * 1.5, LONGEST_PAUSE)
