"""Tasks for tests of ext-host, and an extension whose operations behave as their names promise."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

from ext_host.agents import NoAgent
from ext_host.files import EvalFile, read_eval
from ext_host.runner import EvalRun, RunOptions

if TYPE_CHECKING:
    from ext_host.runner import EvalResult, Event, TrialResult

# Operations: `ok` and `nothing` succeed, `fail` fails, `rpc` is an error of the protocol, `crash` and `junk` break the
# extension, `wait` responds when the file of its argument exists, `silent` never.
EXTENSION = """
import json, os, pathlib, sys, time
schema = {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": False}
operations = {name: {"params": schema} for name in
              ("ok", "nothing", "fail", "rpc", "crash", "junk", "wait", "silent", "log", "odd")}
for line in sys.stdin:
    request = json.loads(line)
    params = request.get("params") or {}
    operation, args = params.get("operation", request["method"]), params.get("args") or {}
    outputs = {"args": json.dumps(params.get("args")), "context": json.dumps(params.get("context")),
               "env": os.environ.get("GIVEN", ""), "count": str(request["id"])}
    answer = {"result": {"success": True, "message": "fine", "outputs": outputs}}
    if operation == "initialize":
        manifest = {"name": "x", "version": "1.0.0", "protocolVersion": "0.0.1", "operations": operations}
        answer = {"result": manifest if "refuse" not in params.get("config", {}) else {}}
        if "error" in params.get("config", {}):
            answer = {"error": {"code": -32602, "message": "config: wrong"}}
    elif operation == "nothing":
        answer = {"result": {"success": True}}
    elif operation == "odd":
        answer = {"result": ["odd"]}
    elif operation == "fail":
        answer = {"result": {"success": False, "message": "bad", "error": "very bad", "outputs": {"a": "1"}}}
    elif operation == "rpc":
        answer = {"error": {"code": -32603, "message": "a fault"}}
    elif operation == "crash":
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)
    elif operation == "junk":
        print("hello", flush=True)
    elif operation == "log":
        print(json.dumps({"jsonrpc": "2.0", "method": "log", "params": {"level": "warn", "message": "careful"}}))
        print(json.dumps({"jsonrpc": "2.0", "id": "q", "method": "question"}), flush=True)
        answer["result"]["message"] = sys.stdin.readline().strip()
    elif operation == "wait":
        while not pathlib.Path(args["x"]).exists():
            time.sleep(0.01)
    elif operation == "silent":
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **answer}), flush=True)
    if operation == "shutdown":
        sys.exit(int(os.environ.get("EXIT", 0)))
"""
HEAD = "kind: Task\napiVersion: mcpchecker/v1alpha2\n"


class Tasks:
    """Folder with tasks that require the extension `x`, which is EXTENSION.

    Attributes:
        events: of all runs.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.events: list[Event] = []
        self.extension = folder / "extension.py"
        self.extension.write_text(EXTENSION)

    @property
    def command(self) -> str:
        """Command line of the extension."""
        return f"'{sys.executable}' -S '{self.extension}'"

    def task(self, spec: str, name: str = "task", metadata: str = "") -> Path:
        """Write a task, whose spec has a prompt and requires `x` unless it says otherwise. Return its path."""
        spec = textwrap.dedent(spec)
        given = "" if "requires:" in spec else "requires: [{extension: x}]\n"
        given += "" if "prompt:" in spec else "prompt: {inline: Do it.}\n"
        path = self.folder / f"{name}.yaml"
        path.write_text(f"{HEAD}metadata: {{name: {name}{metadata}}}\nspec:\n{textwrap.indent(given + spec, '  ')}")
        return path

    def eval(self, config: str, name: str = "eval") -> EvalFile:
        """Write an eval, and return it."""
        path = self.folder / f"{name}.yaml"
        path.write_text(
            f"kind: Eval\nmetadata: {{name: {name}}}\nconfig:\n{textwrap.indent(textwrap.dedent(config), '  ')}"
        )
        return read_eval(path)

    def prepare(self, *tasks: Path | EvalFile, **options: object) -> EvalRun:
        """Return the run of tasks, or of an eval, without an agent unless the options have one."""
        given = {"agent": NoAgent(), "programs": {"x": self.command}, **options}
        spec = tasks[0] if isinstance(tasks[0], EvalFile) else EvalFile.of_tasks([Path(str(each)) for each in tasks])
        return EvalRun(spec, RunOptions(**given), self.events.append)  # type: ignore[arg-type]

    def run(self, *tasks: Path | EvalFile, **options: object) -> EvalResult:
        """Run tasks, or an eval."""
        run = self.prepare(*tasks, **options)
        assert run.check() == []
        return run.run()

    def trial(self, spec: str, **options: object) -> TrialResult:
        """Run a task once, and return its result."""
        (task,) = self.run(self.task(spec), **options).tasks
        (trial,) = task.trials
        return trial
