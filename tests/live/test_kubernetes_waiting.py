"""ext-kubernetes waits, on a real control plane: conditions, readiness, early failures, rollouts, troubles."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.live.client import held_back
from tests.live.kubernetes import LONG
from tests.live.manifests import (
    GREEDY,
    RUNNING,
    UNAVAILABLE,
    UNREADY,
    configmap,
    deployment,
    ends,
    job,
    pod,
    service,
)
from tests.live.permissions import granted

if TYPE_CHECKING:
    from tests.live.client import Client, Object
    from tests.live.cluster import Cluster
    from tests.live.conftest import Starter
    from tests.live.kubernetes import Kube

# --- Conditions and values -------------------------------------------------------------------------------------------


def test_a_condition_is_waited_for_before_its_object_exists(kube: Kube, admin: Client, namespace: str) -> None:
    waiting = kube.start("condition", resource="pod/it", conditionType="ready", timeout=LONG)
    admin.apply(pod(), namespace)
    result = kube.answer(waiting)
    assert (result["success"], result["message"]) == (True, "Pod it ready=True")
    assert result["outputs"]["status"] == "True"


def test_a_condition_that_does_not_come_tells_the_story(kube: Kube, admin: Client, namespace: str) -> None:
    path = admin.apply(pod(UNREADY), namespace)
    admin.wait_for(path, lambda it: it["status"]["phase"] == "Running")
    events = f"/api/v1/namespaces/{namespace}/events"
    admin.wait_for(events, lambda it: any(event["reason"] == "Scheduled" for event in it["items"]))
    result = kube.result("condition", resource="pod/it", conditionType="Ready", timeout="1s")
    assert not result["success"]
    for part in (
        "Ready=True; last found False",
        "Pod/it:",
        "phase Running",
        "ContainersNotReady",
        "event:",
        "Scheduled",
    ):
        assert part in result["error"]
    assert result["outputs"]["reason"] == "ContainersNotReady"


def test_the_whole_story_is_a_file(kube: Kube, admin: Client, namespace: str) -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "it"}, "stringData": {"word": "sesame"}}
    admin.apply(secret, namespace)
    result = kube.result("condition", resource="secret/it", conditionType="Ready", timeout="0s")
    text = Path(result["outputs"]["storyFile"]).read_text()
    assert '"word": "…"' in text
    assert "c2VzYW1l" not in text


def test_a_condition_holds_for_all_or_any_or_some_of_a_selector(kube: Kube, admin: Client, namespace: str) -> None:
    admin.apply(deployment(replicas=3), namespace)
    chosen = {"resource": "pods", "selector": "app=it", "conditionType": "Ready"}
    assert kube.ok("condition", chosen, require=3, timeout=LONG)["count"] == "3"
    kube.ok("condition", chosen, timeout=LONG)
    kube.ok("condition", chosen, require="any", timeout=LONG)
    assert "3 of 3" in kube.failed("condition", chosen, require=4, timeout="1s")
    assert "0 of 0" in kube.failed("condition", chosen | {"selector": "app=other"}, timeout="0s")


def test_the_wait_of_another_extension_runs_here(kube: Kube, admin: Client, namespace: str) -> None:
    admin.apply(deployment(), namespace)
    spelled = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "it", "namespace": namespace}}
    told = kube.ok("wait", spelled, condition="Available", timeout=LONG)["message"]
    assert told == "Deployment/it condition Available=True"
    failed = kube.result("wait", spelled, condition="Nothing", timeout="1s")
    assert failed["message"] == "Condition Nothing=True not met"
    assert "ConditionNotFound" in failed["error"]


def test_a_value_is_waited_for_in_both_dialects(kube: Kube, admin: Client, namespace: str) -> None:
    admin.apply(deployment(), namespace)
    for path in ("$.status.readyReplicas", "{.status.readyReplicas}"):
        found = kube.ok("wait", resource="deploy/it", jsonPath=path, value=2, timeout=LONG)
        assert found["value"] == "2"
    assert "last found 2" in kube.failed(
        "wait", resource="deploy/it", jsonPath="{.status.readyReplicas}", value=3, timeout="1s"
    )


def test_creation_and_deletion_are_waited_for(kube: Kube, admin: Client, namespace: str) -> None:
    waiting = kube.start("wait", {"for": "exists"}, resource="cm/it", timeout=LONG)
    path = admin.apply(configmap(finalizers=["a.b/c"]), namespace)
    kube.succeeded(waiting)
    admin.delete(path)
    told = kube.failed("wait", {"for": "deleted"}, resource="cm/it", timeout="1s")
    assert "finalizers: a.b/c" in told
    waiting = kube.start("wait", {"for": "deleted"}, resource="cm/it", timeout=LONG)
    admin.patch(path, {"metadata": {"finalizers": None}})
    kube.succeeded(waiting)


def test_a_kind_that_the_server_does_not_have_is_not_waited_for(kube: Kube) -> None:
    for told in (
        kube.failed("wait", {"for": "exists", "timeout": LONG}, resource="deploymnt/it"),
        kube.failed("condition", resource="deploymnt/it", conditionType="Ready", timeout=LONG),
    ):
        assert "the server has no kind 'deploymnt'; did you mean Deployment of apps/v1?" in told


# --- Readiness and early failures ------------------------------------------------------------------------------------


def test_a_deployment_becomes_ready(kube: Kube, admin: Client, namespace: str) -> None:
    admin.apply(deployment(), namespace)
    assert kube.ok("wait", {"for": "ready"}, resource="deploy/it")["status"] == "2 of 2 replicas are available"


@pytest.mark.parametrize(
    "failing", [(ends(3), "CrashLoopBackOff"), (UNAVAILABLE, "ImagePullBackOff")], ids=["crash", "image"]
)
def test_what_can_not_become_ready_fails_early(
    kube: Kube, admin: Client, namespace: str, cluster: Cluster, failing: tuple[Object, str]
) -> None:
    container, reason = failing
    admin.apply(pod(container), namespace)
    admin.apply(deployment(container), namespace)
    if cluster.kubelets:  # they ask name servers for the image, and let containers rest, for longer than a call takes
        pods = f"/api/v1/namespaces/{namespace}/pods"
        admin.wait_for(pods, lambda found: all(held_back(it) == reason for it in found["items"]), timeout=120)
    waits = [kube.start("wait", {"for": "ready"}, resource=name, timeout=LONG) for name in ("pod/it", "deploy/it")]
    for result in map(kube.answer, waits):
        assert not result["success"]
        assert "gave up early" in result["error"]
        assert reason in result["error"]


def test_a_pod_that_no_node_has_room_for_fails_early(kube: Kube, admin: Client, namespace: str) -> None:
    admin.apply(pod(GREEDY), namespace)
    told = kube.failed("wait", {"for": "ready"}, resource="pod/it", timeout=LONG)
    assert "Unschedulable" in told
    assert "gave up early" in told


def test_a_job_that_fails_is_not_waited_for(kube: Kube, admin: Client, namespace: str) -> None:
    admin.apply(job(ends(3)), namespace)
    assert "BackoffLimitExceeded" in kube.failed("wait", {"for": "ready"}, resource="job/it", timeout=LONG)


def test_what_runs_is_stable_and_what_crashes_is_not(
    kube: Kube, admin: Client, namespace: str, cluster: Cluster
) -> None:
    admin.apply(pod(name="good"), namespace)
    bad = admin.apply(pod(ends(3), "bad"), namespace)
    kube.ok("stable", {"for": "1s"}, resource="pod/good", condition="Ready", timeout=LONG)
    if cluster.kubelets:  # which let a container rest for longer and longer, so that its count is soon stable
        told = kube.failed("stable", {"for": "1s"}, resource="pod/bad", ready=True, timeout="5s")
        assert "ready" in told
        return
    admin.wait_for(bad, lambda it: it["status"]["containerStatuses"][0]["restartCount"] > 0)
    restarts = "$.status.containerStatuses[0].restartCount"  # another one every 1.2 s: never for the whole time
    told = kube.failed("stable", {"for": "6s"}, resource="pod/bad", jsonPath=restarts, timeout="6s")
    assert "change" in told


def test_objects_of_several_kinds_are_waited_for_together(kube: Kube, namespace: str) -> None:
    kube.ok("apply", manifest=[deployment(replicas=1), service()])
    kube.ok("wait", {"for": "ready"}, resource="all", timeout=LONG)
    kinds = {name.partition("/")[0] for name in kube.ok("get", resource="all")["names"].split()}
    assert kinds == {"deployment", "replicaset", "pod", "service"}
    kube.ok("delete", {"all": True}, resource="all", gracePeriod=0, timeout=LONG)
    kube.ok("stable", {"for": "1s"}, resource="all", absent=True, timeout=LONG)


# --- Assertions ------------------------------------------------------------------------------------------------------


def test_an_object_comes_to_look_as_expected(kube: Kube, admin: Client, namespace: str) -> None:
    waiting = kube.start(
        "assert",
        resource="deploy/it",
        expected={
            "spec": {"template": {"spec": {"containers": [{"name": "main", "image": {"$matches": "^busybox:"}}]}}},
            "status": {"readyReplicas": {"$gte": 2}, "unavailableReplicas": None},
        },
        timeout=LONG,
    )
    admin.apply(deployment(), namespace)
    kube.succeeded(waiting)


def test_what_is_not_as_expected_is_told_with_its_path(kube: Kube, admin: Client, namespace: str) -> None:
    admin.apply(configmap(data={"colour": "blue"}), namespace)
    told = kube.failed("assert", resource="cm/it", expected={"data": {"colour": "green"}}, timeout="0s")
    assert 'data.colour: expected "green", found "blue"' in told
    assert "present" in kube.failed("assert", resource="cm/it", absent=True, timeout="0s")
    kube.ok("assert", resource="cm/it", absent=True, expected={"data": {"colour": "green"}})
    kube.ok("assert", resource="cm", expected={"data": {"colour": "blue"}}, count=1)


# --- Rollouts, scale, labels, events ---------------------------------------------------------------------------------


def test_a_rollout_is_seen_through_restarted_and_undone(
    kube: Kube, admin: Client, namespace: str, cluster: Cluster
) -> None:
    path = admin.apply(deployment(), namespace)
    kube.ok("rollout", resource="deploy/it")
    assert kube.ok("rollout", resource="deploy/it", action="restart", wait=True)["revision"] == "2"
    # A real kubelet would ask name servers for the image, for longer than a call takes.
    never = {"imagePullPolicy": "Never"} if cluster.kubelets else {}
    admin.apply(deployment(UNAVAILABLE | never), namespace)
    reason = "ErrImageNeverPull" if cluster.kubelets else "ImagePullBackOff"
    assert reason in kube.failed("rollout", resource="deploy/it", timeout=LONG)
    undone = kube.ok("rollout", resource="deploy/it", action="undo", wait=True)
    assert (undone["availableReplicas"], undone["toRevision"], undone["revision"]) == ("2", "2", "4")
    container = admin.get(path)["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == RUNNING["image"]
    history = kube.ok("rollout", resource="deploy/it", action="history")
    assert history["current"] == "4"
    assert "has no revision 77" in kube.failed("rollout", resource="deploy/it", action="undo", toRevision=77)


def test_a_rollout_is_paused_and_resumed(kube: Kube, admin: Client, namespace: str) -> None:
    path = admin.apply(deployment(), namespace)
    kube.ok("rollout", resource="deploy/it", action="pause")
    assert admin.get(path)["spec"]["paused"] is True
    assert "resume it" in kube.failed("rollout", resource="deploy/it", action="restart")
    kube.ok("rollout", resource="deploy/it", action="resume", wait=True)
    assert "paused" not in admin.get(path)["spec"]


def test_replicas_are_scaled_and_waited_for(kube: Kube, admin: Client, namespace: str) -> None:
    path = admin.apply(deployment(), namespace)
    scaled = kube.ok("scale", resource="deploy/it", replicas=4, wait=True)
    assert (scaled["previous"], scaled["replicas"]) == ("2", "4")
    assert admin.get(path)["status"]["readyReplicas"] == 4
    assert "found 4" in kube.failed("scale", resource="deploy/it", replicas=1, currentReplicas=2)
    kube.ok("scale", resource="deploy/it", replicas=0, wait=True)
    assert admin.get(path)["status"].get("replicas", 0) == 0


def test_labels_and_annotations_are_set_and_removed(kube: Kube, admin: Client, namespace: str) -> None:
    path = admin.apply(configmap(labels={"a": "x", "b": "y"}), namespace)
    kube.ok("label", resource="cm/it", labels={"a": "z", "b": None, "c": "w"})
    assert admin.get(path)["metadata"]["labels"] == {"a": "z", "c": "w"}
    assert "has a already" in kube.failed("label", resource="cm/it", labels={"a": "q", "d": "e"}, overwrite=False)
    assert kube.ok("annotate", resource="cm", selector="c=w", annotations={"note": "seen"})["changed"] == "1"
    assert admin.get(path)["metadata"]["annotations"]["note"] == "seen"


def test_events_are_listed_and_waited_for(kube: Kube, admin: Client, namespace: str) -> None:
    admin.apply(pod(ends(3)), namespace)
    found = kube.ok("events", resource="pod/it", reason="BackOff", count={"gte": 1}, timeout=LONG)
    kube.ok("events", resource="pods", selector="app=it", reason="BackOff", count={"gte": 1}, timeout=LONG)
    assert found["reasons"] == "BackOff"
    assert "Warning BackOff" in found["events"]
    assert "found 0" in kube.failed("events", resource="pod/it", reason="Killing", count={"gte": 1}, timeout="1s")


# --- Many, and by whom --------------------------------------------------------------------------------------------


def test_who_may_only_get_waits_without_watch_and_list(
    start: Starter, restricted: Path, admin: Client, namespace: str
) -> None:
    kube = start(restricted)
    names = [f"it-{number}" for number in range(6)]
    with granted(admin, namespace, ["get"], "pods"):
        waits = [kube.start("condition", resource=f"pod/{name}", conditionType="Ready", timeout=LONG) for name in names]
        for name in names:
            admin.apply(pod(name=name), namespace)
        kube.succeeded(*waits)


def test_polling_alone_is_enough(start: Starter, kubeconfig: Path, admin: Client, namespace: str) -> None:
    kube = start(kubeconfig, watch=False)
    waiting = kube.start("wait", {"resource": "deploy/it", "for": "ready", "timeout": LONG})
    admin.apply(deployment(), namespace)
    kube.succeeded(waiting)


def test_a_hundred_waits_in_one_process_are_all_seen(kube: Kube, admin: Client, namespace: str) -> None:
    names = [f"it-{number}" for number in range(100)]
    done = {"jsonPath": "$.data.state", "value": "done", "timeout": LONG}
    waits = [kube.start("wait", done, resource=f"cm/{name}") for name in names]
    for name in names:
        admin.apply(configmap(name, {"state": "done"}), namespace)
    kube.succeeded(*waits)
