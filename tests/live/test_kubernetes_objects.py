"""ext-kubernetes on a real API server: making, changing, reading and deleting objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.live.kubernetes import Kube

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.live.client import Client
    from tests.live.cluster import Cluster
    from tests.live.control_plane import ControlPlane

CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}}
HOLD = "gevals-extensions.dev/hold"
GATEWAY = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gateways.live-objects.gevals-extensions.dev}
spec:
  group: live-objects.gevals-extensions.dev
  scope: Namespaced
  names: {plural: gateways, singular: gateway, kind: Gateway, shortNames: [lgw]}
  versions:
    - name: v1
      served: true
      storage: true
      subresources: {status: {}}
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec: {type: object, properties: {on: {type: boolean}}}
            status: {type: object, x-kubernetes-preserve-unknown-fields: true}
---
apiVersion: live-objects.gevals-extensions.dev/v1
kind: Gateway
metadata: {name: it}
spec: {on: true}
"""


@pytest.fixture
def kube(cluster: Cluster, kubeconfig: Path, namespace: str, tmp_path: Path) -> Iterator[Kube]:
    with Kube(kubeconfig, cluster.context, namespace, tmp_path) as one:
        yield one


def test_the_life_of_an_object(kube: Kube, namespace: str) -> None:
    outputs = kube.ok("create", CONFIG)
    assert outputs["namespace"] == namespace
    assert "(409 AlreadyExists)" in kube.failed("create", CONFIG)
    kube.ok("patch", {"resource": "cm/one", "patch": {"data": {"c": "d"}}})
    found = kube.ok("get", {"resource": "cm/one", "outputs": {"c": "{.data.c}", "uid2": "$.metadata.uid"}})
    assert (found["c"], found["uid2"]) == ("d", outputs["uid"])
    kube.ok("replace", {**CONFIG, "data": {"e": "f"}})
    assert kube.ok("get", {"resource": "cm/one", "outputs": {"data": ".data"}})["data"] == '{"e":"f"}'
    kube.ok("delete", {"resource": "cm/one"})
    assert kube.ok("get", {"resource": "cm/one", "ignoreNotFound": True})["found"] == "false"


def test_apply_makes_and_changes(kube: Kube) -> None:
    (kube.workdir / "all.yaml").write_text(
        "".join(f"---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: c{n}}}\ndata: {{}}\n" for n in range(40))
    )
    assert "(40 created)" in kube.ok("apply", {"file": "all.yaml"})["message"]
    assert kube.ok("apply", {"file": "all.yaml"})["message"] == "Applied 40 objects"
    found = kube.ok("get", {"resource": "cm", "outputs": {"names": "{.items[*].metadata.name}"}})
    assert int(found["count"]) >= 40


def test_a_conflict_names_manager_and_field(kube: Kube) -> None:
    kube.ok("apply", {"manifest": CONFIG, "fieldManager": "somebody"})
    changed = {"manifest": {**CONFIG, "data": {"a": "mine"}}}
    assert '.data.a is managed by "somebody"' in kube.failed("apply", changed)
    kube.ok("apply", {**changed, "force": True})


def test_an_unknown_field_is_told_with_its_path(kube: Kube) -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "x", "image": "x", "port": 1}]}}
    spec = {"replica": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    assert ".spec.replica: field not declared in schema" in kube.failed("apply", {"manifest": deployment})
    told = kube.failed("create", deployment)
    assert 'unknown field "spec.replica"' in told
    assert 'unknown field "spec.template.spec.containers[0].port"' in told


def test_a_dry_run_changes_nothing(kube: Kube) -> None:
    for operation in ("apply", "create"):
        kube.ok(operation, {"manifest": CONFIG, "dryRun": True})
    assert kube.ok("get", {"resource": "cm/one", "ignoreNotFound": True})["found"] == "false"


def test_a_definition_and_its_first_object_go_together(kube: Kube) -> None:
    outputs = kube.ok("apply", {"manifest": GATEWAY})
    assert "Gateway/it created" in outputs["resources"]
    kube.ok("patch", {"resource": "lgw/it", "patch": {"spec": {"on": False}}})
    status = {"conditions": [{"type": "Lit", "status": "False"}]}
    kube.ok("patch", {"resource": "lgw/it", "patch": {"status": status}, "subresource": "status", "type": "merge"})
    path = '{.status.conditions[?(@.type=="Lit")].status}'
    found = kube.ok("get", {"resource": "gateways.live-objects.gevals-extensions.dev/it", "outputs": {"lit": path}})
    assert found["lit"] == "False"


def test_a_finalizer_that_holds_an_object_is_told(kube: Kube) -> None:
    kube.ok("create", CONFIG | {"metadata": {"name": "held", "finalizers": [HOLD]}})
    told = kube.failed("delete", {"resource": "cm/held", "timeout": "400ms"})
    assert f"finalizers {HOLD}" in told
    kube.ok("patch", {"resource": "cm/held", "patch": {"metadata": {"finalizers": None}}})
    assert kube.ok("get", {"resource": "cm/held", "ignoreNotFound": True})["found"] == "false"


def test_the_server_chooses_a_name(kube: Kube) -> None:
    assert kube.ok("create", CONFIG | {"metadata": {"generateName": "x-"}})["name"].startswith("x-")


def test_delete_takes_a_selector(kube: Kube) -> None:
    for name in ("a", "b"):
        kube.ok("create", CONFIG | {"metadata": {"name": name, "labels": {"app": "x"}}})
    assert kube.ok("delete", {"resource": "cm", "selector": "app=x"})["count"] == "2"


def test_secrets_and_configmaps(kube: Kube) -> None:
    (kube.workdir / "binary").write_bytes(b"\xff")
    kube.ok("create-secret", {"name": "login", "literals": {"user": "ada"}})
    kube.ok("create-configmap", {"name": "files", "files": ["binary"]})
    user = {"path": "{.data.user}", "decode": "base64"}
    assert kube.ok("get", {"resource": "secret/login", "outputs": {"user": user}})["user"] != ""
    assert kube.ok("get", {"resource": "cm/files", "outputs": {"b": ".binaryData.binary"}})["b"] == "/w=="


# --- Namespaces, access ----------------------------------------------------------------------------------------------


def test_a_namespace_is_made_used_and_deleted(kube: Kube) -> None:
    name = kube.ok("create-namespace", {"prefix": "live-own"})["namespace"]
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    assert kube.ok("create", pod)["namespace"] == name
    assert kube.ok("deleteGeneratedNamespaces")["namespaces"] == name


def test_a_namespace_is_waited_for_until_it_is_gone(kube: Kube, admin: Client) -> None:
    kube.ok("create-namespace", {"prefix": "live-gone"})
    kube.ok("delete-generated-namespaces", {"wait": True, "timeout": "27s"})


def test_what_holds_a_namespace_is_told(kube: Kube, admin: Client) -> None:
    name = kube.ok("create-namespace", {"prefix": "live-held"})["namespace"]
    kube.ok("create", CONFIG | {"metadata": {"name": "held", "finalizers": [HOLD]}})
    told = kube.failed("delete-namespace", {"name": name, "timeout": "15s"})
    assert HOLD in told
    admin.patch(f"/api/v1/namespaces/{name}/configmaps/held", {"metadata": {"finalizers": None}})
    admin.wait_gone(f"/api/v1/namespaces/{name}")


def test_who_may_do_nothing_is_told_who_what_and_where(restricted: Path, namespace: str, tmp_path: Path) -> None:
    user = f"system:serviceaccount:{namespace}:tester"
    with Kube(restricted, "", namespace, tmp_path) as kube:
        told = kube.failed("get", {"resource": "pods"})
        assert f'User "{user}" cannot list resource "pods"' in told
        assert f'in the namespace "{namespace}"' in told
        assert "cannot patch" in kube.failed("apply", {"manifest": CONFIG})
        assert kube.ok("auth-can-i", {"verb": "get", "resource": "pods", "namespace": namespace})["allowed"] == "false"


def test_access_of_others(kube: Kube, namespace: str) -> None:
    args = {"verb": "get", "resource": "pods/log", "as": f"system:serviceaccount:{namespace}:default"}
    assert kube.ok("authCanI", args | {"namespace": namespace})["allowed"] == "false"
    assert kube.ok("auth-can-i", args | {"groups": ["system:masters"]})["allowed"] == "true"
    assert int(kube.ok("auth-can-i", {"list": True})["count"]) > 0


def test_contexts(kube: Kube, cluster: Cluster) -> None:
    assert int(kube.ok("list-contexts")["count"]) >= 1
    current = kube.ok("current-context")["context"]
    config = kube.ok("view-config", {"minify": True})["config"]
    assert f"current-context: {current}" in config
    assert "client-key-data: '[redacted]'" in config or "client-key-data" not in config


# --- A control plane of one's own ------------------------------------------------------------------------------------


def test_credentials_that_have_expired_are_told(control_plane: ControlPlane, tmp_path: Path) -> None:
    expired = control_plane.identities.service_account("default", "default", "no-such-uid", lasts=-120)
    with Kube(expired, "", "default", tmp_path) as kube:
        told = kube.failed("get", {"resource": "pods"})
    assert "are refused: they have expired" in told


def test_an_api_server_that_restarts_is_waited_for(control_plane: ControlPlane, tmp_path: Path) -> None:
    with Kube(control_plane.kubeconfig, "", "default", tmp_path) as kube:
        kube.ok("get", {"resource": "ns/default"})
        control_plane.stop_api_server()
        told = kube.failed("get", {"resource": "ns/default"})
        assert "no answer from the API server at https://" in told
        assert "Connection refused" in told
        control_plane.start_api_server()
        kube.ok("get", {"resource": "ns/default"})


def web() -> dict[str, object]:
    labels = {"app": "web"}
    container = {"name": "c", "image": "busybox:1.36", "imagePullPolicy": "IfNotPresent", "command": ["sleep", "1000"]}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def test_apply_waits_until_all_is_ready(kube: Kube) -> None:
    kube.ok("apply", {"manifest": [CONFIG, web()], "wait": True, "timeout": "27s"})
    ready = kube.ok("get", {"resource": "deploy/web", "outputs": {"ready": "{.status.readyReplicas}"}})["ready"]
    assert ready == "1"


def test_what_does_not_become_ready_is_told(kube: Kube) -> None:
    deployment = web()
    template = deployment["spec"]["template"]  # type: ignore[index]
    template["spec"]["nodeSelector"] = {"no-such": "node"}
    told = kube.failed("apply", {"manifest": deployment, "wait": True, "timeout": "2s"})
    assert "deployment/web was applied and is not ready" in told
