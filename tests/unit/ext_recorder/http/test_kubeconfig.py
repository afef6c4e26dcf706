"""Kubeconfigs of a command and of a replay: the clusters that are used, and no credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from ext_recorder.http import kubeconfig
from ext_recorder.http.kubeconfig import Kubeconfig, KubeconfigTemplate, texts_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CONTENT = """
current-context: c
clusters:
- {name: used, cluster: {server: "https://a.example.com", certificate-authority: /ca.pem}}
- {name: other, cluster: {server: "https://b.example.com:6443"}}
contexts:
- {name: c, context: {cluster: used, user: ada, namespace: web}}
- {name: d, context: {cluster: other, user: bob}}
users:
- {name: ada, user: {token: s3cret, client-key: /key.pem}}
- {name: bob, user: {username: bob, password: hunter22}}
- 7
"""


def template(tmp_path: Path, content: str) -> KubeconfigTemplate:
    (tmp_path / "kubeconfig").write_text(content)
    return KubeconfigTemplate({"KUBECONFIG": f"{tmp_path}/missing:{tmp_path}/kubeconfig"})


def test_it_has_the_used_cluster_with_its_contexts(tmp_path: Path) -> None:
    kubeconfig = template(tmp_path, CONTENT)
    assert kubeconfig.credentials == ["s3cret", "hunter22"]
    assert yaml.safe_load(kubeconfig.of({"a.example.com:443"})) == {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "clusters": [{"name": "used", "cluster": {"server": "https://a.example.com"}}],
        "contexts": [{"name": "c", "context": {"cluster": "used", "user": "ada", "namespace": "web"}}],
        "users": [{"name": "ada", "user": {}}],
    }


def test_it_is_empty_if_no_cluster_was_used(tmp_path: Path) -> None:
    assert template(tmp_path, CONTENT).of({"a.example.com:80"}) == ""
    assert template(tmp_path, "clusters: 7").of({"a.example.com:443"}) == ""
    assert template(tmp_path, "{").credentials == []


SERVER = "https://api.example.com:6443/path"
USERS = {
    "token": ({"token": "s3cret"}, {"Authorization": "Bearer s3cret"}, True),
    "file": ({"tokenFile": "token"}, {"Authorization": "Bearer in-a-file"}, True),
    "basic": ({"username": "ada", "password": "pw"}, {"Authorization": "Basic YWRhOnB3"}, True),
    "exec": ({"exec": {"command": "login"}}, {}, False),
}


def test_a_command_gets_each_context_with_our_address_and_without_credentials(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("in-a-file\n")
    content = {
        "current-context": "exec",
        "clusters": [{"name": "c", "cluster": {"server": SERVER, "insecure-skip-tls-verify": True}}],
        "contexts": [{"name": name, "context": {"cluster": "c", "user": name, "namespace": "web"}} for name in USERS],
        "users": [{"name": name, "user": user} for name, (user, _, _) in USERS.items()],
    }
    own = Kubeconfig([("not: [valid", tmp_path), (yaml.safe_dump(content), tmp_path)])
    routes = own.routes("child")
    for route in routes:
        entry = route.listener.entry
        assert entry.origin is not None
        assert (entry.origin.place, entry.tls, entry.client) == ("api.example.com:6443", True, "child")
        assert dict(entry.headers) == USERS[route.name][1]
        assert ("authorization" in entry.drop) is USERS[route.name][2]
        route.listener.socket.close()
    rewritten = yaml.safe_load(own.rewritten(routes, b"our certificate"))
    assert rewritten["current-context"] == "exec"
    assert [cluster["cluster"]["server"] for cluster in rewritten["clusters"]] == [
        f"https://127.0.0.1:{route.listener.port}/path" for route in routes
    ]
    users = {entry["name"]: entry["user"] for entry in rewritten["users"]}
    assert users.pop("exec") == {"exec": {"command": "login"}}
    assert set(map(str, users.values())) == {"{'token': 'ext-recorder'}"}


def test_a_program_in_a_pod_without_a_file_uses_its_service_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kubeconfig, "ACCOUNT", str(tmp_path))
    environ = {"KUBECONFIG": f"{tmp_path}/missing", "KUBERNETES_SERVICE_HOST": "fd00::1"}
    environ |= {"KUBERNETES_SERVICE_PORT": "443"}
    assert texts_of(environ) == []
    (tmp_path / "token").write_text("of the pod")
    (tmp_path / "namespace").write_text("web")
    (route,) = Kubeconfig(texts_of(environ)).routes()
    route.listener.socket.close()
    assert (route.server, route.context["namespace"]) == ("https://[fd00::1]:443", "web")
    assert route.listener.entry.headers == {"Authorization": "Bearer of the pod"}
