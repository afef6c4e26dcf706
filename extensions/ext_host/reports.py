"""Reports of a run: text with progress for people, JUnit XML and JSON for programs.

The text of one task is never mixed with that of another: of tasks that run at the same time, the first one is printed
at once, and the others when they have ended. Secrets of the environment are replaced everywhere, and what looks like
one.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from ext_sdk.core import __version__
from ext_sdk.core.atomic import atomic_write
from ext_sdk.core.stdio import OutputFailed
from ext_sdk.core.text import counted, cut, readable
from ext_sdk.core.wire.json_codec import dumps
from ext_sdk.duration import Duration

from .commands import redactor_of
from .files import HostError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from xml.etree.ElementTree import Element

    from .runner import EvalResult, Event, TaskResult, TrialResult
    from .steps import StepResult

VERDICTS = {"passed": "ok", "failed": "FAILED", "error": "ERROR", "cancelled": "CANCELLED", "skipped": "skipped"}
COLOURS = {"passed": "32", "failed": "31", "error": "31", "cancelled": "33", "skipped": "33"}  # of SGR
_CLEAR = "\r\x1b[K"  # deletes the last line of a terminal
FORMAT = 1  # of the JSON report
OUTPUT_LINES = 5  # of an agent's output that the text has; the reports in files have all
LINE_LENGTH = 300  # characters of these lines
MOST_LINES = 10_000  # of a task that waits to be printed, and characters of the last line of an agent's output
TICK_SECONDS = 1.0  # between two updates of the progress on a terminal
_INDENT = " " * 17


def step_lines(step: StepResult) -> Iterator[tuple[str, str]]:
    """Yield the lines of a step, each with its beginning: the verdict and the message, then the error."""
    status = "passed" if step.success else "error" if step.aborted else "failed"
    if step.phase == "agent":
        limit = OUTPUT_LINES if step.success else 1  # the reason of the task has all of an error
        found = [cut(line, LINE_LENGTH) for line in (step.error or step.message).strip().splitlines()] or [
            "(no output)"
        ]
        more = [f"… {counted(len(found) - limit, 'more line')}"] if step.success and len(found) > limit else []
        lines = [*found[:limit], *more]
        yield f"{step.phase:8} {VERDICTS[status]:7}", lines[0]
    else:
        lines = (step.message or step.error).strip().splitlines() or [""]
        yield f"{step.phase:8} {VERDICTS[status]:7}", f"{step.name:29} {lines[0]}".rstrip()
        if not step.success and step.error != step.message and step.message:
            lines += step.error.strip().splitlines()
    yield from ((_INDENT[:16], line) for line in lines[1:])


def task_name(task: TaskResult) -> str:
    """Return the name of a task; that of its file if it has none."""
    return task.task.name or task.task.path.stem


class Replay(NamedTuple):
    """Source of the results of a run that is replayed.

    Attributes:
        recording: its folder.
        real: extensions and agent that ran nevertheless.
        agent: the results of the agent are those of the recording.
    """

    recording: str
    real: tuple[str, ...] = ()
    agent: bool = False

    def has(self, step: StepResult) -> bool:
        """Return True if the result of a step is that of the recording: the step was not performed."""
        extension, dot, _ = step.name.partition(".")
        return bool(dot) and extension not in self.real

    def counts(self, results: Sequence[EvalResult]) -> dict[str, int]:
        """Return the numbers of steps and runs of the agent, in all and from the recording."""
        trials = [trial for result in results for task in result.tasks for trial in task.trials]
        steps = [step for trial in trials for phase in trial.phases.values() for step in phase.steps]
        agents = sum(trial.agent is not None for trial in trials)
        return {
            "steps": len(steps),
            "replayedSteps": sum(map(self.has, steps)),
            "agentRuns": agents,
            "replayedAgentRuns": agents if self.agent else 0,
        }

    def text(self, results: Sequence[EvalResult]) -> str:
        """Return what was not performed."""
        steps, replayed, agents, same = self.counts(results).values()
        runs = f", {same} of {counted(agents, 'run')} of the agent" if same else ""
        return f"{replayed} of {counted(steps, 'step')}{runs}"


class TextReport:
    """Text of a run: a line for each step, agent and task, followed by the reason of a failure, and a summary.

    Args:
        out: receives the lines.
        verbose: also the output of agents and the logs of extensions, as they come.
        quiet: only tasks that did not pass, and the summary.
        terminal: `out` is a terminal, whose last line shows the progress.
        colour: verdicts are coloured.
        redact: replaces secrets in a text.

    Attributes:
        failure: error that `out` has raised; later lines are lost, because an event must not end a task.
    """

    def __init__(
        self,
        out: IO[str],
        *,
        verbose: bool = False,
        quiet: bool = False,
        terminal: bool = False,
        colour: bool = False,
        redact: Callable[[str], str] = str,
    ) -> None:
        self.failure: OutputFailed | OSError | None = None
        self._out = out
        self._redact = redact
        self._verbose = verbose
        self._quiet = quiet
        self._terminal = terminal
        self._colour = colour
        self._lock = threading.Lock()
        self._total = 0
        self._shown = 0  # number of the task whose lines are printed at once
        self._waiting: dict[int, list[str]] = {}  # lines of the others, by the number of the task
        self._running: dict[int, tuple[Event, float]] = {}  # last event and start of each task
        self._ended: Counter[str] = Counter()  # tasks by status
        self._partial: dict[int, str] = {}  # output of agents whose last line is not complete
        self._errors: dict[int, str] = {}  # of the last failed step that was printed, by the number of the task
        self._progress = ""  # last line of the terminal
        self._over = threading.Event()
        if terminal:
            threading.Thread(target=self._update, daemon=True, name="progress").start()

    def on_event(self, event: Event) -> None:
        """Print an event."""
        with self._lock:
            if event.kind == "run_start":
                self._total = event.total
                self._ended.clear()
            elif event.number:
                _, began = self._running.get(event.number, (event, time.monotonic()))
                self._running[event.number] = (event, began)
                self._shown = self._shown or event.number
                if event.number == self._shown:
                    self._write(self._lines(event))
                else:
                    waiting = self._waiting.setdefault(event.number, [])
                    waiting += self._lines(event)
                    del waiting[:-MOST_LINES]
                if event.kind == "task_complete":
                    self._end(event)
            self._draw()

    def _update(self) -> None:
        while not self._over.wait(TICK_SECONDS):
            with self._lock:
                self._draw()

    def summary(self, results: Sequence[EvalResult], replay: Replay | None = None) -> None:
        """Print the number of tasks by status, after the last event; which were skipped, and what was replayed."""
        self._over.set()
        statuses: Counter[str] = Counter(task.status for result in results for task in result.tasks)
        counts = ", ".join(f"{statuses[status]} {status}" for status in VERDICTS if statuses[status])
        duration = Duration(round(sum(result.seconds for result in results) * 10) * 100_000_000)
        lines = [f"{counted(sum(statuses.values()), 'task')}: {counts} in {duration}"]
        if skipped := skipped_tasks(results):
            lines.append(f"skipped, not checked: {readable(', '.join(skipped))}")
        if replay:
            lines.append(f"replayed from {replay.recording}, not performed: {replay.text(results)}")
            if replay.counts(results)["replayedSteps"]:
                lines.append("replayed steps do not check the work of an agent; to perform those of NAME: --real NAME")
        self._write(lines)

    def _lines(self, event: Event) -> Iterator[str]:
        if event.phase == "agent" and event.kind == "step" and (rest := self._partial.pop(event.number, "")):
            yield f"{_INDENT}{readable(self._redact(rest))}"
        if event.kind != "agent_output":  # whose lines come in parts
            event = replace(event, message=self._redact(event.message))
        if event.kind == "step" and event.step and not self._quiet:
            step = event.step
            step = replace(step, message=self._redact(step.message), error=self._redact(step.error))
            self._errors[event.number] = step.error or self._errors.get(event.number, "")
            for start, text in step_lines(step):
                yield f"{self._coloured(start, event.status)} {readable(text)}"
        elif event.kind == "agent_output" and self._verbose:
            *lines, rest = (self._partial.get(event.number, "") + event.message).split("\n")
            self._partial[event.number] = rest[-MOST_LINES:]
            yield from (f"{_INDENT}{readable(self._redact(line))}" for line in lines if line.strip())
        elif event.kind == "log" and (self._verbose or (event.phase == "agent" and not self._quiet)):
            yield readable(f"{event.phase:8} {event.level:7} {event.message}")
        elif event.kind == "trial_complete" and event.trials > 1 and not self._quiet:
            yield self._verdict("run", event, f"{event.trial} of {event.trials}")
        elif event.kind == "task_complete" and not (self._quiet and event.status == "passed" and not event.message):
            remark = f": {event.message}" if event.status == "passed" and event.message else ""
            yield self._verdict("task", event, f"{event.task or event.path}{remark}")
            error = self._errors.pop(event.number, "")  # its step has printed all lines of it
            message = event.message.replace(error, error.partition("\n")[0])
            if event.status != "passed":
                yield from (f"{_INDENT}{readable(line)}" for line in message.strip().splitlines())

    def _verdict(self, what: str, event: Event, name: str) -> str:
        verdict = "passed" if event.status == "passed" else VERDICTS[event.status or "error"]
        return f"{self._coloured(f'{what:8} {verdict:7}', event.status)} {readable(name)}"

    def _coloured(self, text: str, status: str) -> str:
        return f"\x1b[{COLOURS[status]}m{text}\x1b[0m" if self._colour and status else text

    def _end(self, event: Event) -> None:
        """Forget a task that has ended; print the others that have ended, and one that still runs."""
        self._ended[event.status] += 1
        del self._running[event.number]
        if event.number == self._shown:
            for number in [number for number in self._waiting if number not in self._running]:
                self._write(self._waiting.pop(number))
            self._shown = next(iter(self._running), 0)
            self._write(self._waiting.pop(self._shown, []))

    def _write(self, lines: Iterable[str]) -> None:
        if text := "".join(f"{line}\n" for line in lines):
            self._put(f"{_CLEAR if self._progress else ''}{text}")
            self._progress = ""

    def _put(self, text: str) -> None:
        if self.failure is None:
            try:
                self._out.write(text)
                self._out.flush()
            except (OutputFailed, OSError) as failure:
                self.failure = failure

    def _draw(self) -> None:
        """Update the last line of the terminal: tasks that have ended, and what the others do."""
        if not self._terminal:
            return
        now = time.monotonic()
        failed = sum(count for status, count in self._ended.items() if status not in {"passed", "skipped"})
        running = [
            f"{event.task} {event.phase or 'starts'} {now - began:.0f} s" for event, began in self._running.values()
        ]
        counts = f"{sum(self._ended.values())}/{self._total}" + (f", {failed} failed" if failed else "")
        text = readable("  ".join([f"[{counts}]", *running])) if running else ""
        text = text[: shutil.get_terminal_size().columns - 1]
        if text != self._progress:
            self._progress = text
            self._put(f"{_CLEAR}{text}")


def skipped_tasks(results: Sequence[EvalResult]) -> list[str]:
    """Return the names of skipped tasks."""
    return [task_name(task) for result in results for task in result.tasks if task.status == "skipped"]


# --- Files -----------------------------------------------------------------------------------------------------------


def check_file(path: str) -> None:
    """Raise HostError if a report cannot be written to a path; create its folder."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"cannot create the folder of the report {path}: {error.strerror}") from None
    if target.is_dir():
        raise HostError(f"cannot write the report {path}: it is a folder")


def prepare_files(junit_file: str, json_file: str) -> None:
    """Check the files of reports, and remove old ones, which must not look like those of a run that is then killed.

    Raises:
        HostError: a report cannot be written, or both have the same file.
    """
    if junit_file and json_file and Path(junit_file).resolve() == Path(json_file).resolve():
        raise HostError(f"expected two files for --junit and --json, found {junit_file} for both")
    for path in filter(None, (junit_file, json_file)):
        check_file(path)
        if path != "-" and is_report(path):
            Path(path).unlink(missing_ok=True)


def is_report(path: str) -> bool:
    """Return True if a path is that of a report of ext-host, or of no file yet: not of a file by mistake."""
    target = Path(path)
    if not target.is_file():
        return not target.exists()
    with target.open("rb") as file:
        start = file.read(200)
    return b"ext-host" in start and (b"<testsuites" in start or b'"generator"' in start)


def write_file(path: str, data: bytes, environ: Mapping[str, str]) -> None:
    """Write a report without secrets; a regular file appears complete, or not at all. Raises HostError.

    Args:
        path: `-` for standard output.
        environ: its secrets are replaced, see redactor_of.
    """
    data = redactor_of(environ).redact(data)
    target = Path(path)
    try:
        if path == "-":
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        elif target.exists() and not target.is_file():
            target.write_bytes(data)
        else:
            with atomic_write(path) as file:
                file.write(data)
    except OSError as error:
        raise HostError(f"cannot write the report {path}: {error.strerror}") from None


# Elements of JUnit for tasks that did not pass.
_TAGS = {"failed": "failure", "error": "error", "cancelled": "error", "skipped": "skipped"}
_PHASES = ("setup", "agent", "verify", "cleanup")


def junit(results: Sequence[EvalResult], replay: Replay | None = None, error: str = "") -> bytes:
    """Return results as JUnit XML: a suite for each eval, and a case for each run of each task.

    Args:
        error: why there are no results: a suite with one case, which has this error.
    """
    from xml.etree.ElementTree import Element, SubElement, indent, tostring

    root = Element("testsuites", {"name": "ext-host"})
    total: Counter[str] = Counter()
    for result in results:
        name = readable(result.name or "ext-host")
        suite = SubElement(root, "testsuite", {"name": name})
        properties = SubElement(suite, "properties")
        SubElement(properties, "property", {"name": "agent", "value": readable(result.agent)})
        if replay:
            SubElement(properties, "property", {"name": "recording", "value": readable(replay.recording)})
            SubElement(properties, "property", {"name": "replayed", "value": replay.text([result])})
        counts: Counter[str] = Counter()
        for task in result.tasks:
            for number, trial in enumerate(task.trials or (None,), 1):
                status, reason = (trial.status, trial.reason) if trial else (task.status, task.reason)
                suffix = f" (run {number} of {len(task.trials)})" if len(task.trials) > 1 else ""
                about = {
                    "classname": name,
                    "name": readable(f"{task_name(task)}{suffix}"),
                    "time": f"{trial.seconds if trial else task.seconds:.3f}",
                }
                case = SubElement(suite, "testcase", about)
                tag = _TAGS.get(status, "")
                counts.update({"tests": 1, tag: 1})
                if tag:
                    message = readable(next(iter(reason.splitlines()), status))
                    problem = SubElement(case, tag, {"message": message, "type": status})
                    problem.text = readable(reason)
                if trial:
                    lines = [f"file     {task.task.path}", *_trial_lines(trial)]
                    SubElement(case, "system-out").text = readable("\n".join(lines))
        if result.problems:
            SubElement(suite, "system-err").text = readable("\n".join(result.problems))
        _set_counts(suite, counts, result.seconds)
        total += counts
    if error:
        suite = SubElement(root, "testsuite", {"name": "ext-host"})
        case = SubElement(suite, "testcase", {"classname": "ext-host", "name": "ext-host run", "time": "0.000"})
        message = readable(error.splitlines()[0])
        SubElement(case, "error", {"message": message, "type": "error"}).text = readable(error)
        total = Counter({"tests": 1, "error": 1})
        _set_counts(suite, total, 0.0)
    _set_counts(root, total, sum(result.seconds for result in results))
    del root.attrib["skipped"]  # which the schema of Jenkins allows for suites only
    indent(root)
    data: bytes = tostring(root, encoding="utf-8", xml_declaration=True)
    return data + b"\n"


def _set_counts(element: Element, counts: Counter[str], seconds: float) -> None:
    for name, tag in (("tests", "tests"), ("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        element.set(name, str(counts[tag]))
    element.set("time", f"{seconds:.3f}")


def _trial_lines(trial: TrialResult) -> Iterator[str]:
    """Yield the text of a trial: its steps, and the output of the agent."""
    for phase in _PHASES:
        if phase == "agent" and trial.agent:
            yield f"agent    {VERDICTS['failed' if trial.agent.error else 'passed']}"
            yield from (f"{_INDENT}{line}" for line in (trial.agent.error or trial.agent.output).strip().splitlines())
        elif phase in trial.phases:
            yield from (f"{start} {text}" for step in trial.phases[phase].steps for start, text in step_lines(step))


def as_json(results: Sequence[EvalResult], replay: Replay | None = None, error: str = "") -> bytes:
    """Return results as JSON; docs/host.md describes its members.

    Args:
        error: why there are no results.
    """
    report = {
        "format": FORMAT,
        "generator": f"ext-host {__version__}",
        "status": "error" if error else "passed" if all(result.status == "passed" for result in results) else "failed",
        "error": error,
        "skipped": skipped_tasks(results),
        "replay": replay and {"recording": replay.recording, "real": list(replay.real), **replay.counts(results)},
        "seconds": round(sum(result.seconds for result in results), 3),
        "evals": [
            {
                "name": result.name,
                "agent": result.agent,
                "status": result.status,
                "seconds": round(result.seconds, 3),
                "counts": dict(Counter(task.status for task in result.tasks)),
                "problems": list(result.problems),
                "tasks": [
                    {
                        "name": task_name(task),
                        "file": str(task.task.path),
                        "labels": dict(task.task.labels),
                        "difficulty": task.task.difficulty,
                        "status": task.status,
                        "reason": task.reason,
                        "seconds": round(task.seconds, 3),
                        "runs": [
                            {
                                "status": trial.status,
                                "reason": trial.reason,
                                "seconds": round(trial.seconds, 3),
                                "timedOut": trial.timed_out,
                                "prompt": trial.prompt,
                                "agent": trial.agent
                                and {
                                    "output": trial.agent.output,
                                    "error": trial.agent.error,
                                    "seconds": round(trial.agent_seconds, 3),
                                    "details": dict(trial.agent.details),
                                },
                                "phases": {
                                    name: {
                                        "success": phase.success,
                                        "error": phase.error,
                                        "seconds": round(phase.seconds, 3),
                                        "steps": [
                                            {
                                                "name": step.name,
                                                "success": step.success,
                                                "message": step.message,
                                                "error": step.error,
                                                "outputs": dict(step.outputs),
                                                "replayed": bool(replay and replay.has(step)),
                                                "seconds": round(step.seconds, 3),
                                            }
                                            for step in phase.steps
                                        ],
                                    }
                                    for name, phase in trial.phases.items()
                                },
                            }
                            for trial in task.trials
                        ],
                    }
                    for task in result.tasks
                ],
            }
            for result in results
        ],
    }
    return dumps(report).encode("utf-8", "backslashreplace") + b"\n"
