"""ext-kubernetes on a real API server: making, changing, reading and deleting objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.live.kubernetes import LONG
from tests.live.manifests import GREEDY, configmap, deployment, pod
from tests.support import dry_runs

if TYPE_CHECKING:
    from tests.live.client import Client
    from tests.live.kubernetes import Kube

CONFIG = configmap("one", {"a": "b"})
HOLD = "gevals-extensions.dev/hold"


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
    assert kube.ok("apply", {"file": "all.yaml"})["message"] == "Applied 40 objects (40 unchanged)"
    found = kube.ok("get", {"resource": "cm", "outputs": {"names": "{.items[*].metadata.name}"}})
    assert int(found["count"]) >= 40


def test_a_pod_may_come_with_the_account_that_it_runs_under(kube: Kube) -> None:
    """The server refuses a pod of an account that it does not have; ten times, for it may also be lucky."""
    for number in range(10):
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": f"account-{number}"}}
        made = pod(name=f"it-{number}", serviceAccountName=f"account-{number}")
        assert kube.ok("apply", {"manifest": [made, account]})["created"] == "2"


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


def test_a_dry_run_changes_nothing(kube: Kube, admin: Client, namespace: str) -> None:
    lists = [f"/api/v1/namespaces/{namespace}/{plural}" for plural in ("configmaps", "secrets")]
    for manifest in (dry_runs.CONFIG, dry_runs.SECRET):
        kube.ok("create", manifest)
    before = [admin.get(path)["items"] for path in lists]
    for operation, args in dry_runs.DRY_RUNS:
        assert "Would " in kube.ok(operation, args, dryRun=True)["message"]
        assert [admin.get(path)["items"] for path in lists] == before, (operation, args)


def test_a_finalizer_that_holds_an_object_is_told(kube: Kube) -> None:
    kube.ok("create", CONFIG | {"metadata": {"name": "held", "finalizers": [HOLD]}})
    told = kube.failed("delete", {"resource": "cm/held", "timeout": "1s"})
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
    assert "user" not in kube.ok("get", {"resource": "secret/login", "outputs": {"user": user}, "as": "login"})
    kube.ok("create-configmap", {"name": "copy", "literals": {"user": "${login.user}"}})
    assert kube.ok("get", {"resource": "cm/copy", "outputs": {"user": ".data.user"}})["user"] == "ada"
    assert kube.ok("get", {"resource": "cm/files", "outputs": {"b": ".binaryData.binary"}})["b"] == "/w=="


# --- Waiting for what was applied ---------------------------------------------------------------------------------


def test_apply_waits_until_all_is_ready(kube: Kube) -> None:
    kube.ok("apply", {"manifest": [CONFIG, deployment()], "wait": True, "timeout": LONG})
    ready = kube.ok("get", {"resource": "deploy/it", "outputs": {"ready": "{.status.readyReplicas}"}})["ready"]
    assert ready == "2"


def test_what_does_not_become_ready_is_told(kube: Kube) -> None:
    told = kube.failed("apply", {"manifest": deployment(GREEDY), "wait": True, "timeout": "2s"})
    assert "deployment/it was applied, but is not ready" in told
