"""Graders of waza: which are valid, which are supported, and what they find in a trial."""

from __future__ import annotations

import json
import os
import threading
from typing import TYPE_CHECKING

import pytest

from ext_host.waza_evals import Attempt, Grader, grade, grader_problem, unsupported_grader
from ext_sdk.core.regex import Searcher

if TYPE_CHECKING:
    from pathlib import Path

OUTPUT = 'Deployed to https://a.test\n{"ok": true}'


def grader(kind: str, **params: object) -> Grader:
    return Grader(kind, "checks", params, {})


def failures(folder: Path, checked: Grader, output: str = OUTPUT, seconds: float = 0.5) -> list[str]:
    workspace = folder / "workspace"
    workspace.mkdir(exist_ok=True)
    (workspace / "app.py").write_text("def main(): pass\n")
    with Searcher() as searcher:
        attempt = Attempt(output, workspace, seconds, folder, dict(os.environ), threading.Event(), searcher)
        return grade(checked, attempt)


@pytest.mark.parametrize(
    ("passes", "fails", "reason"),
    [
        (grader("text", contains=["DEPLOYED"]), grader("text", contains_cs=["DEPLOYED"]), "Missing expected text"),
        (grader("text", not_contains_cs=["deployed"]), grader("text", not_contains=["deployed"]), "Found forbidden"),
        (grader("text", regex_match=["https?://"]), grader("text", regex_not_match=["^Dep"]), "Found forbidden patt"),
        (grader("regex", must_match=["deployed TO"]), grader("regex", must_not_match=["OK"]), "pattern: OK"),
        (
            grader("file", must_exist=["app.py"]),
            grader("file", must_exist=["b.py"]),
            "must exist, but is missing: b.py",
        ),
        (grader("file", must_not_exist=["b"]), grader("file", must_not_exist=["app.py"]), "must not exist: app.py"),
        (grader("file_exists", path="app.py"), grader("file_exists", path="../out"), "working directory"),
        (
            grader("file", content_patterns=[{"path": "app.py", "must_match": ["def main"]}]),
            grader("file", content_patterns=[{"path": "app.py", "must_not_match": ["pass"]}]),
            "File app.py: Found forbidden pattern: pass",
        ),
        (
            grader("code", assertions=["len(output) > 3", "'Deployed' in output and duration_ms == 500"]),
            grader("code", assertions=["not output", "nothing > 1"]),
            "Error in 'nothing > 1': name 'nothing' is not defined",
        ),
        (grader("behavior", max_duration_ms=500), grader("behavior", max_duration_ms=499), "Took 500 ms"),
        (
            grader("program", command="grep", args=["-q", "Deployed"]),
            grader("program", command="sh", args=["-c", "echo wrong; exit 3"]),
            "exit code 3; its output: wrong",
        ),
        (grader("program", command="true"), grader("program", command="no-such-program"), "command not found"),
        (
            grader("json_schema", schema={"type": "object", "required": ["ok"]}),
            grader("json_schema", schema={"type": "object", "required": ["other"]}),
            "other",
        ),
    ],
)
def test_a_grader_passes_or_names_what_is_wrong(tmp_path: Path, passes: Grader, fails: Grader, reason: str) -> None:
    output = '{"ok": true}' if passes.type == "json_schema" else OUTPUT
    assert [grader_problem(passes), unsupported_grader(passes)] == ["", ""]
    assert failures(tmp_path, passes, output) == []
    assert reason in "; ".join(failures(tmp_path, fails, output))


def test_a_script_gets_the_context_and_decides(tmp_path: Path) -> None:
    (tmp_path / "check.py").write_text(
        "import json, os, sys\n"
        "output = json.load(sys.stdin)['output']\n"
        "found = os.path.exists(os.environ['WAZA_WORKSPACE_DIR'] + '/app.py')\n"
        "print(json.dumps({'passed': found and 'https' in output, 'message': 'no address'}))\n"
    )
    assert failures(tmp_path, grader("script", script="check.py")) == []
    assert failures(tmp_path, grader("script", script="check.py"), "none") == ["no address"]
    assert "did not print a JSON object" in failures(tmp_path, grader("script", script="/dev/null"))[0]


def test_what_does_not_end_is_stopped(tmp_path: Path) -> None:
    endless = grader("program", command="sleep", args=["600"], timeout=0.1)
    assert "The program failed: stopped after" in failures(tmp_path, endless)[0]
    evil = failures(tmp_path, grader("text", regex_match=["(a+)+$"]), "a" * 64 + "b")
    assert "took longer than" in evil[0]


def test_a_schema_may_be_a_file_of_the_eval(tmp_path: Path) -> None:
    (tmp_path / "schema.json").write_text(json.dumps({"type": "array"}))
    assert failures(tmp_path, grader("json_schema", schema_file="schema.json"), "[]") == []
    assert "The output is not JSON" in failures(tmp_path, grader("json_schema", schema_file="schema.json"), "no")[0]
    assert "cannot be read" in failures(tmp_path, grader("json_schema", schema_file="none.json"), "[]")[0]


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [
        (grader("text"), "text: nothing to check: expected contains or"),
        (grader("text", contains="hello"), "text: expected contains as a list of texts"),
        (grader("regex", must_match=["("]), "regex: must_match: not a regular expression"),
        (grader("file", content_patterns=[{}]), "expected content_patterns as a list of objects with a path"),
        (grader("code", assertions=["len(output"]), "code: assertions: not an expression of Python: "),
        (grader("program"), "program: expected command, a text"),
        (grader("json_schema"), "json_schema: expected schema, an object, or schema_file"),
        (grader("behavior"), "behavior: expected max_duration_ms"),
        (grader("txt"), "Invalid grader type: txt; did you mean 'text'?"),
    ],
)
def test_an_invalid_grader_is_refused(wrong: Grader, problem: str) -> None:
    assert problem in grader_problem(wrong)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (grader("prompt", prompt="good?"), "a model grades"),
        (grader("human"), "a person grades"),
        (grader("tool_calls", max_calls=1), "the tool calls of the agent are not recorded"),
        (grader("behavior", max_tool_calls=1), "max_tool_calls: the tool calls"),
        (grader("code", assertions=["1"], language="javascript"), "in Python only"),
        (grader("code", assertions=["len(errors) == 0 and tool_calls"]), "the assertions use errors, tool_calls: only"),
    ],
)
def test_a_valid_grader_that_is_not_supported_is_named(given: Grader, reason: str) -> None:
    assert grader_problem(given) == ""
    assert f"the grader 'checks' of type {given.type} is not supported: " in unsupported_grader(given)
    assert reason in unsupported_grader(given)
