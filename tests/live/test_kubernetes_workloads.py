"""ext-kubernetes and what makes pods: each kind becomes ready, is restarted, goes; what can't become ready is told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.live.client import held_back
from tests.live.kubernetes import LONG
from tests.live.manifests import UNAVAILABLE, UNREADY, deployment, ends, job, pod, workload

if TYPE_CHECKING:
    from tests.live.client import Client
    from tests.live.kubernetes import Kube

READY = {"for": "ready", "timeout": LONG}
WORKLOADS = {
    "Deployment": deployment(),
    "StatefulSet": workload("StatefulSet", spec={"replicas": 2, "serviceName": "it"}),
    "DaemonSet": workload("DaemonSet"),
}


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_workload_becomes_ready_and_is_restarted(kube: Kube, kind: str) -> None:
    kube.ok("apply", manifest=WORKLOADS[kind])
    kube.ok("wait", READY, resource=f"{kind}/it")
    kube.ok("rollout", resource=f"{kind}/it")
    kube.ok("rollout", resource=f"{kind}/it", action="restart", wait=True, timeout=LONG)
    kube.ok("delete", resource=f"{kind}/it", timeout=LONG)
    assert kube.ok("get", resource="pods", selector="app=it")["count"] == "0"


@pytest.mark.parametrize("kind", ["StatefulSet", "ReplicaSet"])
def test_replicas_of_other_kinds_are_scaled(kube: Kube, kind: str) -> None:
    more = {"serviceName": "it"} if kind == "StatefulSet" else {}
    kube.ok("apply", manifest=workload(kind, spec={"replicas": 1, **more}))
    kube.ok("scale", resource=f"{kind}/it", replicas=2, wait=True, timeout=LONG)
    assert kube.ok("assert", resource="pods", selector="app=it", count=2)


def test_a_rollout_past_its_deadline_fails_early(kube: Kube) -> None:
    kube.ok("apply", manifest=deployment(UNREADY, progressDeadlineSeconds=2))
    for operation, args in (("wait", READY), ("rollout", {"timeout": LONG})):
        told = kube.failed(operation, args, resource="deploy/it")
        assert "gave up early" in told
        assert "ProgressDeadlineExceeded" in told


def test_an_init_container_that_fails_is_told(kube: Kube, admin: Client, namespace: str) -> None:
    path = admin.apply(pod(initContainers=[ends(2) | {"name": "first"}]), namespace)
    told = kube.failed("wait", READY, resource="pod/it")
    assert "container first is waiting: CrashLoopBackOff" in told
    assert "exit code 2" in told
    assert held_back(admin.get(path)) == "PodInitializing"


@pytest.mark.parametrize(("code", "ends_well"), [(0, True), (4, False)])
def test_a_job_is_waited_for_until_its_end(kube: Kube, code: int, ends_well: bool) -> None:
    kube.ok("create", job(ends(code)))
    result = kube.result("wait", READY, resource="job/it")
    assert result["success"] == ends_well, result


def test_what_an_object_owns_goes_with_it_or_stays(kube: Kube) -> None:
    kube.ok("apply", manifest=deployment(UNAVAILABLE, replicas=1), timeout=LONG)
    kube.ok("assert", resource="pods", selector="app=it", count=1, timeout=LONG)
    kube.ok("delete", resource="deploy/it", propagation="Orphan", timeout=LONG)
    assert kube.ok("get", resource="rs")["count"] == "1"
    kube.ok("delete", resource="rs", all=True, timeout=LONG)
    assert kube.ok("get", resource="pods")["count"] == "0"


PATCHES: dict[str, tuple[object, list[str]]] = {
    "merge": ({"spec": {"template": {"spec": {"containers": [{"name": "other", "image": "x"}]}}}}, ["other"]),
    "strategic": (
        {"spec": {"template": {"spec": {"containers": [{"name": "other", "image": "x"}]}}}},
        ["other", "main"],
    ),
    "json": ([{"op": "replace", "path": "/spec/template/spec/containers/0/name", "value": "other"}], ["other"]),
}


@pytest.mark.parametrize("type", PATCHES)
def test_a_patch_is_what_its_type_says(kube: Kube, type: str) -> None:
    change, names = PATCHES[type]
    kube.ok("apply", manifest=deployment(UNAVAILABLE, replicas=0))
    kube.ok("patch", resource="deploy/it", patch=change, type=type)
    path = "{.spec.template.spec.containers[*].name}"
    assert kube.ok("get", resource="deploy/it", outputs={"names": path})["names"].split() == names


LISTS = {"key": True, "order": False, "exact": False}  # whether the second container alone is as expected


@pytest.mark.parametrize("lists", LISTS)
def test_lists_are_compared_as_told(kube: Kube, admin: Client, namespace: str, lists: str) -> None:
    admin.apply(pod(containers=[UNAVAILABLE | {"name": name} for name in ("first", "second")]), namespace)
    containers = [{"name": "second"}]
    args = {"resource": "pod/it", "lists": lists, "timeout": "0s"}
    assert kube.result("assert", args, expected={"spec": {"containers": containers}})["success"] == LISTS[lists]
