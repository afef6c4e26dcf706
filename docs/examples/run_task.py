"""A small host for the tasks of an eval, which uses extensions as mcpchecker does.

    python -m docs.examples.run_task EVAL.yaml [--run REGEX] [--agent COMMAND] [NAME=PROGRAM...]

COMMAND is used in place of the agent's `runPrompt`, PROGRAM in place of the `package` of the extension NAME. As in
mcpchecker, a failed step does not end its phase, but an error of the protocol does; after one in `setup` neither the
agent nor the cleanup is run. MCP servers, templates in `config` and the check of arguments by the manifest are left
out. The exit code is 1 if a task did not pass; that of mcpchecker is 0.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import cast

import yaml

from docs.examples.host import Host
from ext_sdk.wire import RpcError

Spec = dict[str, object]
REFERENCE = re.compile(r"\{steps\.([^{}]+)\.([^{}.]+)\}")


class Eval:
    """One run of an eval's tasks, one after the other, with one process for each extension.

    Args:
        path: of the eval's file.
        agent: shell command of the agent; "" for that of the eval.
        programs: commands of extensions by name, in place of those of the eval.
    """

    def __init__(self, path: Path, agent: str, programs: dict[str, str]) -> None:
        self._folder = path.resolve().parent
        config = cast("Spec", _read(path)["config"])
        self._tasks = [str(each["glob"]) for each in cast("list[Spec]", config["taskSets"])]
        self._extensions = cast("dict[str, Spec]", config.get("extensions", {}))
        self._agent = agent or self._command_of(cast("Spec", config["agent"]))
        self._programs = programs
        self._stack = ExitStack()
        self._hosts: dict[str, Host] = {}

    def _command_of(self, agent: Spec) -> str:
        return str(cast("Spec", _read(self._folder / str(agent["path"]))["commands"])["runPrompt"])

    def run(self, pattern: str) -> int:
        """Run the tasks whose names match. Returns 1 if one did not pass."""
        with self._stack:
            passed = []
            for path in sorted(path for glob in self._tasks for path in self._folder.glob(glob)):
                task = _read(path)
                if re.search(pattern, str(cast("Spec", task["metadata"])["name"])):
                    passed.append(Task(cast("Spec", task["spec"]), path.parent, self).run(self._agent))
            if not passed:
                sys.exit(f"no task of the eval matches {pattern!r}")
            for host in self._hosts.values():
                host.try_call("shutdown", {})
            codes = [host.end() for host in self._hosts.values()]
            return int(not all(passed) or any(codes))

    def host(self, name: str) -> Host:
        """Return the extension of this name, started by its first user. Raises RpcError, OSError, KeyError."""
        if name not in self._hosts:
            extension = self._extensions[name]
            package = Path(str(extension["package"])).expanduser()
            program = shutil.which(self._programs[name]) if name in self._programs else str(self._folder / package)
            env = os.environ | cast("dict[str, str]", extension.get("env", {}))
            self._hosts[name] = host = self._stack.enter_context(Host([program or self._programs[name]], env))
            config = {"config": extension["config"]} if "config" in extension else {}
            host.call("initialize", {"protocolVersion": "0.0.1", **config})
        return self._hosts[name]


class Task:
    """One run of a task.

    Args:
        spec: the task's `spec`.
        folder: of its file: the workdir of its steps.
        owner: the eval.
    """

    def __init__(self, spec: Spec, folder: Path, owner: Eval) -> None:
        self._spec = spec
        self._folder = folder
        self._hosts = {
            str(each.get("as", each["extension"])): owner.host(str(each["extension"]))
            for each in cast("list[Spec]", spec["requires"])
        }
        self._outputs: dict[str, dict[str, str]] = {}  # of setup, by the step's name

    def run(self, agent: str) -> bool:
        """Run all of it. Returns whether the checks passed."""
        try:
            self._steps("setup", {})
        except RpcError:
            return False
        prompt = self._filled(str(cast("Spec", self._spec["prompt"])["inline"]))
        try:
            with tempfile.TemporaryDirectory() as folder:
                command = [os.environ.get("SHELL", "/usr/bin/bash"), "-c", agent.replace("{{ .Prompt }}", prompt)]
                said = subprocess.run(command, cwd=folder, stdout=-1, stderr=subprocess.STDOUT, text=True, check=False)
            print(f"agent    {'ok' if not said.returncode else 'FAILED':6}  {said.stdout.strip()}")
            about_agent: Spec = {"agent": {"prompt": prompt, "output": said.stdout}}
            return not said.returncode and self._steps("verify", about_agent)
        except RpcError:
            return False
        finally:
            with suppress(RpcError):  # it is printed, and does not change the verdict
                self._steps("cleanup", {})

    def _filled(self, prompt: str) -> str:
        """Return the prompt with outputs of setup for `{steps.EXTENSION.OPERATION.OUTPUT}`.

        A prompt with another brace, or with an output that is missing, is returned as it is.
        """
        if re.search("[{}]", REFERENCE.sub("", prompt)):
            return prompt
        try:
            return REFERENCE.sub(lambda found: self._outputs[found[1]][found[2]], prompt)
        except KeyError:
            return prompt

    def _steps(self, phase: str, more: Spec) -> bool:
        """Run the steps of a phase. Returns whether all succeeded; raises RpcError for an error of the protocol."""
        return all(
            [  # noqa: C419 - the steps after a failed one are run as well
                self._step(phase, name, args, {"workdir": str(self._folder), **more})
                for step in cast("list[Spec]", self._spec.get(phase, []))
                for name, args in step.items()
            ]
        )

    def _step(self, phase: str, name: str, args: object, context: Spec) -> bool:
        alias, _, operation = name.partition(".")
        try:
            params = {"operation": operation, "args": args, "context": context}
            result = cast("Spec", self._hosts[alias].call("execute", params))
        except RpcError as error:
            print(f"{phase:8} {'ERROR':6}  {name:28}  {error}")
            raise
        print(f"{phase:8} {'ok' if result['success'] else 'FAILED':6}  {name:28}  {result['message']}")
        if "error" in result:
            print("                 " + str(result["error"]).replace("\n", "\n                 "))
        if phase == "setup" and result["success"]:
            self._outputs[name] = cast("dict[str, str]", result.get("outputs", {}))
        return bool(result["success"])


def _read(path: Path) -> Spec:
    return cast("Spec", yaml.safe_load(path.read_text()))


def main() -> int:
    """Run an eval as the command line names it."""
    parser = argparse.ArgumentParser(description="Run the tasks of an eval.")
    parser.add_argument("eval", type=Path, metavar="EVAL.yaml")
    parser.add_argument("--run", default=".", metavar="REGEX", help="tasks to run, found in their names")
    parser.add_argument("--agent", default="", metavar="COMMAND", help="shell command; {{ .Prompt }} is the prompt")
    parser.add_argument("programs", nargs="*", metavar="NAME=PROGRAM")
    given = parser.parse_intermixed_args()
    programs = dict(each.partition("=")[::2] for each in given.programs)
    try:
        return Eval(given.eval, given.agent, programs).run(given.run)
    except (OSError, EOFError, RpcError, yaml.YAMLError) as error:
        sys.exit(f"{given.eval}: {error}")
    except KeyError as missing:
        sys.exit(f"{given.eval}: expected {missing}: a key of the eval or a task, or an extension of the eval")


if __name__ == "__main__":
    sys.exit(main())
