"""Evals as `ext-host serve` shows and runs them: Eval files of mcpchecker, and waza's own eval.yaml with its tasks.

Both become an `Eval`, whose members are those of waza's responses; docs/host.md has the mapping. A run of an Eval of
mcpchecker is that of `runner`; a run of waza's own has tasks with trials, whose results the graders of the files check.
Patterns are searched in a child process with a limit of time, and assertions are evaluated in one, so that none of them
can hang the server.
"""

from __future__ import annotations

import ast
import glob
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

from ext_sdk.core import regex
from ext_sdk.core.text import cut, suggest
from ext_sdk.expect import json_schema
from ext_sdk.files import Workdir
from ext_sdk.polling import Deadline
from ext_sdk.result import OperationFailed

from .agents import TASK_FOLDER, NoAgent, agent_of
from .commands import AgentResult, Commands, excerpt
from .files import Document, FileError, HostError, McpServer, Problem, Reader, eval_of, select, shown
from .runner import EvalRun, Event, RunOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .agents import Agent
    from .files import At, EvalFile
    from .runner import Status

Fields = dict[str, object]
COPILOT = "copilot-sdk"  # waza's executor that uses a model; here it is one that `--executor` defines
MODEL = "WAZA_MODEL"  # variable of agents: the model of the request
MOST_EVALS = 1000  # in a response of eval.list
MOST_FOLDERS = 20_000  # that eval.list reads
MOST_BYTES = 16 * 1024 * 1024  # of a file of a task, or that a grader reads
WORKSPACE = "WAZA_WORKSPACE_DIR"  # variable of the programs that grade, as in waza
GRADER_SECONDS = 30  # for a grader that is a program, without a `timeout`, as in waza


_KIND_EVAL = re.compile(rb"^kind:\s+[\"']?Eval[\"']?\s*(#.*)?$", re.MULTILINE)


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

    def servers(self) -> Sequence[McpServer]:
        """Return the MCP servers for the agent. Raises FileError."""

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

    Raises:
        HostError: there are more than MOST_FOLDERS folders.
    """
    found: list[Path] = []
    for number, (directory, folders, names) in enumerate(os.walk(folder)):
        if number == MOST_FOLDERS:
            raise HostError(f"expected at most {MOST_FOLDERS:,} folders, found more; name a folder below this one")
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name != "node_modules")
        for name in sorted(names):
            path = Path(directory, name)
            if path.suffix not in {".yaml", ".yml"} or not path.is_file():
                continue
            beginning = b""
            with suppress(OSError), path.open("rb") as file:
                beginning = file.read(4096)
            if path.stem == "eval" or _KIND_EVAL.search(beginning):
                found.append(path)
    return found[:MOST_EVALS]


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
        self._commands = commands
        self._names = ["mock", "none", *(name for name in commands if name not in {"mock", "none"})]
        for text in commands.values():
            agent_of(text)  # raises for one that is not valid

    def problem(self, name: str, *, run: bool) -> str:
        """Return what is wrong with the name of an executor; "" if it is valid.

        Args:
            run: it is to be used; else waza's own name is valid, too.
        """
        if name in self._names or (name == COPILOT and not run):
            return ""
        if name == COPILOT:
            return (
                f"The executor {COPILOT} is not available: this server starts no model by itself; start it with "
                f"--executor {COPILOT}=COMMAND, or choose one of {', '.join(self._names)}"
            )
        return f"Invalid executor type: {cut(name, 80)}; {suggest(name, self._names)}"

    def agent(self, name: str, servers: Sequence[McpServer]) -> Agent:
        """Return the agent of a valid name.

        Args:
            servers: MCP servers of the eval, for the agent.
        """
        if name in self._commands:
            return agent_of(self._commands[name], servers)
        return MockAgent() if name == "mock" else NoAgent()


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
        folder = self._spec.folder
        found = []
        for task in tasks:
            path = task.path.absolute()
            file = str(path.relative_to(folder) if path.is_relative_to(folder) else path)
            graders: list[Fields] = [
                {"type": step.name or " + ".join(step.names)} | ({} if step.args is None else {"config": step.args})
                for step in task.steps.get("verify", ())
            ]
            prompt = ""
            with suppress(HostError):
                prompt = task.read_prompt()
            description = task.document.get(("metadata", "description"))
            text = description if isinstance(description, str) else ""
            id = task.name if task.name and names.count(task.name) == 1 else file
            found.append(TaskInfo(id, task.name or file, text, file, prompt, graders))
        return found

    def problems(self) -> list[str]:
        has_tasks = select(self._spec) or any(each.source for each in self._spec.task_sets)
        return [] if has_tasks else ["config.taskSets: no task is selected"]

    def servers(self) -> Sequence[McpServer]:
        return self._spec.mcp_servers()

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


# --- Graders of waza -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grader:
    """Grader of an eval or a task.

    Attributes:
        params: `config`, and the members next to it.
        fields: as in the file.
    """

    type: str
    name: str
    params: Mapping[str, object]
    fields: Fields


_MODEL_JUDGES, _PERSON_JUDGES = "a model grades", "a person grades"
_TOOL_CALLS = "the tool calls of the agent are not recorded"
_UNSUPPORTED = {
    "prompt": _MODEL_JUDGES,
    "llm": _MODEL_JUDGES,
    "llm_comparison": _MODEL_JUDGES,
    "human": _PERSON_JUDGES,
    "human_calibration": _PERSON_JUDGES,
    "tool_calls": _TOOL_CALLS,
    "tool_constraint": _TOOL_CALLS,
    "action_sequence": _TOOL_CALLS,
    "skill_invocation": _TOOL_CALLS,
    "diff": "snapshots are compared by waza only",
}
# Members of each grader that are lists of texts; at least one is required.
_LISTS = {
    "code": ("assertions",),
    "text": ("contains", "not_contains", "contains_cs", "not_contains_cs", "regex_match", "regex_not_match"),
    "regex": ("must_match", "must_not_match"),
    "file": ("must_exist", "must_not_exist"),
}
_UNKNOWN = {"tool_calls", "transcript", "errors", "outcome"}  # names of assertions; those of a command are not recorded
_PATTERNS = {"regex_match", "regex_not_match", "must_match", "must_not_match"}
_TEXTS = {"file_exists": "path", "program": "command", "script": "script"}  # the member that each of these requires


def unsupported_grader(grader: Grader) -> str:
    """Return why a valid grader is not supported; "" if it is."""
    kind, reason = grader.type, _UNSUPPORTED.get(grader.type, "")
    if kind == "code" and grader.params.get("language", "python") != "python":
        reason = "assertions are evaluated in Python only"
    elif kind == "code" and (unknown := sorted(_names(grader.params) & _UNKNOWN)):
        reason = f"the assertions use {', '.join(unknown)}: only output and duration_ms are known"
    if kind == "behavior" and (others := [name for name in grader.params if name != "max_duration_ms"]):
        reason = f"{', '.join(others)}: {_TOOL_CALLS}"
    return f"the grader {grader.name!r} of type {kind} is not supported: {reason}" if reason else ""


def _names(params: Mapping[str, object]) -> set[str]:
    """Return the names in assertions that are Python. Raises SyntaxError, ValueError."""
    trees = [ast.parse(text.strip(), mode="eval") for text in _texts(params, "assertions")]
    return {node.id for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Name)}


def grader_problem(grader: Grader) -> str:
    """Return what is wrong with a grader; "" if it is valid."""
    kind, params = grader.type, grader.params
    if kind in _UNSUPPORTED:
        return ""
    if kind in _LISTS:
        return _lists_problem(kind, params)
    if kind in _TEXTS:
        name = _TEXTS[kind]
        return "" if isinstance(params.get(name), str) and params[name] else f"{kind}: expected {name}, a text"
    if kind == "json_schema":
        if not isinstance(params.get("schema"), dict) and not isinstance(params.get("schema_file"), str):
            return "json_schema: expected schema, an object, or schema_file, the path of a file"
        return json_schema.problem(params["schema"]) if "schema" in params else ""
    if kind == "behavior":
        most = params.get("max_duration_ms", 0)
        return "" if isinstance(most, int) and params else "behavior: expected max_duration_ms, an integer"
    return f"Invalid grader type: {cut(kind, 80)}; {suggest(kind, [*_GRADE, *_UNSUPPORTED])}"


def _lists_problem(kind: str, params: Mapping[str, object]) -> str:
    patterns = params.get("content_patterns") if kind == "file" else None
    entries = [("", params, _LISTS[kind])]
    if patterns is not None:
        if not isinstance(patterns, list) or not all(
            isinstance(entry, dict) and isinstance(entry.get("path"), str) for entry in patterns
        ):
            return "file: expected content_patterns as a list of objects with a path"
        entries += [(f"content_patterns[{n}].", entry, _LISTS["regex"]) for n, entry in enumerate(patterns)]
    checks = 0
    for place, fields, names in entries:
        for name in names:
            values = fields.get(name, [])
            if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
                return f"{kind}: expected {place}{name} as a list of texts"
            checks += len(values)
            for wrong in filter(None, map(regex.problem, values if name in _PATTERNS else [])):
                return f"{kind}: {place}{name}: {wrong}"
    if kind == "code" and params.get("language", "python") == "python":
        try:
            _names(params)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return f"code: assertions: not an expression of Python: {error}"
    return "" if checks else f"{kind}: nothing to check: expected {' or '.join(_LISTS[kind])}"


@dataclass(frozen=True)
class Attempt:
    """Work of the agent in one trial, and the means to check it."""

    output: str
    workspace: Path
    seconds: float
    folder: Path
    environ: Mapping[str, str]
    stopped: threading.Event
    searcher: regex.Searcher


def grade(grader: Grader, attempt: Attempt) -> list[str]:
    """Return the failures of a grader; empty if it passes."""
    try:
        return list(_GRADE[grader.type](grader.params, attempt))
    except (HostError, OSError, OperationFailed, regex.SearchFailed, json_schema.SchemaFailed, ValueError) as error:
        return [str(error)]


def _grade_text(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    folded = attempt.output.casefold()
    for name in ("contains", "not_contains", "contains_cs", "not_contains_cs"):
        exact, wanted = name.endswith("_cs"), not name.startswith("not_")
        for text in _texts(params, name):
            found = text in attempt.output if exact else text.casefold() in folded
            if found != wanted:
                yield f"Missing expected text: {text}" if wanted else f"Found forbidden text: {text}"
    options = _texts(params, "contains_any")
    if options and not any(text.casefold() in folded for text in options):
        yield f"Missing any of the expected texts: {', '.join(options)}"
    yield from _search(params, attempt.output, attempt, ("regex_match", "regex_not_match"))


def _search(
    params: Mapping[str, object], text: str, attempt: Attempt, names: tuple[str, str], *, ignore_case: bool = False
) -> Iterator[str]:
    for name, wanted in zip(names, (True, False), strict=True):
        for pattern in _texts(params, name):
            if (attempt.searcher.search(pattern, text, ignore_case=ignore_case) is not None) != wanted:
                yield f"Missing expected pattern: {pattern}" if wanted else f"Found forbidden pattern: {pattern}"


def _grade_regex(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    return _search(params, attempt.output, attempt, ("must_match", "must_not_match"), ignore_case=True)


def _grade_file(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    workdir = Workdir(attempt.workspace)
    for name, wanted in (("must_exist", True), ("must_not_exist", False)):
        for path in _texts(params, name):
            if workdir.exists(path) != wanted:
                yield (f"File must exist, but is missing: {path}" if wanted else f"File must not exist: {path}")
    for entry in cast("list[Fields]", params.get("content_patterns") or []):
        path = str(entry["path"])
        try:
            text = workdir.read(path, limit=MOST_BYTES).decode("utf-8", "replace")
        except OSError as error:
            yield f"File {path} cannot be read: {error.strerror}"
            continue
        yield from (
            f"File {path}: {failure}" for failure in _search(entry, text, attempt, ("must_match", "must_not_match"))
        )


def _grade_file_exists(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    return _grade_file({"must_exist": [params["path"]]}, attempt)


def _grade_json_schema(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    try:
        document = json.loads(attempt.output)
    except ValueError as error:
        yield f"The output is not JSON: {error}"
        return
    schema = params.get("schema")
    if schema is None:
        path = str(params["schema_file"])
        try:
            schema = json.loads(Workdir(attempt.folder).read(path, limit=MOST_BYTES))
        except (OSError, ValueError) as error:
            yield f"The schema {path} cannot be read: {error}"
            return
        if wrong := json_schema.problem(schema):
            yield f"The schema {path}: {wrong}"
            return
    check = json_schema.check_schema(cast("json_schema.Schema", schema), document, where="output")
    if not check.ok:
        yield str(check)


def _grade_behavior(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    most = cast("int", params["max_duration_ms"])
    if attempt.seconds * 1000 > most:
        yield f"Took {attempt.seconds * 1000:.0f} ms, more than max_duration_ms: {most}"


def _grade_program(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    argv = [str(params["command"]), *_texts(params, "args")]
    failure, output = _run_grader(argv, attempt.output, params, attempt)
    if failure:
        text = excerpt(output.strip(), 500)
        yield f"The program failed: {failure}" + (f"; its output: {text}" if text else "")


def _grade_script(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    stdin = json.dumps(_context(attempt))
    failure, output = _run_grader([sys.executable, str(params["script"])], stdin, params, attempt)
    if failure:
        yield f"The script failed: {failure}; its output: {excerpt(output.strip(), 500)}"
        return
    try:
        answer = json.loads(output)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        yield f"The script did not print a JSON object with passed; its output: {excerpt(output.strip(), 500)}"
    elif answer.get("passed") is not True:
        yield str(answer.get("message") or "The script did not pass")


# The names are those that waza gives to assertions. It is a program of its own, so that it can be stopped.
_ASSERT = """
import json, re, sys
data = json.load(sys.stdin)
names = {"output": data["output"], "duration_ms": data["duration_ms"], "re": re}
names |= {f.__name__: f for f in (len, any, all, str, int, float, bool, list, dict)}
failures = []
for text in data["assertions"]:
    try:
        if not eval(text.strip(), {"__builtins__": {}}, names):
            failures.append(f"Failed: {text}")
    except BaseException as error:
        failures.append(f"Error in {text!r}: {error}")
print()
print(json.dumps(failures))
"""


def _grade_code(params: Mapping[str, object], attempt: Attempt) -> Iterator[str]:
    stdin = json.dumps({**_context(attempt), "assertions": params["assertions"]})
    failure, output = _run_grader([sys.executable, "-I", "-W", "ignore", "-c", _ASSERT], stdin, params, attempt)
    if failure:
        yield f"The assertions could not be evaluated: {failure}; output: {excerpt(output.strip(), 500)}"
    else:
        yield from json.loads(output.rstrip().rpartition("\n")[2])


def _context(attempt: Attempt) -> Fields:
    """Return the input of graders that are programs, with the names of waza."""
    return {"output": attempt.output, "duration_ms": round(attempt.seconds * 1000)}


def _run_grader(argv: Sequence[str], stdin: str, params: Mapping[str, object], attempt: Attempt) -> tuple[str, str]:
    """Run a program in the folder of the eval. Returns the reason of its failure, or "", and its output."""
    given = params.get("timeout")
    seconds = given if isinstance(given, (int, float)) and given > 0 else GRADER_SECONDS
    environ = {**attempt.environ, WORKSPACE: str(attempt.workspace)}
    with Commands() as commands:
        end = commands.run(
            argv,
            env=environ,
            folder=attempt.folder,
            deadline=Deadline(seconds, attempt.stopped),
            stdin=stdin.encode("utf-8", "surrogatepass"),
        )
    return end.failure, end.output.text


def _texts(params: Mapping[str, object], name: str) -> list[str]:
    return [str(value) for value in cast("list[object]", params.get(name) or [])]


_GRADE: dict[str, Callable[[Mapping[str, object], Attempt], Iterator[str]]] = {
    "behavior": _grade_behavior,
    "code": _grade_code,
    "file": _grade_file,
    "file_exists": _grade_file_exists,
    "json_schema": _grade_json_schema,
    "program": _grade_program,
    "regex": _grade_regex,
    "script": _grade_script,
    "text": _grade_text,
}


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
_UNUSED = ("skill_directories", "required_skills", "max_attempts")  # members of `config` for waza's own executor
# What these members of an eval do is not implemented, and leaving it out would change the result.
_UNSUPPORTED_MEMBERS = ("hooks", "inputs", "tasks_from", "range")


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
            path = self.folder / name
            try:
                if not path.is_file():  # reading a FIFO could wait forever
                    raise FileError([Problem(path, 0, 0, "expected a file with a task, found a folder or a device")])
                task = _task(Document.read(path), name)
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
        for name in _UNSUPPORTED_MEMBERS:
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

    def servers(self) -> Sequence[McpServer]:
        given = self.document.get(("config", "mcp_servers"))
        servers = given if isinstance(given, dict) else {}
        return [McpServer(name, spec) for name, spec in servers.items() if isinstance(spec, dict)]

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
        unused = [f"config.{name}" for name in _UNUSED if self._spec.document.get(("config", name))]
        if unused:
            self._emit(Event("log", level="warn", message=f"not used: {', '.join(unused)}"))
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
            context = self._context(task)
            if not task.files and (task.context or self._request.context):
                shutil.copytree(context, workspace, symlinks=True, dirs_exist_ok=True)
            for file, content in task.files.items():
                data = (
                    content.encode("utf-8", "surrogatepass")
                    if content is not None
                    else Workdir(context).read(file, limit=MOST_BYTES)
                )
                Workdir(workspace).write(file, data, parents=True)
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
            with regex.Searcher(deadline=Deadline(GRADER_SECONDS, self._stopped)) as searcher:
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
