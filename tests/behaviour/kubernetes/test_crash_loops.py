"""A workload whose containers fail again and again is never ready: neither while they are down, nor in between."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

SPEC = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": {}}
COUNTS = {"replicas": 1, "updatedReplicas": 1, "observedGeneration": 1}
AVAILABLE = COUNTS | {"availableReplicas": 1, "readyReplicas": 1}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": SPEC}
WAITS: list[tuple[str, dict[str, Any]]] = [
    ("wait", {"resource": "deploy/web", "for": "ready"}),
    ("wait", {"resource": "pod/web-1", "for": "ready"}),
    ("rollout", {"resource": "deploy/web"}),
    ("apply", {"manifest": DEPLOYMENT, "wait": True}),
]
STEADY: list[tuple[str, dict[str, Any]]] = [
    ("stable", {"resource": "deploy/web", "ready": True, "for": "10ms", "timeout": "2s"}),
    ("stable", {"resource": "pod/web-1", "ready": True, "for": "10ms", "timeout": "2s"}),
]


def ago(seconds: float) -> str:
    return (datetime.now(UTC) - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def put(api: FakeApi, state: dict[str, Any], *, ready: bool, restarts: int = 2) -> None:
    """Store a Deployment of one pod, whose container is in a state after its last run of 20 s, which failed."""
    last = {"startedAt": ago(120), "finishedAt": ago(100), "exitCode": 7, "reason": "Error"}
    container = {"name": "main", "restartCount": restarts, "state": state, "lastState": {"terminated": last}}
    conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
    status = {"phase": "Running", "containerStatuses": [container], "conditions": conditions}
    api.put("pods", {"metadata": {"name": "web-1", "labels": {"app": "web"}}, "status": status})
    api.put("deployments", DEPLOYMENT | {"status": AVAILABLE if ready else COUNTS})


def running(seconds: float) -> dict[str, Any]:
    return {"running": {"startedAt": ago(seconds)}}


@pytest.mark.parametrize(("operation", "args"), [*WAITS, *STEADY])
def test_between_two_crashes_nothing_is_ready(
    kube: Extension, api: FakeApi, operation: str, args: dict[str, Any]
) -> None:
    put(api, running(2), ready=True)
    report = kube.failed(operation, {"timeout": "0s"} | args)  # polls once, however late that is
    assert re.search(r"container main was restarted after it had exited; it counts as ready in \d+ s", report)
    assert "gave up early" not in report
    put(api, running(3600), ready=True, restarts=1)
    kube.ok(operation, args | {"timeout": "20s"})


@pytest.mark.parametrize(("operation", "args"), WAITS)
def test_a_container_that_fails_again_ends_a_wait_early(
    kube: Extension, api: FakeApi, operation: str, args: dict[str, Any]
) -> None:
    put(api, {"terminated": {"exitCode": 7, "reason": "Error"}}, ready=False, restarts=1)
    told = kube.failed(operation, args | {"timeout": "60s"})
    assert "gave up early" in told
    assert "container main is terminated: Error (with exit code 7, Error), 1 restart, in a crash loop" in told


@pytest.mark.parametrize("seconds", [1, 60])
def test_a_pod_without_a_node_is_in_the_first_line(kube: Extension, api: FakeApi, seconds: float) -> None:
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}
    status = {"phase": "Pending", "conditions": [scheduled | {"lastTransitionTime": ago(seconds)}]}
    api.put("pods", {"metadata": {"name": "web-1", "labels": {"app": "web"}}, "status": status})
    api.put("deployments", DEPLOYMENT | {"status": COUNTS})
    told = kube.failed("rollout", {"resource": "deploy/web", "timeout": "3s"})
    assert "0 of 1 replicas are available; pod web-1: " in told.splitlines()[1]
    assert "0/1 nodes" in told.splitlines()[1]
    assert ("gave up early" in told) == (seconds == 60)


def test_a_container_that_failed_once_may_still_become_ready(kube: Extension, api: FakeApi) -> None:
    put(api, {"terminated": {"exitCode": 7, "reason": "Error"}}, ready=False, restarts=0)
    told = kube.failed("wait", {"resource": "pod/web-1", "for": "ready", "timeout": "100ms"})
    assert "gave up early" not in told


def test_a_pod_that_was_evicted_does_not_keep_a_workload_from_being_ready(kube: Extension, api: FakeApi) -> None:
    put(api, running(3600), ready=True)
    evicted = {"phase": "Failed", "reason": "Evicted"}
    api.put("pods", {"metadata": {"name": "web-0", "labels": {"app": "web"}}, "status": evicted})
    kube.ok("wait", {"resource": "deploy/web", "for": "ready", "timeout": "0s"})


def test_who_may_not_see_pods_goes_by_the_status_of_the_workload(kube: Extension, api: FakeApi) -> None:
    put(api, running(2), ready=True)
    api.faults.append(Fault("GET", "/pods$", times=9, status=403, reason="Forbidden"))
    kube.ok("wait", {"resource": "deploy/web", "for": "ready", "timeout": "0s"})
