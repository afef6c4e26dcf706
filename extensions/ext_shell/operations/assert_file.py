"""Operation `assert-file`: check a file once, or until all checks pass."""

from __future__ import annotations

from msgspec import UnsetType

import ext_sdk
from ext_sdk import expect
from ext_sdk.polling import attempts_until, exponential
from ext_shell.expectations import AssertFile, FileCheck
from ext_shell.files import workdir_for


def assert_file(args: AssertFile, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check whether a file exists, and its type, text, JSON, permissions, size and SHA-256."""
    workdir = workdir_for(context, args.path)
    with expect.Searcher() as searcher:
        file = FileCheck(args, workdir, context, searcher)
        deadline = context.deadline.limit(0) if isinstance(args.timeout, UnsetType) else context.deadline
        checks, attempts = [], 0
        for attempt in attempts_until(deadline, exponential(first=0.05, longest=1.0), jitter=0.0):
            checks, attempts = file.checks(), attempt.number
            if expect.passed(checks):
                break
    result = expect.conclude(checks, done=f"Checked {args.path}", outputs=file.outputs | {"attempts": attempts})
    if attempts > 1 and not result.success:
        result.error += f" (checked {attempts} times until the timeout of {args.timeout})"
    return result
