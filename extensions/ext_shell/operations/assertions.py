"""Operations `assert-agent` and `assert-file`: check the prompt and the output of the agent, or a file."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType, field

import ext_sdk
from ext_sdk import expect
from ext_sdk.capture import check_names
from ext_sdk.expect.check import failures
from ext_sdk.polling import attempts_until, exponential
from ext_shell.expectations import AssertFile, check_matching, withhold_streams
from ext_shell.files import workdir_for
from ext_shell.result import WITHHELD, LineCapture, capture_texts

LABELS = {"output": "the agent's output", "prompt": "the prompt"}


class AgentCapture(LineCapture):
    """Part of the agent's output, or of its prompt, that becomes an output; the entire text by default."""

    from_: Annotated[Literal["output", "prompt"], Meta(description="Text to search")] = field(
        default="output", name="from"
    )


class AssertAgent(ext_sdk.Args, any_of=("output", "prompt", "capture")):
    """Arguments of `assert-agent`."""

    output: Annotated[
        expect.Text | UnsetType, Meta(description="Expected answer of the agent: a text, or an object")
    ] = UNSET
    prompt: Annotated[
        expect.Text | UnsetType, Meta(description="Expected prompt of the agent: a text, or an object")
    ] = UNSET
    capture: Annotated[
        dict[str, AgentCapture], Meta(description="Parts of the answer or the prompt that become outputs, by name")
    ] = field(default_factory=dict)


def assert_agent(args: AssertAgent, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check the answer or the prompt of the agent: text, regular expressions, lines, documents; in verify only.

    `capture` outputs parts of them, such as a value in the answer that later steps use.
    """
    agent = context.agent
    if agent is None:
        advice = "hosts send them in the verify phase, so make this a step of verify"
        if context.phase == "verify":
            advice = "the host must send them; `ext-shell call` sends the text of --agent-output"
        raise ext_sdk.OperationFailed(
            "the agent's prompt and output are missing",
            error="expected the agent's prompt and output in context.agent, got none (phase: "
            f"{context.phase or 'unknown'}); {advice}",
        )
    check_names(args.capture, {"output", "outputFile"})
    expectations = {"output": args.output, "prompt": args.prompt}
    texts = {name: text for name, text in (("output", agent.output), ("prompt", agent.prompt)) if text is not None}
    used = {name for name, expectation in expectations.items() if expectation is not UNSET}
    used |= {capture.from_ for capture in args.capture.values()}
    for name in expectations:
        if name in used - texts.keys():
            raise ext_sdk.OperationFailed(
                f"the agent's {name} is missing",
                error=f"context.agent.{name}: expected the agent's {name}, got none; the host must send it",
            )
    with expect.Searcher(deadline=context.deadline) as searcher:
        captured = capture_texts(args.capture, texts, context, searcher)  # before the checks, which redact secrets
        checks = []
        for name, expectation in expectations.items():
            if not isinstance(expectation, UnsetType):
                checks += expect.check_text(
                    expectation,
                    texts[name],
                    where=LABELS[name],
                    searcher=searcher,
                    redact=context.secrets.redact,
                    workdir=context.workdir,
                )
    checks = withhold_streams(checks, {LABELS[name] for name in captured.withheld}) + captured.failures
    if checks:
        result = expect.conclude(checks, done="Checked the agent")
    else:
        result = ext_sdk.Result.ok(f"Captured {', '.join(args.capture)} from the agent")
    if "output" in texts:
        withheld = "output" in captured.withheld
        result.outputs["output"] = WITHHELD.text if withheld else texts["output"]
        result.whole = {"output": WITHHELD.whole} if withheld else {}
    result.outputs |= captured.values
    result.secret_outputs = captured.secrets
    return result


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
