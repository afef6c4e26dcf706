"""ext-kubernetes on a real cluster: who may do what, and what of a kubeconfig is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

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
