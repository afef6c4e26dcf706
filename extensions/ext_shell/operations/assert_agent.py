"""Operation `assert-agent`."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk import expect


class AssertAgent(ext_sdk.Args, any_of=("output", "prompt")):
    """Arguments of `assert-agent`."""

    output: Annotated[expect.Text | UnsetType, Meta(description="The agent's answer: a text, or as follows")] = UNSET
    prompt: Annotated[expect.Text | UnsetType, Meta(description="What the agent was asked, likewise")] = UNSET


def assert_agent(args: AssertAgent, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check what the agent answered, or was asked: text, regular expressions, lines, JSON. Only in the verify phase."""
    agent = context.agent
    if agent is None:
        raise ext_sdk.OperationFailed(
            "there is no agent to check",
            error="expected the agent's prompt and output in context.agent, got none (phase: "
            f"{context.phase or 'unknown'}); hosts send them in the verify phase, so make this a step of verify",
        )
    texts = (("output", args.output, agent.output), ("prompt", args.prompt, agent.prompt))
    checks = []
    with expect.Searcher(deadline=context.deadline) as searcher:
        for name, wanted, text in texts:
            if isinstance(wanted, UnsetType):
                continue
            if text is None:
                raise ext_sdk.OperationFailed(
                    f"the agent's {name} is missing",
                    error=f"context.agent.{name}: expected the agent's {name}, got none; the host has to send it",
                )
            where = "the prompt" if name == "prompt" else "the agent's output"
            checks += expect.check_text(wanted, text, where=where, searcher=searcher, redact=context.secrets.redact)
    outputs = {} if agent.output is None else {"output": agent.output}
    return expect.conclude(checks, done="Checked the agent", outputs=outputs)
