"""The dialect of waza's server in Go: other names for parameters, no notifications, runs that end at once."""

from __future__ import annotations

from .dialect import Dialect

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
