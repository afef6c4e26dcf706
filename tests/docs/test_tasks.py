"""The example tasks: their files, and those that need no cluster, run with their right and their wrong agent."""

from __future__ import annotations

import functools
import json
import re
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from tests.docs.pages import ROOT
from tests.support.example_tasks import TASKS, ExampleTask, example_tasks

if TYPE_CHECKING:
    from pathlib import Path

ALL = example_tasks()
LOCAL = [task for task in ALL if "kubernetes" not in task.extensions]
PHASES = ("setup", "verify", "cleanup")


@functools.cache
def operations(extension: str) -> dict[str, Any]:
    """Return the operations of a manifest by name."""
    manifest = json.loads((ROOT / "extensions" / f"ext_{extension}" / "manifest.json").read_text())
    found: dict[str, Any] = manifest["operations"]
    return found


@pytest.mark.parametrize("task", ALL, ids=lambda task: task.name)
def test_a_task_has_a_name_agents_and_steps_that_the_manifests_allow(task: ExampleTask) -> None:
    content = task.content
    assert (content["kind"], content["apiVersion"]) == ("Task", "mcpchecker/v1alpha2")
    assert content["metadata"]["name"] == task.name
    assert content["spec"]["prompt"]["inline"]
    assert (task.cluster in {"any", "kubelets", "own"}) == ("kubernetes" in task.extensions)
    assert (task.path.parent / "right.sh").is_file()
    used = set()
    for phase in PHASES:
        for step in content["spec"].get(phase, []):
            ((name, args),) = step.items()
            extension, _, operation = name.partition(".")
            used.add(extension)
            jsonschema.Draft202012Validator(operations(extension)[operation]["params"]).validate(args)
    assert used == task.extensions
    verify = [name for step in content["spec"]["verify"] for name in step]
    assert {name for name, _ in task.expected()} <= set(verify)
    assert task.expected()


def test_the_page_lists_all_tasks() -> None:
    rows = re.findall(
        r"^\| \[([\w-]+)\]\(([\w-]+)/task.yaml\) \| .+ \|$", (TASKS / "README.md").read_text(), re.MULTILINE
    )
    assert rows == [(task.name, task.name) for task in ALL]


@pytest.mark.parametrize("task", LOCAL, ids=lambda task: task.name)
def test_a_right_agent_passes_and_a_wrong_one_is_found_out(task: ExampleTask, tmp_path: Path) -> None:
    task.check(tmp_path, {"KUBECONFIG": "/nonexistent"})
