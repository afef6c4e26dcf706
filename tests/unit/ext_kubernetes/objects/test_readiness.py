"""When an object is ready, by the rules of kstatus, as a table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ext_kubernetes.objects.readiness import readiness_of
from ext_kubernetes.waiting.waiter import unrecoverable_pod

NOW = datetime(2026, 11, 22, 1, 0, 0, tzinfo=UTC)
Object = dict[str, Any]


def made(kind: str, status: Object | None = None, spec: Object | None = None, **metadata: Any) -> Object:
    group = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "ReplicaSet": "apps/v1"}
    others = {
        "Job": "batch/v1",
        "PodDisruptionBudget": "policy/v1",
        "CustomResourceDefinition": "apiextensions.k8s.io/v1",
        "Widget": "example.com/v1",
    }
    return {
        "apiVersion": (group | others).get(kind, "v1"),
        "kind": kind,
        "metadata": {"name": "it", "generation": 2, **metadata},
        "spec": spec or {},
        **({} if status is None else {"status": status}),
    }


def said(type: str, status: str, reason: str = "", **more: str) -> Object:
    return {"conditions": [{"type": type, "status": status, "reason": reason, **more}]}


def waits(reason: str, **more: Any) -> Object:
    return {
        "phase": "Pending",
        "containerStatuses": [{"name": "main", "state": {"waiting": {"reason": reason}}, **more}],
    }


FULL = {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 3, "availableReplicas": 3, "readyReplicas": 3}
THREE = {"replicas": 3}
UNSCHEDULABLE = said("PodScheduled", "False", "Unschedulable", lastTransitionTime="2026-11-22T00:59:50Z")
READY, WAIT, FAIL = "ready", "progressing", "failed"

CASES: dict[str, tuple[str, Object]] = {
    "a deployment that its controller has not seen": (WAIT, made("Deployment", {}, THREE)),
    "a deployment of which an older generation was seen": (
        WAIT, made("Deployment", FULL | {"observedGeneration": 1}, THREE)
    ),
    "a deployment with old templates": (WAIT, made("Deployment", FULL | {"updatedReplicas": 2}, THREE)),
    "a deployment with pods too many": (WAIT, made("Deployment", FULL | {"replicas": 4}, THREE)),
    "a deployment with pods not available": (WAIT, made("Deployment", FULL | {"availableReplicas": 2}, THREE)),
    "a deployment with all": (READY, made("Deployment", FULL, THREE)),
    "a deployment scaled to none": (READY, made("Deployment", {"observedGeneration": 2}, {"replicas": 0})),
    "a deployment scaled to none, with its pods still there": (WAIT, made("Deployment", FULL, {"replicas": 0})),
    "a deployment over its deadline": (
        FAIL, made("Deployment", FULL | said("Progressing", "False", "ProgressDeadlineExceeded"), THREE)
    ),
    "a stateful set with all": (READY, made("StatefulSet", FULL, THREE)),
    "a stateful set of two revisions": (
        WAIT, made("StatefulSet", FULL | {"currentRevision": "a", "updateRevision": "b"}, THREE)
    ),
    "a stateful set that is updated in part, as wanted": (
        READY,
        made(
            "StatefulSet",
            FULL | {"updatedReplicas": 1, "currentRevision": "a", "updateRevision": "b"},
            THREE | {"updateStrategy": {"rollingUpdate": {"partition": 2}}},
        ),
    ),
    "a daemon set on no node": (READY, made("DaemonSet", {"observedGeneration": 2, "desiredNumberScheduled": 0})),
    "a daemon set on its way": (
        WAIT, made("DaemonSet", {"observedGeneration": 2, "desiredNumberScheduled": 2, "currentNumberScheduled": 1})
    ),
    "a pod that runs and is ready": (READY, made("Pod", {"phase": "Running"} | said("Ready", "True"))),
    "a pod that runs": (WAIT, made("Pod", {"phase": "Running"} | said("Ready", "False", "ContainersNotReady"))),
    "a pod that has succeeded": (READY, made("Pod", {"phase": "Succeeded"})),
    "a pod that has failed": (FAIL, made("Pod", {"phase": "Failed", "reason": "Evicted"})),
    "a pod in a crash loop": (FAIL, made("Pod", waits("CrashLoopBackOff", restartCount=3))),
    "a pod whose image can't be pulled": (FAIL, made("Pod", waits("ImagePullBackOff"))),
    "a pod whose image may still be pulled": (WAIT, made("Pod", waits("ErrImagePull"))),
    "a pod whose first container keeps failing": (
        FAIL, made("Pod", {"initContainerStatuses": waits("CrashLoopBackOff")["containerStatuses"]})
    ),
    "a pod that no node has room for, since 10 s": (WAIT, made("Pod", {"phase": "Pending"} | UNSCHEDULABLE)),
    "a job that is complete": (READY, made("Job", said("Complete", "True"))),
    "a job that has failed": (FAIL, made("Job", said("Failed", "True", "BackoffLimitExceeded"))),
    "a job at work": (WAIT, made("Job", {"active": 1})),
    "a service": (READY, made("Service", {}, {"type": "ClusterIP"})),
    "a service without a load balancer": (WAIT, made("Service", {"loadBalancer": {}}, {"type": "LoadBalancer"})),
    "a claim that is bound": (READY, made("PersistentVolumeClaim", {"phase": "Bound"})),
    "a claim that is pending": (WAIT, made("PersistentVolumeClaim", {"phase": "Pending"})),
    "a claim whose volume is lost": (FAIL, made("PersistentVolumeClaim", {"phase": "Lost"})),
    "a namespace that ends": (WAIT, made("Namespace", {"phase": "Terminating"})),
    "a definition that is served": (READY, made("CustomResourceDefinition", said("Established", "True"))),
    "a definition whose names are taken": (FAIL, made("CustomResourceDefinition", said("NamesAccepted", "False"))),
    "a custom resource without a status": (READY, made("Widget")),
    "a custom resource that is ready": (READY, made("Widget", said("Ready", "True"))),
    "a custom resource that is not": (WAIT, made("Widget", said("Ready", "False"))),
    "a custom resource that was ready in an older generation": (
        WAIT, made("Widget", {"observedGeneration": 1} | said("Ready", "True"))
    ),
    "a custom resource whose condition is of an older generation": (
        WAIT, made("Widget", {"conditions": [{"type": "Ready", "status": "True", "observedGeneration": 1}]})
    ),
    "a custom resource that is being reconciled": (WAIT, made("Widget", said("Reconciling", "True"))),
    "a custom resource that has stalled": (FAIL, made("Widget", said("Stalled", "True"))),
    "whatever is being deleted": (WAIT, made("Service", {}, {}, deletionTimestamp="2026-11-22T00:59:59Z")),
}  # fmt: skip


def restarted(started: str, restarts: int = 1, last: tuple[str, str, int] | None = None, **state: Any) -> Object:
    """The status of a pod that is ready, whose container was restarted; `last`: its last run, and the exit code."""
    began, ended, code = last or ("2026-11-22T00:59:00Z", "2026-11-22T00:59:01Z", 7)
    terminated = {"terminated": {"startedAt": began, "finishedAt": ended, "exitCode": code, "reason": "Error"}}
    container = {
        "name": "main",
        "restartCount": restarts,
        "state": {"running": {"startedAt": started}} | state,
        "lastState": terminated,
    }
    return {"phase": "Running", "containerStatuses": [container]} | said("Ready", "True")


def crashed(restarts: int, code: int) -> Object:
    terminated = {"terminated": {"exitCode": code, "reason": "Error"}}
    container = {"name": "main", "restartCount": restarts, "state": terminated}
    return {"phase": "Running", "containerStatuses": [container]} | said("Ready", "False", "ContainersNotReady")


DAYS = ("2026-11-20T00:00:00Z", "2026-11-22T00:59:50Z", 1)
MINUTES = ("2026-11-22T00:54:00Z", "2026-11-22T00:59:00Z", 1)
RESTARTS: dict[str, tuple[str, Object]] = {
    "restarted an hour ago": (READY, restarted("2026-11-22T00:00:00Z", 4)),
    "restarted 6 s ago, after it had run for 1 s": (READY, restarted("2026-11-22T00:59:54Z")),
    "restarted 5 s ago, after it had run for 1 s": (WAIT, restarted("2026-11-22T00:59:55Z")),
    "restarted 5 s ago, after it had run for days": (READY, restarted("2026-11-22T00:59:55Z", last=DAYS)),
    "restarted 59 s ago, after it had run for minutes": (WAIT, restarted("2026-11-22T00:59:01Z", last=MINUTES)),
    "restarted 60 s ago, after it had run for minutes": (READY, restarted("2026-11-22T00:59:00Z", last=MINUTES)),
    "restarted after it had ended well": (
        WAIT, restarted("2026-11-22T00:59:59Z", last=("2026-11-22T00:59:00Z", "2026-11-22T00:59:01Z", 0))
    ),
    "failed for the first time": (WAIT, crashed(0, 7)),
    "failed again": (FAIL, crashed(1, 7)),
    "ended well again": (WAIT, crashed(1, 0)),
}  # fmt: skip


@pytest.mark.parametrize("case", RESTARTS)
def test_a_pod_whose_container(case: str) -> None:
    state, status = RESTARTS[case]
    found = readiness_of(made("Pod", status), NOW)
    assert found.state == state, found


def test_how_long_a_restarted_container_has_to_run_is_told() -> None:
    found = readiness_of(made("Pod", restarted("2026-11-22T00:59:58Z")), NOW)
    assert found.recheck_after == 4.0
    assert found.text == "container main was restarted after it had exited; it counts as ready in 4 s"


@pytest.mark.parametrize("case", CASES)
def test_readiness_of(case: str) -> None:
    state, item = CASES[case]
    found = readiness_of(item, NOW)
    assert (found.state, bool(found.text)) == (state, True), found


def test_a_pod_without_a_node_is_given_up_after_fifteen_seconds() -> None:
    item = made("Pod", {"phase": "Pending"} | UNSCHEDULABLE)
    assert readiness_of(item, NOW).recheck_after == 5.0
    assert readiness_of(item, NOW.replace(second=6)).state == "failed"


def test_what_is_told_of_a_container_has_reason_message_exit_code_and_restarts() -> None:
    status = waits("CrashLoopBackOff", restartCount=2, lastState={"terminated": {"exitCode": 3, "reason": "Error"}})
    told = readiness_of(made("Pod", status), NOW).text
    assert told == "container main is waiting: CrashLoopBackOff (it last exited with exit code 3, Error), 2 restarts"


def pod(name: str, template: str, created: str, status: Object) -> Object:
    return made("Pod", status, name=name, labels={"pod-template-hash": template}, creationTimestamp=created)


def test_pods_of_an_older_template_may_fail() -> None:
    old = pod("old", "a", "2026-11-22T00:00:00Z", waits("CrashLoopBackOff"))
    new = pod("new", "b", "2026-11-22T00:59:00Z", waits("ContainerCreating"))
    assert unrecoverable_pod([old, new]) == ""
    assert unrecoverable_pod([old]).startswith("pod old: container main")
