"""ext-kubernetes on a real cluster: manifests of directories, web servers and kustomizations."""

from __future__ import annotations

import json
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.live.manifests import configmap, deployment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.live.client import Client
    from tests.live.kubernetes import Kube

DATA = {"colour": "blue"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory `all` in the workdir: a manifest, one in a directory of its own, and what is none."""
    folder = tmp_path / "all"
    (folder / "inner").mkdir(parents=True)
    (folder / "one.yaml").write_text(yaml.safe_dump(configmap("one", DATA)))
    (folder / "inner" / "two.yml").write_text(yaml.safe_dump(configmap("two", DATA)))
    (folder / "README.md").write_text("no manifest: {")
    return folder


class Quiet(SimpleHTTPRequestHandler):
    """Says nothing to the tests' output."""

    def log_message(self, format: str, *args: object) -> None:
        """Quietly."""


@pytest.fixture
def web(folder: Path) -> Iterator[str]:
    """The address of a server that has the directory."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.usefixtures("folder")
def test_a_directory_is_applied_and_deleted(kube: Kube, admin: Client, namespace: str) -> None:
    assert kube.ok("apply", file="all")["resources"].split("\n") == ["ConfigMap/one created"]
    assert kube.ok("apply", file="all", recursive=True)["created"] == "1"
    assert admin.get(f"/api/v1/namespaces/{namespace}/configmaps/two")["data"] == DATA
    assert kube.ok("delete", file="all", recursive=True)["count"] == "2"
    assert not admin.exists(f"/api/v1/namespaces/{namespace}/configmaps/two")


def test_a_manifest_is_applied_from_a_web_server(kube: Kube, admin: Client, namespace: str, web: str) -> None:
    assert kube.ok("apply", url=f"{web}/one.yaml?token=x")["created"] == "1"
    assert admin.get(f"/api/v1/namespaces/{namespace}/configmaps/one")["data"] == DATA
    assert "found HTTP status 404" in kube.failed("apply", url=f"{web}/none.yaml")
    assert "README.md" in kube.failed("apply", url=f"{web}/README.md")


@pytest.mark.skipif(not (shutil.which("kubectl") or shutil.which("kustomize")), reason="no kubectl or kustomize")
def test_a_kustomization_is_applied(kube: Kube, admin: Client, namespace: str, folder: Path) -> None:
    overlay = {"resources": ["one.yaml"], "namePrefix": "my-", "labels": [{"pairs": {"team": "x"}}]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay))
    assert kube.ok("apply", kustomize="all")["created"] == "1"
    found = admin.get(f"/api/v1/namespaces/{namespace}/configmaps/my-one")
    assert (found["data"], found["metadata"]["labels"]) == (DATA, {"team": "x"})
    assert kube.ok("delete", kustomize="all")["count"] == "1"
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(overlay | {"resources": ["gone.yaml"]}))
    assert "gone.yaml" in kube.failed("apply", kustomize="all")


def test_references_in_a_manifest_are_replaced(kube: Kube, admin: Client, namespace: str) -> None:
    kube.ok("create-configmap", {"name": "source", "literals": {"count": "0", "namespace": namespace}})
    outputs = {"count": ".data.count", "namespace": ".data.namespace"}
    kube.ok("get", {"resource": "cm/source", "outputs": outputs, "as": "it"})
    made = json.dumps(deployment() | {"metadata": {"name": "it", "annotations": {"for": "${it.namespace}"}}})
    made = made.replace('"replicas": 2', '"replicas": ${it.count}')
    kube.ok("apply", {"manifest": made, "expand": True})
    found = admin.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/it")
    assert (found["spec"]["replicas"], found["metadata"]["annotations"]["for"]) == (0, namespace)
