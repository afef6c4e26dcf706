"""The Indexed Job of the documentation, which shares cassettes among its pods, on a real control plane.

What the command of its container does with each index is looked at in tests/behaviour/recorder/test_indexed_job.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, cast

import yaml

from tests.live.kubernetes import LONG
from tests.live.manifests import ends

if TYPE_CHECKING:
    from tests.live.client import Client, Object
    from tests.live.kubernetes import Kube

MANIFEST = Path(__file__).parents[2] / "docs" / "examples" / "verify-job.yaml"
INDEX = "batch.kubernetes.io/job-completion-index"


def test_the_job_is_accepted_as_it_stands(admin: Client, namespace: str) -> None:
    job = yaml.safe_load(MANIFEST.read_text())
    job["spec"]["suspend"] = True  # its image is an example: nobody has it
    accepted = admin.get(admin.apply(job, namespace))
    assert cast("Object", accepted["spec"])["completionMode"] == "Indexed"


def test_its_pods_have_an_index_each_and_complete_it(kube: Kube, admin: Client, namespace: str) -> None:
    job = yaml.safe_load(MANIFEST.read_text())
    job["spec"]["template"]["spec"]["containers"] = [ends(0)]
    kube.ok("create", job)
    name, count = job["metadata"]["name"], job["spec"]["completions"]
    kube.ok("wait", {"for": "ready", "timeout": LONG}, resource=f"job/{name}")
    done = admin.get(f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")
    status = cast("Object", done["status"])
    assert (status["succeeded"], status["completedIndexes"]) == (count, f"0-{count - 1}")
    pods = cast("list[Object]", admin.get(f"/api/v1/namespaces/{namespace}/pods")["items"])
    given = []
    for pod in pods:
        index = cast("dict[str, str]", cast("Object", pod["metadata"])["annotations"])[INDEX]
        (container,) = cast("list[Object]", cast("Object", pod["spec"])["containers"])
        assert "JOB_COMPLETION_INDEX" in [each["name"] for each in cast("list[Object]", container["env"])]
        given.append(int(index))
    assert sorted(given) == list(range(count))
