"""waza's JSON-RPC server (spec 3): runs continue after the response that names them, and send notifications."""

from __future__ import annotations

from .dialect import Dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules, Schema

_RUN = ("/params/runId",)
_PATHS = {"eval": "/params/path"}

DIALECT = Dialect(
    "waza",
    "ndjson",
    "waza's evaluation server",
    bound={
        "eval.run": _PATHS | {"context": "/params/context_dir"},
        "eval.list": {"evals": "/params/directory"},
        "eval.get": _PATHS,
        "eval.validate": _PATHS,
        "task.list": _PATHS,
        "task.get": _PATHS,
    },
    # The server in Python writes names of members with underscores.
    volatile={
        "eval.progress": ("/params/durationMs", "/params/duration_ms", "/params/details/duration_ms"),
        "eval.complete": ("/params/summary/durationMs", "/params/summary/duration_ms"),
    },
    names={"": ("/result/runId",), "*": _RUN},
    controls={"run.cancel": _RUN},
    subject={"run.status": "/params/runId", "run.cancel": "/params/runId", "eval.progress": "/params/event"},
)


def rules() -> Rules:
    """Return the rules of the specification."""
    from .rules import (
        ANY,
        COUNT,
        FLAG,
        LIST,
        NUMBER,
        OBJECT,
        TEXT,
        TEXTS,
        VERSION_2,
        Clause,
        Rules,
        StateMachine,
        either,
        list_of,
        one_of,
        record,
    )

    path = record(path=TEXT)
    run = record(runId=TEXT)
    null = {"type": "null"}
    progress = ("run_start", "task_start", "trial_start", "trial_complete", "task_complete", "run_complete")
    summary = record(total=COUNT, passed=COUNT, failed=COUNT, passRate_=NUMBER)
    task = record(id=TEXT, name=TEXT, description_=TEXT)
    running = dict.fromkeys(("< eval.progress", "< eval.log", "> run.status", "< = run.status"), "running")
    return Rules(
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
            "named": Clause("`eval.run`", "Messages about a run follow the response that names it."),
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
            "> eval.get": ("get", path),
            "< = eval.get": (
                "get",
                record(path=TEXT, name=TEXT, skill_=TEXT, version_=TEXT, config=OBJECT, metrics_=OBJECT),
            ),
            "> eval.validate": ("validate", path),
            "< = eval.validate": (
                "validate",
                either(record(valid={"const": True}, name=TEXT), record(valid={"const": False}, errors=TEXTS)),
            ),
            "> task.list": ("tasks", path),
            "< = task.list": ("tasks", record(tasks=list_of(task))),
            "> task.get": ("task", record(path=TEXT, taskId=TEXT)),
            "< = task.get": ("task", record(id=TEXT, name=TEXT, prompt_=TEXT, graders_=LIST)),
            "> run.status": ("status", run),
            "< = run.status": (
                "status",
                record(runId=TEXT, status=TEXT, result=either(OBJECT, null), error=either(TEXT, OBJECT, null)),
            ),
            "> run.cancel": ("cancel", run),
            "< = run.cancel": ("cancel", record(runId=TEXT, status=one_of("cancelled"))),
            "< eval.progress": (
                "progress",
                record(
                    runId=TEXT, event=one_of(*progress), taskName_=TEXT, taskNum_=COUNT, totalTasks_=COUNT, status_=TEXT
                ),
            ),
            "< eval.log": ("log", record(runId=TEXT, level=TEXT, message=TEXT)),
            "< eval.complete": (
                "complete",
                either(record(runId=TEXT, summary=summary), record(runId=TEXT, error=either(TEXT, OBJECT))),
            ),
            "< ! eval.run": ("error-object", ANY),
        },
        machines=(
            StateMachine(
                "named",
                "not named yet",
                {
                    "not named yet": {"< = eval.run": "running", "> run.status": "not named yet"},
                    "running": running | {"< eval.complete": "complete", "< = run.cancel": "cancelled"},
                    "complete": {"> run.status": "complete", "< = run.status": "complete"},
                    # Messages that were being sent when the run was cancelled still arrive.
                    "cancelled": dict.fromkeys(running, "cancelled") | {"< eval.complete": "complete"},
                },
                key=("/params/runId", "/result/runId"),
            ),
        ),
        closed="methods",
        junk="stdout",
        notifications=dict.fromkeys(("eval.progress", "eval.log", "eval.complete"), "no-id"),
    )


# Waza's server in Go: other names of parameters, no notifications, and runs that end at once.

GO_DIALECT = Dialect(
    "waza-go",
    "ndjson",
    "waza's evaluation server, as written in Go",
    bound={
        "eval.run": _PATHS | {"context": "/params/context_dir"},
        "eval.list": {"evals": "/params/dir"},
        "eval.get": _PATHS,
        "eval.validate": _PATHS,
        "task.list": _PATHS,
        "task.get": _PATHS,
    },
    names={"": ("/result/run_id", "/result/id"), "*": ("/params/run_id",)},
    subject={"run.status": "/params/run_id", "run.cancel": "/params/run_id", "task.get": "/params/task_id"},
)


def go_rules() -> Rules:
    """Return the rules of the specification."""
    from .rules import (
        FLAG,
        OBJECT,
        TEXT,
        TEXTS,
        VERSION_2,
        WHOLE,
        Clause,
        Rules,
        StateMachine,
        either,
        list_of,
        one_of,
        record,
    )

    null: Schema = {"type": "null"}
    path = record(path=TEXT)
    run = record(run_id=TEXT)
    status = one_of("running", "completed", "failed", "canceled")
    methods = (
        "eval.run", "eval.list", "eval.get", "eval.validate", "task.list", "task.get", "run.status", "run.cancel",
    )  # fmt: skip

    def perhaps(schema: Schema) -> Schema:
        """Return the schema of a list in Go: an empty one is null."""
        return either(null, list_of(schema))

    return Rules(
        "waza's server in Go",
        {
            "run": Clause("eval.run", "path, perhaps context_dir; the answer has run_id alone."),
            "list": Clause("eval.list", "dir; the answer lists path and name of each eval, or is null."),
            "get": Clause("eval.get", "path; the answer has name, config, tasks and graders, and no path."),
            "validate": Clause("eval.validate", "path; the answer has valid, and errors where it is false."),
            "tasks": Clause("task.list", "path; the answer lists id and name of each task, or is null."),
            "task": Clause("task.get", "path and task_id; the answer is the task as the server keeps it."),
            "status": Clause("run.status", "run_id; the answer has id, status, and perhaps error."),
            "cancel": Clause("run.cancel", "run_id; the answer has canceled."),
            "error": Clause("errors", "data of an error is a text."),
            "named": Clause("eval.run", "A response about a run follows the response that names it."),
            "methods": Clause("methods", "There are eight methods, in one direction, and no notifications."),
            "stdout": Clause("transport", "Each message is a single line of JSON."),
        },
        envelope=VERSION_2,
        envelope_clause="version-2",
        messages={
            "> eval.run": ("run", record(path=TEXT, context_dir_=TEXT)),
            "< = eval.run": ("run", run),
            "> eval.list": ("list", record(dir=TEXT)),
            "< = eval.list": ("list", record(evals=perhaps(record(path=TEXT, name=TEXT, skill_=TEXT, scenario_=TEXT)))),
            "> eval.get": ("get", path),
            "< = eval.get": (
                "get",
                record(name=TEXT, config=OBJECT, tasks=perhaps(TEXT), graders=perhaps(record(name=TEXT, type=TEXT))),
            ),
            "> eval.validate": ("validate", path),
            "< = eval.validate": (
                "validate",
                either(record(valid={"const": True}), record(valid={"const": False}, errors=TEXTS)),
            ),
            "> task.list": ("tasks", path),
            "< = task.list": ("tasks", record(tasks=perhaps(record(id=TEXT, name=TEXT)))),
            "> task.get": ("task", record(path=TEXT, task_id=TEXT)),
            "< = task.get": ("task", OBJECT),
            "> run.status": ("status", run),
            "< = run.status": ("status", record(id=TEXT, status=status, error_=TEXT)),
            "> run.cancel": ("cancel", run),
            "< = run.cancel": ("cancel", record(canceled=FLAG)),
            **{f"< ! {method}": ("error", record(code=WHOLE, message=TEXT, data_=TEXT)) for method in methods},
        },
        machines=(
            StateMachine(
                "named",
                "not named yet",
                {
                    "not named yet": {"< = eval.run": "named"},
                    "named": {"< = run.status": "named"},
                },
                key=("/result/run_id", "/result/id"),
            ),
        ),
        closed="methods",
        junk="stdout",
    )
