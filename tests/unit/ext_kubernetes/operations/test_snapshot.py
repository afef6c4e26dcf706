"""`snapshot` and `assert-changes`, against an API server on loopback."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from ext_kubernetes.extension import extension
from ext_kubernetes.operations import snapshot
from ext_kubernetes.operations.snapshot import differences, settable
from ext_sdk.testing import call
from tests.support.fake_kubernetes import SWITCH, Fault, Kind

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi, Object


def deployment(image: str = "app:1", **spec: object) -> Object:
    containers = [{"name": "side", "image": "side:1"}, {"name": "app", "image": image}]
    return {
        "metadata": {"name": "web"},
        "spec": {"replicas": 1, "template": {"spec": {"containers": containers}}} | spec,
    }


def owner_of(version: str, kind: str) -> Object:
    return {"apiVersion": version, "kind": kind, "name": "web-1", "uid": "1", "controller": True}


@pytest.fixture
def cluster(api: FakeApi) -> FakeApi:
    """A Deployment with a pod, a ConfigMap and a Secret in namespace default, and what controllers write."""
    owner = owner_of("apps/v1", "ReplicaSet")
    password = base64.b64encode(b"hunter22").decode()
    api.put("deployments", deployment())
    api.put("pods", {"metadata": {"name": "web-1-x", "ownerReferences": [owner]}, "status": {"phase": "Pending"}})
    api.put("configmaps", {"metadata": {"name": "settings"}, "data": {"colour": "blue"}})
    api.put("configmaps", {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "one"}})
    api.put("secrets", {"metadata": {"name": "password"}, "data": {"password": password}})
    api.put("serviceaccounts", {"metadata": {"name": "default"}})
    api.put("events", {"metadata": {"name": "web.1"}, "reason": "Scaled"})
    return api


def change(api: FakeApi, plural: str, name: str, metadata: Object | None = None, **members: object) -> None:
    """Change members of an object and of its metadata."""
    found = api.get(plural, name)
    assert found
    api.put(plural, found | members | {"metadata": found["metadata"] | (metadata or {})})


def test_nothing_has_changed_where_only_controllers_write(kube: Extension, cluster: FakeApi) -> None:
    kept = kube.ok("snapshot")
    assert kept["message"] == "Kept the state of 4 objects in namespace default as 'default'"
    assert (kept["namespace"], kept["count"]) == ("default", "4")
    written = {"annotations": {"deployment.kubernetes.io/revision": "2"}, "finalizers": ["kubernetes"], "labels": {}}
    change(cluster, "deployments", "web", written, status={"readyReplicas": 1})
    cluster.remove("pods", "web-1-x")
    cluster.put("configmaps", {"metadata": {"name": "kube-root-ca.crt"}, "data": {"ca.crt": "two"}})
    cluster.put("events", {"metadata": {"name": "web.2"}, "reason": "Pulled"})
    cluster.remove("serviceaccounts", "default")
    outputs = kube.ok("assert-changes")
    assert outputs["message"] == "Compared 4 objects in namespace default with snapshot 'default': 1 check passed"
    assert (outputs["count"], outputs["added"], outputs["changed"], outputs["removed"]) == ("0", "", "", "")


def test_all_that_has_changed_is_reported_with_its_paths(kube: Extension, cluster: FakeApi) -> None:
    kube.ok("snapshot")
    change(cluster, "deployments", "web", spec=deployment("app:2", replicas=3)["spec"])
    cluster.remove("configmaps", "settings")
    cluster.put("services", {"metadata": {"name": "web"}})
    told = kube.failed("assert-changes")
    assert (
        "deployment/web: expected no change since snapshot 'default', got a change:\n"
        "  spec.replicas was 1, is 3\n"
        '  spec.template.spec.containers[name=app].image was "app:1", is "app:2"\n'
    ) in told
    assert "configmap/settings: expected no change since snapshot 'default', got a removal" in told
    assert "service/web: expected no change since snapshot 'default', got an addition" in told
    outputs: Any = kube.result("assert-changes", {"required": ["deploy/*"], "only": ["cm/settings", "Service/web"]})
    assert outputs["success"], outputs
    assert outputs["outputs"]["added"] == "service/web"
    assert outputs["outputs"]["changed"] == "deployment/web"
    assert outputs["outputs"]["removed"] == "configmap/settings"
    told = kube.failed("assert-changes", {"required": ["jobs/*"], "only": ["**"]})
    assert "'job/*': expected a change since snapshot 'default', got only changes of configmap/settings, " in told
    assert "\npattern 'job/*' matches nothing\npatterns match names such as " in told


def test_the_values_of_a_secret_are_compared_and_not_shown(kube: Extension, cluster: FakeApi) -> None:
    kube.ok("snapshot", {"resource": "secrets", "name": "secrets"})
    new = base64.b64encode(b"correct-horse").decode()
    change(cluster, "secrets", "password", data={"password": new})
    told = kube.failed("assert-changes", {"since": "secrets"})
    assert "got a change: data.password differs (hidden value of a Secret)" in told
    assert new not in told


def test_texts_that_are_not_unicode_are_compared(kube: Extension, cluster: FakeApi) -> None:
    kube.ok("snapshot", {"resource": "cm"})
    change(cluster, "configmaps", "settings", data={"colour": "\ud800"})
    assert "data.colour was " in kube.failed("assert-changes")
    kube.ok("snapshot", {"resource": "cm"})
    assert kube.ok("assert-changes")["count"] == "0"


def test_an_object_that_was_created_again_has_changed(kube: Extension, cluster: FakeApi) -> None:
    kube.ok("snapshot", {"resource": "cm"})
    cluster.remove("configmaps", "settings")
    cluster.put("configmaps", {"metadata": {"name": "settings"}, "data": {"colour": "blue"}})
    assert "configmap/settings: expected no change since snapshot 'default', got a change: it was deleted and " in (
        kube.failed("assert-changes")
    )


def test_an_object_that_is_being_deleted_has_changed_unless_it_was_already(kube: Extension, cluster: FakeApi) -> None:
    held = {"metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    cluster.put("configmaps", held)
    cluster.remove("configmaps", "held")
    assert kube.ok("snapshot", {"resource": "cm"})["count"] == "1"
    assert kube.ok("assert-changes")["count"] == "0"
    cluster.put("configmaps", held | {"metadata": held["metadata"] | {"name": "other"}})
    kube.ok("snapshot", {"resource": "cm"})
    cluster.remove("configmaps", "other")
    assert "got a change: it is being deleted" in kube.failed("assert-changes")


def test_owned_objects_count_if_they_are_chosen(kube: Extension, cluster: FakeApi) -> None:
    assert kube.ok("snapshot", {"resource": "pods", "name": "free"})["count"] == "0"
    assert kube.ok("snapshot", {"resource": "pods", "owned": True})["count"] == "1"
    cluster.remove("pods", "web-1-x")
    assert kube.ok("assert-changes", {"since": "free"})["count"] == "0"
    assert kube.ok("assert-changes", {"required": ["po/web-1-?"]})["removed"] == "pod/web-1-x"


def test_an_owner_does_not_hide_what_a_user_writes(kube: Extension, cluster: FakeApi) -> None:
    kube.ok("snapshot")
    owned = {"ownerReferences": [owner_of("apps/v1", "Deployment")]}
    change(cluster, "configmaps", "settings", owned, data={"colour": "red"})
    cluster.put("configmaps", {"metadata": owned | {"name": "more"}})
    told = kube.failed("assert-changes")
    assert "configmap/more: expected no change since snapshot 'default', got an addition" in told
    assert 'data.colour was "blue", is "red"' in told
    assert kube.ok("assert-changes", {"only": ["cm/*"]})["count"] == "2"


@pytest.mark.parametrize(
    ("owner", "kind", "dependent"),
    [
        ("apps/v1 Deployment", "ReplicaSet", True),
        ("apps/v1 Deployment", "Pod", False),
        ("apps/v1 Deployment", "RoleBinding", False),
        ("batch/v1 CronJob", "Job", True),
        ("v1 Service", "EndpointSlice", True),
        ("example.com/v1 Deployment", "Pod", True),
        ("example.com/v1 Switch", "RoleBinding", False),
        ("example.com/v1 Switch", "Secret", False),
        ("networking.k8s.io/v1 Ingress", "Pod", False),
        ("gateway.networking.k8s.io/v1 Gateway", "Deployment", True),
    ],
)
def test_controllers_create_only_some_kinds(owner: str, kind: str, dependent: bool) -> None:
    references = [owner_of(*owner.split())]
    assert snapshot.is_dependent({"kind": kind, "metadata": {"ownerReferences": references}}) is dependent
    manual = {"ownerReferences": references, "annotations": {"cronjob.kubernetes.io/instantiate": "manual"}}
    assert not snapshot.is_dependent({"kind": kind, "metadata": manual})


def test_the_replicas_of_a_deployment_with_an_autoscaler_are_not_compared(kube: Extension, cluster: FakeApi) -> None:
    cluster.kinds.append(Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"))
    cluster.put("horizontalpodautoscalers", {
        "metadata": {"name": "web"}, "spec": {"scaleTargetRef": {"kind": "Deployment", "name": "web"}},
    })  # fmt: skip
    kube.ok("snapshot")
    change(cluster, "deployments", "web", spec=deployment(replicas=7)["spec"])
    assert kube.ok("assert-changes")["count"] == "0"


def test_volume_claims_of_a_stateful_set_are_not_compared(kube: Extension, cluster: FakeApi) -> None:
    cluster.kinds.append(Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", short=("pvc",)))
    spec = {"replicas": 1, "volumeClaimTemplates": [{"metadata": {"name": "data"}}]}
    cluster.put("statefulsets", {"metadata": {"name": "db"}, "spec": spec})
    kube.ok("snapshot")
    kube.ok("snapshot", {"owned": True, "name": "owned"})
    for name in ("data-db-0", "data-db-x"):
        cluster.put("persistentvolumeclaims", {"metadata": {"name": name}})
    assert kube.ok("assert-changes", {"only": ["pvc/*"]})["added"] == "persistentvolumeclaim/data-db-x"
    assert kube.ok("assert-changes", {"since": "owned", "only": ["pvc/*"]})["count"] == "2"
    cluster.remove("statefulsets", "db")
    assert kube.ok("assert-changes", {"only": ["pvc/data-db-x", "sts/db"]})["count"] == "2"


def test_a_kind_that_is_defined_since_is_compared_too(kube: Extension, cluster: FakeApi) -> None:
    kube.ok("snapshot")
    cluster.put("customresourcedefinitions", SWITCH)
    cluster.put("switches", {"metadata": {"name": "one"}})
    assert kube.ok("assert-changes", {"only": ["switches/*"]})["added"] == "switch/one"


def test_objects_of_several_namespaces_begin_with_their_names(kube: Extension, cluster: FakeApi) -> None:
    cluster.put("namespaces", {"metadata": {"name": "other"}})
    cluster.put("nodes", {"metadata": {"name": "worker"}})
    kube.ok("snapshot", {"namespace": ["default", "other"], "name": "two"})
    kube.ok("snapshot", {"allNamespaces": True, "name": "all"})
    kube.ok("snapshot", {"resource": "nodes", "name": "nodes"})
    cluster.put("configmaps", {"metadata": {"name": "new", "namespace": "other"}})
    cluster.put("configmaps", {"metadata": {"name": "new", "namespace": "kube-system"}})
    cluster.put("namespaces", {"metadata": {"name": "third"}})
    taint = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    change(cluster, "nodes", "worker", spec={"unschedulable": True, "taints": [taint]})
    assert kube.ok("assert-changes", {"since": "two", "only": ["other/cm/*"]})["added"] == "other/configmap/new"
    outputs = kube.ok("assert-changes", {"since": "all", "only": ["other/**", "kube-system/**", "ns/third"]})
    assert outputs["added"].split() == ["kube-system/configmap/new", "namespace/third", "other/configmap/new"]
    told = kube.failed("assert-changes", {"since": "nodes"})
    assert told.endswith("got a change: spec.unschedulable was nothing, is true")


def test_a_namespace_that_is_deleted_takes_all_with_it(kube: Extension, cluster: FakeApi) -> None:
    cluster.put("namespaces", {"metadata": {"name": "other"}})
    cluster.put("configmaps", {"metadata": {"name": "one", "namespace": "other"}})
    kube.ok("snapshot", {"namespace": "other"})
    kube.ok("snapshot", {"namespace": "other", "resource": "deploy", "name": "chosen"})
    cluster.remove("namespaces", "other")
    removed = kube.ok("assert-changes", {"required": ["**"]})["removed"]
    assert removed.split() == ["configmap/one", "namespace/other"]
    assert "failed to read the objects in namespace other" in kube.failed("assert-changes", {"since": "chosen"})
    assert "failed to read the objects in namespace other" in kube.failed("snapshot", {"namespace": "other"})


def test_a_kind_that_may_not_be_read_can_be_left_out(kube: Extension, cluster: FakeApi) -> None:
    cluster.faults.append(Fault(path="/secrets$", status=403, reason="Forbidden", message="not allowed", times=100))
    assert "`exclude: ['secret/*']` leaves out secrets" in kube.failed("snapshot")
    kube.ok("snapshot", {"exclude": ["secrets/*", "cm/set*"]})
    cluster.put("configmaps", {"metadata": {"name": "settings-2"}})
    assert kube.ok("assert-changes")["count"] == "0"


@pytest.mark.parametrize(
    ("operation", "args", "told"),
    [
        ("snapshot", {"namespace": "a", "allNamespaces": True}, "expected `namespace` or `allNamespaces`, found both"),
        ("snapshot", {"namespace": []}, "namespace: expected names of namespaces, found []"),
        ("snapshot", {"resource": "deployy"}, "did you mean"),
        (
            "snapshot",
            {"resource": "deploy/web"},
            "resource: expected kinds without a name, such as deploy,svc; found 'd",
        ),
        ("assert-changes", {"since": "nothing"}, "'nothing'"),
    ],
)
def test_wrong_arguments_are_refused(kube: Extension, operation: str, args: object, told: str) -> None:
    result: Any = kube.result(operation, args)
    assert not result["success"]
    assert told in f"{result['message']}\n{result['error']}"


@pytest.mark.parametrize("limit", ["MOST_OBJECTS", "MOST_BYTES"])
def test_a_snapshot_has_a_largest_size(
    cluster: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setattr(snapshot, limit, 2)
    env = {"KUBECONFIG": str(cluster.kubeconfig(tmp_path / "kubeconfig")), "KUBERNETES_SERVICE_HOST": ""}
    result = call(extension, "snapshot", workdir=tmp_path, env=env)
    assert not result.success
    assert "`resource`, `selector` and `exclude` choose fewer" in result.error


def test_a_snapshot_of_another_server_is_not_compared(kube: Extension, cluster: FakeApi) -> None:
    kube.ok("snapshot")
    other = cluster.kubeconfig(kube.workdir / "other")
    other.write_text(other.read_text().replace("127.0.0.1", "localhost"))
    told = kube.failed("assert-changes", {"kubeconfig": "other"})
    assert "since: expected a snapshot of http://localhost" in told


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ({"a": {"b.c/d": "x"}}, {"a": {}}, ['a["b.c/d"] was "x", is nothing']),
        ({}, {"a": {"b": 1}}, ["a.b was nothing, is 1"]),
        ({"a": {}}, {}, ["a was {}, is nothing"]),
        ([1, 2], [1, 2, 3], ["[2] was nothing, is 3"]),
        ([{"name": "a", "v": 1}], [{"name": "b", "v": 1}, {"name": "a", "v": 2}], ["[name=a].v was 1, is 2"]),
        ([{"port": 1}, {"port": 2}], [{"port": 2}, {"port": 1}], [" is in another order"]),
        ({"a": "1"}, {"a": 1}, ['a was "1", is 1']),
        ("x\n" * 50 + "old", "x\n" * 50 + "new", [' was "old" in line 51, is "new" there']),
    ],
)
def test_differences_have_paths(before: object, after: object, told: list[str]) -> None:
    assert list(differences(before, after))[: len(told)] == told


def test_a_controller_writes_the_token_of_an_account() -> None:
    item: Object = {"kind": "Secret", "type": "kubernetes.io/service-account-token", "data": {"token": "eA=="}}
    assert settable(item) == {"type": "kubernetes.io/service-account-token"}


def test_empty_members_are_like_missing_ones() -> None:
    item: Object = {
        "kind": "Pod",
        "metadata": {"name": "a", "labels": {}, "uid": "1"},
        "spec": {"nodeName": "x"},
        "status": {},
    }
    assert settable(item) == {}
