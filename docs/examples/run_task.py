"""A host for a task file: its setup, an agent, its checks and its cleanup, with the extensions that it names.

    python -m docs.examples.run_task TASK.yaml --agent COMMAND [NAME=PROGRAM...]

A shell runs COMMAND in the place of an agent, with the prompt on its standard input; what it prints is its answer.
PROGRAM stands in for `ext-NAME`. The exit code is 1 where a step failed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import cast

import yaml

from docs.examples.host import Host
from ext_sdk.wire import RpcError

Spec = dict[str, object]
Result = dict[str, object]


class Task:
    """One run of a task in the current folder.

    Args:
        spec: the task's `spec`.
        hosts: the extensions by name, started.
    """

    def __init__(self, spec: Spec, hosts: dict[str, Host]) -> None:
        self._spec = spec
        self._hosts = hosts
        self._failed = False

    def run(self, agent: str) -> int:
        """Run all of it, with a command as the agent. Returns 1 where a step failed."""
        self._steps("setup", {})
        if not self._failed:
            prompt = str(cast("Spec", self._spec["prompt"])["inline"])
            said = subprocess.run(["sh", "-c", agent], input=prompt, stdout=subprocess.PIPE, text=True, check=False)
            print(f"agent    {said.stdout.strip()}")
            self._steps("verify", {"agent": {"prompt": prompt, "output": said.stdout}})
        self._steps("cleanup", {})
        return int(self._failed)

    def _steps(self, phase: str, more: Spec) -> None:
        for step in cast("list[Spec]", self._spec.get(phase, [])):
            for name, args in step.items():
                context = {"workdir": str(Path.cwd()), "phase": phase, **more}
                self._step(phase, name, {"operation": name.partition(".")[2], "args": args, "context": context})

    def _step(self, phase: str, name: str, params: Spec) -> None:
        answer = self._hosts[name.partition(".")[0]].try_call("execute", params)
        if isinstance(answer, RpcError):
            answer = {"success": False, "message": str(answer)}
        result = cast("Result", answer)
        self._failed |= not result["success"]
        print(f"{phase:8} {'ok' if result['success'] else 'FAILED':6}  {name:28}  {result['message']}")
        if "error" in result:
            print("                 " + str(result["error"]).replace("\n", "\n                 "))


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(description="Run a task file with a command as the agent.")
    parser.add_argument("task", type=Path)
    parser.add_argument("--agent", required=True)
    parser.add_argument("programs", nargs="*", metavar="NAME=PROGRAM")
    given = parser.parse_intermixed_args()
    programs = dict(each.partition("=")[::2] for each in given.programs)
    try:
        return run(given.task, given.agent, programs)
    except (OSError, EOFError, RpcError, yaml.YAMLError) as error:
        sys.exit(f"{given.task}: {error}")
    except KeyError as missing:
        sys.exit(f"{given.task}: expected {missing}: a key of the task, or an extension that it requires")


def run(task: Path, agent: str, programs: dict[str, str]) -> int:
    """Start the extensions, run the task, end them. Returns 0 where all went well."""
    spec = yaml.safe_load(task.read_text())["spec"]
    with ExitStack() as stack:
        names = [each["extension"] for each in spec["requires"]]
        hosts = {name: stack.enter_context(Host([programs.get(name, f"ext-{name}")])) for name in names}
        for host in hosts.values():
            host.call("initialize", {"protocolVersion": "0.0.1"})
        failed = Task(spec, hosts).run(agent)
        for host in hosts.values():
            host.try_call("shutdown", {})
        return max(failed, *(host.end() for host in hosts.values()))


if __name__ == "__main__":
    sys.exit(main())
