"""Runs: what continues after which failure, limits, trials, selection, parallel tasks, cancellation.

The table of failures is what mcpchecker does; it was compared with the real one, task by task.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from ext_host.__main__ import main
from ext_host.agents import CommandAgent, agent_of
from ext_host.commands import AgentResult
from ext_host.files import HostError
from ext_sdk.duration import Duration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from ext_host.runner import Event, TrialResult
    from ext_sdk.polling import Deadline
    from tests.support.host_tasks import Tasks

OK = "{x.ok: {}}"


def performed(trial: TrialResult) -> dict[str, str]:
    """Return a letter for each step of each phase: + succeeded, - failed, ! ended the phase."""
    return {
        name: "".join("!" if step.aborted else "-+"[step.success] for step in phase.steps)
        for name, phase in trial.phases.items()
    }


@pytest.mark.parametrize(
    ("spec", "status", "steps", "reason"),
    [
        (f"verify: [{OK}]", "passed", {"setup": "", "verify": "+", "cleanup": ""}, ""),
        ("setup: [{x.ok: {}}]", "failed", {"setup": "+", "verify": "", "cleanup": ""}, "nothing was checked"),
        (f"setup: [{{x.fail: }}, {OK}]\nverify: [{OK}]", "passed", {"setup": "-+", "verify": "+", "cleanup": ""}, ""),
        (
            f"setup: [{{x.rpc: {{}}}}, {OK}]\nverify: [{OK}]\ncleanup: [{OK}]",
            "error", {"setup": "!"}, "setup ended early: x.rpc: a fault (error -32603 of the protocol)",
        ),
        (
            f"verify: [{{x.fail: {{}}}}, {OK}]\ncleanup: [{OK}]",
            "failed", {"setup": "", "verify": "-+", "cleanup": "+"}, "x.fail: very bad",
        ),
        (
            f"verify: [{{x.rpc: {{}}}}, {OK}]\ncleanup: [{OK}]",
            "error", {"setup": "", "verify": "!", "cleanup": "+"}, "verification failed: x.rpc: a fault",
        ),
        (
            f"verify: [{OK}]\ncleanup: [{{x.fail: {{}}}}, {{x.rpc: {{}}}}, {OK}]",
            "passed", {"setup": "", "verify": "+", "cleanup": "-!"}, "",
        ),
        (
            f"verify: [{{x.crash: {{}}}}]\ncleanup: [{OK}]",
            "error", {"setup": "", "verify": "!", "cleanup": "!"}, "it has ended (exit code 3); standard error ends",
        ),
        (
            f"verify: [{{script: {{inline: exit 4}}}}, {OK}]\ncleanup: [{OK}]",
            "failed", {"setup": "", "verify": "!", "cleanup": "+"}, "verification failed: script: script failed: exit",
        ),
        (
            f"verify: [{{script: {{inline: exit 4, continueOnError: true}}}}, {OK}]",
            "failed", {"setup": "", "verify": "-+", "cleanup": ""}, "script: script failed: exit code 4",
        ),
        (
            f"setup: [{{script: {{inline: exit 4}}}}]\nverify: [{OK}]\ncleanup: [{OK}]",
            "error", {"setup": "!"}, "cleanup did not run, because setup ended early",
        ),
        (f"verify: [{{x.none: {{}}}}, {OK}, {{y.ok: {{}}}}]", "error", {}, "spec.verify[2].y.ok: the task requires no"),
        (f"requires: [{{extension: y}}]\nverify: [{OK}]", "passed", {}, ""),
        (f"prompt: {{file: none.txt}}\nverify: [{OK}]", "error", {}, "none.txt: cannot read the prompt: No such file"),
    ],
)  # fmt: skip
def test_what_continues_after_which_failure(
    tasks: Tasks, spec: str, status: str, steps: dict[str, str], reason: str
) -> None:
    if "extension: y" in spec:  # the names of the extension and of its steps may differ
        spec, steps = spec.replace("extension: y", "extension: x, as: y").replace("x.ok", "y.ok"), {"verify": "+"}
    trial = tasks.trial(spec)
    assert trial.status == status
    assert {name: found for name, found in performed(trial).items() if found or name in steps} == {
        name: found for name, found in steps.items() if found or name in performed(trial)
    }
    assert reason in trial.reason
    assert bool(trial.reason) == (status != "passed")


class Recorder:
    """Agent that keeps what it gets."""

    name = "recorder"

    def __init__(self, output: str = "done", error: str = "", *, fails: bool = False) -> None:
        self.result = AgentResult(output, error, close=lambda: self.closed.append(self.cleaned))
        self.fails = fails
        self.closed: list[bool] = []
        self.cleaned = False
        self.prompt = ""
        self.environ: Mapping[str, str] = {}
        self.left: list[str] = []
        self.workdir: Path | None = None

    def check(self) -> str:
        return ""

    def run(
        self,
        prompt: str,
        workdir: Path,
        environ: Mapping[str, str],
        on_output: Callable[[str], object],
        deadline: Deadline,
    ) -> AgentResult:
        assert not deadline.expired
        if self.fails:
            raise HostError("no such program")
        self.prompt, self.environ, self.workdir, self.left = (
            prompt,
            environ,
            workdir,
            [path.name for path in workdir.iterdir()],
        )
        on_output("working\n")
        return self.result


def test_an_agent_gets_the_prompt_and_an_empty_folder_and_the_checks_get_its_output(tasks: Tasks) -> None:
    agent = Recorder()
    spec = "prompt: {inline: 'See {steps.x.ok.args}.'}\nsetup: [{x.ok: {x: hi}}]\nverify: [{x.ok: {}}]"
    trial = tasks.trial(spec, agent=agent, environ={**os.environ, "MORE": "1"})
    assert trial.status == "passed"
    assert agent.prompt == trial.prompt == 'See {"x": "hi"}.'
    assert (agent.environ["MORE"], agent.environ["EXT_HOST_TASK_FOLDER"], agent.left) == ("1", str(tasks.folder), [])
    assert agent.workdir is not None
    assert not agent.workdir.exists()
    outputs = trial.phases["verify"].steps[0].outputs
    assert outputs["context"] == (
        f'{{"workdir": "{tasks.folder}", "phase": "verify", "agent": {{"prompt": "See {{\\"x\\": \\"hi\\"}}.", '
        '"output": "done"}}'
    )
    assert agent.closed == [False]


@pytest.mark.parametrize(
    "prompt",
    [
        "{steps.x.ok.none} {steps.x.ok.args}",
        "{steps.x.ok.args} {other}",
        "{steps.x.fail.a}",
        "${NO_SUCH_VARIABLE} {steps.x.ok.args}",
    ],
)
def test_a_prompt_that_is_no_template_is_passed_unchanged(tasks: Tasks, prompt: str) -> None:
    agent = Recorder()
    tasks.trial(f"prompt: {{inline: '{prompt}'}}\nsetup: [{{x.ok: {{}}}}, {{x.fail: {{}}}}]", agent=agent)
    assert agent.prompt == prompt


def test_after_an_agent_that_fails_only_the_cleanup_follows(tasks: Tasks) -> None:
    spec = f"verify: [{OK}]\ncleanup: [{OK}]"
    trial = tasks.trial(spec, agent=Recorder("half of it", "the agent failed: exit code 7"))
    assert (trial.status, trial.reason) == ("failed", "the agent failed: exit code 7\nhalf of it")
    assert performed(trial) == {"setup": "", "cleanup": "+"}
    trial = tasks.trial(spec, agent=Recorder(fails=True))
    assert (trial.status, trial.reason) == ("error", "the agent could not be started: no such program")
    assert performed(trial) == {"setup": "", "cleanup": "+"}


# --- Limits ----------------------------------------------------------------------------------------------------------


def test_the_reason_of_an_agent_that_failed_has_no_part_of_a_secret(
    tasks: Tasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ADMIN_PASSWORD", "correct-horse-battery-staple")
    output = "correct-horse-battery-staple" + "." * 1990  # of which the last 2000 characters are shown
    trial = tasks.trial("verify: [{x.ok: {}}]", agent=Recorder(output, "the agent failed: exit code 7"))
    assert "staple" not in trial.reason
    assert trial.reason.endswith("." * 1900)


@pytest.mark.parametrize(
    ("spec", "steps"),
    [
        (f"setup: [{{x.silent: {{}}}}]\ncleanup: [{OK}]", {"setup": "!"}),
        (f"verify: [{{x.silent: {{}}}}, {OK}]\ncleanup: [{OK}]", {"setup": "", "verify": "!", "cleanup": "+"}),
        (f"verify: [{{script: {{inline: sleep 600}}}}]\ncleanup: [{OK}]", {"setup": "", "verify": "!", "cleanup": "+"}),
    ],
)
def test_a_task_ends_at_its_limit_and_is_cleaned_up(tasks: Tasks, spec: str, steps: dict[str, str]) -> None:
    trial = tasks.trial(f"limits: {{timeout: 1500ms}}\n{spec}")
    assert (trial.status, trial.timed_out, performed(trial)) == ("failed", True, steps)
    assert trial.reason.startswith("the task exceeded its limit of 1.5s: ")


def test_the_limit_of_cleanup_is_its_own(tasks: Tasks) -> None:
    trial = tasks.trial(f"limits: {{cleanupTimeout: 200ms}}\nverify: [{OK}]\ncleanup: [{{x.silent: {{}}}}, {OK}]")
    assert (trial.status, performed(trial)["cleanup"]) == ("passed", "!")
    assert "no response to execute: waited for" in trial.phases["cleanup"].error


def test_options_replace_the_limits_of_tasks_which_replace_those_of_the_eval(tasks: Tasks) -> None:
    sleep = "verify: [{script: {inline: sleep 600}}]"
    tasks.task(sleep, "a")
    tasks.task(f"limits: {{timeout: 300ms}}\n{sleep}", "b")
    spec = tasks.eval(
        "extensions: {x: {package: ./x}}\ndefaultTaskLimits: {timeout: 400ms}\ntaskSets: [{glob: '[ab].yaml'}]"
    )
    reasons = [each.reason.partition(":")[0] for each in tasks.run(spec).tasks]
    assert reasons == ["the task exceeded its limit of 400ms", "the task exceeded its limit of 300ms"]
    default = Duration.parse("200ms")
    reasons = [each.reason.partition(":")[0] for each in tasks.run(spec, default_task_timeout=default).tasks]
    assert reasons == ["the task exceeded its limit of 200ms", "the task exceeded its limit of 300ms"]
    reasons = [each.reason.partition(":")[0] for each in tasks.run(spec, task_timeout=default).tasks]
    assert reasons == ["the task exceeded its limit of 200ms"] * 2


# --- Several tasks and trials ----------------------------------------------------------------------------------------


def test_a_task_passes_if_all_of_its_trials_pass(tasks: Tasks) -> None:
    setup = "if [ -e odd ]; then rm odd; else touch odd; fi"
    odd = f"setup: [{{script: {{inline: '{setup}'}}}}]\nverify: [{{script: {{inline: '[ -e odd ]'}}}}]"
    result = tasks.run(tasks.task(odd, metadata=", runs: 3"))
    (task,) = result.tasks
    assert [(each.number, each.status) for each in task.trials] == [(1, "passed"), (2, "failed"), (3, "passed")]
    assert (task.status, result.status, result.count("failed")) == ("failed", "failed", 1)
    kinds = [(event.kind, event.trial) for event in tasks.events if event.kind.startswith(("trial", "task"))]
    assert kinds == [
        ("task_start", 0),
        *((kind, number) for number in (1, 2, 3) for kind in ("trial_start", "trial_complete")),
        ("task_complete", 0),
    ]
    (task,) = tasks.run(task.task.path, runs=1).tasks
    assert len(task.trials) == 1


def test_tasks_that_are_not_parallel_run_first_and_results_are_in_the_order_of_the_files(tasks: Tasks) -> None:
    names = {"a": ", parallel: true", "b": "", "c": ", parallel: true", "d": ""}
    paths = [tasks.task(f"verify: [{OK}]", name, metadata) for name, metadata in names.items()]
    result = tasks.run(*paths, parallel=2)
    assert [(task.task.name, task.number, task.status) for task in result.tasks] == [
        (name, number, "passed") for number, name in enumerate("abcd", 1)
    ]
    started = [event.task for event in tasks.events if event.kind == "task_start"]
    assert started[:2] == ["b", "d"]
    assert (tasks.events[0].kind, tasks.events[-1].kind, tasks.events[-1].status) == (
        "run_start",
        "run_complete",
        "passed",
    )


def test_parallel_tasks_run_at_the_same_time_and_share_the_extension(tasks: Tasks) -> None:
    meet = "verify:\n  - script: {{inline: 'touch {0}; while ! [ -e {1} ]; do sleep 0.01; done'}}\n  - {2}"
    one = tasks.task(meet.format("one", "two", OK), "a", ", parallel: true")
    two = tasks.task(meet.format("two", "one", OK), "b", ", parallel: true")
    first, second = tasks.run(one, two, parallel=2).tasks
    counts = {task.trials[0].phases["verify"].steps[1].outputs["count"] for task in (first, second)}
    assert counts == {"2", "3"}  # ids of requests of one process


def test_an_extension_that_does_not_end_well_is_a_problem_of_the_run(tasks: Tasks) -> None:
    result = tasks.run(tasks.task(f"verify: [{OK}]"), environ={**os.environ, "EXIT": "5"})
    assert [task.status for task in result.tasks] == ["passed"]
    assert (result.status, result.problems) == ("error", ("extension x: exit code 5",))


# --- What prevents a run ---------------------------------------------------------------------------------------------


def test_unsupported_parts_are_reported_before_the_run_or_skipped(tasks: Tasks) -> None:
    good = tasks.task(f"verify: [{OK}]", "good")
    bad = tasks.task(
        f"requires: [{{extension: x}}, {{mcpServer: m}}]\nverify: [{OK}, {{llmJudge: {{}}}}, {{m.tool: {{}}}}]", "bad"
    )
    run = tasks.prepare(good, bad)
    assert [(problem.line, problem.column, problem.task) for problem in run.check()] == [(7, 25, "bad"), (7, 41, "bad")]
    assert "ext-host does not call tools of MCP servers (m)" in run.check()[1].text
    result = tasks.run(good, bad, skip_unsupported=True)
    assert [task.status for task in result.tasks] == ["passed", "skipped"]
    assert "ext-host runs no model" in result.tasks[1].reason
    assert tasks.run(bad, skip_unsupported=True).status == "skipped"


def test_assertions_on_tool_calls_prevent_the_run_or_are_not_evaluated(tasks: Tasks) -> None:
    tasks.task(f"verify: [{OK}]", "good")
    config = "extensions: {x: {package: ./x}}\ntaskSets: [{path: good.yaml, assertions: {maxToolCalls: 0}}]"
    spec = tasks.eval(config)
    text = "assertions.maxToolCalls: ext-host does not record tool calls"
    run = tasks.prepare(spec)
    assert ([problem.text for problem in run.check()], run.not_evaluated()) == ([text], [])
    assert tasks.run(spec, skip_unsupported=True).status == "passed"
    assert [problem.text for problem in tasks.prepare(spec, skip_unsupported=True).not_evaluated()] == [text]


def test_an_eval_is_checked_for_all_that_prevents_its_run(tasks: Tasks) -> None:
    tasks.task(f"requires: [{{extension: x}}, {{extension: y}}]\nverify: [{OK}]", "a")
    spec = tasks.eval("""
        agent: {type: builtin.llm-agent}
        extensions: {x: {package: github.com/o/r@v1}, y: {package: ./none}, z: {package: nowhere}}
        skills: {sources: []}
        sources: {s: {repo: r, ref: main}}
        taskSets:
          - {path: a.yaml, assertions: {toolsUsed: [{server: s}], minToolCalls: 0}}
          - {glob: "*.yaml", source: s}
    """)
    problems = tasks.prepare(spec, programs={}, agent=None).check()
    expected = {
        "source 's': ext-host does not fetch tasks": (11, 32),
        "ext-host does not mount skills": (7, 11),
        "builtin.llm-agent is run by mcpchecker only": (5, 10),
        "is a release on GitHub, which ext-host does not download": (6, 19),
        "cannot run its package": (6, 52),
        "assertions.toolsUsed: ext-host does not record": (10, 46),
        "assertions.minToolCalls: ext-host does not record": (10, 75),
    }
    assert [(problem.line, problem.column) for problem in problems] == list(expected.values())
    for problem, text in zip(problems, expected, strict=True):
        assert text in problem.text
    run = tasks.prepare(spec, pattern="zzz", labels="a=b", agent=None)
    assert "no task matches name 'zzz' and labels 'a=b'" in str(run.check()[0])
    without = tasks.eval("extensions: {x: {package: ./x}, y: {package: ./x}}\ntaskSets: [{path: a.yaml}]")
    (problem,) = tasks.prepare(without, agent=None, programs=dict.fromkeys("xy", tasks.command)).check()
    assert "no agent: choose one with --agent" in problem.text


# --- Cancellation ----------------------------------------------------------------------------------------------------


def test_a_cancelled_run_stops_the_agent_and_cleans_up(tasks: Tasks) -> None:
    path = tasks.task(f"verify: [{OK}]\ncleanup: [{OK}]", metadata=", runs: 2")
    run = tasks.prepare(path, agent=CommandAgent("echo ready; sleep 600"))
    run._on_event = lambda event: run.cancel() if event.kind == "agent_output" else None
    result = run.run()
    assert result.status == "cancelled"
    first, second = result.tasks[0].trials
    assert (first.status, performed(first), second.status) == ("cancelled", {"setup": "", "cleanup": "+"}, "cancelled")
    assert second.phases == {}


def test_a_cancelled_setup_is_cleaned_up_and_a_second_cancellation_stops_the_cleanup(tasks: Tasks) -> None:
    run = tasks.prepare(tasks.task(f"setup: [{{x.silent: {{}}}}]\nverify: [{OK}]\ncleanup: [{{x.silent: {{}}}}]"))

    def on_event(event: Event) -> None:
        if event.kind == "phase":
            run.cancel(cleanup=event.phase != "cleanup")

    run._on_event = on_event
    (task,) = run.run().tasks
    assert (task.status, performed(task.trials[0])) == ("cancelled", {"setup": "!", "cleanup": "!"})


# --- What is hardly meant --------------------------------------------------------------------------------------------


def test_members_that_are_ignored_and_globs_without_files_are_warnings_with_their_places(tasks: Tasks) -> None:
    tasks.task(
        f"""
        limits: {{timeot: 1s}}
        verify:
          - {OK}
          - script: {{inline: "true", continueOnErorr: true, Timeout: 1m}}
          - x.ok: {{x: a}}
        cleenup: [{OK}]
        """,
        metadata=", paralel: true, run: 3, owner: me",
    )
    agent = tasks.folder / "agent.yaml"
    agent.write_text("kind: Agent\ncommands: {runPrompt: echo done, getVersoin: x}\n")
    spec = tasks.eval(
        "agent: {type: file, path: agent.yaml}\nextensions: {x: {package: ./x}}\nlimits: {}\n"
        "taskSets: [{glob: 'task.yaml'}, {glob: 'none*.yaml'}]"
    )
    agent.with_name("acp.yaml").write_text("kind: Agent\nacp: {cmd: cat, arg: [x]}\n")
    over_acp = tasks.prepare(
        tasks.task(f"verify: [{OK}]", "other"), agent=agent_of(f"file:{agent.with_name('acp.yaml')}")
    )
    assert [text.partition(":2:")[2] for text in over_acp.warnings() if "acp.yaml" in text] == [
        "17: ignored: acp: unknown member 'arg'; did you mean 'args'?"
    ]
    run = tasks.prepare(spec, agent=None)
    assert run.check() == []
    found = [text.removeprefix(f"warning: {tasks.folder}/").replace("ignored: ", "") for text in run.warnings()]
    assert "unknown member 'limits'" in found.pop(2)
    assert found == [
        "agent.yaml:2:23: commands.runPrompt: the agent does not get the prompt: it has no {{ .Prompt }}",
        "agent.yaml:2:34: commands: unknown member 'getVersoin'; did you mean 'getVersion'?",
        "eval.yaml:7:42: no file matches the glob 'none*.yaml'",
        "task.yaml:3:24: metadata: unknown member 'paralel'; did you mean 'parallel'?",
        "task.yaml:3:39: metadata: unknown member 'run'; did you mean 'runs'?",
        "task.yaml:8:12: spec.limits: unknown member 'timeot'; did you mean 'timeout'?",
        "task.yaml:11:32: spec.verify[1].script: unknown member 'continueOnErorr'; did you mean 'continueOnError'?",
        "task.yaml:13:3: spec: unknown member 'cleenup'; did you mean 'cleanup'?",
    ]
    agent.write_text("kind: Agent\ncommands: {runPrompt: 'echo {{ .Promt }}'}\n")
    (problem,) = tasks.prepare(spec, agent=None).check()
    assert "agent.yaml:2:23: commands.runPrompt: the template has no value {{ .Promt }}; did you mean 'Prompt'?" in (
        problem.text
    )


def test_the_case_of_known_members_does_not_matter_as_in_mcpchecker(tasks: Tasks) -> None:
    path = tasks.task(
        f"""
        Verify: [{OK}, {{script: {{Inline: exit 4, ContinueOnError: true}}}}]
        cleanUp: [{OK}]
        """,
        metadata=", RUNS: 2",
    )
    run = tasks.prepare(path)
    assert run.warnings() == []
    first, second = run.run().tasks[0].trials
    assert performed(first) == performed(second) == {"setup": "", "verify": "+-", "cleanup": "+"}


def test_a_reason_names_each_step_that_failed_before_the_verification_ended(tasks: Tasks) -> None:
    trial = tasks.trial(f"verify: [{{x.fail: {{}}}}, {OK}, {{x.rpc: {{}}}}, {OK}]")
    assert trial.reason.splitlines() == [
        "x.fail: very bad",
        "verification failed: x.rpc: a fault (error -32603 of the protocol)",
    ]
    assert (trial.agent, [event.phase for event in tasks.events if event.kind == "step"]) == (None, ["verify"] * 3)


@pytest.mark.parametrize(
    ("prompt", "reason"),
    [
        ("{steps.x.ok.arg}", "{steps.x.ok.arg}: x.ok has no output 'arg'; did you mean 'args'?"),
        ("{steps.x.okk.args}", "no step 'x.okk' with outputs has succeeded before this one; did you mean 'x.ok'?"),
        ("{steps.x.ok.args} {", "the brace at character 19 is not closed"),
        ("{steps.x.ok.args}", ""),
        ("{other}", ""),
    ],
)
def test_a_wrong_reference_in_a_prompt_is_reported(tasks: Tasks, prompt: str, reason: str) -> None:
    tasks.trial(f"prompt: {{inline: '{prompt}'}}\nsetup: [{OK}]\nverify: [{OK}]")
    logs = [event.message for event in tasks.events if event.kind == "log"]
    assert len(logs) == bool(reason)
    assert all(reason in text and "task.yaml:6:11: the agent gets references" in text for text in logs)


def test_what_an_eval_lacks_is_reported_once(tasks: Tasks) -> None:
    for name in "ab":
        tasks.task(f"verify: [{OK}, {OK}]", name)
    wrong = tasks.eval("extension: {x: {package: ./x}}\ntaskSets: [{glob: '[ab].yaml'}]")
    (problem,) = tasks.prepare(wrong).check()
    assert problem.text == "the eval has no extension 'x', which the task 'b' requires; it has no extensions"
    unset = tasks.eval(
        "extensions: {x: {package: ./x, env: {A: '{env.UNSET_VALUE}'}}}\ntaskSets: [{glob: '[ab].yaml'}]"
    )
    (problem,) = tasks.prepare(unset).check()
    text = "extension x: the environment variable UNSET_VALUE is not set; set it, or write a value without a template"
    assert (problem.text, problem.line) == (text, 4)
    (problem,) = tasks.prepare(tasks.eval("taskSets: [{glob: 'tusk*.yaml'}]")).check()
    assert str(problem).endswith("eval.yaml:4:21: no file matches the glob 'tusk*.yaml'")


def test_a_task_without_a_name_is_a_warning(tasks: Tasks) -> None:
    path = tasks.task(f"verify: [{OK}]")
    path.write_text(path.read_text().replace("metadata: {name: ", "metadata: {nickname: "))
    found = tasks.prepare(path).warnings()
    assert any(text.startswith(f"warning: {path}:") and "the task has no name" in text for text in found)


def test_a_task_that_passes_after_a_failed_setup_step_has_a_remark(tasks: Tasks) -> None:
    result = tasks.run(tasks.task(f"setup: [{OK}, {{x.fail: {{}}}}]\nverify: [{OK}]"))
    assert (result.tasks[0].status, result.tasks[0].reason) == ("passed", "")
    messages = [each.message for each in tasks.events if each.kind == "task_complete"]
    assert messages == ["passed although setup step 2 failed"]


def test_a_folder_is_refused_with_the_eval_in_it(tasks: Tasks, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"ext-host: {tasks.folder}: expected a file of a Task or an Eval, found a folder"
    assert main(["run", str(tasks.folder)]) == 2
    assert capsys.readouterr().err == f"{text}\n"
    tasks.eval("taskSets: [{path: task.yaml}]")
    assert main(["run", str(tasks.folder)]) == 2
    assert capsys.readouterr().err == f"{text}; run {tasks.folder / 'eval.yaml'}\n"
