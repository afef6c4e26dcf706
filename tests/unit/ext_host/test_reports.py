"""Reports: the text of tasks that run at the same time, progress, JUnit XML, JSON, and their files."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ext_host.commands import AgentResult
from ext_host.files import Document, HostError, TaskFile
from ext_host.reports import TextReport, as_json, check_file, junit, step_lines, write_file
from ext_host.runner import EvalResult, Event, PhaseResult, Status, TaskResult, TrialResult
from ext_host.steps import StepResult


def event(kind: str, number: int = 1, **members: object) -> Event:
    return Event(kind, f"task-{number}" if number else "", number=number, total=3, **members)  # type: ignore[arg-type]


def step(number: int, name: str, *, error: str = "") -> Event:
    result = StepResult("verify", name, not error, "done" if not error else "", error)
    return event("step", number, phase="verify", status="failed" if error else "passed", step=result)


def complete(number: int, status: Status = "passed", message: str = "") -> Event:
    return event("task_complete", number, status=status, message=message)


def text_of(*events: Event, **options: bool) -> str:
    out = io.StringIO()
    report = TextReport(out, **options)  # type: ignore[arg-type]
    for each in events:
        report.on_event(each)
    return out.getvalue()


def test_lines_of_tasks_that_run_at_the_same_time_are_not_mixed() -> None:
    events = [event("run_start", 0)]
    events += [event("task_start", number) for number in (1, 2, 3)]
    events += [step(number, f"of-{number}") for number in (3, 1, 2)]
    events += [
        complete(3),
        step(2, "more-of-2"),
        complete(1),
        complete(2, "failed", "because"),
        event("run_complete", 0),
    ]
    found = re.findall(r"^\w+ +\w+ +([\w-]+)", text_of(*events), re.MULTILINE)
    assert found == ["of-1", "task-1", "of-3", "task-3", "of-2", "more-of-2", "task-2"]


def test_a_failed_task_has_its_reason_and_a_quiet_report_has_only_that() -> None:
    events = [event("task_start"), step(1, "shell.run", error="expected 1\nfound 2"), complete(1, "failed", "found\n2")]
    assert text_of(*events) == (
        "verify   FAILED  shell.run                     expected 1\n"
        "                 found 2\n"
        "task     FAILED  task-1\n"
        "                 found\n"
        "                 2\n"
    )
    repeated = complete(1, "failed", "shell.run: expected 1\nfound 2")
    assert text_of(*events[:2], repeated).endswith("task     FAILED  task-1\n                 shell.run: expected 1\n")
    quiet = text_of(*events, event("task_start", 2), complete(2), quiet=True)
    assert quiet == "task     FAILED  task-1\n                 found\n                 2\n"


def test_the_output_of_agents_is_shown_by_complete_lines_if_wanted() -> None:
    events = [event("task_start"), *(event("agent_output", message=text) for text in ("one\ntw", "o\n", "thr", "ee\n"))]
    log = event("log", phase="setup", level="info", message="started")
    assert text_of(*events, log) == ""
    shown = text_of(*events, log, verbose=True)
    assert shown.split() == ["one", "two", "three", "setup", "info", "started"]


def test_memory_is_bounded_for_a_task_that_waits_to_be_printed() -> None:
    events = [event("task_start"), event("task_start", 2)]
    events += [event("agent_output", 2, message="line\n" * 6_000) for _ in range(4)]
    shown = text_of(*events, complete(1), complete(2), verbose=True).splitlines()
    assert shown.count("                 line") == 10_000
    assert shown[-1] == "task     passed  task-2"


def test_long_outputs_of_agents_are_cut_and_errors_are_left_to_the_reason() -> None:
    lines = list(step_lines(StepResult("agent", "agent", success=True, message="\n".join("abcdefgh"))))
    assert [text for _, text in lines] == ["a", "b", "c", "d", "e", "… 3 more lines"]
    failed = StepResult("agent", "agent", success=False, error="first\nsecond")
    assert [text for _, text in step_lines(failed)] == ["first"]


def test_characters_that_control_a_terminal_are_replaced() -> None:
    events = [event("task_start"), step(1, "x\x1b]0;title\x07"), complete(1, "error", "\x1b[2J")]
    assert "\x1b" not in text_of(*events)
    assert "\x07" not in text_of(*events)


def test_a_terminal_shows_the_progress_in_its_last_line() -> None:
    out = io.StringIO()
    report = TextReport(out, terminal=True, colour=True)
    for each in (event("run_start", 0), event("task_start"), event("phase", phase="agent")):
        report.on_event(each)
    assert out.getvalue().endswith("\r\x1b[K[0/3]  task-1 agent 0 s")
    report.on_event(complete(1, "failed", "no"))
    assert "\r\x1b[K\x1b[31mtask     FAILED \x1b[0m task-1\n" in out.getvalue()
    report.on_event(event("task_start", 2))
    assert out.getvalue().endswith("[1/3, 1 failed]  task-2 starts 0 s")
    report.on_event(complete(2))
    report.summary([RESULT])
    assert "\r" not in out.getvalue()[out.getvalue().index("task-2\n") :]


def task(name: str, *trials: TrialResult, status: Status = "passed", reason: str = "") -> TaskResult:
    spec = TaskFile(Document(Path("tasks", f"{name or 'unnamed'}.yaml"), None, None), name, labels={"suite": "s"})
    return TaskResult(spec, 1, status, reason, trials, 1.5)


def trial(number: int, status: Status = "passed", reason: str = "", output: str = "done") -> TrialResult:
    steps = (StepResult("verify", "shell.run", status == "passed", "checked", reason, {"exitCode": "0"}),)
    phases = {"verify": PhaseResult("verify", steps, status == "passed")}
    return TrialResult(number, status, reason, phases, "Do it.", AgentResult(output, details={"steps": []}), 1.25, 1.0)


RESULT = EvalResult(
    "evals/one",
    "an agent <1>",
    "failed",
    (
        task("good", trial(1)),
        task(
            "twice", trial(1), trial(2, "failed", "expected 1\nfound \x00\ud800"), status="failed", reason="expected 1"
        ),
        task("broken", trial(1, "error", "no manifest"), status="error", reason="no manifest"),
        task("", status="skipped", reason="llmJudge is not supported"),
    ),
    ("extension shell: exit code 1",),
    6.0,
)


def test_junit_has_a_case_for_each_run_with_its_reason() -> None:
    root = ET.fromstring(junit([RESULT]))
    suite = root[0]
    counts = {"tests": "5", "failures": "1", "errors": "1", "time": "6.000"}
    assert root.attrib == {"name": "ext-host"} | counts
    assert suite.attrib == {"name": "evals/one", "skipped": "1"} | counts
    cases = suite.findall("testcase")
    names = ["good", "twice (run 1 of 2)", "twice (run 2 of 2)", "broken", "unnamed"]
    assert [case.get("name") for case in cases] == names
    assert {case.get("classname") for case in cases} == {"evals/one"}
    assert cases[0].attrib == {"classname": "evals/one", "name": "good", "time": "1.250"}
    assert str(cases[0][0].text).startswith("file     tasks/good.yaml\n")
    assert [[child.tag for child in case] for case in cases] == [
        ["system-out"], ["system-out"], ["failure", "system-out"], ["error", "system-out"], ["skipped"],
    ]  # fmt: skip
    failure = cases[2][0]
    assert (failure.get("message"), failure.get("type")) == ("expected 1", "failed")
    assert failure.text == "expected 1\nfound \ufffd\ufffd"
    assert "done" in str(cases[0][0].text)
    assert suite.findtext("system-err") == "extension shell: exit code 1"
    agent = suite.find("properties/property")
    assert agent is not None
    assert agent.get("value") == "an agent <1>"


def test_json_has_all_that_is_known_of_a_run() -> None:
    report = json.loads(as_json([RESULT]))
    assert (report["format"], report["status"], report["seconds"]) == (1, "failed", 6.0)
    (found,) = report["evals"]
    assert found["counts"] == {"passed": 1, "failed": 1, "error": 1, "skipped": 1}
    assert found["problems"] == ["extension shell: exit code 1"]
    good, twice, _, unnamed = found["tasks"]
    assert (good["name"], good["file"], good["labels"]) == ("good", "tasks/good.yaml", {"suite": "s"})
    assert (unnamed["name"], unnamed["status"], unnamed["runs"]) == ("unnamed", "skipped", [])
    assert [run["status"] for run in twice["runs"]] == ["passed", "failed"]
    (run,) = good["runs"]
    assert (run["prompt"], run["agent"]["output"], run["agent"]["seconds"]) == ("Do it.", "done", 1.0)
    (checked,) = run["phases"]["verify"]["steps"]
    assert (checked["name"], checked["success"], checked["outputs"]) == ("shell.run", True, {"exitCode": "0"})


def test_reports_in_files_have_no_secrets(tmp_path: Path) -> None:
    secret = "correct-horse-battery"
    token = "ghp_" + "a1B2" * 9
    result = EvalResult("e", "a", "passed", (task("t", trial(1, output=f"{secret} {token}")),))
    for name, data in (("r.json", as_json([result])), ("r.xml", junit([result]))):
        write_file(str(tmp_path / name), data, {"API_TOKEN": secret})
        text = (tmp_path / name).read_text()
        assert secret not in text
        assert token not in text
        assert "[redacted:env.API_TOKEN#1]" in text


def test_a_report_that_cannot_be_written_is_refused_before_the_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check_file(str(tmp_path / "new" / "report.xml"))
    with pytest.raises(HostError, match="it is a folder"):
        check_file(str(tmp_path))
    with pytest.raises(HostError, match="cannot create the folder of the report"):
        check_file(str(tmp_path / "file" / "report.xml"))


def test_the_summary_counts_tasks() -> None:
    out = io.StringIO()
    TextReport(out).summary([RESULT])
    assert out.getvalue() == "4 tasks: 1 passed, 1 failed, 1 error, 1 skipped in 6s\nskipped, not checked: unnamed\n"


def test_a_quiet_report_has_the_remark_on_a_task_that_passed() -> None:
    events = [event("task_start"), complete(1, message="passed although setup step 2 failed")]
    assert text_of(*events, quiet=True) == "task     passed  task-1: passed although setup step 2 failed\n"
