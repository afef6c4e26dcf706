"""ext-kubernetes on a real cluster: who may do what, and what of a kubeconfig is shown."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.live.client import wait_until
from tests.live.conftest import SERVICE_ACCOUNT
from tests.live.kubernetes import LONG
from tests.live.permissions import granted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live.client import Client
    from tests.live.conftest import Starter
    from tests.live.kubernetes import Kube

CREDENTIALS = ("token", "client-key-data", "client-certificate-data", "password")


@pytest.mark.usefixtures("restricted")
def test_what_somebody_else_may_do(kube: Kube, admin: Client, namespace: str) -> None:
    user = f"system:serviceaccount:{namespace}:{SERVICE_ACCOUNT}"
    asked = {"verb": "get", "resource": "cm", "as": user, "namespace": namespace}
    assert kube.ok("auth-can-i", asked)["allowed"] == "false"
    assert kube.ok("authCanI", asked | {"resource": "configmaps"})["allowed"] == "false"
    with granted(admin, namespace, ["get"], "configmaps"):
        assert kube.ok("auth-can-i", asked, expect={"allowed": True})["allowed"] == "true"
        told = kube.failed("auth-can-i", asked | {"verb": "delete"}, expect={"allowed": True})
        assert "expected allowed=true but got allowed=false" in told


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="there is no kubectl to compare with")
def test_groups_that_every_user_has_count_as_for_kubectl(
    kube: Kube, kubeconfig: Path, admin: Client, namespace: str
) -> None:
    account = f"system:serviceaccount:{namespace}:nobody"
    accounts = "system:serviceaccounts"
    verbs = {"get": "system:authenticated", "list": accounts, "watch": f"{accounts}:{namespace}", "delete": "dev"}
    for verb, group in verbs.items():
        bind(admin, namespace, group, verb)
    users: list[tuple[str, list[str]]] = [(account, []), (account, ["dev"]), ("ada", []), ("ada", ["dev"])]
    users.append((f"system:serviceaccount:{namespace}x:y", []))
    for user, groups in users:
        ours, theirs = {}, {}
        for verb in verbs:
            args = {"verb": verb, "resource": "configmaps", "as": user, "groups": groups, "namespace": namespace}
            ours[verb] = {"true": "yes", "false": "no"}[kube.ok("auth-can-i", args)["allowed"]]
            flags = [f"--as={user}", *(f"--as-group={group}" for group in groups), f"--namespace={namespace}"]
            command = ["kubectl", f"--kubeconfig={kubeconfig}", "auth", "can-i", verb, "configmaps", *flags]
            told = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
            theirs[verb] = told.stdout.strip()
        assert ours == theirs, (user, groups)
        assert ours["get"] == "yes"


def bind(admin: Client, namespace: str, group: str, verb: str) -> None:
    """Let a group do something with the ConfigMaps of a namespace, and wait until the server knows it."""
    api, name = "rbac.authorization.k8s.io", f"{verb}-configmaps"
    base = {"apiVersion": f"{api}/v1", "metadata": {"name": name}}
    rules = [{"apiGroups": [""], "resources": ["configmaps"], "verbs": [verb]}]
    subjects = [{"apiGroup": api, "kind": "Group", "name": group}]
    admin.apply(base | {"kind": "Role", "rules": rules}, namespace)
    reference = {"apiGroup": api, "kind": "Role", "name": name}
    admin.apply(base | {"kind": "RoleBinding", "subjects": subjects, "roleRef": reference}, namespace)
    attributes = {"namespace": namespace, "verb": verb, "resource": "configmaps"}
    spec = {"user": "probe", "groups": [group], "resourceAttributes": attributes}
    review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    path = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
    wait_until(lambda: admin.request("POST", path, review)["status"]["allowed"] is True, lambda: f"no {verb} yet")


def test_what_oneself_may_do(kube: Kube, start: Starter, restricted: Path, admin: Client, namespace: str) -> None:
    assert kube.ok("auth-can-i", verb="*", resource="*")["allowed"] == "true"
    mine = start(restricted)
    assert mine.ok("auth-can-i", verb="get", resource="pods/log", namespace=namespace)["allowed"] == "false"
    with granted(admin, namespace, ["get", "list"], "pods"):
        assert "get, list pods" in mine.ok("auth-can-i", list=True, namespace=namespace)["rules"]


@pytest.mark.parametrize("operation", ["view", "drop-in"])
def test_a_kubeconfig_is_shown_without_credentials(kube: Kube, kubeconfig: Path, operation: str) -> None:
    shown = (kube.ok("view-config") if operation == "view" else kube.ok("viewConfig"))["config"]
    secret = [
        entry["user"][key]
        for entry in yaml.safe_load(kubeconfig.read_text())["users"]
        for key in CREDENTIALS
        if key in entry["user"]
    ]
    assert secret
    assert not any(value in shown for value in secret)
    assert yaml.safe_load(shown)["clusters"]


def test_contexts_are_listed(kube: Kube, kubeconfig: Path) -> None:
    current = yaml.safe_load(kubeconfig.read_text())["current-context"]
    assert current in kube.ok("list-contexts")["contexts"]
    assert kube.ok("listContexts")["message"].endswith(f"current: {current}")
    assert kube.ok("getCurrentContext")["context"] == kube.ok("current-context")["context"] == current


def test_namespaces_by_the_names_of_another_extension(kube: Kube, admin: Client) -> None:
    name = kube.ok("createNamespace", prefix="live-drop-in")["namespace"]
    assert admin.exists(f"/api/v1/namespaces/{name}")
    assert kube.ok("deleteGeneratedNamespaces", wait=True, timeout=LONG)["namespaces"] == name
    assert not admin.exists(f"/api/v1/namespaces/{name}")
