"""Spec 3: waza's JSON-RPC protocol."""

from __future__ import annotations

from .rule import Clause, Machine, Rules
from .schema import ANY, COUNT, FLAG, LIST, NUMBER, OBJECT, TEXT, TEXTS, VERSION_2, either, list_of, one_of, record

_PATH = record(path=TEXT)
_RUN = record(runId=TEXT)
_NULL = {"type": "null"}
_PROGRESS = ("run_start", "task_start", "trial_start", "trial_complete", "task_complete", "run_complete")
_SUMMARY = record(total=COUNT, passed=COUNT, failed=COUNT, passRate_=NUMBER)
_TASK = record(id=TEXT, name=TEXT, description_=TEXT)
_RUNNING = dict.fromkeys(("< eval.progress", "< eval.log", "> run.status", "< = run.status"), "running")

RULES = Rules(
    "waza JSON-RPC",
    {
        "run": Clause("`eval.run`", "path is required; the answer has runId and status."),
        "list": Clause("`eval.list`", "directory; the answer lists path, name, skill, version of each eval."),
        "get": Clause("`eval.get`", "path; the answer has path, name, skill, version, config and metrics."),
        "validate": Clause("`eval.validate`", "path; the answer has valid, and either name and skill or errors."),
        "tasks": Clause("`task.list`", "path; the answer lists the tasks."),
        "task": Clause("`task.get`", "path and taskId; the answer has id, name, prompt, graders."),
        "status": Clause("`run.status`", "runId; the answer has runId, status, result, error."),
        "cancel": Clause("`run.cancel`", "runId; the answer has runId and the status cancelled."),
        "progress": Clause("`eval.progress`", "runId and one of six events."),
        "log": Clause("`eval.log`", "runId, level, message."),
        "complete": Clause("`eval.complete`", "runId, and either a summary or an error."),
        "no-id": Clause("Notification Format", "Notifications are sent without an id."),
        "named": Clause("`eval.run`", "A run is told of after the answer that names it, and until it completes."),
        "methods": Clause("Methods, Notifications", "These are all methods, each in its direction."),
        "stdout": Clause("Stdio (Default)", "Each message is a single line of JSON."),
    },
    envelope=VERSION_2,
    envelope_clause="version-2",
    messages={
        "> eval.run": ("run", record(path=TEXT, executor_=TEXT, model_=TEXT, verbose_=FLAG, context_dir_=TEXT)),
        "< = eval.run": ("run", record(runId=TEXT, status=TEXT)),
        "> eval.list": ("list", record(directory=TEXT)),
        "< = eval.list": ("list", record(evals=list_of(record(path=TEXT, name_=TEXT, skill_=TEXT, version_=TEXT)))),
        "> eval.get": ("get", _PATH),
        "< = eval.get": (
            "get", record(path=TEXT, name=TEXT, skill_=TEXT, version_=TEXT, config=OBJECT, metrics_=OBJECT)
        ),
        "> eval.validate": ("validate", _PATH),
        "< = eval.validate": (
            "validate",
            either(record(valid={"const": True}, name=TEXT), record(valid={"const": False}, errors=TEXTS)),
        ),
        "> task.list": ("tasks", _PATH),
        "< = task.list": ("tasks", record(tasks=list_of(_TASK))),
        "> task.get": ("task", record(path=TEXT, taskId=TEXT)),
        "< = task.get": ("task", record(id=TEXT, name=TEXT, prompt_=TEXT, graders_=LIST)),
        "> run.status": ("status", _RUN),
        "< = run.status": (
            "status",
            record(runId=TEXT, status=TEXT, result=either(OBJECT, _NULL), error=either(TEXT, OBJECT, _NULL)),
        ),
        "> run.cancel": ("cancel", _RUN),
        "< = run.cancel": ("cancel", record(runId=TEXT, status=one_of("cancelled"))),
        "< eval.progress": (
            "progress",
            record(
                runId=TEXT, event=one_of(*_PROGRESS), taskName_=TEXT, taskNum_=COUNT, totalTasks_=COUNT, status_=TEXT
            ),
        ),
        "< eval.log": ("log", record(runId=TEXT, level=TEXT, message=TEXT)),
        "< eval.complete": (
            "complete", either(record(runId=TEXT, summary=_SUMMARY), record(runId=TEXT, error=either(TEXT, OBJECT)))
        ),
        "< ! eval.run": ("error-object", ANY),
    },
    machines=(
        Machine(
            "named",
            "not named yet",
            {
                "not named yet": {"< = eval.run": "running", "> run.status": "not named yet"},
                "running": _RUNNING | {"< eval.complete": "complete", "< = run.cancel": "cancelled"},
                "complete": {"> run.status": "complete", "< = run.status": "complete"},
                # What was on its way when the run was cancelled still comes.
                "cancelled": dict.fromkeys(_RUNNING, "cancelled") | {"< eval.complete": "complete"},
            },
            key=("/params/runId", "/result/runId"),
        ),
    ),
    closed="methods",
    junk="stdout",
    notifications=dict.fromkeys(("eval.progress", "eval.log", "eval.complete"), "no-id"),
)  # fmt: skip
