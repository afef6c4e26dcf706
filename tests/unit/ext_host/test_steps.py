"""Steps: scripts, HTTP requests and operations, their templates and checks; steps that are not valid."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest

from ext_host.steps import OWN_STEPS, _by_path, _go_text
from tests.support.http_stub import Stub

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ext_host.steps import StepResult
    from tests.support.host_tasks import Tasks
    from tests.support.http_stub import Asked, Handler
    from tests.support.ports import NewPort


@pytest.fixture(autouse=True)
def shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")
    monkeypatch.setenv("no_proxy", "*")


def verified(tasks: Tasks, *steps: object, setup: str = "", **options: object) -> list[StepResult]:
    """Return the results of verify steps, written as JSON."""
    text = f"verify: {json.dumps(steps)}\n" + (f"setup: {setup}\n" if setup else "")
    trial = tasks.trial(text, **options)
    assert trial.phases, trial.reason
    return list(trial.phases["verify"].steps)


# --- Scripts ---------------------------------------------------------------------------------------------------------


def test_a_script_runs_in_the_folder_of_the_task_with_both_outputs(tasks: Tasks) -> None:
    (tasks.folder / "sub").mkdir()
    (tasks.folder / "sub" / "check.sh").write_text("#!/bin/sh\npwd; echo file >&2\n")
    inline, python, file = verified(
        tasks,
        {"script": {"inline": "pwd; echo err >&2; echo out"}},
        {"script": {"inline": "#!/usr/bin/env python3\nimport os; print(os.getcwd())"}},
        {"script": {"file": "sub/check.sh"}},
    )
    assert inline.message == f"{tasks.folder}\nerr\nout\n"
    assert python.message == f"{tasks.folder}\n"
    assert file.message == f"{tasks.folder}/sub\nfile\n"
    assert os.access(tasks.folder / "sub" / "check.sh", os.X_OK)
    assert not list(tasks.folder.glob(".ext-host-step-*"))


def test_variables_of_a_script_are_templates(tasks: Tasks) -> None:
    env = {
        "A": "{steps.x.ok.args}", "B": "{agent.output}|{agent.prompt}", "C": "${GIVEN}{env.GIVEN}%s",
        "D": "{random.id}", "E": "{random.port}",
    }  # fmt: skip
    script = {"script": {"inline": 'for v in "$A" "$B" "$C" "$D" "$E"; do echo "$v"; done', "env": env}}
    environ = {**os.environ, "GIVEN": "g"}
    _, first, second = verified(tasks, {"x.ok": {"x": "y"}}, script, script, environ=environ)
    lines = first.message.splitlines()
    assert lines[:3] == ['{"x": "y"}', "|Do it.", "gg%s"]
    assert re.fullmatch(r"[a-z0-9]{8}", lines[3])
    assert 0 < int(lines[4]) < 65_536
    assert second.message == first.message


def test_outputs_of_setup_are_known_in_cleanup_but_not_in_verify(tasks: Tasks) -> None:
    script = "{script: {inline: 'echo $A', env: {A: '{steps.x.ok.args}'}, continueOnError: true}}"
    trial = tasks.trial(f"setup: [{{x.ok: {{x: s}}}}]\nverify: [{script}, {script}]\ncleanup: [{script}]")
    assert trial.phases["cleanup"].steps[0].message == '{"x": "s"}\n'
    first, second = trial.phases["verify"].steps
    assert first.error == "env: {steps.x.ok.args}: no step 'x.ok' with outputs has succeeded before this one"
    assert second.error == first.error


def test_a_failed_script_ends_the_phase_unless_it_may_fail(tasks: Tasks) -> None:
    may_fail = {"inline": "echo no; exit 4", "continueOnError": True}
    late = {"inline": "sleep 600", "timeout": "200ms", "continueOnError": True}
    missing = {"file": "none.sh", "continueOnError": True}
    results = verified(
        tasks, *({"script": args} for args in (may_fail, late, missing)), {"script": {"inline": "exit 5"}}
    )
    assert [(result.success, result.aborted) for result in results] == [(False, False)] * 3 + [(False, True)]
    assert results[0].error == "script failed: exit code 4\noutput: no\n"
    assert results[1].error.startswith("script failed: stopped after 0.2")
    assert results[2].error == f"cannot run {tasks.folder}/none.sh: No such file or directory"


# --- Operations ------------------------------------------------------------------------------------------------------


def test_a_result_that_is_none_and_a_log(tasks: Tasks) -> None:
    log, odd = verified(tasks, {"x.log": {}}, {"x.odd": {}})
    assert log.success
    assert [(event.level, event.message) for event in tasks.events if event.kind == "log"] == [("warn", "careful")]
    assert (odd.aborted, odd.error) == (True, "expected a result with `success`, found ['odd']")


def test_arguments_are_sent_as_they_are(tasks: Tasks) -> None:
    null, given = verified(tasks, {"id": "one", "x.ok": None}, {"x.ok": {"x": "${not.ours} {steps.x}"}})
    assert null.outputs["args"] == "null"
    assert given.outputs["args"] == '{"x": "${not.ours} {steps.x}"}'


@pytest.mark.parametrize(
    ("step", "problem"),
    [
        ({}, "spec.verify[0]: expected one member that names the step, besides id, found none"),
        ({"script": {}, "http": {}}, "expected one member that names the step, besides id, found script, http"),
        ({"scrpt": {}}, "spec.verify[0].scrpt: unknown step 'scrpt'; did you mean 'script'?"),
        ({"y.ok": {}}, "the task requires no extension under the name 'y'; known are x"),
        ({"x.okay": {}}, "extension x has no operation 'okay'; did you mean 'ok'?"),
        ({"x.ok": {"y": 1}}, "spec.verify[0].x.ok: unknown member 'y'; known are x"),
        ({"x.ok": [1]}, "arguments: expected an object, found [1]"),
        ({"script": {}}, "expected one of file and inline, found none"),
        ({"script": {"file": "a", "inline": "b"}}, "expected one of file and inline, found both"),
        ({"script": {"inline": 5}}, "inline: expected a string, found 5; put it into quotes"),
        ({"script": {"inline": "a", "env": {"A": True}}}, "A: expected a string, found true; put it into quotes"),
        ({"script": {"inline": "a", "env": {"A": "{x}"}}}, "env.A: expected {env.NAME}, {steps.NAME}"),
        ({"script": {"inline": "a", "env": [1]}}, "env: expected an object, found [1]"),
        ({"script": {"inline": "a", "timeout": "5"}}, "timeout: invalid duration '5': a unit is missing"),
        ({"http": {"url": "{steps.x.ok.a}"}}, "url: expected {env.NAME}, {random.NAME}, {agent.NAME} or ${NAME}"),
        ({"http": {"body": {}}}, "body: expected one of raw and json, found none"),
        ({"http": {"body": {"raw": "a", "json": {}}}}, "body: expected one of raw and json, found both"),
        ({"http": {"body": {"json": [1]}}}, "body.json: expected an object, found [1]"),
        ({"http": {"expect": {"body": {"fields": {}}}}}, ""),
        ({"http": {"expect": {"body": {"fields": "a"}}}}, "expect.body.fields: expected a list, found \"a\""),
        ({"http": {"expect": {"body": {"fields": [{"path": False}]}}}}, "path: expected a string, found false"),
    ],
)  # fmt: skip
def test_steps_that_are_not_valid_are_refused_before_the_first_one(
    tasks: Tasks, step: dict[str, object], problem: str
) -> None:
    trial = tasks.trial(f"verify: {json.dumps([step])}")
    assert problem in trial.reason
    if problem:
        assert (trial.status, trial.phases) == ("error", {})
        assert trial.reason.startswith("task.yaml:") or str(tasks.folder) in trial.reason


def test_requirements_that_are_not_valid_are_refused(tasks: Tasks) -> None:
    requires = "[{extension: x}, {extension: x}, {extension: x, as: a.b}, {mcpServer: m}, {extension: x, as: y}]"
    trial = tasks.trial(f"requires: {requires}\nverify: [{{y.ok: {{}}}}]")
    assert [line.partition(" ")[2] for line in trial.reason.splitlines()] == [
        "spec.requires[1]: the name 'x' is used twice; set `as`",
        "spec.requires[2]: expected a name without dots, found 'a.b'",
        "spec.requires[3]: the eval has no mcpServer 'm'; none is known",
    ]
    assert set(OWN_STEPS) == {"script", "http", "llmJudge"}


# --- HTTP ------------------------------------------------------------------------------------------------------------

VALUE = {"a": {"b": 1}, "items": [{"n": "one"}, {"n": "two"}], "f": 1.5, "s": "hello", "none": None, "yes": True}


def respond(handler: Handler, asked: Asked) -> None:
    if asked.path == "/echo":
        body = asked.body.decode()
        handler.json(
            {"body": body, "type": asked.header("Content-Type"), "x": asked.header("X-A"), "method": asked.method}
        )
    elif asked.path == "/moved":
        handler.answer(302, b"", {"Location": "/json"})
    elif asked.path == "/text":
        handler.answer(200, b"hello")
    elif asked.path == "/empty":
        handler.answer(200, b"")
    else:
        handler.json(VALUE, 200 if asked.path == "/json" else 404)


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with Stub(default=respond) as stub:
        yield stub.origin


def http(tasks: Tasks, origin: str, path: str, expect: object = None, **more: object) -> StepResult:
    args = {"url": f"{origin}{path}", "method": "GET", **({} if expect is None else {"expect": expect}), **more}
    (result,) = verified(tasks, {"http": args})
    return result


def test_a_response_is_checked(tasks: Tasks, origin: str) -> None:
    fields = [
        {"path": "a.b", "equals": 1, "type": "number"}, {"path": "a.b", "equals": "1"},
        {"path": "items[1].n", "equals": "two"},
        {"path": "items.1.n", "exists": False}, {"path": "items[2]", "exists": False}, {"path": "f", "equals": 1.5},
        {"path": "s", "match": "^h.*o$", "exists": True}, {"path": "none", "type": "null"},
        {"path": "a", "equals": {"b": 1}},
        {"path": "yes", "equals": True, "type": "bool"}, {"path": "gone"}, {"path": "items", "type": "array"},
    ]  # fmt: skip
    result = http(tasks, origin, "/json", {"status": 200, "body": {"fields": fields, "match": "hel+o"}})
    assert (result.error, result.message) == ("", "response passed all validation")
    assert http(tasks, origin, "/moved", {"status": 200}).success
    assert http(tasks, origin, "/none").message == "request completed (no expectations defined)"
    assert http(tasks, origin, "/json", {"status": 200}, method="").success


def test_all_differences_of_a_response_are_reported(tasks: Tasks, origin: str) -> None:
    fields = [
        {"path": "a.b", "equals": 2}, {"path": "no", "equals": 1}, {"path": "s", "type": "number"},
        {"path": "a.b", "match": "x"}, {"path": "s", "exists": False}, {"path": "no", "exists": True},
        {"path": "s", "match": "z"}, {"path": "s", "match": "("}, {"path": "s", "equals": ""},
    ]  # fmt: skip
    result = http(tasks, origin, "/json", {"status": 201, "body": {"match": "zzz", "fields": fields}})
    assert not result.success
    found = result.error.removeprefix("response failed validation check: ").split("; ")
    assert found[:8] == [
        "expected status code 201, got 200", "body did not match 'zzz'",
        "field 'a.b': expected 2, got 1",
        "field 'no' does not exist", "field 's': expected type number, got string",
        "field 'a.b': match requires a string, got number", "field 's' exists but should not",
        "field 'no' does not exist",
    ]  # fmt: skip
    assert found[8] == "field 's': value 'hello' did not match 'z'"
    assert "not a regular expression" in found[9]
    assert found[10] == "field 's': expected , got hello"
    for path, reason in (("/text", "failed to parse response body as JSON"), ("/empty", "got an empty response")):
        assert reason in http(tasks, origin, path, {"body": {"fields": [{"path": "a", "exists": True}]}}).error


def test_a_request_has_a_body_and_headers(tasks: Tasks, origin: str) -> None:
    fields = [{"path": "body", "equals": '{"q": 1}'}, {"path": "type", "equals": "application/json"}]
    headers = {"X-A": "{agent.prompt}"}
    sent = http(
        tasks, origin, "/echo", {"body": {"fields": [*fields, {"path": "x", "equals": "Do it."}]}}, method="POST",
        body={"json": {"q": 1}}, headers=headers,
    )  # fmt: skip
    assert sent.error == ""
    fields = [{"path": "body", "equals": "raw"}, {"path": "type", "type": "null"}, {"path": "method", "equals": "PUT"}]
    assert http(tasks, origin, "/echo", {"body": {"fields": fields}}, method="PUT", body={"raw": "raw"}).error == ""
    fields = [{"path": "type", "equals": "text/plain"}]
    typed = {"content-type": "text/plain"}
    sent = http(tasks, origin, "/echo", {"body": {"fields": fields}}, method="POST", body={"json": {}}, headers=typed)
    assert sent.error == ""


def test_a_request_without_a_response_ends_the_phase(tasks: Tasks, tmp_path: Path, new_port: NewPort) -> None:
    import socket

    port = new_port()
    with socket.create_server(("127.0.0.1", port)):
        late = http(tasks, f"http://127.0.0.1:{port}", "/", timeout="300ms")
    assert (late.aborted, late.error.startswith(f"GET http://127.0.0.1:{port}/ failed: ")) == (True, True)
    refused = http(tasks, f"http://127.0.0.1:{port}", "/")
    assert "refused" in refused.error
    assert "failed: " in http(tasks, "nonsense", "").error
    assert tmp_path.is_dir()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "<nil>"), (True, "true"), (1, "1"), (1.0, "1"), (1.5, "1.5"), (-0.25, "-0.25"), (1e21, "1e+21"),
        (12345678901, "1.2345678901e+10"), (1e-7, "1e-07"), (1e6, "1e+06"), (999999, "999999"), (0, "0"),
        ("a b", "a b"), ([1, "x"], "[1 x]"),
        ({"b": [], "a": {"c": None}}, "map[a:map[c:<nil>] b:[]]"), (1.5e300, "1.5e+300"),
    ],
)  # fmt: skip
def test_values_are_compared_as_go_prints_them(value: object, text: str) -> None:
    assert _go_text(value) == text


@pytest.mark.parametrize(
    ("path", "found"),
    [("a.b[0].c", 1), ("a.b.0.c", None), ("a.b[9]", None), ("a.b[x]", None), ("", "all"), ("a[b]", None),
     ("a.b[+0].c", 1)],
)  # fmt: skip
def test_only_brackets_are_indices(path: str, found: object) -> None:
    data = {"a": {"b": [{"c": 1}]}}
    assert _by_path(data, path) == ((True, data if found == "all" else found) if found else (False, None))
