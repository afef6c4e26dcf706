"""Documented examples and shapes of the Go extension's arguments; see also go_extension_cases, which has its tests."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from ext_kubernetes.extension import extension
from ext_kubernetes.targets import TargetArgs
from tests.support.fake_helm import FakeHelm

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_kubernetes import Extension, Starter
    from tests.support.fake_kubernetes import FakeApi

Args = dict[str, Any]

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "test-namespace"}}
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment"}
WHERE = {"name": "my-deployment", "namespace": "default"}
MORE = {"labels": {"a": "b"}, "annotations": {"c": "d"}, "uid": "x", "finalizers": [], "anything": {"at": ["all"]}}
POD = {"containers": [{"name": "nginx", "image": "nginx:latest"}]}
ACCESS = {"verb": "get", "resource": "pods", "as": "system:serviceaccount:create-simple-rbac:reader-sa"}
RELEASE = {"name": "my-nginx", "namespace": "default"}
CHART = {"chart": "oci://registry-1.docker.io/bitnamicharts/nginx"}
CASES: list[tuple[str, Args | None]] = [
    ("create", NAMESPACE),
    ("create", NAMESPACE | {"metadata": {"name": "labelled", "labels": {"a": "b"}, "annotations": {"c": "d"}}}),
    (
        "create",
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "my-pod", "namespace": "default"}, "spec": POD},
    ),
    ("delete", NAMESPACE | {"ignoreNotFound": True}),
    ("delete", NAMESPACE | {"metadata": {"name": "test-namespace"} | MORE, "ignoreNotFound": True}),
    ("delete", DEPLOYMENT | {"metadata": WHERE | MORE}),
    ("delete", DEPLOYMENT | {"metadata": WHERE | MORE, "ignoreNotFound": False}),
    ("wait", DEPLOYMENT | {"metadata": WHERE, "condition": "Available"}),
    ("wait", DEPLOYMENT | {"metadata": WHERE, "condition": "Available", "status": "True", "timeout": "5m"}),
    ("wait", DEPLOYMENT | {"metadata": WHERE | MORE, "condition": "Available", "timeout": "120s"}),
    ("authCanI", ACCESS),
    ("authCanI", ACCESS | {"expect": {}}),
    ("authCanI", ACCESS | {"expect": {"allowed": True}, "namespace": "default", "resourceName": "x", "apiGroup": ""}),
    ("authCanI", ACCESS | {"resource": "deployments", "apiGroup": "apps", "namespace": ""}),
    ("createNamespace", {"prefix": "vm-test"}),
    ("deleteGeneratedNamespaces", None),
    ("deleteGeneratedNamespaces", {}),
    ("listContexts", None),
    ("getCurrentContext", None),
    ("getCurrentContext", {}),
    ("viewConfig", None),
    ("viewConfig", {"minify": False}),
    ("viewConfig", {"minify": True}),
    ("helmInstall", CHART),
    ("helmInstall", CHART | {"name": "test-nginx", "namespace": "helm-test"}),
    ("helmInstall", CHART | RELEASE | {"values": {"replicaCount": 2, "service": {"type": "LoadBalancer"}}}),
    ("helmList", None),
    ("helmList", {"namespace": "default"}),
    ("helmList", {"allNamespaces": True}),
    ("helmUninstall", RELEASE),
    ("helmUninstall", {"name": "my-nginx"}),
]
REFERENCES = sorted(one.name for one in extension.operations.values() if issubclass(one.args_type, TargetArgs))


@pytest.mark.parametrize(("operation", "args"), CASES)
def test_it_is_accepted(api: FakeApi, start: Starter, tmp_path: Path, operation: str, args: Args | None) -> None:
    available = {"conditions": [{"type": "Available", "status": "True"}], "observedGeneration": 1}
    api.put("deployments", {"metadata": WHERE, "spec": {}, "status": available})
    kube = start(api.kubeconfig(tmp_path / "k"), {"PATH": FakeHelm(tmp_path / "bin").path})
    kube.ok(operation, args)


@pytest.mark.parametrize("operation", REFERENCES)
def test_other_members_of_metadata_do_not_matter(kube: Extension, operation: str) -> None:
    example = extension.operations[operation].example or {}
    args = {**example, "resource": "", "apiVersion": "v1", "kind": "Pod", "timeout": "0s"}
    args |= {"for": "1ms", "timeout": "10ms"} if operation == "stable" else {}
    results = [
        re.sub(r"[0-9.]+( polls?)?", "N", str(kube.result(operation, args | {"metadata": metadata})))
        for metadata in ({"name": "nginx"}, {"name": "nginx"} | MORE)
    ]
    assert results[0] == results[1]
