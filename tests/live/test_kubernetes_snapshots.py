"""ext-kubernetes reads all objects of a namespace: snapshots, in which changes by users count, and diagnostics."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.live.kubernetes import LONG
from tests.live.manifests import UNAVAILABLE, configmap, deployment, pod, service

if TYPE_CHECKING:
    from tests.live.kubernetes import Kube

CLAIM = {
    "apiVersion": "v1",
    "kind": "PersistentVolumeClaim",
    "metadata": {"name": "it"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
}


def test_only_what_users_write_is_a_change(kube: Kube, namespace: str) -> None:
    kube.ok("apply", manifest=[deployment(replicas=1), service(), configmap(), pod(name="alone"), CLAIM])
    assert int(kube.ok("snapshot", timeout=LONG)["count"]) >= 6
    kube.ok("wait", {"for": "ready"}, resource="deploy,pods", timeout=LONG)
    kube.ok("rollout", resource="deploy/it", timeout=LONG)
    assert kube.ok("assert-changes", timeout=LONG)["count"] == "0"
    kube.ok("scale", resource="deploy/it", replicas=2, wait=True, timeout=LONG)
    kube.ok("apply", manifest=configmap(data={"state": "other"}))
    kube.ok("delete", resource="svc/it", timeout=LONG)
    kube.ok("create-configmap", name="more", literals={"a": "b"})
    told = kube.failed("assert-changes", only=["cm/more"], timeout=LONG)
    assert "deployment/it: expected no change since snapshot 'default', got a change: spec.replicas was 1, is 2" in told
    assert "configmap/it: expected no change since snapshot 'default', got a change: data.state was " in told
    assert "service/it: expected no change since snapshot 'default', got a removal" in told
    outputs = kube.ok("assert-changes", required=["deploy/it", "svc/it", "cm/*"], timeout=LONG)
    assert (outputs["added"], outputs["removed"]) == ("configmap/more", "service/it")
    assert outputs["changed"] == "configmap/it\ndeployment/it"


def test_every_kind_of_the_cluster_can_be_kept(kube: Kube, namespace: str) -> None:
    kube.ok("snapshot", allNamespaces=True, timeout=LONG)
    kube.ok("snapshot", resource="nodes,clusterroles,clusterrolebindings,priorityclasses", name="roles", timeout=LONG)
    kube.ok("create-configmap", name="it", literals={"a": "b"}, namespace=namespace)
    outputs = kube.ok("assert-changes", required=[f"{namespace}/cm/it"], only=["**"], timeout=LONG)
    assert f"{namespace}/configmap/it" in outputs["added"].split()
    kube.ok("assert-changes", since="roles", only=["clusterrole*/live-*"], timeout=LONG)


def test_the_state_of_a_namespace_is_written_to_a_file(kube: Kube, namespace: str) -> None:
    kube.ok("apply", manifest=[pod(name="good"), deployment(UNAVAILABLE, replicas=1), service(), configmap()])
    kube.ok("wait", {"for": "ready"}, resource="pod/good", timeout=LONG)
    kube.ok("events", resource="deploy/it", count={"gte": 1}, timeout=LONG)
    outputs = kube.ok("diagnostics", file="report.txt", timeout=LONG)
    report = Path(outputs["file"]).read_text()
    assert "Deployment/it: 0 of 1 replicas are available" in outputs["problems"]
    assert f"Diagnostics of namespace {namespace} at " in report
    for line in (
        "Pod/good: ",
        "  phase Running, node ",
        "Service/it: ",
        "ConfigMap/kube-root-ca.crt: ",
        "  Available=False",
    ):
        assert f"\n{line}" in report
    assert " Deployment/it: Normal ScalingReplicaSet: " in report
    assert "== Not read ==" not in report
