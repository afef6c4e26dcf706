"""The tasks of docs/examples/tasks, run by ext-host with the agents in their folders."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.support.paths import ROOT

TASKS = ROOT / "docs" / "examples" / "tasks"
EXPECT = re.compile(r"^# expect (?P<step>[\w.-]+): (?P<text>.+)$", re.MULTILINE)
AGENT = 'sh "$EXT_HOST_TASK_FOLDER/{}" "$1"'
LIMIT_SECONDS = 400


@dataclass(frozen=True)
class Step:
    """A step of a run as the host printed it.

    Attributes:
        phase: setup, verify or cleanup; or agent.
        verdict: ok, FAILED or ERROR.
        name: EXTENSION.OPERATION; of the agent the first word of its output.
        text: its message and error.
    """

    phase: str
    verdict: str
    name: str
    text: str


@dataclass(frozen=True)
class ExampleTask:
    """A task of the examples."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.parent.name

    @property
    def content(self) -> Any:
        return yaml.safe_load(self.path.read_text())

    @property
    def extensions(self) -> set[str]:
        return {each["extension"] for each in self.content["spec"]["requires"]}

    @property
    def cluster(self) -> str:
        """The kind of cluster that it needs; "" if it needs none."""
        labels: dict[str, str] = self.content["metadata"].get("labels", {})
        return labels.get("cluster", "")

    def expected(self) -> list[tuple[str, str]]:
        """The steps by which the wrong agent is found out, each with a part of its text."""
        return [(match["step"], match["text"]) for match in EXPECT.finditer(self._script("wrong.sh"))]

    def _script(self, name: str) -> str:
        return (self.path.parent / name).read_text()

    def run(self, script: str, folder: Path, env: dict[str, str]) -> tuple[int, list[Step]]:
        """Run the task with a script as its agent.

        Args:
            script: name of the file.
            folder: to which the eval is copied.
            env: variables that are added to those of the tests.

        Returns:
            the exit code of the host, and the steps.
        """
        there = shutil.copytree(self.path.parent, folder / self.name, dirs_exist_ok=True)
        (there.parent / "eval.yaml").write_text((TASKS / "eval.yaml").read_text())
        for name in ("shell", "http", "kubernetes"):
            link = folder / f"ext-{name}"
            link.unlink(missing_ok=True)
            link.symlink_to(Path(sys.executable).parent / f"ext-{name}")
        done = subprocess.run(
            [sys.executable, "-m", "ext_host", "run", str(folder / "eval.yaml"), "--agent", AGENT.format(script)],
            cwd=ROOT,
            env=os.environ | {"no_proxy": "*"} | env,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_SECONDS,
        )
        assert "Traceback" not in done.stderr, done.stderr
        assert f"  {self.name}\n" in done.stdout, done.stdout + done.stderr
        return done.returncode, steps(done.stdout)

    def check(self, folder: Path, env: dict[str, str]) -> None:
        """The right agent passes; the wrong one is found out by the steps that it names, and by no others."""
        code, run = self.run("right.sh", folder, env)
        assert [step for step in run if step.verdict != "ok"] == []
        assert code == 0
        code, run = self.run("wrong.sh", folder, env)
        assert [step for step in run if step.verdict != "ok" and step.phase != "verify"] == []
        failed = [step for step in run if step.verdict != "ok"]
        assert [step.name for step in failed] == [name for name, _ in self.expected()], failed
        for step, (_, text) in zip(failed, self.expected(), strict=True):
            assert text in step.text
        assert code == 1
        left = {path.name for path in (folder / self.name).iterdir()}
        assert left == {path.name for path in self.path.parent.iterdir()}, "the cleanup leaves files behind"


def steps(printed: str) -> list[Step]:
    """The steps that the host printed."""
    found: list[Step] = []
    for line in printed.splitlines():
        words = line.split(maxsplit=3)
        if line.startswith(("setup", "verify", "cleanup", "agent")) and len(words) > 1:
            found.append(Step(words[0], words[1], words[2] if len(words) > 2 else "", " ".join(words[3:])))
        elif found and not line.startswith("task"):
            last = found.pop()
            found.append(Step(last.phase, last.verdict, last.name, f"{last.text}\n{line.strip()}"))
    return found


def example_tasks() -> list[ExampleTask]:
    """All tasks of the examples."""
    return [ExampleTask(path) for path in sorted(TASKS.glob("*/task.yaml"))]
