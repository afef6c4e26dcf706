"""A reference server of spec 3 (waza): evals are files, runs go on by themselves, one event each in turn.

`--like python` is the server in Python, with what it does otherwise; `waza_go` is the one in Go.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast
from uuid import uuid4

from ext_sdk.core.wire.errors import RpcError
from ext_sdk.core.wire.json_codec import loads
from tests.peers.rpc import RpcPeer, text
from tests.peers.transport import serve

if TYPE_CHECKING:
    from ext_sdk.core.wire.errors import Id
    from tests.peers.rpc import Params
    from tests.peers.transport import Write

NOT_FOUND, INVALID = -32000, -32001
NEVER = "never"  # an executor whose tasks go on until they are cancelled
Fields = dict[str, object]


class Run:
    """A run: what is still to be told of it."""

    def __init__(self, id: str, tasks: list[Fields], *, hangs: bool) -> None:
        self.id = id
        self.status = "running"
        self.summary: Fields | None = None
        self.events = self._events(tasks)
        self.hangs = hangs

    def _events(self, tasks: list[Fields]) -> list[tuple[str, Fields]]:
        events: list[tuple[str, Fields]] = [("eval.progress", {"event": "run_start"})]
        for number, task in enumerate(tasks, 1):
            about = {"taskName": task["id"], "taskNum": number, "totalTasks": len(tasks)}
            events.append(("eval.progress", {"event": "task_start", **about}))
            events.append(("eval.log", {"level": "info", "message": f"Running task: {task['id']}"}))
            events.append(("eval.progress", {"event": "trial_start", **about}))
            events.append(("eval.progress", {"event": "trial_complete", **about}))
            status = "failed" if task.get("fails") else "passed"
            events.append(("eval.progress", {"event": "task_complete", **about, "status": status}))
        failed = sum(bool(task.get("fails")) for task in tasks)
        passed = len(tasks) - failed
        self.summary = {"total": len(tasks), "passed": passed, "failed": failed, "passRate": passed / len(tasks)}
        return [*events, ("eval.progress", {"event": "run_complete"}), ("eval.complete", {"summary": self.summary})]


class Waza(RpcPeer):
    """One session of the server."""

    def __init__(self, write: Write) -> None:
        methods = {
            "eval.run": self.run, "eval.list": self.list, "eval.get": self.get, "eval.validate": self.validate,
            "task.list": self.tasks, "task.get": self.task, "run.status": self.status, "run.cancel": self.cancel,
        }  # fmt: skip
        super().__init__("ndjson", methods, write)
        self.runs: dict[str, Run] = {}

    def run(self, _: Id, params: Params) -> object:
        spec = read(text(params, "path"))
        if missing := _missing(spec):
            raise RpcError(INVALID, "Validation failed", {"errors": missing})
        run = Run(str(uuid4()), cast("list[Fields]", spec["tasks"]), hangs=params.get("executor") == NEVER)
        self.runs[run.id] = run
        return {"runId": run.id, "status": run.status}

    def tick(self) -> bool:
        """One event of each run."""
        for run in self.runs.values():
            if run.status == "running" and not (run.hangs and len(run.events) == 1):
                method, params = run.events.pop(0)
                self.notify(method, {"runId": run.id} | params)
                run.status = "running" if run.events else "completed"
        return any(run.status == "running" and not (run.hangs and len(run.events) == 1) for run in self.runs.values())

    def list(self, _: Id, params: Params) -> object:
        files = sorted(Path(text(params, "directory")).glob("*/eval.yaml"))
        return {"evals": [{"path": str(file)} | _named(read(str(file))) for file in files]}

    def get(self, _: Id, params: Params) -> object:
        spec = read(text(params, "path"))
        config = {"executor": "mock", "trials_per_task": 1, "timeout_seconds": 300}
        return {"path": params["path"]} | _named(spec) | {"config": config, "metrics": {"pass_threshold": 0.8}}

    def validate(self, _: Id, params: Params) -> object:
        spec = read(text(params, "path"))
        missing = _missing(spec)
        return {"valid": False, "errors": missing} if missing else {"valid": True} | _named(spec)

    def tasks(self, _: Id, params: Params) -> object:
        found = cast("list[Fields]", read(text(params, "path"))["tasks"])
        return {"tasks": [{"id": each["id"], "name": each["id"], "file": f"tasks/{each['id']}.yaml"} for each in found]}

    def task(self, _: Id, params: Params) -> object:
        wanted = text(params, "taskId")
        for each in cast("list[Fields]", read(text(params, "path"))["tasks"]):
            if each["id"] == wanted:
                return {"id": wanted, "name": wanted, "prompt": f"Do {wanted}.", "graders": [{"type": "file_exists"}]}
        raise RpcError(-32602, "Invalid params", {"taskId": wanted})

    def status(self, _: Id, params: Params) -> object:
        run = self._run(params)
        result = run.summary if run.status == "completed" else None
        return {"runId": run.id, "status": run.status, "result": result, "error": None}

    def cancel(self, _: Id, params: Params) -> object:
        run = self._run(params)
        if run.status != "running":
            raise RpcError(-32602, "Invalid params", {"errors": [f"the run is {run.status}"]})
        run.status = "cancelled"
        return {"runId": run.id, "status": run.status}

    def _run(self, params: Params) -> Run:
        if text(params, "runId") not in self.runs:
            raise RpcError(-32602, "Invalid params", {"runId": params["runId"]})
        return self.runs[text(params, "runId")]


def read(path: str) -> Fields:
    """An eval: JSON, which is YAML as well. Raises RpcError."""
    try:
        spec = loads(Path(path).read_text())
    except OSError:
        raise RpcError(NOT_FOUND, "Eval not found", {"path": path}) from None
    if not isinstance(spec, dict):
        raise RpcError(INVALID, "Validation failed", {"path": path})
    return spec


def _missing(spec: Fields) -> list[str]:
    return [f"Missing required field: {name}" for name in ("name", "skill", "tasks") if name not in spec]


def _named(spec: Fields) -> Fields:
    return {name: spec[name] for name in ("name", "skill", "version") if name in spec}


class LikePython(Waza):
    """Progress in snake case, five messages after `eval.complete`, no id in the answer to what can't be read."""

    def tick(self) -> bool:
        for run in [run for run in self.runs.values() if run.status == "running"]:
            run.status = "complete"
            self.notify(
                "eval.complete", {"runId": run.id, "error": "'EvalSummary' object has no attribute 'tasks_passed'"}
            )
            for number in range(1, 6):
                told = {"runId": run.id, "event": "message", "task_num": number, "duration_ms": 17 * number}
                self.notify("eval.progress", told | {"task_name": None, "details": None})
        return False

    def refuse(self, error: RpcError) -> None:
        self.write(b'{"jsonrpc": "2.0", "error": {"code": %d, "message": "Parse error"}}\n' % error.code)


KINDS = {"python": LikePython, "": Waza}


def main(arguments: list[str]) -> int:
    """See the module."""
    like = arguments[arguments.index("--like") + 1] if "--like" in arguments else ""
    return serve(partial(KINDS[like]), arguments)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
