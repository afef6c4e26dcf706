"""The example tasks for Kubernetes, with their right and their wrong agent."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.example_tasks import ExampleTask, example_tasks

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live.cluster import Cluster
    from tests.live.control_plane import ControlPlane

TASKS = [task for task in example_tasks() if task.cluster]


def named(cluster: str) -> pytest.MarkDecorator:
    """Return the tasks that need this kind of cluster."""
    tasks = [task for task in TASKS if task.cluster == cluster]
    return pytest.mark.parametrize("task", tasks, ids=lambda task: task.name)


def check(task: ExampleTask, folder: Path, kubeconfig: str) -> None:
    path = os.pathsep.join((os.environ["PATH"], os.environ.get("KUBEBUILDER_ASSETS", "")))
    if shutil.which("kubectl", path=path) is None:
        pytest.skip("the agents run kubectl, which is neither in PATH nor in KUBEBUILDER_ASSETS")
    task.check(folder, {"KUBECONFIG": kubeconfig, "PATH": path, "HOME": str(folder)})


@named("any")
def test_a_task_that_any_cluster_can_run(task: ExampleTask, tmp_path: Path, cluster: Cluster) -> None:
    check(task, tmp_path, cluster.kubeconfig)


@named("kubelets")
@pytest.mark.usefixtures("kubelets")
def test_a_task_whose_containers_must_run(task: ExampleTask, tmp_path: Path, cluster: Cluster) -> None:
    check(task, tmp_path, cluster.kubeconfig)


@named("own")
def test_a_task_that_disturbs_others(task: ExampleTask, tmp_path: Path, control_plane: ControlPlane) -> None:
    check(task, tmp_path, str(control_plane.kubeconfig))
