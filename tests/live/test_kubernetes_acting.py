"""Users, tokens and kubeconfigs of service accounts; namespaces and jobs that exist already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.live.kubernetes import LONG

if TYPE_CHECKING:
    from tests.live.client import Client
    from tests.live.kubernetes import Kube

READER = [
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "list"]}],
    },
    {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "agent"}],
    },
    {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "agent"}},
]


def test_a_step_acts_with_the_rights_of_a_service_account(kube: Kube, namespace: str) -> None:
    kube.ok("apply", manifest=READER)
    token = kube.ok("create-token", {"as": "agent"}, serviceAccount="agent", writeKubeconfig="new/agent.yaml")
    assert token["user"] == f"system:serviceaccount:{namespace}:agent"
    assert "token" not in token
    written = kube.workdir / "new/agent.yaml"
    assert (token["kubeconfig"], written.stat().st_mode & 0o777) == (str(written), 0o600)
    for acting in (
        {"asUser": "${agent.user}"},
        {"kubeconfig": "${agent.kubeconfig}"},
        {"kubeconfig": "new/agent.yaml"},
    ):
        kube.ok("get", acting, resource="cm")
        assert "secrets is forbidden" in kube.failed("get", acting, resource="secrets")
        assert "forbidden" in kube.failed("create-configmap", acting, name="x")
        kube.ok("get", acting, resource="secrets", expect={"failure": "forbidden"})
        kube.ok("create-configmap", acting, name="x", expect={"failure": "forbidden"})
        assert "got success" in kube.failed("get", acting, resource="cm", expect={"failure": "forbidden"})
        kube.ok("auth-can-i", acting, verb="list", resource="cm", namespace=namespace, expect={"allowed": True})
        kube.ok("auth-can-i", acting, verb="list", resource="pods", namespace=namespace, expect={"allowed": False})
    told = kube.failed("get", {"kubeconfig": "new/agent.yaml"}, resource="cm", asUser="jane")
    assert "cannot impersonate" in told
    assert "not found" in kube.failed("create-token", serviceAccount="nobody")


def test_an_existing_namespace_is_refused_used_or_replaced(kube: Kube, admin: Client, namespace: str) -> None:
    path = f"/api/v1/namespaces/{namespace}"
    first = admin.get(path)["metadata"]["uid"]
    assert "Set `ifExists: use`" in kube.failed("create-namespace", name=namespace)
    used = kube.ok("create-namespace", name=namespace, ifExists="use", labels={"tier": "web"})
    assert (used["uid"], used["created"]) == (first, "false")
    assert admin.get(path)["metadata"]["labels"]["tier"] == "web"
    assert "create-namespace left none" in kube.failed("delete-namespace")
    kube.ok("create-configmap", name="old")
    replaced = kube.ok("create-namespace", name=namespace, ifExists="replace", timeout=LONG)
    assert replaced["created"] == "true"
    assert replaced["uid"] != first
    assert "not found" in kube.failed("get", resource="cm/old")


def test_a_namespace_that_is_being_deleted_is_waited_for(kube: Kube, namespace: str) -> None:
    held = {"name": "held", "finalizers": ["example.com/hold"]}
    kube.ok("create", apiVersion="v1", kind="ConfigMap", metadata=held)
    kube.ok("delete-namespace", name=namespace, wait=False)
    pending = kube.ok("create-namespace", name=namespace, timeout="1s", onTimeout="ok")
    assert pending["done"] == "false"
    assert "no namespace for this operation" in kube.failed("get", resource="cm")
    kube.ok("patch", resource="cm/held", namespace=namespace, patch={"metadata": {"finalizers": None}})
    assert kube.ok("create-namespace", name=namespace, timeout=LONG)["created"] == "true"
    kube.ok("delete-namespace", wait=False)


def test_a_job_of_a_cronjob_continues_in_the_next_step(kube: Kube) -> None:
    container = {"name": "main", "image": "registry.example.com/never:1", "command": ["report"]}
    pod = {"restartPolicy": "Never", "containers": [container], "nodeSelector": {"nowhere": "true"}}
    template = {"metadata": {"labels": {"app": "report"}}, "spec": {"template": {"spec": pod}}}
    spec = {"schedule": "0 0 1 1 *", "jobTemplate": template}
    kube.ok("create", apiVersion="batch/v1", kind="CronJob", metadata={"name": "report"}, spec=spec)
    args = {"from": "cronjob/report", "name": "now", "timeout": "1s", "onTimeout": "ok", "cleanup": True}
    assert kube.ok("run-job", args)["done"] == "false"
    owner = {"owner": "{.metadata.ownerReferences[0].kind}", "app": "{.metadata.labels.app}"}
    first = kube.ok("get", resource="job/now", outputs=owner)
    assert (first["owner"], first["app"]) == ("CronJob", "report")
    assert kube.ok("run-job", args)["done"] == "false"
    assert kube.ok("get", resource="job/now")["uid"] == first["uid"]
    assert "expected cronjob/NAME, found 'job/now'" in kube.failed("run-job", {"from": "job/now"})
