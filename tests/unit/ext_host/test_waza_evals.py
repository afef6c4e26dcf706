"""Evals of waza and of mcpchecker: how they are found, read, and run."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import pytest

from ext_host.agents import CommandAgent
from ext_host.commands import AgentResult
from ext_host.files import FileError, McpServer
from ext_host.waza_evals import (
    EvalNotFound,
    Executors,
    MockAgent,
    Outcome,
    Request,
    find_evals,
    open_eval,
    texts_of,
    worst,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from ext_host.runner import Event

EVAL = "name: n\nskill: s\nconfig: {CONFIG}\ntasks: [{include: 'tasks/*.yaml'}]\n"
TASK = "id: ID\nname: T\ninputs: {prompt: Say hello}\ngraders: [{type: text, config: {contains: [hello]}}]\n"


def write(folder: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder / "eval.yaml"


def waza(folder: Path, *tasks: str, config: str = "") -> Path:
    files = {f"tasks/{n}.yaml": task.replace("ID", f"t{n}") for n, task in enumerate(tasks or (TASK,))}
    return write(folder, {"eval.yaml": EVAL.replace("CONFIG", config), **files})


def run(path: Path, request: Request) -> tuple[list[Outcome], list[Event]]:
    events: list[Event] = []
    prepared = open_eval(path).run(request, events.append)
    assert prepared.check() == []
    outcomes, _ = prepared.run()
    return list(outcomes), events


def test_evals_are_found_by_name_and_by_kind(tmp_path: Path) -> None:
    eval = "apiVersion: mcpchecker/v1alpha2\nkind: Eval\n"
    names = ["a/eval.yaml", "b/eval.yml", "c/other.yaml", "d/task.yaml", ".git/eval.yaml", "node_modules/x/eval.yaml"]
    write(tmp_path, dict.fromkeys(names, eval) | {"d/task.yaml": "kind: Task\n", "d/text.yaml": "# kind: Eval\n"})
    found = [str(path.relative_to(tmp_path)) for path in find_evals(tmp_path)]
    assert found == ["a/eval.yaml", "b/eval.yml", "c/other.yaml"]


def test_a_path_that_no_file_can_have_is_not_found(tmp_path: Path) -> None:
    for name in ("none.yaml", "a\0b", "x" * 5000, "\ud800"):
        with pytest.raises(EvalNotFound):
            open_eval(tmp_path / name)


def test_a_task_that_is_not_a_file_is_not_read(tmp_path: Path) -> None:
    path = waza(tmp_path)
    os.mkfifo(tmp_path / "tasks/fifo.yaml")
    with pytest.raises(FileError, match="expected a file with a task, found a folder or a device"):
        open_eval(path).tasks()


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"eval.yaml": "name: n\n"}, "Missing required field: skill"),
        ({"eval.yaml": EVAL.replace("CONFIG", "")}, "tasks[0]: no file matches 'tasks/*.yaml' in "),
        ({"eval.yaml": "[]"}, "expected an object"),
        ({"eval.yaml": EVAL.replace("CONFIG", "timeout_seconds: soon")}, "config.timeout_seconds: expected an integer"),
        ({"eval.yaml": EVAL.replace("CONFIG", ""), "tasks/a.yaml": "id: a\n"}, "Missing required field: prompt"),
        (
            {"eval.yaml": EVAL.replace("CONFIG", ""), "tasks/a.yaml": TASK, "tasks/b.yaml": TASK},
            "the task id 'ID' is used by tasks/a.yaml and tasks/b.yaml (line 4, column 9)",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_named(tmp_path: Path, files: dict[str, str], expected: str) -> None:
    path = write(tmp_path, files)
    with pytest.raises(FileError) as caught:
        open_eval(path).tasks()
    assert expected in "\n".join(texts_of(caught.value, path))


def test_a_trial_has_its_files_its_environment_and_a_folder_of_its_own(tmp_path: Path) -> None:
    task = (
        "id: ID\ninputs:\n  prompt: p\n  environment: {COLOR: red}\n"
        "  files: [given.txt, {path: d/new.txt, content: new}]\n"
        "expected: {output_contains: [GIVEN new red gpt p], outcomes: []}\n"
    )
    path = waza(tmp_path, task, config="trials_per_task: 2")
    write(tmp_path, {"fixtures/given.txt": "given"})
    agent = CommandAgent(
        'test ! -e made && touch made && echo "$(cat given.txt) $(cat d/new.txt) $COLOR $WAZA_MODEL $1"'
    )
    (outcome,), events = run(path, Request(agent, model="gpt"))
    assert (outcome.status, [part.status for part in outcome.parts]) == ("passed", ["passed", "passed"])
    warnings = [event.message for event in events if event.kind == "log"]
    assert warnings == ["not checked: expected.outcomes"]


def test_the_context_of_a_request_is_copied(tmp_path: Path) -> None:
    task = "id: ID\ninputs: {prompt: p}\ngraders: [{type: file_exists, path: src/app.py}]\n"
    path = waza(tmp_path / "evals", task)
    write(tmp_path, {"project/src/app.py": "x = 1\n"})
    (outcome,), _ = run(path, Request(MockAgent(), context=tmp_path / "project"))
    assert outcome.status == "passed"
    (outcome,), _ = run(path, Request(MockAgent()))
    assert outcome.reason == "file_exists: File must exist, but is missing: src/app.py"


def test_a_file_that_is_missing_prevents_the_run(tmp_path: Path) -> None:
    path = waza(
        tmp_path, "id: ID\ninputs: {prompt: p, files: [none.txt, ../out.txt]}\n" + TASK[TASK.index("graders") :]
    )
    texts = [problem.text for problem in open_eval(path).run(Request(MockAgent()), print).check()]
    assert texts[0] == f"inputs.files: 'none.txt' is missing in {tmp_path}"
    assert "not a path inside the working directory" in texts[1]


def test_a_task_without_graders_and_an_agent_that_fails_do_not_pass(tmp_path: Path) -> None:
    path = waza(tmp_path, "id: ID\ninputs: {prompt: p}\n", TASK)
    (unchecked, failed), _ = run(path, Request(CommandAgent("echo hello; exit 4")))
    assert (failed.status, failed.reason) == ("error", "the agent failed: exit code 4")
    assert unchecked.status == "error"
    (unchecked, passed), _ = run(path, Request(CommandAgent("echo hello")))
    assert (unchecked.status, unchecked.reason) == (
        "failed", "nothing was checked: neither the eval nor the task has graders"
    )  # fmt: skip
    assert passed.status == "passed"


def test_a_trial_ends_at_its_limit_and_fail_fast_skips_the_rest(tmp_path: Path) -> None:
    path = waza(tmp_path, TASK + "timeout_seconds: 1\n", TASK, config="fail_fast: true")
    (late, skipped), events = run(path, Request(CommandAgent("sleep 600")))
    assert (late.status, late.reason[:35]) == ("failed", "the agent exceeded the limit of 1 s")
    assert skipped.status == "skipped"
    assert [event.task for event in events if event.kind == "task_start"] == ["t0"]


def test_parallel_tasks_run_at_the_same_time(tmp_path: Path) -> None:
    both = threading.Barrier(2)

    class Meeting(MockAgent):
        def run(self, *_: object) -> AgentResult:
            both.wait(60)
            return AgentResult("hello")

    path = waza(tmp_path, TASK, TASK, config="parallel: true, max_workers: 2")
    outcomes, _ = run(path, Request(Meeting()))
    assert [outcome.status for outcome in outcomes] == ["passed", "passed"]


def test_an_agent_gets_the_servers_of_the_eval_and_settings_without_effect_are_reported(tmp_path: Path) -> None:
    path = waza(tmp_path, config="mcp_servers: {files: {command: serve-files}}, required_skills: [writer]")
    servers = open_eval(path).servers()
    assert servers == [McpServer("files", {"command": "serve-files"})]
    agent_file = "apiVersion: mcpchecker/v1alpha2\nkind: Agent\ncommands:\n"
    agent_file += "  argTemplateMcpServer: '{{ .File }}'\n  runPrompt: 'echo hello; cat {{ .McpServerFileArgs }}'\n"
    write(tmp_path, {"agent.yaml": agent_file})
    agent = Executors({"mine": f"file:{tmp_path}/agent.yaml"}).agent("mine", servers)
    (outcome,), events = run(path, Request(agent))
    assert outcome.status == "passed"
    texts = [event.message for event in events if event.kind in {"log", "agent_output"}]
    assert texts[0] == "not used: config.required_skills"
    assert "serve-files" in "".join(texts[1:])


def test_executors_are_known_by_name() -> None:
    executors = Executors({"copilot-sdk": "echo hello"})
    assert executors.problem("copilot-sdk", run=True) == ""
    assert executors.problem("mcok", run=True) == "Invalid executor type: mcok; did you mean 'mock'?"
    assert Executors({}).problem("copilot-sdk", run=False) == ""
    assert "start it with --executor copilot-sdk=COMMAND" in Executors({}).problem("copilot-sdk", run=True)
    assert isinstance(executors.agent("copilot-sdk", ()), CommandAgent)


def test_the_status_of_several_is_that_of_the_worst() -> None:
    assert worst([Outcome("a", "passed"), Outcome("b", "failed")]) == "failed"
    assert worst([]) == "error"
