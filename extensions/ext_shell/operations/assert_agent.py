"""Operation `assert-agent`: check the prompt and the output of the agent."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk import expect


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
            checks += expect.check_text(expectation, text, where=where, searcher=searcher, redact=redact)
    outputs = {} if agent.output is None else {"output": agent.output}
    return expect.conclude(checks, done="Checked the agent", outputs=outputs)
