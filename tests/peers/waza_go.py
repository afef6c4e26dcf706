"""A reference server of waza's dialect in Go, on stdio and TCP: as that server was seen to speak.

Other names of parameters, ids last, runs that end at once and tell of nothing, `null` for an empty list, texts for what
an error is about, and an end after what can't be read.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ext_sdk.core.wire.errors import RpcError
from tests.peers.rpc import INVALID_PARAMS, RpcPeer
from tests.peers.transport import serve
from tests.peers.waza import NOT_FOUND, read

if TYPE_CHECKING:
    from ext_sdk.core.wire.errors import Id
    from tests.peers.rpc import Params
    from tests.peers.transport import Write
    from tests.peers.waza import Fields


class WazaGo(RpcPeer):
    """One session of the server."""

    def __init__(self, write: Write) -> None:
        methods = {
            "eval.run": self.run, "eval.list": self.list, "eval.get": self.get, "eval.validate": self.validate,
            "task.list": self.tasks, "task.get": self.task, "run.status": self.status, "run.cancel": self.cancel,
        }  # fmt: skip
        super().__init__("ndjson", methods, lambda line: write(id_last(line)))
        self.runs: list[str] = []

    def run(self, _: Id, params: Params) -> object:
        spec(params)
        self.runs.append(f"run-{len(self.runs) + 1}")
        return {"run_id": self.runs[-1]}

    def list(self, _: Id, params: Params) -> object:
        files = sorted(Path(given(params, "dir")).glob("*/eval.yaml"))
        return {"evals": [{"path": str(file), "name": str(read(str(file))["name"])} for file in files] or None}

    def get(self, _: Id, params: Params) -> object:
        found = spec(params)
        about = {"name": found["name"], "skill": found.get("skill", "")}
        return about | {
            "config": {"runs_per_test": 1, "engine_type": "mock"},
            "tasks": ["tasks/*.yaml"],
            "graders": None,
        }

    def validate(self, _: Id, params: Params) -> object:
        found = spec(params)
        missing = [f"schema: missing {name}" for name in ("skill", "tasks") if name not in found]
        return {"valid": False, "errors": missing} if missing else {"valid": True}

    def tasks(self, _: Id, params: Params) -> object:
        return {"tasks": [{"id": each["id"], "name": each["id"]} for each in tasks(spec(params))] or None}

    def task(self, _: Id, params: Params) -> object:
        """The server's own model of it, as it is."""
        wanted = given(params, "task_id")
        for each in tasks(spec(params)):
            if each["id"] == wanted:
                return {"test_id": wanted, "display_name": wanted, "stimulus": {"message": f"Do {wanted}."}}
        raise RpcError(INVALID_PARAMS, "Invalid params", f'task "{wanted}" not found')

    def status(self, _: Id, params: Params) -> object:
        return {"id": self._run(params), "status": "completed"}

    def cancel(self, _: Id, params: Params) -> object:
        self._run(params)
        return {"canceled": False}

    def _run(self, params: Params) -> str:
        run = given(params, "run_id")
        if run not in self.runs:
            raise RpcError(INVALID_PARAMS, "Invalid params", f'run "{run}" not found')
        return run

    def refuse(self, error: RpcError) -> None:
        super().refuse(error)
        self.ended = True


def given(params: Params, name: str) -> str:
    """A parameter that has to be there. Raises RpcError."""
    value = params.get(name)
    if not isinstance(value, str) or not value:
        raise RpcError(INVALID_PARAMS, "Invalid params", f"{name} is required")
    return value


def spec(params: Params) -> Fields:
    """The eval that a request names. Raises RpcError."""
    path = given(params, "path")
    try:
        return read(path)
    except RpcError:
        raise RpcError(NOT_FOUND, "Eval not found", path) from None


def tasks(found: Fields) -> list[Fields]:
    """Those of an eval."""
    return cast("list[Fields]", found.get("tasks", []))


def id_last(line: bytes) -> bytes:
    """An answer with its id in the last place."""
    start = line.index(b'"id":')
    end = line.index(b",", start)
    return line[:start] + line[end + 1 : -2] + b"," + line[start:end] + b"}\n"


if __name__ == "__main__":
    raise SystemExit(serve(WazaGo, sys.argv[1:]))
