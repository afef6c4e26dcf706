"""Run the tasks of an eval: select, check, and for each task setup, agent, verify and cleanup.

    run = EvalRun(read_eval(path), RunOptions(agent=CommandAgent("claude -p")), print)
    problems = run.check()
    result = run.run() if not problems else None

What continues after which failure is as in mcpchecker. A step that fails (`success: false`) does not end its phase. A
step that cannot be performed does: in setup, neither the agent nor the cleanup runs after it; in verify, the task has
the status error. An agent that fails is not verified. Cleanup runs after setup has succeeded, and after a cancellation.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from ext_sdk.core.text import suggest
from ext_sdk.polling import Deadline

from .agents import TASK_FOLDER, Agent, FileAgent, NoAgent, agent_of_eval
from .commands import AgentResult, Commands, excerpt
from .extension_process import Extensions
from .files import AgentFile, ExtensionSpec, HostError, Problem, select
from .steps import Random, StepContext, StepError, StepResult, fill_prompt, parse_steps, unsupported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ext_sdk.duration import Duration

    from .files import EvalFile, SelectedTask, TaskFile
    from .steps import Step

Status = Literal["passed", "failed", "error", "cancelled", "skipped"]
EventKind = Literal[
    "run_start", "task_start", "trial_start", "phase", "step", "agent_output", "trial_complete", "task_complete",
    "run_complete", "log",
]  # fmt: skip
_EXCERPT = 2000  # characters of the end of an agent's output that a reason quotes
_WORST: tuple[Status, ...] = ("cancelled", "error", "failed", "passed", "skipped")  # the status of several is the first


@dataclass(frozen=True)
class RunOptions:
    """Options of a run.

    Attributes:
        agent: None for the agent of the eval.
        programs: command lines of extensions by name, in place of the packages of the eval.
        pattern: regular expression that is searched in the names of tasks; "" selects all.
        labels: `suite=kubernetes,difficulty=easy`; see `files.Labels`.
        parallel: number of tasks that run at the same time, of those with `parallel: true`.
        runs: trials of each task; 0 for `metadata.runs` of the task, or 1.
        task_timeout, cleanup_timeout: in place of all limits of tasks and eval.
        default_task_timeout, default_cleanup_timeout: for tasks without limits of their own.
        permissions: response to the questions of agents with a protocol: allow, deny or mcp; see `agents.agent_of`.
        workspace: folder that agents work in, relative to that of the task; "" for an empty temporary folder.
        skip_unsupported: skip tasks with steps that this host does not support, and assertions of task sets; else they
            prevent the run.
        environ: environment of agents, scripts and extensions; by default that of this process.
    """

    agent: Agent | None = None
    programs: Mapping[str, str] = field(default_factory=dict)
    pattern: str = ""
    labels: str = ""
    parallel: int = 1
    runs: int = 0
    task_timeout: Duration | None = None
    cleanup_timeout: Duration | None = None
    default_task_timeout: Duration | None = None
    default_cleanup_timeout: Duration | None = None
    permissions: str = ""
    workspace: str = ""
    skip_unsupported: bool = False
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


@dataclass(frozen=True)
class Event:
    """Progress of a run. Events come from several threads, one at a time.

    Attributes:
        kind: run_start and run_complete begin and end a run. task_start, trial_start, trial_complete and task_complete
            nest within it; phase and step (which has ended), agent_output and log come within a trial.
        task: name; "" for events of the run.
        path: file of the task; None for events of the run.
        number, total: of the task, from 1, in the order of selection.
        trial, trials: from 1; 0 outside of a trial.
        phase: setup, agent, verify or cleanup; "" outside. The end of the agent is a step of the phase agent.
        status: of what has ended: a step is passed, failed or error.
        message: of a step its message, of what failed the reason, of agent_output and log the text, of
            a task that passed its failed setup step.
        level: of log: debug, info, warn or error.
        seconds: duration of what has ended.
        step: of step.
    """

    kind: EventKind
    task: str = ""
    path: Path | None = None
    number: int = 0
    total: int = 0
    trial: int = 0
    trials: int = 0
    phase: str = ""
    status: Status | Literal[""] = ""
    message: str = ""
    level: str = ""
    seconds: float = 0.0
    step: StepResult | None = None


@dataclass(frozen=True)
class PhaseResult:
    """Result of setup, verify or cleanup.

    Attributes:
        success: all steps have succeeded.
        error: of the step that ended the phase; "" if all steps were performed.
        broken: that step, or what it uses, is broken; False for a script that failed.
    """

    name: str
    steps: tuple[StepResult, ...] = ()
    success: bool = True
    error: str = ""
    broken: bool = False
    seconds: float = 0.0


@dataclass(frozen=True)
class TrialResult:
    """Result of one run of a task.

    Attributes:
        number: from 1.
        reason: why it did not pass, in one or more lines; "" if it did.
        phases: of those that ran, by name: setup, verify, cleanup.
        prompt: as the agent got it.
        agent: None if it did not run, or there is none.
        timed_out: the limit of the task was exceeded.
    """

    number: int
    status: Status
    reason: str = ""
    phases: Mapping[str, PhaseResult] = field(default_factory=dict)
    prompt: str = ""
    agent: AgentResult | None = None
    seconds: float = 0.0
    agent_seconds: float = 0.0
    timed_out: bool = False


@dataclass(frozen=True)
class TaskResult:
    """Result of a task, of all its trials.

    Attributes:
        number: from 1, in the order of selection.
        status: passed if all trials passed.
        reason: of the first trial that did not pass.
    """

    task: TaskFile
    number: int
    status: Status
    reason: str = ""
    trials: tuple[TrialResult, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class EvalResult:
    """Result of a run.

    Attributes:
        tasks: in the order of selection.
        status: passed if at least one task passed, and no task or extension failed.
        problems: of extensions that did not end well.
    """

    name: str
    agent: str
    status: Status
    tasks: tuple[TaskResult, ...] = ()
    problems: tuple[str, ...] = ()
    seconds: float = 0.0

    def count(self, status: Status) -> int:
        """Return the number of tasks with a status."""
        return Counter(task.status for task in self.tasks)[status]


class EvalRun:
    """Run of an eval.

    Args:
        spec: the eval.
        options: see RunOptions.
        on_event: receives the progress; called from several threads, one at a time. It must not raise.

    Raises:
        FileError: a file of the eval or of a task cannot be read.
        HostError: the pattern or the labels are wrong.
    """

    def __init__(
        self, spec: EvalFile, options: RunOptions | None = None, on_event: Callable[[Event], object] = lambda _: None
    ) -> None:
        self.spec = spec
        self.options = options or RunOptions()
        self._empty: list[Problem] = []  # task sets without a task
        self.tasks = select(spec, pattern=self.options.pattern, labels=self.options.labels, empty=self._empty)
        self._on_event = on_event
        self._event_lock = threading.Lock()
        self._stopped = threading.Event()
        self._cleanup_stopped = threading.Event()
        self._extensions = Extensions(spec, self.options.programs, self.options.environ)
        self._agent: Agent | None = self.options.agent

    # --- Before the run ----------------------------------------------------------------------------------------------

    def check(self) -> list[Problem]:
        """Return what prevents the run: parts that this host does not support, missing programs, no tasks.

        Steps are checked when their task starts, because only a running extension has its manifest.
        """
        problems = list(self._eval_problems())
        if not self.options.skip_unsupported:
            problems += [problem for selected in self.tasks for problem in self._task_problems(selected)]
        return list(dict.fromkeys(problems))

    def _eval_problems(self) -> list[Problem]:
        spec = self.spec
        problems = []
        if not self.tasks:
            given = [
                f"{what} {text!r}"
                for what, text in (("name", self.options.pattern), ("labels", self.options.labels))
                if text
            ]
            text = f"no task matches {' and '.join(given)}" if given else "the eval has no tasks; set config.taskSets"
            problems += (not given and self._empty) or [spec.problem(("config", "taskSets"), text)]
        problems += [
            spec.problem(
                (*each.at, "source"), f"source {each.source!r}: ext-host does not fetch tasks from repositories"
            )
            for each in spec.task_sets
            if each.source
        ]
        if spec.skills:
            problems.append(spec.problem(("config", "skills"), "ext-host does not mount skills for the agent"))
        try:
            if reason := self.agent().check():
                problems.append(Problem(spec.path, 0, 0, reason))
        except HostError as error:
            problems.append(spec.problem(("config", "agent"), str(error)))
        required = {
            each.name: selected.task
            for selected in self.tasks
            for each in selected.task.requires
            if each.kind == "extension"
        }
        for name, task in required.items():
            extension = spec.extension(name)
            if extension is None:
                text = f"the eval has no extension {name!r}, which the task {task.name!r} requires"
                text += f"; {suggest(name, spec.extensions, none='it has no extensions')}"
                problems.append(spec.problem(("config", "extensions"), text))
                continue
            try:
                self._extensions.argv(extension)
                self._extensions.values(extension)
            except HostError as error:
                problems.append(spec.problem(extension.at, str(error)))
        return problems

    def warnings(self) -> list[str]:
        """Return what does not prevent the run, and is hardly meant: ignored members, task sets without tasks."""
        from .lint_rules import ignored_members

        found = [*ignored_members(self.spec.document)] if self.spec.document else []
        for task in (selected.task for selected in self.tasks):
            found += ignored_members(task.document, (step for steps in task.steps.values() for step in steps))
        tasks = [selected.task for selected in self.tasks if not selected.task.name]
        problems = [task.document.problem(("metadata", "name"), "the task has no name; set it") for task in tasks]
        with suppress(HostError):  # reported by `check`
            agent = self.agent()
            if isinstance(file := getattr(agent, "file", None), AgentFile):
                found += ignored_members(file.document)
            if isinstance(agent, FileAgent) and not re.search(r"\{\{-?\s*\.Prompt\b", agent.file.run_prompt):
                text = "commands.runPrompt: the agent does not get the prompt: it has no {{ .Prompt }}"
                problems.append(agent.file.document.problem(("commands", "runPrompt"), text))
        problems += [Problem(each.path, each.line, each.column, f"ignored: {each.text}") for each in found]
        return [f"warning: {each}" for each in sorted({*problems, *self._empty})]

    def _task_problems(self, selected: SelectedTask) -> list[Problem]:
        return [*unsupported(selected.task), *(() if self.options.skip_unsupported else selected.assertions)]

    def not_evaluated(self) -> list[Problem]:
        """Return the assertions that `skip_unsupported` skips; the tasks run without them."""
        return [each for selected in self.tasks for each in selected.assertions if self.options.skip_unsupported]

    def agent(self) -> Agent:
        """Return the agent of the run. Raises HostError if there is none that this host can run."""
        if self._agent is None:
            if self.spec.agent is None:
                raise HostError("no agent: choose one with --agent, or `--agent none` to verify without any work")
            self._agent = agent_of_eval(self.spec.agent, self.spec.mcp_servers(), self.options.permissions)
        return self._agent

    def own_programs(self) -> dict[str, list[str]]:
        """Return the command lines of extensions that no file names: those of tasks without an eval, and of options."""
        names = {each.name for selected in self.tasks for each in selected.task.requires if each.kind == "extension"}
        programs = {}
        for name in sorted(names):
            if name in self.options.programs:
                programs[name] = shlex.split(self.options.programs[name])
            elif self.spec.document is None:
                programs[name] = [f"ext-{name}"]  # also on a replay on a machine that does not have it
                if not shutil.which(f"ext-{name}", path=self.options.environ.get("PATH")):
                    with suppress(HostError):
                        programs[name] = self._extensions.argv(ExtensionSpec(name))
        return programs

    def starts_programs(self) -> bool:
        """Return True if the eval names programs with sessions: extensions, MCP servers, an agent over ACP."""
        has_agent = self.options.agent is None and bool(self.spec.agent and self.spec.agent.path)
        return bool(self.spec.extensions or self.spec.mcp_config or (has_agent and hasattr(self.agent(), "command")))

    # --- The run -----------------------------------------------------------------------------------------------------

    def cancel(self, *, cleanup: bool = True) -> None:
        """End the run: stop agents and steps, and run the cleanup of tasks that have begun. From any thread.

        Args:
            cleanup: False also stops cleanup steps.
        """
        self._stopped.set()
        if not cleanup:
            self._cleanup_stopped.set()

    def run(self) -> EvalResult:
        """Run all tasks: first those without `parallel: true`, in order, then the others. Call it once."""
        began = time.monotonic()
        agent = self.agent()
        total = len(self.tasks)
        self._emit(Event("run_start", total=total))
        numbered = list(enumerate(self.tasks, 1))
        workers = max(1, self.options.parallel)
        results: dict[int, TaskResult] = {}
        try:
            for parallel in (False, True):
                group = [(number, selected) for number, selected in numbered if selected.task.parallel is parallel]
                with ThreadPoolExecutor(workers if parallel else 1, thread_name_prefix="task") as pool:
                    futures = [pool.submit(self._task, agent, number, selected) for number, selected in group]
                    results |= {future.result().number: future.result() for future in futures}
        finally:
            problems = tuple(self._extensions.close())
        tasks = tuple(results[number] for number, _ in numbered)
        status = _worst([task.status for task in tasks])
        if problems and status in {"passed", "skipped"}:
            status = "error"
        result = EvalResult(self.spec.name, agent.name, status, tasks, problems, time.monotonic() - began)
        self._emit(
            Event("run_complete", total=total, status=status, message="\n".join(problems), seconds=result.seconds)
        )
        return result

    def _emit(self, event: Event) -> None:
        with self._event_lock:
            self._on_event(event)

    def _task(self, agent: Agent, number: int, selected: SelectedTask) -> TaskResult:
        task = selected.task
        event = Event("task_start", task.name, task.path, number, len(self.tasks))
        began = time.monotonic()
        problems = self._task_problems(selected)
        trials: list[TrialResult] = []
        self._emit(event)
        if problems:
            result = TaskResult(task, number, "skipped", "\n".join(problem.text for problem in problems))
        else:
            count = self.options.runs or task.runs or 1
            for trial in range(1, count + 1):
                if self._stopped.is_set():
                    trials.append(TrialResult(trial, "cancelled", "cancelled before it began"))
                else:
                    trials.append(
                        self._trial(agent, task, replace(event, kind="trial_start", trial=trial, trials=count))
                    )
            status = _worst([each.status for each in trials])
            reason = next((each.reason for each in trials if each.status == status), "")
            result = TaskResult(task, number, status, reason, tuple(trials), time.monotonic() - began)
        setups = [each.phases["setup"].steps for each in trials if "setup" in each.phases]
        failed = [index for steps in setups for index, step in enumerate(steps, 1) if not step.success]
        remark = f"passed although setup step {failed[0]} failed" if failed and result.status == "passed" else ""
        text = result.reason or remark
        self._emit(replace(event, kind="task_complete", status=result.status, message=text, seconds=result.seconds))
        return result

    def _trial(self, agent: Agent, task: TaskFile, event: Event) -> TrialResult:
        self._emit(event)
        began = time.monotonic()
        trial = _Trial(self, task, agent, self._extensions, lambda **more: self._emit(replace(event, **more)))
        result = trial.run(self._stopped, self._cleanup_stopped)
        result = replace(result, number=event.trial, seconds=time.monotonic() - began)
        self._emit(
            replace(event, kind="trial_complete", status=result.status, message=result.reason, seconds=result.seconds)
        )
        return result


class _Trial:
    """One run of a task.

    Args:
        extensions: of the eval.
        emit: reports progress; its keyword arguments are members of Event.
    """

    def __init__(
        self, run: EvalRun, task: TaskFile, agent: Agent, extensions: Extensions, emit: Callable[..., object]
    ) -> None:
        self._task = task
        self._agent = agent
        self._options = options = run.options
        self._extensions = extensions
        self._emit = emit
        self._commands = Commands()
        own, common = task.limits, run.spec.limits
        self._timeout = options.task_timeout or own.timeout or options.default_task_timeout or common.timeout
        self._cleanup_timeout = (
            options.cleanup_timeout or own.cleanup or options.default_cleanup_timeout or common.cleanup
        )
        self._result = TrialResult(0, "error")
        self._phases: dict[str, PhaseResult] = {}
        self._random = Random()
        self._outputs: dict[str, Mapping[str, str]] = {}  # of setup

    def run(self, stopped: threading.Event, cleanup_stopped: threading.Event) -> TrialResult:
        deadline = Deadline(self._timeout.seconds if self._timeout else None, stopped)
        with ExitStack() as stack:
            stack.callback(self._commands.close)
            try:
                prompt = self._task.read_prompt()
                steps = parse_steps(self._task, self._extensions, deadline)
            except HostError as error:
                return self._end("error", str(error), deadline)
            setup = self._phase("setup", steps["setup"], deadline, self._outputs)
            if not setup.error:
                result = self._end(*self._work(prompt, steps["verify"], deadline, stack), deadline)
            else:
                result = self._end("error", f"setup ended early: {setup.error}", deadline)
                if result.status != "cancelled":  # as in mcpchecker, which leaves what such a setup has created
                    return replace(result, reason=f"{result.reason}\ncleanup did not run, because setup ended early")
            timeout = self._cleanup_timeout
            limit = Deadline(timeout.seconds if timeout else None, cleanup_stopped)
            self._phase("cleanup", steps["cleanup"], limit, dict(self._outputs))
            return result

    def _end(self, status: Status, reason: str, deadline: Deadline) -> TrialResult:
        """Return the result. Its phases are complete when the trial ends."""
        timed_out = False
        if status != "passed" and deadline.stopped.is_set():
            status, reason = "cancelled", "cancelled"
        elif status != "passed" and self._timeout and deadline.expired:
            status, timed_out = "failed", True
            reason = f"the task exceeded its limit of {self._timeout}: {reason}"
        return replace(self._result, status=status, reason=reason, phases=self._phases, timed_out=timed_out)

    def _work(self, prompt: str, verify: Sequence[Step], deadline: Deadline, stack: ExitStack) -> tuple[Status, str]:
        """Run the agent, and verify its work. Return the status and the reason."""
        self._emit(kind="phase", phase="agent")
        context = StepContext(
            self._task.folder, self._outputs, self._random, None, deadline, self._commands, self._options.environ
        )
        prompt, reason = fill_prompt(prompt, context)
        if reason:
            at = ("steps" if self._task.legacy else "spec", "prompt")
            text = str(
                self._task.document.problem(at, f"the agent gets references of the prompt as they are: {reason}")
            )
            self._emit(kind="log", phase="agent", level="warn", message=text)
        if self._options.workspace:
            workdir = self._task.folder / self._options.workspace
            if not workdir.is_dir():
                return "error", f"the workspace {workdir} is not a folder; a setup step must create it"
        else:
            workdir = Path(tempfile.mkdtemp(prefix="ext-host-agent-"))
            stack.callback(shutil.rmtree, workdir, ignore_errors=True)
        environ = {**self._options.environ, TASK_FOLDER: str(self._task.folder)}
        began = time.monotonic()
        try:
            agent = self._agent.run(
                prompt,
                workdir,
                environ,
                lambda text: self._emit(kind="agent_output", phase="agent", message=text),
                deadline,
            )
        except HostError as failure:
            return "error", f"the agent could not be started: {failure}"
        stack.callback(agent.close)
        self._result = replace(self._result, prompt=prompt)
        if not isinstance(self._agent, NoAgent):
            self._end_agent(agent, time.monotonic() - began)
        error = agent.error
        if error:
            end = excerpt(agent.output.strip(), _EXCERPT, end=True)
            return "failed", f"{error}\n{end}".strip()
        result = self._phase("verify", verify, deadline, {}, (prompt, agent.output))
        failed = [step for step in result.steps if not step.success and not step.aborted]
        lines = [f"{step.name}: {step.error or step.message or 'failed without a reason'}" for step in failed]
        if result.error:
            return "error" if result.broken else "failed", "\n".join([*lines, f"verification failed: {result.error}"])
        if not result.steps:
            return "failed", "nothing was checked: the task has no verify steps"
        return ("failed", "\n".join(lines)) if failed else ("passed", "")

    def _end_agent(self, agent: AgentResult, seconds: float) -> None:
        """Keep and report the result of an agent."""
        self._result = replace(self._result, agent=agent, agent_seconds=seconds)
        error = agent.error
        step = StepResult("agent", "agent", not error, agent.output, error, seconds=seconds)
        status: Status = "failed" if error else "passed"
        self._emit(kind="step", phase="agent", status=status, message=error or agent.output, seconds=seconds, step=step)

    def _phase(
        self,
        name: str,
        steps: Sequence[Step],
        deadline: Deadline,
        outputs: dict[str, Mapping[str, str]],
        agent: tuple[str, str] | None = None,
    ) -> PhaseResult:
        """Run the steps of a phase; add their outputs to `outputs`."""
        self._emit(kind="phase", phase=name)
        began = time.monotonic()
        context = StepContext(
            self._task.folder,
            outputs,
            self._random,
            agent,
            deadline,
            self._commands,
            self._options.environ,
            lambda level, message: self._emit(kind="log", phase=name, level=level, message=message),
        )
        results: list[StepResult] = []
        error, broken = "", False
        for step in steps:
            start = time.monotonic()
            try:
                if deadline.expired:
                    raise StepError("cancelled" if deadline.stopped.is_set() else "the time of the task is over")
                result = step.run(context)
            except StepError as failure:
                error, broken = f"{step.spec.name}: {failure}", failure.broken
                result = StepResult(name, step.spec.name, success=False, error=str(failure), aborted=True)
            result = replace(result, seconds=time.monotonic() - start)
            results.append(result)
            status: Status = "passed" if result.success else "error" if broken else "failed"
            text = result.message if result.success else result.error or result.message
            self._emit(kind="step", phase=name, status=status, message=text, seconds=result.seconds, step=result)
            if error:
                break
            if result.success and result.outputs and step.output_name:
                outputs[step.output_name] = result.outputs
        success = all(result.success for result in results)
        seconds = time.monotonic() - began
        self._phases[name] = PhaseResult(name, tuple(results), success, error, broken=broken, seconds=seconds)
        return self._phases[name]


def _worst(statuses: Sequence[Status]) -> Status:
    """Return the status of a group: that of its worst member; error if the group is empty."""
    return next((status for status in _WORST if status in statuses), "error")
