"""ext-kubernetes and who it is: where credentials come from, and what happens when they expire in mid-wait."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
import yaml

from tests.live import kubeconfig as kubeconfigs
from tests.live.client import ApiError, Client, wait_until
from tests.live.kubernetes import LONG
from tests.live.manifests import configmap, pod
from tests.live.permissions import granted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from tests.live.conftest import Starter
    from tests.live.control_plane import ControlPlane
    from tests.live.kubernetes import Kube

ACCOUNT = "/api/v1/namespaces/default/serviceaccounts/default"
DONE = {"jsonPath": "$.data.state", "value": "done", "timeout": LONG}
LEEWAY = 60  # seconds that the server takes an expired token for: clocks differ
SOON = 10  # seconds until it does no longer; it may remember for 10 more that it did

# What `kubectl` knows as a credential plugin: it says the token that a file has in it.
PLUGIN = """#!/bin/sh
printf '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": "%s"}}' \\
    "$(cat "$0.token")"
"""


# --- Where they come from --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["config", "variable", "home"])
def test_a_kubeconfig_is_found(start: Starter, kubeconfig: Path, namespace: str, tmp_path: Path, way: str) -> None:
    path = tmp_path / ".kube" / "config"
    path.parent.mkdir()
    path.write_bytes(kubeconfig.read_bytes())
    env = {"HOME": str(tmp_path), "KUBECONFIG": str(path) if way == "variable" else ""}
    kube = start(path if way == "config" else None, env)
    assert kube.ok("get", resource=f"ns/{namespace}")["name"] == namespace


def test_a_context_is_chosen(start: Starter, kubeconfig: Path, tmp_path: Path, namespace: str) -> None:
    content = yaml.safe_load(kubeconfig.read_text())
    (context,) = [one["context"] for one in content["contexts"]]
    content["contexts"] = [{"name": name, "context": {**context, "namespace": name}} for name in ("one", namespace)]
    content["current-context"] = "one"
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(content))
    kube = start(path, context=namespace, namespace="")
    assert kube.ok("create", configmap())["namespace"] == namespace
    assert kube.ok("current-context")["context"] == namespace


def test_a_pod_s_own_account_is_found(
    start: Starter, restricted: Path, admin: Client, namespace: str, tmp_path: Path
) -> None:
    user = yaml.safe_load(restricted.read_text())["users"][0]["user"]
    entry = kubeconfigs.cluster_of(restricted)
    folder, env = account_folder(tmp_path / "account", user["token"], entry, namespace)
    kube = start(None, env, serviceAccount=str(folder), namespace="")
    with granted(admin, namespace, ["create"], "configmaps"):
        assert kube.ok("create", configmap())["namespace"] == namespace
    assert f"system:serviceaccount:{namespace}:tester" in kube.failed("get", resource="secrets")


def test_another_user_is_impersonated(
    start: Starter, kubeconfig: Path, admin: Client, namespace: str, tmp_path: Path
) -> None:
    account = f"system:serviceaccount:{namespace}:default"
    kube = start(impersonating(kubeconfig, tmp_path / "account", {"as": account}))
    kube.workdir.joinpath("file").write_text("x")
    assert f'"{account}" cannot get' in kube.failed("get", resource=f"ns/{namespace}")
    assert f'"{account}" cannot create' in kube.failed("create", configmap())
    assert "denied" in kube.ok("auth-can-i", verb="get", resource="pods", namespace=namespace)["message"]
    admin.apply(pod(name="web"), namespace)
    admin.wait_for(f"/api/v1/namespaces/{namespace}/pods/web", lambda it: it["status"].get("phase") == "Running")
    with granted(admin, namespace, ["get", "list"], "pods", account="default"):
        for operation, args in (
            ("exec", {"command": ["true"]}),
            ("logs", {}),
            ("copy", {"direction": "toContainer", "local": "file", "remote": "/tmp/file"}),
            ("port-forward", {"port": 80}),
        ):
            told = kube.failed(operation, args, resource="pod/web")
            assert "may not get pods/portforward" in told or (account in told and "cannot" in told), (operation, told)


def test_groups_and_more_of_another_user_are_impersonated(
    start: Starter, kubeconfig: Path, namespace: str, tmp_path: Path
) -> None:
    user = {
        "as": "jane",
        "as-groups": ["testers", "system:masters"],
        "as-uid": "1",
        "as-user-extra": {"a/b": ["c", "d"]},
    }
    kube = start(impersonating(kubeconfig, tmp_path / "jane", user))
    assert kube.ok("get", resource=f"ns/{namespace}")["name"] == namespace
    assert kube.ok("create", configmap())["namespace"] == namespace


def impersonating(kubeconfig: Path, path: Path, user: Mapping[str, object]) -> Path:
    """Copy a kubeconfig, with further members of its users."""
    content = yaml.safe_load(kubeconfig.read_text())
    for one in content["users"]:
        one["user"] |= user
    path.write_text(yaml.safe_dump(content))
    return path


# --- When they expire ------------------------------------------------------------------------------------------------


@pytest.fixture
def own(control_plane: ControlPlane) -> Iterator[Client]:
    """The tests' own client of a control plane whose tokens can be made."""
    client = Client(control_plane.kubeconfig)
    with granted(client, "default", ["get"], "configmaps", account="default"):
        yield client
    client.close()


def test_credentials_that_have_expired_are_told_at_once(
    start: Starter, control_plane: ControlPlane, own: Client
) -> None:
    kube = start(control_plane.identities.service_account("default", "default", own.uid(ACCOUNT), -2 * LEEWAY))
    assert "were rejected: they have expired" in kube.failed("get", resource="pods")
    assert "were rejected: they have expired" in kube.failed("wait", DONE, resource="cm/none")


def test_a_token_that_expires_in_the_middle_of_a_wait_ends_it(
    start: Starter, control_plane: ControlPlane, own: Client
) -> None:
    uid, identities = own.uid(ACCOUNT), control_plane.identities
    kube = start(identities.service_account("default", "default", uid, -2 * LEEWAY))
    assert "were rejected" in kube.failed("get", resource="cm/none")  # everything is loaded: the token is short-lived
    identities.service_account("default", "default", uid, SOON - LEEWAY)
    waiting = kube.start("wait", DONE, resource="cm/never")
    kube.heard("NotFound")
    result = kube.answer(waiting)
    assert not result["success"]
    assert "were rejected: they have expired" in result["error"]


@pytest.mark.parametrize("way", ["token file", "plugin", "pod"])
def test_a_token_that_is_renewed_in_the_middle_of_a_wait_is_used(
    start: Starter, control_plane: ControlPlane, own: Client, tmp_path: Path, way: str
) -> None:
    uid, identities = own.uid(ACCOUNT), control_plane.identities
    entry = kubeconfigs.cluster_of(control_plane.kubeconfig)
    token, kube = started(start, tmp_path, entry, "none", way)
    assert "were rejected" in kube.failed("get", resource="cm/none")  # everything is loaded: the token is short-lived
    first = identities.token("default", "default", uid, SOON - LEEWAY)
    kubeconfigs.replace(token, first)
    names = [f"renewed-{way.replace(' ', '-')}-{number}" for number in range(2)]
    waits = [kube.start("wait", DONE, resource=f"cm/{name}") for name in names]
    for name in names:
        kube.heard(f"{name}: NotFound")
    kubeconfigs.replace(token, identities.token("default", "default", uid, 3600))
    path = kubeconfigs.write(tmp_path / "first", entry, kubeconfigs.with_token(first))
    wait_until(lambda: refused(path), lambda: "the first token is still taken")
    for name in names:
        own.apply(configmap(name, {"state": "done"}), "default")
    kube.succeeded(*waits)


def started(start: Starter, directory: Path, entry: kubeconfigs.Entry, token: str, way: str) -> tuple[Path, Kube]:
    """The file of the token, and an extension that does without watches: one that is open outlives its token."""
    if way == "pod":
        folder, env = account_folder(directory / "account", token, entry, "default")
        return folder / "token", start(None, env, serviceAccount=str(folder), watch=False)
    plugin = directory / "plugin"
    plugin.write_text(PLUGIN)
    plugin.chmod(0o755)
    file = directory / "plugin.token"
    file.write_text(token)
    user = kubeconfigs.with_plugin(plugin) if way == "plugin" else kubeconfigs.with_token_file(file)
    return file, start(kubeconfigs.write(directory / "user", entry, user), watch=False)


def account_folder(folder: Path, token: str, entry: kubeconfigs.Entry, namespace: str) -> tuple[Path, dict[str, str]]:
    """What a pod has of its account: a folder, and the variables with the address of the server."""
    import base64

    folder.mkdir()
    (folder / "token").write_text(token)
    (folder / "ca.crt").write_bytes(base64.b64decode(entry["certificate-authority-data"]))
    (folder / "namespace").write_text(namespace)
    address = urlsplit(entry["server"])
    return folder, {"KUBERNETES_SERVICE_HOST": address.hostname or "", "KUBERNETES_SERVICE_PORT": str(address.port)}


def refused(kubeconfig: Path) -> bool:
    """Whether the server takes a user's credentials no longer."""
    client = Client(kubeconfig)
    try:
        client.get("/api/v1/namespaces/default/configmaps/none")
    except ApiError as error:
        return error.code == 401
    finally:
        client.close()
    return False
