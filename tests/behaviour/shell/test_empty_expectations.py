"""An expectation that compares nothing never makes a success: it is refused, or it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.ext_shell import Extension

EMPTY_TEXTS: tuple[object, ...] = (
    {},
    None,
    {"ignoreCase": True},
    {"lists": "unordered"},
    {"contains": []},
    {"contains": ""},
    {"containsAny": []},
    {"notContains": []},
    {"matches": []},
    {"notMatches": []},
    {"containsLines": []},
    {"lineCount": {}},
    {"lineCount": []},
    {"json": []},
    {"json": [{"path": "$"}]},
    {"json": [{"path": "$", "nodes": "all"}]},
    {"json": [{"path": "$", "in": []}]},
    {"json": [{"path": "$[*]", "nodes": "all", "equals": 1}]},
    {"json": [{"path": "$[*]", "nodes": "all", "notEquals": 1}]},
    {"json": [{"path": "$[*]", "nodes": "any", "notEquals": 1}]},
    {"json": [{"path": "$.a", "notEquals": 1}]},
)
EMPTY_ENDS: tuple[object, ...] = ({}, None, {"exitCode": {}}, {"exitCode": []}, {"exitCode": None}, {"signal": ""})
EMPTY_FILES: tuple[object, ...] = (
    {},
    None,
    {"x": {}},
    {"": {"exists": True}},
    {"x": {"size": {}}},
    *({"x": {"content": text}} for text in EMPTY_TEXTS),
)

EMPTY_READY: tuple[object, ...] = ({}, None, {"port": False}, {"logLine": ""}, {"exit": []})

RUN: dict[str, object] = {"command": ["echo", "[]"], "log": False}
JOB: dict[str, object] = {"name": "job", "timeout": "1s"}
GONE: dict[str, object] = {"name": "gone", "ignoreMissing": True}

CASES: list[tuple[str, dict[str, object]]] = [
    *(("run", {**RUN, "expect": {name: text}}) for text in EMPTY_TEXTS for name in ("stdout", "stderr")),
    *(("run", {**RUN, "expect": end}) for end in EMPTY_ENDS),
    *(("run", {**RUN, "expect": {"files": files}}) for files in EMPTY_FILES),
    ("run", {**RUN, "expect": {"duration": {}}}),
    ("run", {**RUN, "capture": {"x": {"json": "$.a"}}}),
    ("run", {**RUN, "capture": None}),
    *(("wait", {**JOB, "expect": {"stdout": text}}) for text in EMPTY_TEXTS),
    *(("wait", {**JOB, "expect": end}) for end in EMPTY_ENDS),
    *(("wait", {**JOB, "for": ready}) for ready in EMPTY_READY),
    *(("stop", {**JOB, "expect": {"stderr": text}}) for text in EMPTY_TEXTS),
    *(("stop", {**JOB, "expect": end}) for end in EMPTY_ENDS),
    ("stop", {**GONE, "expect": {"exitCode": 0}}),
    ("stop", {**GONE, "expect": {"stdout": {"notContains": "error"}}}),
    ("stop", {**GONE, "capture": {"x": {"default": ""}}}),
    *(("start", {"name": "new", "command": ["true"], "ready": ready}) for ready in EMPTY_READY),
    *(("assert-file", {"path": "x", "content": text}) for text in EMPTY_TEXTS),
    ("assert-file", {"path": "x", "size": {}}),
    ("assert-file", {"path": "missing", "content": {"notContains": "error"}}),
    ("assert-file", {"path": "missing", "size": {"not": 0}}),
    ("assert-file", {"path": "missing", "exists": False, "content": "x"}),
    ("remove", {"glob": "*.none"}),
    ("assert-agent", {}),
    ("assert-agent", {"prompt": {"notContains": "error"}}),
    *(("assert-agent", {"output": text}) for text in EMPTY_TEXTS),
]


@pytest.mark.parametrize(("operation", "args"), CASES, ids=[f"{number}-{case[0]}" for number, case in enumerate(CASES)])
def test_nothing_checked_is_never_a_success(operation: str, args: dict[str, object], shell: Extension) -> None:
    (shell.workdir / "x").write_text("[]\n")
    if args.get("name") == "job":
        shell.ok("start", name="job", script="echo '[]'; echo '[]' >&2", ready={"exit": 0})
    answer = shell.call(operation, args, phase="verify", agent={"output": "[]"})
    shell.call("stop", {"name": "job", "ignoreMissing": True})
    assert not answer.success, answer


@pytest.mark.parametrize("args", [{"output": {"notContains": "x"}}, {"prompt": {"notContains": "x"}}])
def test_a_part_of_the_agent_that_the_host_did_not_send_is_not_checked_as_empty(
    args: dict[str, object], shell: Extension
) -> None:
    answer = shell.call("assert-agent", args, phase="verify", agent={})
    assert not answer.success
    assert f"context.agent.{next(iter(args))}: expected" in answer.error
