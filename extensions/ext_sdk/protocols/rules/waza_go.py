"""waza's dialect in Go: what its server demands and gives, as it was read and seen."""

from __future__ import annotations

from .rule import Clause, Machine, Rules
from .schema import FLAG, OBJECT, TEXT, TEXTS, VERSION_2, WHOLE, either, list_of, one_of, record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .schema import Schema

_NULL: Schema = {"type": "null"}
_PATH = record(path=TEXT)
_RUN = record(run_id=TEXT)
_STATUS = one_of("running", "completed", "failed", "canceled")
_METHODS = (
    "eval.run", "eval.list", "eval.get", "eval.validate", "task.list", "task.get", "run.status", "run.cancel",
)  # fmt: skip


def _perhaps(schema: Schema) -> Schema:
    """A list in Go: null where it is empty."""
    return either(_NULL, list_of(schema))


RULES = Rules(
    "waza's server in Go",
    {
        "run": Clause("eval.run", "path, perhaps context_dir; the answer has run_id alone."),
        "list": Clause("eval.list", "dir; the answer lists path and name of each eval, or is null."),
        "get": Clause("eval.get", "path; the answer has name, config, tasks and graders, and no path."),
        "validate": Clause("eval.validate", "path; the answer has valid, and errors where it is false."),
        "tasks": Clause("task.list", "path; the answer lists id and name of each task, or is null."),
        "task": Clause("task.get", "path and task_id; the answer is the task as the server keeps it."),
        "status": Clause("run.status", "run_id; the answer has id, status, and perhaps error."),
        "cancel": Clause("run.cancel", "run_id; the answer says whether the run was canceled."),
        "error": Clause("errors", "What an error is about is a text."),
        "named": Clause("eval.run", "The server tells of runs that it has named."),
        "methods": Clause("methods", "There are eight methods, in one direction, and no notifications."),
        "stdout": Clause("transport", "Each message is a single line of JSON."),
    },
    envelope=VERSION_2,
    envelope_clause="version-2",
    messages={
        "> eval.run": ("run", record(path=TEXT, context_dir_=TEXT)),
        "< = eval.run": ("run", _RUN),
        "> eval.list": ("list", record(dir=TEXT)),
        "< = eval.list": ("list", record(evals=_perhaps(record(path=TEXT, name=TEXT, skill_=TEXT, scenario_=TEXT)))),
        "> eval.get": ("get", _PATH),
        "< = eval.get": (
            "get",
            record(name=TEXT, config=OBJECT, tasks=_perhaps(TEXT), graders=_perhaps(record(name=TEXT, type=TEXT))),
        ),
        "> eval.validate": ("validate", _PATH),
        "< = eval.validate": (
            "validate", either(record(valid={"const": True}), record(valid={"const": False}, errors=TEXTS))
        ),
        "> task.list": ("tasks", _PATH),
        "< = task.list": ("tasks", record(tasks=_perhaps(record(id=TEXT, name=TEXT)))),
        "> task.get": ("task", record(path=TEXT, task_id=TEXT)),
        "< = task.get": ("task", OBJECT),
        "> run.status": ("status", _RUN),
        "< = run.status": ("status", record(id=TEXT, status=_STATUS, error_=TEXT)),
        "> run.cancel": ("cancel", _RUN),
        "< = run.cancel": ("cancel", record(canceled=FLAG)),
        **{f"< ! {method}": ("error", record(code=WHOLE, message=TEXT, data_=TEXT)) for method in _METHODS},
    },
    machines=(
        Machine(
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
)  # fmt: skip
