"""waza's JSON-RPC server (spec 3): runs go on after the answer that names them, and tell of themselves."""

from __future__ import annotations

from .dialect import Dialect

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
    # The Python server writes durations, in its own spelling of names.
    volatile={
        "eval.progress": ("/params/durationMs", "/params/duration_ms", "/params/details/duration_ms"),
        "eval.complete": ("/params/summary/durationMs", "/params/summary/duration_ms"),
    },
    names={"": ("/result/runId",), "*": _RUN},
    steers={"run.cancel": _RUN},
    subject={"run.status": "/params/runId", "run.cancel": "/params/runId", "eval.progress": "/params/event"},
)
