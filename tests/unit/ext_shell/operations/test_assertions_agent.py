"""`assert-agent`."""

from __future__ import annotations

from pathlib import Path

import pytest

import ext_sdk
from ext_sdk.core.redaction.redactor import Redactor
from ext_sdk.server.session import Session
from ext_shell.extension import OPERATIONS
from tests.support.rejections import answered, refusal

PROMPT = "Create a pod named nginx"
OUTPUT = 'I\'ve created the pod.\n\n{"pod": "nginx", "replicas": 1}'


def assert_agent(context: dict[str, object], args: dict[str, object]) -> ext_sdk.Result:
    extension = ext_sdk.Extension("agent", version="1.0.0")
    for operation in OPERATIONS:
        extension.add(operation)
    session = Session(extension, Redactor())
    params = {"operation": "assert-agent", "args": args, "context": {"workdir": str(Path.cwd()), **context}}
    return session.perform(session.prepare(params, lambda *_: None))


def verify(args: dict[str, object], *, answer: str = OUTPUT) -> ext_sdk.Result:
    return assert_agent({"phase": "verify", "agent": {"prompt": PROMPT, "output": answer}}, args)


@pytest.mark.parametrize(
    ("args", "checks"),
    [
        ({"output": {"contains": "created"}}, 1),
        ({"output": {"contains": ["CREATED", "Pod"], "ignoreCase": True}}, 2),
        ({"output": {"containsAny": ["made", "created"], "notContains": "error"}}, 2),
        ({"output": {"matches": r"(?m)^\{.*\}$", "notMatches": "fail(ed|ure)", "lineCount": 3}}, 3),
        ({"prompt": PROMPT}, 1),
        ({"prompt": {"contains": "nginx"}, "output": {"startsWith": "I've"}}, 2),
    ],
)
def test_an_answer_as_expected_passes(args: dict[str, object], checks: int) -> None:
    result = verify(args)
    assert result.success, result
    assert result.message == f"Checked the agent: {checks} check{'s' if checks > 1 else ''} passed"
    assert result.outputs == {"output": OUTPUT}


def test_an_answer_in_json_is_checked_by_paths() -> None:
    args: dict[str, object] = {
        "output": {"json": [{"path": "$.pod", "equals": "nginx"}, {"path": "$.replicas", "type": "integer"}]}
    }
    assert verify(args, answer='{"pod": "nginx", "replicas": 1}').success
    failure = verify(args, answer='{"pod": "nginx", "replicas": "1"}')
    assert failure.error == ('the agent\'s output at $.replicas: expected to be of type integer, got "1" (string)')
    assert "expected to be JSON" in verify(args).error


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"output": {"contains": "deleted"}}, 'the agent\'s output: expected to contain "deleted", got "I\'ve created'),
        ({"output": {"notContains": "created"}}, "the agent's output: expected not to contain"),
        ({"prompt": "x"}, 'the prompt: expected to equal "x", got "Create a pod named nginx"'),
    ],
)
def test_another_answer_fails_and_says_expected_and_got(args: dict[str, object], told: str) -> None:
    result = verify(args)
    assert not result.success
    assert told in result.error


@pytest.mark.parametrize("context", [{"phase": "setup"}, {"phase": "cleanup"}, {"phase": ""}, {}])
def test_without_an_agent_it_says_where_it_belongs(context: dict[str, object]) -> None:
    result = assert_agent(context, {"output": {"contains": "x"}})
    assert not result.success
    assert f"phase: {context.get('phase') or 'unknown'}" in result.error
    assert "make this a step of verify" in result.error


@pytest.mark.parametrize("args", [{}, {"output": {}}, {"output": {"contains": []}}, {"outptu": "x"}, {"output": None}])
def test_a_check_of_nothing_is_refused(args: dict[str, object]) -> None:
    assert refusal("ext_shell", "assert-agent", args, answered(lambda: verify(args)))


def test_an_answer_made_to_hang_a_pattern_is_a_failure() -> None:
    result = verify({"output": {"matches": "^(a+)+$"}}, answer="a" * 60 + "b")
    assert "took longer than 2 s" in result.error


def test_checks_end_with_the_time_of_the_call() -> None:
    agent = {"prompt": PROMPT, "output": "a" * 60 + "b"}
    context: dict[str, object] = {"phase": "verify", "agent": agent, "timeout": "200ms"}
    result = assert_agent(context, {"output": {"matches": "^(a+)+$"}})
    assert "the time of the operation was up" in result.error
