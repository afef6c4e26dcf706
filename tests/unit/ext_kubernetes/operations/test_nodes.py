"""`cordon`, `uncordon`, `taint` and `drain`, against an API server on loopback."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi


@pytest.fixture(autouse=True)
def nodes(api: FakeApi) -> None:
    for name, zone in (("a", "one"), ("b", "one"), ("c", "two")):
        api.put("nodes", {"metadata": {"name": name, "labels": {"zone": zone}}})


def spec_of(api: FakeApi, name: str) -> dict[str, Any]:
    node = api.get("nodes", name)
    assert node is not None
    spec: dict[str, Any] = node.get("spec", {})
    return spec


def test_nodes_are_cordoned_by_name_or_label_and_uncordoned(kube: Extension, api: FakeApi) -> None:
    assert kube.ok("cordon", {"selector": "zone=one"})["changed"] == "2"
    assert [spec_of(api, name).get("unschedulable") for name in "abc"] == [True, True, None]
    again = kube.ok("cordon", {"node": "a"})
    assert (again["message"], again["changed"]) == ("Cordoned node a (no change)", "0")
    assert kube.ok("uncordon", {"node": ["a", "node/b"]})["nodes"] == "a\nb"
    assert spec_of(api, "b").get("unschedulable") is None


def test_a_missing_node_is_a_failure_unless_ignored(kube: Extension) -> None:
    assert 'nodes "x" not found' in kube.failed("cordon", {"node": "x"})
    assert "with labels zone=none" in kube.failed("cordon", {"selector": "zone=none"})
    assert "(x not found, ignored)" in kube.ok("cordon", {"node": ["a", "x"], "ignoreNotFound": True})["message"]
    assert kube.ok("cordon", {"selector": "zone=none", "ignoreNotFound": True})["count"] == "0"


@pytest.mark.parametrize("operation", ["cordon", "uncordon", "drain", "taint"])
def test_an_empty_list_of_nodes_is_refused(kube: Extension, operation: str) -> None:
    more = {"taints": ["gpu:NoExecute"]} if operation == "taint" else {}
    args = {"node": [], "ignoreNotFound": True} | more
    assert "node: expected names of nodes, found an empty list" in kube.refused(operation, args)


def test_taints_are_added_changed_and_removed(kube: Extension, api: FakeApi) -> None:
    given = ["gpu=yes:NoSchedule", "gpu=yes:NoExecute", "old:PreferNoSchedule"]
    assert kube.ok("taint", {"node": "a", "taints": given})["taints"] == "\n".join(given)
    assert kube.ok("taint", {"node": "a", "taints": ["gpu=no:NoSchedule", "old:PreferNoSchedule-"]})["changed"] == "1"
    assert spec_of(api, "a")["taints"] == [
        {"key": "gpu", "value": "yes", "effect": "NoExecute"},
        {"key": "gpu", "value": "no", "effect": "NoSchedule"},
    ]
    assert kube.ok("taint", {"node": "a", "taints": ["gpu-"]})["taints"] == ""


def test_taints_that_cannot_be_changed_are_failures_that_change_nothing(kube: Extension, api: FakeApi) -> None:
    kube.ok("taint", {"node": "a", "taints": ["gpu=yes:NoSchedule"]})
    other: dict[str, object] = {"node": "a", "taints": ["x:NoExecute", "gpu=no:NoSchedule"], "overwrite": False}
    assert "found gpu=yes:NoSchedule; nothing was changed" in kube.failed("taint", other)
    assert "found gpu=yes:NoSchedule; set `ignoreNotFound: true`" in kube.failed(
        "taint", {"node": "a", "taints": ["cpu:NoSchedule-"]}
    )
    assert kube.ok("taint", {"node": "a", "taints": ["cpu-"], "ignoreNotFound": True})["changed"] == "0"
    assert len(spec_of(api, "a")["taints"]) == 1


@pytest.mark.parametrize(
    ("taints", "reason"),
    [
        (["gpu"], "expected an effect (NoSchedule, PreferNoSchedule, NoExecute) in 'gpu', such as gpu:NoSchedule"),
        ([], "expected at least one taint"),
        (["gpu=yes:Never"], "taints"),
    ],
)
def test_wrong_taints_are_refused(kube: Extension, taints: list[str], reason: str) -> None:
    assert reason in kube.refused("taint", {"node": "a", "taints": taints})


def test_a_taint_that_another_client_has_changed_meanwhile_is_read_again(kube: Extension, api: FakeApi) -> None:
    api.faults.append(Fault("PATCH", "/nodes/a$", status=409, reason="Conflict"))
    kube.ok("taint", {"node": "a", "taints": ["gpu:NoSchedule"]})
    assert len(spec_of(api, "a")["taints"]) == 1


OWNED = [{"kind": "ReplicaSet", "name": "web", "controller": True}]


def put_pod(api: FakeApi, name: str, owner: str = "ReplicaSet", node: str = "a", **members: Any) -> None:
    metadata: dict[str, Any] = {"name": name, **members.pop("metadata", {})}
    if owner:
        metadata["ownerReferences"] = [{"kind": owner, "name": "it", "controller": True}]
    phase = members.pop("phase", "Running")
    api.put("pods", {"metadata": metadata, "spec": {"nodeName": node, **members}, "status": {"phase": phase}})


def left(api: FakeApi) -> list[str]:
    return [name for name in ("web", "agent", "static", "other", "bare", "data") if api.get("pods", name)]


def test_a_drain_evicts_what_controllers_replace_and_leaves_what_belongs_to_the_node(
    kube: Extension, api: FakeApi
) -> None:
    put_pod(api, "web")
    put_pod(api, "agent", "DaemonSet")
    put_pod(api, "static", "", metadata={"annotations": {"kubernetes.io/config.mirror": "x"}})
    put_pod(api, "other", node="b")
    put_pod(api, "bare", "", phase="Succeeded")
    outputs = kube.ok("drain", {"node": "a", "gracePeriod": 0})
    assert left(api) == ["agent", "static", "other"]
    assert outputs["message"] == "Drained node a: 2 pods evicted"
    assert set(outputs["evicted"].split()) == {"default/web", "default/bare"}
    assert outputs["left"] == "default/agent\ndefault/static"
    assert spec_of(api, "a")["unschedulable"] is True
    (eviction, *_) = api.requests("POST", "/pods/web/eviction")
    assert eviction.body["deleteOptions"]["gracePeriodSeconds"] == 0


def test_a_drain_that_would_lose_something_evicts_nothing(kube: Extension, api: FakeApi) -> None:
    put_pod(api, "web")
    put_pod(api, "bare", "")
    put_pod(api, "data", volumes=[{"name": "v", "emptyDir": {}}])
    put_pod(api, "agent", "DaemonSet")
    report = kube.failed("drain", {"node": "a", "ignoreDaemonSets": False})
    for reason in (
        "default/bare has no controller that would replace it (set `force: true`)",
        "default/data has data in an emptyDir volume (set `deleteEmptyDirData: true`)",
        "default/agent belongs to a DaemonSet (set `ignoreDaemonSets: true`)",
    ):
        assert reason in report
    assert left(api) == ["web", "agent", "bare", "data"]
    kube.ok("drain", {"node": "a", "force": True, "deleteEmptyDirData": True, "disableEviction": True})
    assert left(api) == ["agent"]


def test_only_the_pods_with_labels_are_evicted(kube: Extension, api: FakeApi) -> None:
    put_pod(api, "web", metadata={"labels": {"app": "web"}})
    put_pod(api, "bare", "")
    kube.ok("drain", {"node": "a", "podSelector": "app=web"})
    assert left(api) == ["bare"]


def test_a_disruption_budget_is_waited_for_and_named(kube: Extension, api: FakeApi) -> None:
    put_pod(api, "web")
    told = "The disruption budget web needs 1 healthy pods and has 1 currently"
    status = {
        "kind": "Status",
        "message": "Cannot evict pod as it would violate the pod's disruption budget.",
        "reason": "TooManyRequests",
        "details": {"causes": [{"reason": "DisruptionBudget", "message": told}]},
    }
    refused = Fault("POST", "/eviction$", times=2, status=429, body=json.dumps(status).encode())
    api.faults.append(refused._replace(times=1))
    report = kube.failed("drain", {"node": "a", "timeout": "0s"})
    assert f"default/web is protected by a disruption budget: {told}" in report
    api.faults.append(refused._replace(times=1))
    later = kube.ok("drain", {"node": "a", "timeout": "0s", "onTimeout": "ok"})
    assert later["done"] == "false"
    assert later["message"].startswith("Not done yet: ")
    api.faults.append(refused)
    assert kube.ok("drain", {"node": "a"})["done"] == "true"
    assert left(api) == []
