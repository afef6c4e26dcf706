"""Evals as `ext-host serve` shows and runs them: Eval files of mcpchecker, and waza's own eval.yaml with its tasks.

Both become an `Eval`, whose members are those of waza's responses; docs/host.md has the mapping. A run of an Eval of
mcpchecker is that of `runner`; a run of waza's own has tasks with trials, whose results the graders of the files check.
"""

from __future__ import annotations

import glob
import os
import shutil
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from ext_sdk.core.text import cut, suggest
from ext_sdk.expect.regex import Searcher
from ext_sdk.files import Workdir
from ext_sdk.polling import Deadline
from ext_sdk.result import OperationFailed

from .agents import TASK_FOLDER, NoAgent, agent_of
from .commands import AgentResult
from .files import Document, FileError, HostError, Problem, Reader, eval_of, select, shown
from .runner import EvalRun, Event, RunOptions
from .waza_graders import GRADER_SECONDS, WORKSPACE, Attempt, Grader, grade, grader_problem, unsupported_grader

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .agents import Agent
    from .files import At, EvalFile, TaskFile
    from .runner import Status

Fields = dict[str, object]
COPILOT = "copilot-sdk"  # waza's executor that uses a model; here it is one that `--executor` defines
MODEL = "WAZA_MODEL"  # variable of agents: the model of the request
MOST_EVALS = 1000  # in a response of eval.list
MOST_BYTES = 16 * 1024 * 1024  # of a file of a task


class EvalNotFound(Exception):
    """No file at the path of an eval."""


# --- Evals -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskInfo:
    """Task, as task.list and task.get return it.

    Attributes:
        file: relative to the folder of the eval, if it is inside.
        graders: as in the file, each with its `type`.
    """

    id: str
    name: str
    description: str
    file: str
    prompt: str
    graders: Sequence[Fields]


@dataclass(frozen=True)
class Request:
    """Parameters of eval.run.

    Attributes:
        agent: chosen by `executor`; None for that of the eval.
        model: for the variable WAZA_MODEL; "" for that of the eval.
        context: folder of files for the tasks; None for that of the eval.
        programs: command lines of extensions by name, in place of their packages.
        parallel: tasks of mcpchecker with `parallel: true` that run at the same time.
    """

    agent: Agent | None = None
    model: str = ""
    context: Path | None = None
    programs: Mapping[str, str] = field(default_factory=dict)
    parallel: int = 1


@dataclass(frozen=True)
class Outcome:
    """Result of a task or of a trial.

    Attributes:
        reason: why it did not pass; "" if it did.
        parts: trials of a task; graders of a trial.
    """

    name: str
    status: Status
    reason: str = ""
    seconds: float = 0.0
    parts: Sequence[Outcome] = ()


class Run(Protocol):
    """One run of an eval."""

    def check(self) -> list[Problem]:
        """Return what prevents it: parts that are not supported, missing programs."""

    def run(self) -> tuple[Sequence[Outcome], Sequence[str]]:
        """Run it to its end, and return the results of the tasks, and problems that belong to none."""

    def cancel(self) -> None:
        """Stop the agent and the step; cleanup still runs. Thread-safe."""


class Eval(Protocol):
    """Eval of either format.

    Attributes:
        executor: of the file; "" if it names none.
    """

    @property
    def name(self) -> str: ...

    @property
    def skill(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def executor(self) -> str: ...

    def config(self) -> Fields: ...

    def metrics(self) -> Fields: ...

    def tasks(self) -> Sequence[TaskInfo]:
        """Return the tasks. Raises FileError, HostError."""

    def problems(self) -> list[str]:
        """Return what is wrong, beyond what prevents reading it."""

    def run(self, request: Request, on_event: Callable[[Event], None]) -> Run:
        """Return a run that has not begun. Raises FileError, HostError."""


def open_eval(path: Path) -> Eval:
    """Read an eval of either format.

    Raises:
        EvalNotFound: there is no file.
        FileError: the file is not a valid eval.
    """
    try:
        if not path.is_file():
            if path.exists():
                raise FileError([Problem(path, 0, 0, "expected a file with an eval, found a folder or a device")])
            raise EvalNotFound(str(path))
    except (OSError, ValueError):  # a name that is too long, or has a NUL or half of a surrogate pair
        raise EvalNotFound(str(path)) from None
    document = Document.read(path)
    if isinstance(document.value, dict) and ("kind" in document.value or "apiVersion" in document.value):
        return CheckerEval(eval_of(document))
    return read_waza(document)


def find_evals(folder: Path) -> list[Path]:
    """Return the files of evals in a folder and those below it, sorted.

    These are eval.yaml and eval.yml, and YAML files of kind Eval. Hidden folders and node_modules are skipped.
    """
    found: list[Path] = []
    for directory, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(names):
            path = Path(directory, name)
            if path.suffix in {".yaml", ".yml"} and path.is_file() and (path.stem == "eval" or _is_eval(path)):
                found.append(path)
                if len(found) == MOST_EVALS:
                    return found
    return found


def names_of(path: Path) -> Fields:
    """Return name, skill and version of an eval; of one that is not valid, those that it has, and a name."""
    try:
        found = open_eval(path)
    except EvalNotFound:
        return {"name": path.absolute().parent.name}
    except FileError:
        names: Fields = {"name": path.absolute().parent.name}
        with suppress(FileError):
            document = Document.read(path)
            given = {name: document.get((name,)) for name in ("name", "skill", "version")}
            names |= {name: value for name, value in given.items() if value and isinstance(value, str)}
        return names
    return {"name": found.name, "skill": found.skill, "version": found.version}


def _is_eval(path: Path) -> bool:
    """Return True if the beginning of a file has the line `kind: Eval`."""
    try:
        with path.open("rb") as file:
            lines = file.read(4096).splitlines()
    except OSError:
        return False
    return any(line.split() == [b"kind:", b"Eval"] and line.startswith(b"kind") for line in lines)


def texts_of(error: HostError, path: Path) -> list[str]:
    """Return the problems of an error for `errors`; those of the eval itself without the name of its file."""
    if not isinstance(error, FileError):
        return [str(error)]
    return [problem_text(problem, path) for problem in error.problems]


def problem_text(problem: Problem, path: Path) -> str:
    """Return a problem for `errors`; one of the eval at `path` without the name of the file."""
    if problem.path != path:
        return str(problem)
    return f"{problem.text} (line {problem.line}, column {problem.column})" if problem.line else problem.text


# --- Executors -------------------------------------------------------------------------------------------------------


class MockAgent:
    """Executor `mock`: an output that repeats the prompt, as waza's."""

    name = "mock"

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
        output = f"Mock response for: {prompt}"
        on_output(output)
        return AgentResult(output)


class Executors:
    """Agents by the names that `executor` has in requests and files.

    Args:
        commands: agent by name, in the form of `--agent`.
    """

    def __init__(self, commands: Mapping[str, str]) -> None:
        self._agents: dict[str, Agent] = {"mock": MockAgent(), "none": NoAgent()}
        self._agents |= {name: agent_of(text) for name, text in commands.items()}

    def problem(self, name: str, *, run: bool) -> str:
        """Return what is wrong with the name of an executor; "" if it is valid.

        Args:
            run: it is to be used; else waza's own name is valid, too.
        """
        if name in self._agents or (name == COPILOT and not run):
            return ""
        if name == COPILOT:
            return (
                f"The executor {COPILOT} is not available: this server starts no model by itself; start it with "
                f"--executor {COPILOT}=COMMAND, or choose one of {', '.join(self._agents)}"
            )
        return f"Invalid executor type: {cut(name, 80)}; {suggest(name, self._agents)}"

    def agent(self, name: str) -> Agent:
        """Return the agent of a valid name."""
        return self._agents[name]


# --- Eval files of mcpchecker ----------------------------------------------------------------------------------------


class CheckerEval:
    """Eval file of mcpchecker."""

    def __init__(self, spec: EvalFile) -> None:
        document = cast("Document", spec.document)
        self._spec = spec
        self.name = spec.name or spec.folder.name
        self.skill = str(document.get(("metadata", "labels", "skill")) or self.name)
        version = str(document.get(("apiVersion",)) or "mcpchecker/v1alpha1").rpartition("/")[2]
        self.version = str(document.get(("metadata", "labels", "version")) or version)
        self.executor = ""

    def config(self) -> Fields:
        tasks = [selected.task for selected in select(self._spec)]
        limit = self._spec.limits.timeout
        config: Fields = {
            "executor": self._spec.agent.type if self._spec.agent else "none",
            "trials_per_task": max([1, *(task.runs for task in tasks)]),
            "parallel": any(task.parallel for task in tasks),
        }
        if limit:
            config["timeout_seconds"] = int(limit.seconds) if limit.seconds.is_integer() else limit.seconds
        if self._spec.agent and self._spec.agent.model:
            config["model"] = self._spec.agent.model
        return config

    def metrics(self) -> Fields:
        return {"pass_threshold": 1.0}  # a task passes if all steps of `verify` do

    def tasks(self) -> Sequence[TaskInfo]:
        tasks = [selected.task for selected in select(self._spec)]
        names = [task.name for task in tasks]
        return [self._info(task, unique=names.count(task.name) == 1) for task in tasks]

    def _info(self, task: TaskFile, *, unique: bool) -> TaskInfo:
        path, folder = task.path.absolute(), self._spec.folder
        file = str(path.relative_to(folder) if path.is_relative_to(folder) else path)
        try:
            prompt = task.read_prompt()
        except HostError:
            prompt = ""
        description = task.document.get(("metadata", "description"))
        return TaskInfo(
            task.name if unique and task.name else file,
            task.name or file,
            description if isinstance(description, str) else "",
            file,
            prompt,
            [
                {"type": step.name or " + ".join(step.names)} | ({} if step.args is None else {"config": step.args})
                for step in task.steps.get("verify", ())
            ],
        )

    def problems(self) -> list[str]:
        has_tasks = select(self._spec) or any(each.source for each in self._spec.task_sets)
        return [] if has_tasks else ["config.taskSets: no task is selected"]

    def run(self, request: Request, on_event: Callable[[Event], None]) -> Run:
        return _CheckerRun(self._spec, request, on_event, [task.id for task in self.tasks()])


class _CheckerRun:
    """Run of an Eval file.

    Args:
        ids: of the tasks, in the order of selection.
    """

    def __init__(self, spec: EvalFile, request: Request, on_event: Callable[[Event], None], ids: Sequence[str]) -> None:
        options = RunOptions(
            agent=request.agent,
            programs=request.programs,
            parallel=request.parallel,
            environ=_environment(request.model),
        )
        self._run = EvalRun(spec, options, self._on_event)
        self._send = on_event
        self._ids = ids
        self._request = request
        self.cancel = self._run.cancel

    def check(self) -> list[Problem]:
        own = self._run.spec.agent
        if self._request.agent is None and (own is None or own.type != "file"):
            what = f"the agent {own.type} is run by mcpchecker only" if own else "the eval has no agent"
            text = f"config.agent: {what}; choose another by `executor`: mock, none, or one of the server's --executor"
            return [self._run.spec.problem(("config", "agent"), text)]
        # `run` has the option --agent; here it is the parameter `executor`.
        return [
            problem._replace(text=problem.text.replace("choose another with --agent", "choose another by `executor`"))
            for problem in self._run.check()
        ]

    def run(self) -> tuple[Sequence[Outcome], Sequence[str]]:
        if self._request.context:
            text = "context_dir is not used: the setup of these tasks prepares their folders"
            self._send(Event("log", level="warn", message=text))
        result = self._run.run()
        outcomes = [
            Outcome(
                self._ids[task.number - 1],
                task.status,
                task.reason,
                task.seconds,
                [
                    Outcome(str(number), trial.status, trial.reason, trial.seconds)
                    for number, trial in enumerate(task.trials, 1)
                ],
            )
            for task in result.tasks
        ]
        return outcomes, result.problems

    def _on_event(self, event: Event) -> None:
        self._send(replace(event, task=self._ids[event.number - 1]) if event.number else event)


def _environment(model: str) -> dict[str, str]:
    return {**os.environ, **({MODEL: model} if model else {})}


# --- waza's own files ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WazaTask:
    """Task of waza.

    Attributes:
        seconds: limit of one trial; 0 for that of the eval.
        files: content by path; None for a file of the context.
        expected: texts that the output must have, one of which it must have, or must not have.
    """

    info: TaskInfo
    graders: Sequence[Grader] = ()
    enabled: bool = True
    seconds: int = 0
    context: Path | None = None
    files: Mapping[str, str | None] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    expected: Mapping[str, Sequence[str]] = field(default_factory=dict)
    unchecked: Sequence[str] = ()


_EXPECTED = {
    "output_contains": "contains",
    "output_contains_any": "contains_any",
    "output_not_contains": "not_contains",
}
# What these members of an eval do is not implemented, and leaving it out would change the result.
_UNSUPPORTED = ("hooks", "inputs", "tasks_from", "range")


def read_waza(document: Document) -> WazaEval:
    """Return the eval of a document in waza's format. Raises FileError."""
    reader = Reader(document)
    if not reader.mapping((), required=True):
        reader.done()
        raise FileError([document.problem((), "expected an eval, found an empty object")])
    for name in ("name", "skill", "tasks"):
        if document.get((name,)) in (None, "", []):
            reader.problems.append(Problem(document.path, 0, 0, f"Missing required field: {name}"))
    numbers = {}
    for name, default in (("trials_per_task", 1), ("timeout_seconds", 300), ("max_workers", 4)):
        given = document.get(("config", name))
        numbers[name] = default if given is None else reader.integer(("config", name))
        if given is not None and numbers[name] < 1 and isinstance(given, int):
            reader.refuse(("config", name), f"expected an integer of at least 1, found {given}")
    reader.mapping(("config",))
    folder = document.path.absolute().parent
    result = WazaEval(
        document,
        folder,
        name=reader.text(("name",)),
        skill=reader.text(("skill",)),
        version=reader.text(("version",)) or "1.0",
        executor=reader.text(("config", "executor")) or "mock",
        model=reader.text(("config", "model")),
        trials=numbers["trials_per_task"],
        seconds=numbers["timeout_seconds"],
        workers=numbers["max_workers"] if reader.flag(("config", "parallel")) else 1,
        fail_fast=reader.flag(("config", "fail_fast")),
        graders=tuple(_graders(reader, ("graders",))),
        files=_task_files(reader, folder),
    )
    reader.done()
    return result


def _graders(reader: Reader, at: At) -> Iterator[Grader]:
    for place in reader.items(at):
        fields = reader.mapping(place, required=True)
        kind = reader.text((*place, "type")) or ("code" if "assertions" in fields else "")
        config = reader.mapping((*place, "config"))
        beside = {name: value for name, value in fields.items() if name not in {"type", "name", "config", "weight"}}
        grader = Grader(kind, reader.text((*place, "name")) or kind, {**beside, **config}, {"type": kind, **fields})
        if problem := grader_problem(grader) if kind else "Missing required field: type":
            reader.refuse((*place, "type"), problem)
        yield grader


def _task_files(reader: Reader, folder: Path) -> dict[str, At]:
    """Return the files that the patterns of `tasks` match, relative to the folder, with the place of the pattern."""
    files: dict[str, At] = {}
    for at in reader.items(("tasks",)):
        entry = reader.document.get(at)
        if isinstance(entry, dict):
            entry = entry.get("include") or entry.get("file")
        if not isinstance(entry, str):
            reader.refuse(at, "expected the pattern of task files, such as tasks/*.yaml")
            continue
        pattern = entry.removeprefix("include:").strip()
        found = sorted(glob.glob(pattern, root_dir=folder, recursive=True))  # noqa: PTH207 - relative names
        if not found:
            reader.refuse(at, f"no file matches {pattern!r} in {folder}")
        for name in found:
            files.setdefault(name, at)
    return files


def _task(document: Document, name: str) -> WazaTask:
    reader = Reader(document)
    reader.mapping((), required=True)
    inputs: At = ("inputs",) if document.get(("inputs",)) is not None else ()
    for at in (("id",), (*inputs, "prompt")):
        if document.get(at) in (None, ""):
            reader.problems.append(document.problem((), f"Missing required field: {shown(at)}"))
    graders = tuple(_graders(reader, ("graders",)))
    files: dict[str, str | None] = {}
    for at in reader.items((*inputs, "files")):
        if isinstance(document.get(at), dict):
            content = document.get((*at, "content"))
            files[reader.text((*at, "path"), required=True)] = None if content is None else str(content)
        else:
            files[reader.text(at, required=True)] = None
    context = reader.text(("context_dir",))
    expected = reader.mapping(("expected",))
    task = WazaTask(
        TaskInfo(
            reader.text(("id",)),
            reader.text(("name",)) or reader.text(("id",)),
            reader.text(("description",)),
            name,
            reader.text((*inputs, "prompt")),
            [grader.fields for grader in graders],
        ),
        graders,
        enabled=document.get(("enabled",)) is not False,
        seconds=reader.integer(("timeout_seconds",)),
        context=document.path.absolute().parent / context if context else None,
        files=files,
        environ=reader.texts((*inputs, "environment")),
        expected={
            _EXPECTED[key]: [reader.text(at) for at in reader.items(("expected", key))]
            for key in _EXPECTED
            if key in expected
        },
        unchecked=[key for key in expected if key not in _EXPECTED],
    )
    reader.done()
    return task


@dataclass(frozen=True)
class WazaEval:
    """waza's own eval.

    Attributes:
        folder: absolute.
        seconds: limit of one trial.
        workers: trials of so many tasks run at once.
        files: of the tasks, relative to the folder, with the place of their pattern.
    """

    document: Document
    folder: Path
    name: str
    skill: str
    version: str
    executor: str
    model: str
    trials: int
    seconds: int
    workers: int
    fail_fast: bool
    graders: Sequence[Grader]
    files: Mapping[str, At]

    @cached_property
    def all_tasks(self) -> Sequence[WazaTask]:
        """Return the tasks, with those that are not enabled. Raises FileError."""
        tasks: dict[str, WazaTask] = {}
        problems: list[Problem] = []
        for name, at in self.files.items():
            try:
                task = _task(Document.read(self.folder / name), name)
            except FileError as error:
                problems += error.problems
                continue
            if other := tasks.get(task.info.id):
                text = f"the task id {task.info.id!r} is used by {other.info.file} and {name}"
                problems.append(self.document.problem(at, text))
            tasks[task.info.id] = task
        if problems:
            raise FileError(problems)
        return tuple(tasks.values())

    def unsupported(self, tasks: Sequence[WazaTask]) -> Iterator[Problem]:
        """Yield the parts of the eval and of some of its tasks that this host does not support."""
        for name in _UNSUPPORTED:
            if self.document.get((name,)):
                text = f"{name}: not supported by ext-host; remove it, or run this eval with waza"
                yield self.document.problem((name,), text)
        for path, graders in [
            (self.document.path, self.graders),
            *((self.folder / task.info.file, task.graders) for task in tasks),
        ]:
            yield from (Problem(path, 0, 0, text) for text in filter(None, map(unsupported_grader, graders)))

    def config(self) -> Fields:
        given = self.document.get(("config",))
        own: Fields = {"executor": self.executor, "trials_per_task": self.trials, "timeout_seconds": self.seconds}
        return own | (given if isinstance(given, dict) else {})

    def metrics(self) -> Fields:
        given = self.document.get(("metrics",))
        if isinstance(given, dict):
            return given
        listed = [metric for metric in given if isinstance(metric, dict)] if isinstance(given, list) else []
        named: Fields = {
            str(metric.get("name")): {name: value for name, value in metric.items() if name != "name"}
            for metric in listed
            if metric.get("name")
        }
        thresholds = {str(metric.get("name")): metric.get("threshold") for metric in listed}
        threshold = thresholds.get("task_completion")
        return named | {"pass_threshold": 1.0 if threshold is None else threshold}

    def tasks(self) -> Sequence[TaskInfo]:
        return [task.info for task in self.all_tasks]

    def problems(self) -> list[str]:
        return [] if any(task.enabled for task in self.all_tasks) else ["tasks: no task is enabled"]

    def run(self, request: Request, on_event: Callable[[Event], None]) -> Run:
        return WazaRun(self, request, on_event)


# --- Run of waza's own evals -----------------------------------------------------------------------------------------


class WazaRun:
    """Run of waza's own eval: each trial of a task has a new folder with its files, the agent, and the graders.

    Args:
        on_event: receives the progress; called from several threads, one at a time.
    """

    def __init__(self, spec: WazaEval, request: Request, on_event: Callable[[Event], None]) -> None:
        self._spec = spec
        self._agent = cast("Agent", request.agent)
        self._request = request
        self._tasks = [task for task in spec.all_tasks if task.enabled]
        self._on_event = on_event
        self._event_lock = threading.Lock()
        self._stopped = threading.Event()
        self._failed = threading.Event()  # a task has not passed

    def check(self) -> list[Problem]:
        path = self._spec.document.path
        reason = self._agent.check()
        problems = [*self._spec.unsupported(self._tasks), *([Problem(path, 0, 0, reason)] if reason else [])]
        for task in self._tasks:
            for name, content in task.files.items():
                try:
                    if content is None and not Workdir(self._context(task)).exists(name):
                        text = f"inputs.files: {name!r} is missing in {self._context(task)}"
                        problems.append(Problem(self._spec.folder / task.info.file, 0, 0, text))
                except (OSError, OperationFailed) as error:
                    problems.append(Problem(self._spec.folder / task.info.file, 0, 0, f"inputs.files: {error}"))
        return problems

    def cancel(self) -> None:
        self._stopped.set()

    def run(self) -> tuple[Sequence[Outcome], Sequence[str]]:
        total = len(self._tasks)
        began = time.monotonic()
        self._emit(Event("run_start", total=total))
        with ThreadPoolExecutor(min(self._spec.workers, total), thread_name_prefix="task") as pool:
            results = list(pool.map(self._task, range(1, total + 1), self._tasks))
        self._emit(Event("run_complete", total=total, status=worst(results), seconds=time.monotonic() - began))
        return results, ()

    def _emit(self, event: Event) -> None:
        with self._event_lock:
            self._on_event(event)

    def _task(self, number: int, task: WazaTask) -> Outcome:
        if self._spec.fail_fast and self._failed.is_set():
            return Outcome(task.info.id, "skipped", "another task has failed, and fail_fast is set")
        began = time.monotonic()
        trials = self._spec.trials
        path = self._spec.folder / task.info.file
        event = Event("task_start", task.info.id, path, number, len(self._tasks), trials=trials)
        self._emit(event)
        if task.unchecked:
            text = f"not checked: {', '.join(f'expected.{name}' for name in task.unchecked)}"
            self._emit(replace(event, kind="log", level="warn", message=text))
        results = [self._trial(task, replace(event, kind="trial_start", trial=trial + 1)) for trial in range(trials)]
        status = worst(results)
        reason = next((result.reason for result in results if result.status == status), "")
        seconds = time.monotonic() - began
        if status != "passed":
            self._failed.set()
        self._emit(replace(event, kind="task_complete", status=status, message=reason, seconds=seconds))
        return Outcome(task.info.id, status, reason, seconds, results)

    def _trial(self, task: WazaTask, event: Event) -> Outcome:
        name = str(event.trial)
        if self._stopped.is_set():
            return Outcome(name, "cancelled", "cancelled before it began")
        self._emit(event)
        began = time.monotonic()
        workspace = Path(tempfile.mkdtemp(prefix="ext-host-waza-"))
        grades: list[Outcome] = []
        try:
            self._prepare(task, workspace)
            status, reason = self._work(task, workspace, grades, event)
        except (HostError, OSError, OperationFailed) as error:
            status, reason = "error", str(error)
        finally:
            shutil.rmtree(workspace, ignore_errors=True)
        if self._stopped.is_set() and status != "passed":
            status, reason = "cancelled", "cancelled"
        seconds = time.monotonic() - began
        self._emit(replace(event, kind="trial_complete", status=status, message=reason, seconds=seconds))
        return Outcome(name, status, reason, seconds, grades)

    def _context(self, task: WazaTask) -> Path:
        """Return the folder of a task's files: that of the task, of the request, `fixtures` of the eval, or its own."""
        fixtures = self._spec.folder / "fixtures"
        return task.context or self._request.context or (fixtures if fixtures.is_dir() else self._spec.folder)

    def _prepare(self, task: WazaTask, workspace: Path) -> None:
        """Write the files of a task; without any, copy the folder that the task or the request names."""
        context = self._context(task)
        if not task.files and (task.context or self._request.context):
            shutil.copytree(context, workspace, symlinks=True, dirs_exist_ok=True)
        source, target = Workdir(context), Workdir(workspace)
        for name, content in task.files.items():
            data = source.read(name, limit=MOST_BYTES) if content is None else content.encode("utf-8", "surrogatepass")
            target.write(name, data, parents=True)

    def _work(self, task: WazaTask, workspace: Path, grades: list[Outcome], event: Event) -> tuple[Status, str]:
        """Run the agent, and grade its work. Return the status and the reason."""
        seconds = task.seconds or self._spec.seconds
        environ = {
            **_environment(self._request.model or self._spec.model),
            WORKSPACE: str(workspace),
            TASK_FOLDER: str(self._spec.folder),
        }
        deadline = Deadline(seconds, self._stopped)
        result = self._agent.run(
            task.info.prompt,
            workspace,
            {**environ, **task.environ},
            lambda text: self._emit(replace(event, kind="agent_output", phase="agent", message=text)),
            deadline,
        )
        took = deadline.elapsed()
        try:
            if deadline.expired:
                return "failed", f"the agent exceeded the limit of {seconds} s: {result.error}"
            if result.error:
                return "error", result.error
            with Searcher(deadline=Deadline(GRADER_SECONDS, self._stopped)) as searcher:
                attempt = Attempt(result.output, workspace, took, self._spec.folder, environ, self._stopped, searcher)
                graders = [*self._spec.graders, *task.graders]
                if any(task.expected.values()):
                    graders.append(Grader("text", "expected", task.expected, {}))
                for grader in graders:
                    began = time.monotonic()
                    failures = grade(grader, attempt)
                    status: Status = "failed" if failures else "passed"
                    reason = "; ".join(failures)
                    grades.append(Outcome(grader.name, status, reason, time.monotonic() - began))
                    text = f"{grader.name}: {reason}" if reason else grader.name
                    self._emit(replace(event, kind="step", phase="verify", status=status, message=text))
        finally:
            result.close()
        if not grades:
            return "failed", "nothing was checked: neither the eval nor the task has graders"
        failed = [f"{grade.name}: {grade.reason}" for grade in grades if grade.status != "passed"]
        return ("failed", "\n".join(failed)) if failed else ("passed", "")


def worst(outcomes: Sequence[Outcome]) -> Status:
    """Return the status of several: that of the worst; error if there are none."""
    order: tuple[Status, ...] = ("cancelled", "error", "failed", "passed", "skipped")
    statuses = {outcome.status for outcome in outcomes}
    return next((status for status in order if status in statuses), "error")
