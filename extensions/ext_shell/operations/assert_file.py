"""`assert-file`: what a file must be, now or in a while."""

from __future__ import annotations

from msgspec import UnsetType

import ext_sdk
from ext_sdk import expect
from ext_sdk.polling import attempts_until, exponential
from ext_shell.files.check import AssertFile, FileCheck
from ext_shell.files.common import workdir_for


def assert_file(args: AssertFile, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check that a file exists, or does not, and what it is: type, content, JSON, mode, size, SHA-256."""
    workdir = workdir_for(context, args.path)
    with expect.Searcher() as searcher:
        look = FileCheck(args, workdir, context, searcher)
        deadline = context.deadline.limit(0) if isinstance(args.timeout, UnsetType) else context.deadline
        checks, attempts = [], 0
        for attempt in attempts_until(deadline, exponential(first=0.05, longest=1.0), jitter=0.0):
            checks, attempts = look.checks(), attempt.number
            if expect.passed(checks):
                break
    result = expect.conclude(checks, done=f"Checked {args.path}", outputs=look.outputs | {"attempts": attempts})
    if attempts > 1 and not result.success:
        result.error += f" (looked {attempts} times until the timeout of {args.timeout})"
    return result
