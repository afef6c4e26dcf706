"""ext-kubernetes and nodes: they are cordoned, tainted and drained, each test has a node of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.live.kubernetes import LONG
from tests.live.manifests import deployment, pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.live.client import Client
    from tests.live.cluster import Cluster
    from tests.live.kubernetes import Kube

BUDGET = {
    "apiVersion": "policy/v1",
    "kind": "PodDisruptionBudget",
    "metadata": {"name": "it"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "it"}}},
}


@pytest.fixture
def node(admin: Client, namespace: str) -> Iterator[str]:
    """A node that nothing is scheduled to by itself, labelled with its name."""
    taint = {"key": "for", "value": namespace, "effect": "NoSchedule"}
    name = f"node-{namespace}"
    metadata = {"name": name, "labels": {"for": namespace}}
    admin.apply({"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": [taint]}})
    yield name
    admin.delete(f"/api/v1/nodes/{name}")


def test_a_node_is_cordoned_tainted_and_drained(kube: Kube, node: str, namespace: str) -> None:
    assert kube.ok("cordon", node=node)["changed"] == "1"
    assert "unschedulable" in str(kube.ok("get", resource=f"node/{node}", outputs={"spec": "$.spec"}))
    assert f"for={namespace}:NoSchedule" in kube.ok("taint", node=node, taints=["gpu=yes:NoSchedule"])["taints"]
    assert "gpu" not in kube.ok("taint", selector=f"for={namespace}", taints=["gpu-"])["taints"]
    kube.ok("apply", manifest=pod(nodeName=node))
    assert f"{namespace}/it has no controller" in kube.failed("drain", node=node, podSelector="app=it")
    drained = kube.ok("drain", node=node, podSelector="app=it", force=True, gracePeriod=0, timeout=LONG)
    assert drained["evicted"] == f"{namespace}/it"
    kube.ok("assert", resource="pod/it", absent=True)
    assert kube.ok("uncordon", node=node)["changed"] == "1"


def test_a_disruption_budget_keeps_a_pod_until_it_is_gone(
    cluster: Cluster, kube: Kube, node: str, namespace: str
) -> None:
    if cluster.kubelets:
        pytest.skip(
            "the node of this test is not simulated here, so its pods are not ready: run it on the control plane"
        )
    manifest = deployment(replicas=1)
    manifest["spec"]["template"]["spec"] |= {
        "nodeSelector": {"for": namespace},
        "tolerations": [{"key": "for", "operator": "Exists"}],
    }
    kube.ok("apply", manifest=[manifest, BUDGET], wait=True, timeout=LONG)
    kube.ok("wait", resource="pdb/it", jsonPath="{.status.currentHealthy}", value=1, timeout=LONG)
    report = kube.failed("drain", node=node, podSelector="app=it", timeout="2s")
    assert "is protected by a disruption budget: The disruption budget it needs 1 healthy pods" in report
    kube.ok("delete", resource="pdb/it", timeout=LONG)
    kube.ok("drain", node=node, podSelector="app=it", timeout=LONG)
    assert "Unschedulable" in kube.failed("wait", {"for": "ready"}, resource="deploy/it", timeout="1s", failFast=False)
