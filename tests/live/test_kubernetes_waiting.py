"""ext-kubernetes waits, on a real control plane: conditions, readiness, early failures, rollouts, troubles."""

from __future__ import annotations

import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.ext_sdk.peer import Peer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.live.client import Client
    from tests.live.control_plane import ControlPlane

RUNNING = {"name": "main", "image": "busybox:1.36", "imagePullPolicy": "IfNotPresent", "command": ["sleep", "1000"]}
CRASHING = RUNNING | {"command": ["sh", "-c", "exit 3"]}
UNAVAILABLE = {"name": "main", "image": "registry.invalid/nothing:1"}
WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gateways.waiting.gevals-extensions.dev}
spec:
  group: waiting.gevals-extensions.dev
  scope: Namespaced
  names: {plural: gateways, singular: gateway, kind: Gateway}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


class Extension:
    """A running ext-kubernetes that works in one namespace."""

    def __init__(self, peer: Peer, workdir: Path, namespace: str) -> None:
        self.peer = peer
        self.workdir = workdir
        self.namespace = namespace
        self._calls = 1000

    def start(self, operation: str, **args: Any) -> int:
        """Call an operation; return the request's id."""
        context = {"workdir": str(self.workdir), "phase": "verify"}
        params = {"operation": operation, "args": {"namespace": self.namespace} | args, "context": context}
        self.peer.send({"jsonrpc": "2.0", "id": (id := self._next()), "method": "execute", "params": params})
        return id

    def answers(self, *ids: int) -> dict[int, dict[str, Any]]:
        """The results of these calls."""
        found: dict[int, dict[str, Any]] = {}
        while len(found) < len(ids):
            message: dict[str, Any] = self.peer.message()
            if message.get("id") in ids:
                assert "result" in message, message
                found[message["id"]] = message["result"]
        return found

    def call(self, operation: str, **args: Any) -> dict[str, Any]:
        id = self.start(operation, **args)
        return self.answers(id)[id]

    def ok(self, operation: str, **args: Any) -> dict[str, str]:
        """The outputs of an operation that succeeds, with its message as `message`."""
        result = self.call(operation, **args)
        assert result["success"], result
        return {"said": result["message"], **result.get("outputs", {})}

    def failed(self, operation: str, **args: Any) -> str:
        """What an operation says that fails."""
        result = self.call(operation, **args)
        assert not result["success"], result
        return f"{result['message']}\n{result['error']}"

    def _next(self) -> int:
        self._calls += 1
        return self._calls


@pytest.fixture
def start(tmp_path: Path, namespace: str) -> Iterator[Any]:
    """Starts ext-kubernetes: `start(kubeconfig, config)`."""
    with ExitStack() as stack:

        def made(kubeconfig: Path, config: object = None, where: str = namespace) -> Extension:
            env = {"KUBECONFIG": str(kubeconfig)}
            peer = stack.enter_context(Peer([sys.executable, "-m", "ext_kubernetes"], env))
            params = {"protocolVersion": "0.0.1"} | ({} if config is None else {"config": config})
            peer.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
            assert "result" in peer.message()
            return Extension(peer, tmp_path, where)

        yield made


@pytest.fixture
def kube(start: Any, kubeconfig: Path) -> Extension:
    extension: Extension = start(kubeconfig)
    return extension


def pod(name: str = "it", container: dict[str, Any] = RUNNING, **spec: Any) -> str:
    manifest = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container], **spec},
    }
    return str(manifest)


def deployment(container: dict[str, Any] = RUNNING, replicas: int = 2) -> str:
    labels = {"app": "it"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"terminationGracePeriodSeconds": 0, "containers": [container]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return str({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "it"}, "spec": spec})


# --- Conditions and values -------------------------------------------------------------------------------------------


def test_a_condition_is_waited_for_before_its_object_exists(kube: Extension, admin: Client, namespace: str) -> None:
    waiting = kube.start("condition", resource="pod/it", conditionType="ready", timeout="20s")
    admin.apply(pod(), namespace)
    result = kube.answers(waiting)[waiting]
    assert (result["success"], result["message"]) == (True, "Pod it ready=True")
    assert result["outputs"]["status"] == "True"


def test_a_condition_that_does_not_come_tells_the_story(kube: Extension, admin: Client, namespace: str) -> None:
    probe = {"readinessProbe": {"exec": {"command": ["false"]}}}
    (path,) = admin.apply(pod(container=RUNNING | probe), namespace)
    admin.wait_for(path, lambda it: it["status"]["phase"] == "Running")
    result = kube.call("condition", resource="pod/it", conditionType="Ready", timeout="1s")
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


def test_the_whole_story_is_a_file(kube: Extension, admin: Client, namespace: str) -> None:
    from pathlib import Path

    admin.apply("{apiVersion: v1, kind: Secret, metadata: {name: it}, stringData: {word: sesame}}", namespace)
    result = kube.call("condition", resource="secret/it", conditionType="Ready", timeout="0s")
    text = Path(result["outputs"]["storyFile"]).read_text()
    assert '"word": "…"' in text
    assert "c2VzYW1l" not in text


def test_a_condition_holds_for_all_or_any_or_some_of_a_selector(kube: Extension, admin: Client, namespace: str) -> None:
    admin.apply(deployment(replicas=3), namespace)
    chosen = {"resource": "pods", "selector": "app=it", "conditionType": "Ready"}
    assert kube.ok("condition", **chosen, require=3, timeout="20s")["count"] == "3"
    kube.ok("condition", **chosen, timeout="1s")
    kube.ok("condition", **chosen, require="any", timeout="1s")
    assert "3 of 3" in kube.failed("condition", **chosen, require=4, timeout="1s")
    assert "0 of 0" in kube.failed("condition", **chosen | {"selector": "app=other"}, timeout="0s")


def test_the_wait_of_another_extension_runs_here(kube: Extension, admin: Client, namespace: str) -> None:
    admin.apply(deployment(), namespace)
    spelled = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "it", "namespace": namespace}}
    told = kube.ok("wait", **spelled, condition="Available", timeout="20s")["said"]
    assert told == "Deployment/it condition Available=True"
    failed = kube.call("wait", **spelled, condition="Nothing", timeout="1s")
    assert failed["message"] == "Condition Nothing=True not met"
    assert "ConditionNotFound" in failed["error"]


def test_a_value_is_waited_for_in_both_dialects(kube: Extension, admin: Client, namespace: str) -> None:
    admin.apply(deployment(), namespace)
    for path in ("$.status.readyReplicas", "{.status.readyReplicas}"):
        found = kube.ok("wait", resource="deploy/it", jsonPath=path, value=2, timeout="20s")
        assert found["value"] == "2"
    assert "last found 2" in kube.failed(
        "wait", resource="deploy/it", jsonPath="{.status.readyReplicas}", value=3, timeout="1s"
    )


def test_a_custom_resource_of_an_irregular_plural_is_waited_for(kube: Extension, admin: Client, namespace: str) -> None:
    admin.define(WIDGETS)
    widget = "{apiVersion: waiting.gevals-extensions.dev/v1, kind: Gateway, metadata: {name: it}, spec: {a: 1}}"
    (path,) = admin.apply(widget, namespace)
    waiting = kube.start(
        "wait", resource="gateways.waiting.gevals-extensions.dev/it", condition="Programmed", timeout="20s"
    )
    outdated = {"type": "Programmed", "status": "True", "observedGeneration": 0}
    admin.patch(f"{path}/status", {"status": {"conditions": [outdated]}})
    admin.patch(f"{path}/status", {"status": {"conditions": [outdated | {"observedGeneration": 1}]}})
    assert (result := kube.answers(waiting)[waiting])["success"], result


def test_creation_and_deletion_are_waited_for(kube: Extension, admin: Client, namespace: str) -> None:
    waiting = kube.start("wait", resource="cm/it", **{"for": "exists"}, timeout="20s")
    (path,) = admin.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: it, finalizers: [a.b/c]}}", namespace)
    assert (result := kube.answers(waiting)[waiting])["success"], result
    admin.delete(path)
    told = kube.failed("wait", resource="cm/it", **{"for": "deleted"}, timeout="1s")
    assert "held by finalizers: a.b/c" in told
    waiting = kube.start("wait", resource="cm/it", **{"for": "deleted"}, timeout="20s")
    admin.patch(path, {"metadata": {"finalizers": None}})
    assert (result := kube.answers(waiting)[waiting])["success"], result


# --- Readiness and early failures ------------------------------------------------------------------------------------


def test_a_deployment_becomes_ready(kube: Extension, admin: Client, namespace: str) -> None:
    admin.apply(deployment(), namespace)
    assert kube.ok("wait", resource="deploy/it", **{"for": "ready"})["status"] == "2 of 2 replicas are available"


@pytest.mark.parametrize(
    ("container", "reason"), [(CRASHING, "CrashLoopBackOff"), (UNAVAILABLE, "ImagePullBackOff")], ids=["crash", "image"]
)
def test_what_can_not_become_ready_fails_early(
    kube: Extension, admin: Client, namespace: str, container: dict[str, Any], reason: str
) -> None:
    admin.apply(pod(container=container), namespace)
    admin.apply(deployment(container), namespace)
    waits = [kube.start("wait", resource=name, **{"for": "ready"}, timeout="25s") for name in ("pod/it", "deploy/it")]
    for result in kube.answers(*waits).values():
        assert not result["success"]
        assert "given up early" in result["error"]
        assert reason in result["error"]


def test_a_pod_that_no_node_has_room_for_fails_early(kube: Extension, admin: Client, namespace: str) -> None:
    greedy = RUNNING | {"resources": {"requests": {"cpu": "1000"}}}
    admin.apply(pod(container=greedy), namespace)
    told = kube.failed("wait", resource="pod/it", **{"for": "ready"}, timeout="25s")
    assert "Unschedulable" in told
    assert "given up early" in told


def test_a_job_that_fails_is_not_waited_for(kube: Extension, admin: Client, namespace: str) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [CRASHING]}}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "it"}}
    admin.apply(str(job | {"spec": {"backoffLimit": 0, "template": template}}), namespace)
    assert "BackoffLimitExceeded" in kube.failed("wait", resource="job/it", **{"for": "ready"}, timeout="25s")


def test_what_runs_is_stable_and_what_crashes_is_not(kube: Extension, admin: Client, namespace: str) -> None:
    admin.apply(pod("good"), namespace)
    admin.apply(pod("bad", CRASHING), namespace)
    kube.ok("stable", resource="pod/good", condition="Ready", **{"for": "1s"}, timeout="20s")
    restarts = "$.status.containerStatuses[0].restartCount"
    told = kube.failed("stable", resource="pod/bad", jsonPath=restarts, **{"for": "4s"}, timeout="8s")
    assert "change" in told


# --- Assertions ------------------------------------------------------------------------------------------------------


def test_an_object_comes_to_look_as_expected(kube: Extension, admin: Client, namespace: str) -> None:
    waiting = kube.start(
        "assert",
        resource="deploy/it",
        expected={
            "spec": {"template": {"spec": {"containers": [{"name": "main", "image": {"$matches": "^busybox:"}}]}}},
            "status": {"readyReplicas": {"$gte": 2}, "unavailableReplicas": None},
        },
        timeout="20s",
    )
    admin.apply(deployment(), namespace)
    assert (result := kube.answers(waiting)[waiting])["success"], result


def test_what_is_not_as_expected_is_told_with_its_path(kube: Extension, admin: Client, namespace: str) -> None:
    admin.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: it}, data: {colour: blue}}", namespace)
    told = kube.failed("assert", resource="cm/it", expected={"data": {"colour": "green"}}, timeout="0s")
    assert 'data.colour: expected "green", found "blue"' in told
    assert "there" in kube.failed("assert", resource="cm/it", absent=True, timeout="0s")
    kube.ok("assert", resource="cm/it", absent=True, expected={"data": {"colour": "green"}})
    kube.ok("assert", resource="cm", expected={"data": {"colour": "blue"}}, count=1)


# --- Rollouts, scale, labels, events ---------------------------------------------------------------------------------


def test_a_rollout_is_seen_through_restarted_and_undone(kube: Extension, admin: Client, namespace: str) -> None:
    (path,) = admin.apply(deployment(), namespace)
    kube.ok("rollout", resource="deploy/it")
    assert kube.ok("rollout", resource="deploy/it", action="restart", wait=True)["revision"] == "2"
    admin.apply(deployment(UNAVAILABLE), namespace)
    assert "ImagePullBackOff" in kube.failed("rollout", resource="deploy/it", timeout="25s")
    assert kube.ok("rollout", resource="deploy/it", action="undo", wait=True)["availableReplicas"] == "2"
    container = admin.get(path)["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == RUNNING["image"]
    history = kube.ok("rollout", resource="deploy/it", action="history")
    assert history["current"] == "4"
    assert "has no revision 77" in kube.failed("rollout", resource="deploy/it", action="undo", toRevision=77)


def test_a_rollout_is_paused_and_resumed(kube: Extension, admin: Client, namespace: str) -> None:
    (path,) = admin.apply(deployment(), namespace)
    kube.ok("rollout", resource="deploy/it", action="pause")
    assert admin.get(path)["spec"]["paused"] is True
    assert "resume it" in kube.failed("rollout", resource="deploy/it", action="restart")
    kube.ok("rollout", resource="deploy/it", action="resume", wait=True)
    assert "paused" not in admin.get(path)["spec"]


def test_replicas_are_scaled_and_waited_for(kube: Extension, admin: Client, namespace: str) -> None:
    (path,) = admin.apply(deployment(), namespace)
    scaled = kube.ok("scale", resource="deploy/it", replicas=4, wait=True)
    assert (scaled["previous"], scaled["replicas"]) == ("2", "4")
    assert admin.get(path)["status"]["readyReplicas"] == 4
    assert "found 4" in kube.failed("scale", resource="deploy/it", replicas=1, currentReplicas=2)
    kube.ok("scale", resource="deploy/it", replicas=0, wait=True)
    assert admin.get(path)["status"].get("replicas", 0) == 0


def test_labels_and_annotations_are_set_and_removed(kube: Extension, admin: Client, namespace: str) -> None:
    (path,) = admin.apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: it, labels: {a: x, b: y}}}", namespace)
    kube.ok("label", resource="cm/it", labels={"a": "z", "b": None, "c": "w"})
    assert admin.get(path)["metadata"]["labels"] == {"a": "z", "c": "w"}
    assert "has a already" in kube.failed("label", resource="cm/it", labels={"a": "q", "d": "e"}, overwrite=False)
    assert kube.ok("annotate", resource="cm", selector="c=w", annotations={"note": "seen"})["changed"] == "1"
    assert admin.get(path)["metadata"]["annotations"]["note"] == "seen"


def test_events_are_listed_and_waited_for(kube: Extension, admin: Client, namespace: str) -> None:
    admin.apply(pod(container=CRASHING), namespace)
    found = kube.ok("events", resource="pod/it", reason="BackOff", count={"gte": 1}, timeout="25s")
    assert found["reasons"] == "BackOff"
    assert "Warning BackOff" in found["events"]
    assert "found 0" in kube.failed("events", resource="pod/it", reason="Killing", count={"gte": 1}, timeout="1s")


# --- Permissions, and a server with troubles -------------------------------------------------------------------------


def test_who_may_not_look_is_told_at_once(start: Any, restricted: Path, namespace: str) -> None:
    kube: Extension = start(restricted)
    told = kube.failed("condition", resource="pod/it", conditionType="Ready", timeout="25s")
    assert f'User "system:serviceaccount:{namespace}:tester" cannot get resource "pods"' in told


def test_who_may_only_get_waits_without_watch_and_list(
    start: Any, restricted: Path, admin: Client, namespace: str
) -> None:
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "get"}, "rules": rules}
    subject = {"kind": "ServiceAccount", "name": "tester", "namespace": namespace}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "get"}
    binding = role | {"kind": "RoleBinding", "subjects": [subject], "roleRef": reference}
    del binding["rules"]
    for manifest in (role, binding):
        admin.apply(str(manifest), namespace)
    kube: Extension = start(restricted)
    names = [f"it-{number}" for number in range(6)]
    waits = [kube.start("condition", resource=f"pod/{name}", conditionType="Ready", timeout="25s") for name in names]
    for name in names:
        admin.apply(pod(name), namespace)
    assert all(result["success"] for result in kube.answers(*waits).values())


def test_polling_alone_is_enough(start: Any, kubeconfig: Path, admin: Client, namespace: str) -> None:
    kube: Extension = start(kubeconfig, {"watch": False})
    waiting = kube.start("wait", resource="deploy/it", **{"for": "ready"}, timeout="25s")
    admin.apply(deployment(), namespace)
    assert (result := kube.answers(waiting)[waiting])["success"], result


def test_a_hundred_waits_in_one_process_are_all_seen(kube: Extension, admin: Client, namespace: str) -> None:
    names = [f"it-{number}" for number in range(100)]
    waits = [
        kube.start("wait", resource=f"cm/{name}", jsonPath="$.data.state", value="done", timeout="25s")
        for name in names
    ]
    for name in names:
        admin.apply(
            f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}, data: {{state: done}}}}", namespace
        )
    assert all(result["success"] for result in kube.answers(*waits).values())


@pytest.mark.parametrize("politely", [True, False])
def test_a_server_that_restarts_in_the_middle_of_a_wait(
    start: Any, control_plane: ControlPlane, politely: bool
) -> None:
    from tests.live.client import Client

    own = Client(control_plane.kubeconfig)
    kube: Extension = start(control_plane.kubeconfig, None, "default")
    name = f"restart-{politely}".lower()
    waiting = kube.start("wait", resource=f"cm/{name}", jsonPath="$.data.state", value="done", timeout="25s")
    control_plane.stop_api_server(politely=politely)
    control_plane.start_api_server()
    manifest = (
        f"{{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}, namespace: default}}, data: {{state: done}}}}"
    )
    own.apply(manifest)
    own.close()
    assert (result := kube.answers(waiting)[waiting])["success"], result


def test_a_server_that_stays_away_is_told(start: Any, control_plane: ControlPlane) -> None:
    kube: Extension = start(control_plane.kubeconfig, None, "default")
    kube.ok("wait", resource="ns/default", **{"for": "exists"})
    control_plane.stop_api_server(politely=False)
    try:
        told = kube.failed("wait", resource="cm/none", **{"for": "exists"}, timeout="2s")
    finally:
        control_plane.start_api_server()
    assert "the last look failed: no answer from the API server at https://127.0.0.1:" in told


def test_credentials_that_expire_end_a_wait(start: Any, control_plane: ControlPlane) -> None:
    from tests.live.client import Client

    own = Client(control_plane.kubeconfig)
    uid = own.get("/api/v1/namespaces/default/serviceaccounts/default")["metadata"]["uid"]
    own.close()
    expired = control_plane.identities.service_account("default", "default", uid, lasts=-120)
    kube: Extension = start(expired, None, "default")
    told = kube.failed("wait", resource="cm/none", **{"for": "exists"}, timeout="25s")
    assert "expired" in told
