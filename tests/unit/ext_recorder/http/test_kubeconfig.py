"""The kubeconfig of a replay has the clusters that were used, and no credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from ext_recorder.http.kubeconfig import KubeconfigTemplate

if TYPE_CHECKING:
    from pathlib import Path

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
