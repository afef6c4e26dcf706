"""A small host for the tasks of an eval, which uses extensions as mcpchecker does.

    python -m docs.examples.run_task EVAL.yaml [--run REGEX] [--agent COMMAND | --script FILE] [NAME=PROGRAM...]

COMMAND is used in place of the agent's `runPrompt`. FILE is a script for `sh` in the folder of the task, which gets the
prompt as `$1`. PROGRAM is used in place of the `package` of the extension NAME.

As in mcpchecker, arguments are checked by the manifest before the first step; a failed step does not end its phase, but
an error of the protocol does; after one in `setup` neither the agent nor the cleanup is run. Braces in `config` and
`env` of an extension are replaced by environment variables. MCP servers, and steps that belong to no extension
(`script`, `http`, `llmJudge`), are not supported. The exit code is 1 if a task did not pass; that of mcpchecker is 0.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import yaml
from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from docs.examples.host import Host
from ext_sdk import Duration
from ext_sdk.wire import RpcError

if TYPE_CHECKING:
    from collections.abc import Iterator

Spec = dict[str, object]
PHASES = ("setup", "verify", "cleanup")
REFERENCE = re.compile(r"\{steps\.([^{}]+)\.([^{}.]+)\}")
VARIABLE = re.compile(r"\$\{(\w+)\}|\{env\.(\w+)\}")


@dataclass(frozen=True)
class Agent:
    """The program that gets the prompt: a command for `$SHELL -c`, or a script in the folder of the task.

    Attributes:
        command: of the shell; `{{ .Prompt }}` is replaced by the prompt.
        script: name of the file, which replaces `command`.
    """

    command: str = ""
    script: str = ""

    def argv(self, prompt: str, folder: Path) -> list[str]:
        """Return the command line that runs the agent for the task in the folder."""
        if self.script:
            return ["/bin/sh", str(folder / self.script), prompt]
        return [os.environ.get("SHELL", "/usr/bin/bash"), "-c", self.command.replace("{{ .Prompt }}", prompt)]


class Extension:
    """A running extension of an eval, and what its manifest allows.

    Args:
        host: of its process.
        config: the configuration, if there is one.
    """

    def __init__(self, host: Host, config: object) -> None:
        self.host = host
        given = {} if config is None else {"config": config}
        manifest = cast("Spec", host.call("initialize", {"protocolVersion": "0.0.1", **given}))
        self._operations = cast("dict[str, Spec]", manifest["operations"])

    def refusal(self, operation: str, args: object) -> str:
        """Return the reason why the manifest does not allow a step; "" if it does."""
        if operation not in self._operations:
            return f"no such operation; there are {', '.join(sorted(self._operations))}"
        schema = cast("Spec", self._operations[operation]["params"])
        error = best_match(Draft202012Validator(schema).iter_errors(args))
        return f"{error.json_path}: {error.message}" if error else ""


class Eval:
    """One run of an eval's tasks, one after the other, with one process for each extension.

    Args:
        path: of the eval's file.
        agent: in place of that of the eval; None for that of the eval.
        programs: commands of extensions by name, in place of those of the eval.
    """

    def __init__(self, path: Path, agent: Agent | None, programs: dict[str, str]) -> None:
        self._folder = path.resolve().parent
        config = cast("Spec", _read(path)["config"])
        self._task_sets = cast("list[Spec]", config["taskSets"])
        self._extensions = cast("dict[str, Spec]", config.get("extensions", {}))
        self._agent = agent or self._own_agent(cast("Spec", config["agent"]))
        self._programs = programs
        self._stack = ExitStack()
        self._running: dict[str, Extension] = {}

    def _own_agent(self, agent: Spec) -> Agent:
        if agent["type"] != "file":
            sys.exit(f"the agent {agent['type']} is run by mcpchecker only; use --agent or --script")
        return Agent(str(cast("Spec", _read(self._folder / str(agent["path"]))["commands"])["runPrompt"]))

    def run(self, pattern: str) -> int:
        """Run the tasks whose names match. Returns 1 if one did not pass."""
        with self._stack:
            passed = []
            for path, task in self._tasks():
                name = str(cast("Spec", task["metadata"])["name"])
                if re.search(pattern, name):
                    passed.append(Task(cast("Spec", task["spec"]), path.parent, self).run(self._agent))
                    print(f"task     {'passed' if passed[-1] else 'FAILED':6}  {name}", flush=True)
            if not passed:
                sys.exit(f"no task of the eval matches {pattern!r}")
            for extension in self._running.values():
                extension.host.try_call("shutdown", {})
            codes = [extension.host.end() for extension in self._running.values()]
            return int(not all(passed) or any(codes))

    def _tasks(self) -> Iterator[tuple[Path, Spec]]:
        """Yield the file and the content of each task, once."""
        seen = set()
        for task_set in self._task_sets:
            wanted = cast("dict[str, str]", task_set.get("labelSelector", {})).items()
            pattern = self._folder / str(task_set.get("glob") or task_set["path"])  # may be absolute
            for path in sorted(Path(pattern.anchor).glob(str(pattern.relative_to(pattern.anchor)))):
                task = _read(path)
                labels = cast("dict[str, str]", cast("Spec", task["metadata"]).get("labels", {})).items()
                if path not in seen and wanted <= labels:
                    seen.add(path)
                    yield path, task

    def extension(self, name: str) -> Extension:
        """Return the extension of this name, started by its first user. Raises RpcError, OSError, KeyError."""
        if name not in self._running:
            extension = self._extensions[name]
            package = Path(str(extension["package"])).expanduser()
            program = shutil.which(self._programs[name]) if name in self._programs else str(self._folder / package)
            env = os.environ | cast("dict[str, str]", _expanded(extension.get("env", {})))
            host = self._stack.enter_context(Host([program or self._programs[name]], env))
            self._running[name] = Extension(host, _expanded(extension.get("config")))
        return self._running[name]


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
        self._extensions = {
            str(each.get("as", each["extension"])): owner.extension(str(each["extension"]))
            for each in cast("list[Spec]", spec.get("requires", []))
            if "extension" in each  # the others are MCP servers
        }
        self._outputs: dict[str, dict[str, str]] = {}  # of setup, by the step's name

    def run(self, agent: Agent) -> bool:
        """Run all of it. Returns whether the checks passed."""
        if not self._is_valid():
            return False
        limit = str(cast("Spec", self._spec.get("limits", {})).get("timeout", "10h"))
        deadline = time.monotonic() + Duration.parse(limit).seconds
        try:
            self._steps("setup", {})
        except RpcError:
            return False
        prompt = self._prompt()
        try:
            output = _output_of(agent.argv(prompt, self._folder), deadline)
            return output is not None and self._steps("verify", {"agent": {"prompt": prompt, "output": output}})
        except RpcError:
            return False
        finally:
            with suppress(RpcError):  # it is printed, and does not change the verdict
                self._steps("cleanup", {})

    def _is_valid(self) -> bool:
        """Print the steps that a manifest does not allow. Returns whether there are none."""
        valid = True
        for phase in PHASES:
            for name, args in self._steps_of(phase):
                alias, _, operation = name.partition(".")
                if alias not in self._extensions:
                    reason = f"requires no extension {alias!r}; steps of mcpchecker itself are not supported here"
                else:
                    reason = self._extensions[alias].refusal(operation, args)
                if reason:
                    print(f"{phase:8} {'ERROR':6}  {name:28}  {reason}")
                    valid = False
        return valid

    def _prompt(self) -> str:
        """Return the prompt with outputs of setup for `{steps.EXTENSION.OPERATION.OUTPUT}`.

        A prompt with another brace, or with an output that is missing, is returned as it is.
        """
        given = cast("dict[str, str]", self._spec["prompt"])
        prompt = given["inline"] if "inline" in given else (self._folder / given["file"]).read_text()
        if re.search("[{}]", REFERENCE.sub("", prompt)):
            return prompt
        try:
            return REFERENCE.sub(lambda found: self._outputs[found[1]][found[2]], prompt)
        except KeyError:
            return prompt

    def _steps_of(self, phase: str) -> list[tuple[str, object]]:
        return [item for step in cast("list[Spec]", self._spec.get(phase, [])) for item in step.items()]

    def _steps(self, phase: str, more: Spec) -> bool:
        """Run the steps of a phase. Returns whether all succeeded; raises RpcError for an error of the protocol."""
        context = {"workdir": str(self._folder), **more}
        # The steps after a failed one are run as well.
        return all([self._step(phase, name, args, context) for name, args in self._steps_of(phase)])  # noqa: C419

    def _step(self, phase: str, name: str, args: object, context: Spec) -> bool:
        alias, _, operation = name.partition(".")
        try:
            params = {"operation": operation, "args": args, "context": context}
            result = cast("Spec", self._extensions[alias].host.call("execute", params))
        except RpcError as error:
            print(f"{phase:8} {'ERROR':6}  {name:28}  {error}")
            raise
        print(f"{phase:8} {'ok' if result['success'] else 'FAILED':6}  {name:28}  {result['message']}")
        if result.get("error", result["message"]) != result["message"]:
            print("                 " + str(result["error"]).replace("\n", "\n                 "))
        if phase == "setup" and result["success"]:
            self._outputs[name] = cast("dict[str, str]", result.get("outputs", {}))
        return bool(result["success"])


def _output_of(agent: list[str], deadline: float) -> str | None:
    """Run the agent in a folder of its own. Returns its output; None if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(agent, cwd=folder, stdout=-1, stderr=-2, text=True, start_new_session=True)
        try:
            output, _ = process.communicate(timeout=max(0, deadline - time.monotonic()))
        except BaseException as error:
            os.killpg(process.pid, signal.SIGKILL)  # with what the agent has started
            process.communicate()
            if isinstance(error, subprocess.TimeoutExpired):
                print(f"agent    {'FAILED':6}  stopped: limits.timeout of the task has passed")
                return None
            raise
    print(f"agent    {'ok' if not process.returncode else 'FAILED':6}  {output.strip()}", flush=True)
    return None if process.returncode else output


def _expanded(value: object) -> object:
    """Return a value of `config` or `env` with environment variables for `${NAME}` and `{env.NAME}`."""
    if isinstance(value, dict):
        return {key: _expanded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_expanded(item) for item in value]
    if not isinstance(value, str):
        return value
    if re.search("[{}]", VARIABLE.sub("", value)):
        sys.exit(f"config and env: expected ${{NAME}} or {{env.NAME}} for each brace, found {value!r}")
    return VARIABLE.sub(lambda found: os.environ[found[1] or found[2]], value)


def _read(path: Path) -> Spec:
    try:
        return cast("Spec", yaml.safe_load(path.read_text()))
    except yaml.YAMLError as error:
        where = str(error).replace('in "<unicode string>", ', "")
        sys.exit(f"{path}: expected YAML: {where}")


def main() -> int:
    """Run an eval as the command line names it."""
    parser = argparse.ArgumentParser(description="Run the tasks of an eval.")
    parser.add_argument("eval", type=Path, metavar="EVAL.yaml")
    parser.add_argument("--run", default=".", metavar="REGEX", help="tasks to run, found in their names")
    one_of = parser.add_mutually_exclusive_group()
    one_of.add_argument("--agent", default="", metavar="COMMAND", help="shell command; {{ .Prompt }} is the prompt")
    one_of.add_argument("--script", default="", metavar="FILE", help="script in the task's folder; $1 is the prompt")
    parser.add_argument("programs", nargs="*", metavar="NAME=PROGRAM")
    given = parser.parse_intermixed_args()
    programs = dict(each.partition("=")[::2] for each in given.programs)
    try:
        agent = Agent(given.agent, given.script) if given.agent or given.script else None
        return Eval(given.eval, agent, programs).run(given.run)
    except (OSError, EOFError, RpcError, ValueError) as error:
        sys.exit(f"{given.eval}: {error}")
    except KeyError as missing:
        known = "a key of the eval or a task, an extension of the eval, or a variable of its config"
        sys.exit(f"{given.eval}: expected {missing}: {known}")


if __name__ == "__main__":
    sys.exit(main())
