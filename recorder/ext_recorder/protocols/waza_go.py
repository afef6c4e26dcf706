"""waza's server in Go: other names of parameters, no notifications, and runs that end at once."""

from __future__ import annotations

from .dialect import Dialect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .rules import Rules, Schema

_PATHS = {"eval": "/params/path"}

DIALECT = Dialect(
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


def rules() -> Rules:
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
