"""Operations `assert-agent` and `assert-file`: check the prompt and the output of the agent, or a file."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk import expect
from ext_sdk.expect.check import failures
from ext_sdk.polling import attempts_until, exponential
from ext_shell.expectations import AssertFile, check_matching
from ext_shell.files import workdir_for


class AssertAgent(ext_sdk.Args, any_of=("output", "prompt")):
    """Arguments of `assert-agent`."""

    output: Annotated[
        expect.Text | UnsetType, Meta(description="Expected answer of the agent: a text, or an object")
    ] = UNSET
    prompt: Annotated[
        expect.Text | UnsetType, Meta(description="Expected prompt of the agent: a text, or an object")
    ] = UNSET


def assert_agent(args: AssertAgent, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check the answer or the prompt of the agent: text, regular expressions, lines, JSON; in the verify phase only."""
    agent = context.agent
    if agent is None:
        raise ext_sdk.OperationFailed(
            "the agent's prompt and output are missing",
            error="expected the agent's prompt and output in context.agent, got none (phase: "
            f"{context.phase or 'unknown'}); hosts send them in the verify phase, so make this a step of verify",
        )
    texts = (("output", args.output, agent.output), ("prompt", args.prompt, agent.prompt))
    checks = []
    with expect.Searcher(deadline=context.deadline) as searcher:
        for name, expectation, text in texts:
            if isinstance(expectation, UnsetType):
                continue
            if text is None:
                raise ext_sdk.OperationFailed(
                    f"the agent's {name} is missing",
                    error=f"context.agent.{name}: expected the agent's {name}, got none; the host must send it",
                )
            where, redact = "the prompt" if name == "prompt" else "the agent's output", context.secrets.redact
            checks += expect.check_text(
                expectation, text, where=where, searcher=searcher, redact=redact, workdir=context.workdir
            )
    outputs = {} if agent.output is None else {"output": agent.output}
    return expect.conclude(checks, done="Checked the agent", outputs=outputs)


def assert_file(args: AssertFile, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check whether a file exists, and its type, text, JSON, permissions, owner, size, SHA-256, time and link target.

    With `glob`, check all files that match a pattern.
    """
    workdir = workdir_for(context, args.path or args.glob)
    with expect.Searcher() as searcher:
        deadline = context.deadline.limit(0) if isinstance(args.timeout, UnsetType) else context.deadline
        checks: list[expect.Check] = []
        outputs: dict[str, str | int | bool] = {}
        attempts = 0
        for attempt in attempts_until(deadline, exponential(first=0.05, longest=1.0), jitter=0.0):
            attempts = attempt.number
            checks, outputs = check_matching(args, workdir, context, searcher)
            if expect.passed(checks):
                break
    result = expect.conclude(checks, done=f"Checked {args.path or args.glob}", outputs=outputs | {"attempts": attempts})
    if attempts > 1 and not result.success:
        result.error += f"\nchecked {attempts} times until the timeout of {args.timeout}"
    timed_out = not isinstance(args.timeout, UnsetType) and not context.deadline.stopped.is_set()
    last_seen = "; ".join(failures(checks, brief=True))
    return ext_sdk.conclude_wait(result, args.on_timeout, timed_out=timed_out, last_seen=last_seen)
