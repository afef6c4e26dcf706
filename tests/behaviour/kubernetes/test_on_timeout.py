"""`onTimeout: ok`: a step whose time is over succeeds, and the next one continues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

SOON = {"timeout": "300ms", "onTimeout": "ok"}
REPLICAS = {"replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1, "observedGeneration": 9}
AVAILABLE = {"status": REPLICAS | {"conditions": [{"type": "Available", "status": "True"}]}}


def deployment(**more: object) -> dict[str, object]:
    labels = {"app": "web"}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}}}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec} | more


WAITS = [
    ("wait", {"resource": "deploy/web", "for": "ready"}),
    ("wait", {"resource": "deploy/web", "condition": "Available"}),
    ("condition", {"resource": "deploy/web", "conditionType": "Available"}),
    ("stable", {"resource": "deploy/web", "condition": "Available", "for": "100ms"}),
    ("assert", {"resource": "deploy/web", "expected": {"status": {"readyReplicas": 1}}}),
    ("rollout", {"resource": "deploy/web", "action": "status"}),
    ("scale", {"resource": "deploy/web", "replicas": 1, "wait": True}),
    ("label", {"resource": "deploy/web", "labels": {"a": "b"}, "wait": True}),
    ("apply", {"manifest": deployment(), "wait": True}),
]


@pytest.mark.parametrize(("operation", "args"), WAITS)
def test_a_wait_continues_in_the_next_step(
    kube: Extension, api: FakeApi, operation: str, args: dict[str, object]
) -> None:
    api.put("deployments", deployment(status={}))
    first = kube.ok(operation, args | SOON)
    assert first["done"] == "false"
    assert first["message"].startswith("Not done yet: ")
    assert "; last seen: " in first["message"]
    told = kube.failed(operation, args | SOON | {"onTimeout": "fail"})
    assert "Not done yet" not in told
    api.put("deployments", deployment(**AVAILABLE))
    second = kube.ok(operation, args | {"timeout": "20s", "onTimeout": "ok"})
    assert second["done"] == "true"


def test_events_and_logs_may_come_later(kube: Extension, api: FakeApi) -> None:
    spec = {"containers": [{"name": "main"}]}
    api.put("pods", {"metadata": {"name": "web"}, "spec": spec, "status": {"phase": "Running"}})
    api.logs["web/main"] = "starting\n"
    args = {"resource": "pod/web", "follow": True, "expect": {"contains": "ready"}}
    first = kube.ok("logs", args | SOON)
    assert (first["done"], first["log"]) == ("false", "starting\n")
    api.logs["web/main"] = "ready\n"
    assert kube.ok("logs", args)["done"] == "true"
    assert kube.ok("events", {"resource": "pod/web", "count": 1} | SOON)["done"] == "false"


def test_a_permanent_failure_is_one_in_any_case(kube: Extension, api: FakeApi) -> None:
    stuck = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    api.put("deployments", deployment(status={"observedGeneration": 9, "conditions": [stuck]}))
    told = kube.failed("wait", {"resource": "deploy/web", "for": "ready", "timeout": "20s", "onTimeout": "ok"})
    assert "gave up early" in told


def test_nothing_that_was_never_read_is_passed_over(kube: Extension, api: FakeApi) -> None:
    api.put("deployments", deployment())
    kube.ok("get", {"resource": "deploy/web"})
    api.faults.append(Fault("GET", "/deployments", times=1000, status=503, reason="ServiceUnavailable"))
    kube.failed("wait", {"resource": "deploy/web", "for": "ready"} | SOON)


def test_a_deletion_continues_in_the_next_step(kube: Extension, api: FakeApi) -> None:
    held = {"name": "held", "finalizers": ["example.com/hold"]}
    api.put("configmaps", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": held})
    args = {"resource": "cm/held"}
    first = kube.ok("delete", args | SOON)
    assert (first["done"], first["left"], first["count"]) == ("false", "ConfigMap/held", "1")
    kube.ok("patch", {"resource": "cm/held", "patch": {"metadata": {"finalizers": None}}})
    assert api.get("configmaps", "held") is None
    second = kube.ok("delete", args)
    assert (second["done"], second["count"]) == ("true", "1")
    assert "not found" in kube.failed("delete", args)


CHOICES = [
    {"resource": "cm/held"},
    {"resource": "cm", "selector": "a=b"},
    {"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held"}}},
]


@pytest.mark.parametrize("hold", [True, False])
@pytest.mark.parametrize("args", CHOICES)
def test_a_deletion_is_not_repeated_for_a_new_object(
    kube: Extension, api: FakeApi, args: dict[str, object], hold: bool
) -> None:
    metadata = {"name": "held", "labels": {"a": "b"}}
    api.put("configmaps", {"metadata": metadata | ({"finalizers": ["example.com/hold"]} if hold else {})})
    first = kube.ok("delete", args | SOON)
    assert (first["done"], first["count"]) == ("false" if hold else "true", "1")
    if hold:
        kube.ok("patch", {"resource": "cm/held", "patch": {"metadata": {"finalizers": None}}})
    api.put("configmaps", {"metadata": metadata, "data": {"new": "yes"}})
    second = kube.ok("delete", args)
    assert (second["message"], second["count"]) == ("Deleted ConfigMap/held", "1")
    assert api.get("configmaps", "held") is not None
    kube.ok("delete", args)
    assert api.get("configmaps", "held") is None


STEPS = [
    ("delete", {"resource": "cm/it"}, "not found"),
    ("delete-namespace", {"name": "it"}, "not found"),
    ("create-namespace", {"name": "other"}, "already exists"),
]


@pytest.mark.parametrize(("operation", "args", "fails"), STEPS)
def test_the_step_after_one_that_ended_its_wait_succeeds_too(
    kube: Extension, api: FakeApi, operation: str, args: dict[str, object], fails: str
) -> None:
    api.put("configmaps", {"metadata": {"name": "it"}})
    api.put("namespaces", {"metadata": {"name": "it"}})
    first = kube.ok(operation, args | {"onTimeout": "ok"})
    assert first["done"] == "true"
    assert kube.ok(operation, args) == first
    assert fails in kube.failed(operation, args)


@pytest.mark.parametrize("operation", ["delete-namespace", "delete-generated-namespaces"])
def test_the_namespace_of_a_task_is_deleted_in_several_steps(kube: Extension, api: FakeApi, operation: str) -> None:
    args: dict[str, object] = {"wait": True, "onTimeout": "ok"}
    name = kube.ok("create-namespace", {"prefix": "x"})["namespace"]
    held = api.get("namespaces", name)
    assert held is not None
    api.put("namespaces", held | {"metadata": held["metadata"] | {"finalizers": ["example.com/hold"]}})
    assert kube.ok(operation, args | SOON)["left"] == f"Namespace/{name}"
    kube.ok("patch", {"resource": f"ns/{name}", "patch": {"metadata": {"finalizers": None}}})
    for _ in range(2):
        assert kube.ok(operation, args)["done"] == "true"
    assert api.get("namespaces", name) is None
    new = kube.ok("create-namespace", {"prefix": "x"})["namespace"]
    assert kube.ok(operation, args)["done"] == "true"
    assert api.get("namespaces", new) is None


def test_a_restart_is_awaited_in_several_steps(kube: Extension, api: FakeApi) -> None:
    api.put("deployments", deployment(status={}))
    args = {"resource": "deploy/web", "action": "restart", "wait": True, "timeout": "20s"}
    first = kube.ok("rollout", args | SOON)
    assert first["done"] == "false"
    assert "Restarted Deployment/web, but its rollout is not complete" in first["message"]
    restarted = api.get("deployments", "web")
    assert restarted is not None
    api.put("deployments", restarted | AVAILABLE)
    second = kube.ok("rollout", args | {"onTimeout": "ok"})
    assert (second["done"], second["restartedAt"]) == ("true", first["restartedAt"])
    assert second["message"].startswith("Restarted Deployment/web in a previous step. ")
    assert kube.ok("rollout", args)["restartedAt"] == first["restartedAt"]
    assert kube.ok("rollout", args)["restartedAt"] != first["restartedAt"]
