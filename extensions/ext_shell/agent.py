"""`assert-agent`: what the agent answered."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

import ext_sdk
from ext_sdk import expect
from ext_sdk.operation import Operation


class AssertAgent(ext_sdk.Args):
    """Arguments of `assert-agent`."""

    output: Annotated[expect.Text | UnsetType, Meta(description="The agent's answer: a text, or as follows")] = UNSET
    prompt: Annotated[expect.Text | UnsetType, Meta(description="What the agent was asked, likewise")] = UNSET

    def __post_init__(self) -> None:
        if self.output is UNSET and self.prompt is UNSET:
            raise ValueError("this checks nothing; give output, prompt, or both")


def assert_agent(args: AssertAgent, context: ext_sdk.Context) -> ext_sdk.Result:
    """Check what the agent answered, or was asked: text, regular expressions, lines, JSON. Only in the verify phase."""
    agent = context.agent
    if agent is None:
        raise ext_sdk.OperationFailed(
            "there is no agent to check",
            error="expected the agent's prompt and output in context.agent, got none (phase: "
            f"{context.phase or 'unknown'}); hosts send them in the verify phase, so make this a step of verify",
        )
    texts = (("the agent's output", args.output, agent.output), ("the prompt", args.prompt, agent.prompt))
    checks = []
    with expect.Searcher() as searcher:
        for where, wanted, text in texts:
            if not isinstance(wanted, UnsetType):
                redact = context.secrets.redact
                checks += expect.check_text(wanted, text, where=where, searcher=searcher, redact=redact)
    return expect.conclude(checks, done="Checked the agent", outputs={"output": agent.output})


OPERATIONS = (Operation("assert-agent", assert_agent, {"output": {"contains": "created", "ignoreCase": True}}),)
