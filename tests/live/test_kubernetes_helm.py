"""ext-kubernetes and a real helm, with a chart of the workdir.

If it is missing: `go install helm.sh/helm/v3/cmd/helm@v3.19.0`, some minutes on two cores.
"""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
import yaml

from tests.live.kubernetes import LONG
from tests.live.manifests import IMAGE, deployment

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live.client import Client
    from tests.live.kubernetes import Kube

pytestmark = pytest.mark.skipif(shutil.which("helm") is None, reason="no helm in PATH")
CONFIG = """
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Release.Name }}}
data: {kind: {{ .Values.service.kind | quote }}, ports: {{ .Values.ports | toJson | quote }}}
"""


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A chart of a ConfigMap and a Deployment."""
    folder = tmp_path / "web"
    (folder / "templates").mkdir(parents=True)
    (folder / "Chart.yaml").write_text(yaml.safe_dump({"apiVersion": "v2", "name": "web", "version": "1.2.3"}))
    values = {"image": IMAGE, "replicas": 1, "service": {"kind": "none"}, "ports": []}
    (folder / "values.yaml").write_text(yaml.safe_dump(values))
    (folder / "templates" / "config.yaml").write_text(CONFIG)
    made = yaml.safe_dump(deployment() | {"spec": deployment()["spec"] | {"replicas": "REPLICAS"}})
    made = made.replace("REPLICAS", "{{ .Values.replicas }}").replace(IMAGE, "{{ .Values.image }}")
    (folder / "templates" / "deployment.yaml").write_text(
        made.replace("name: it\nspec", "name: {{ .Release.Name }}\nspec")
    )
    return folder


@pytest.mark.usefixtures("chart")
def test_the_life_of_a_release(kube: Kube, admin: Client, namespace: str) -> None:
    values = {"service": {"kind": "LB"}, "ports": [1, 2]}
    installed = kube.ok("helm-install", chart="web", name="it", values=values, wait=True, timeout=LONG)
    assert (installed["name"], installed["status"], installed["revision"]) == ("it", "deployed", "1")
    found = admin.get(f"/api/v1/namespaces/{namespace}/configmaps/it")
    assert found["data"] == {"kind": "LB", "ports": "[1,2]"}
    upgraded = kube.ok("helm-upgrade", chart="web", name="it", values={"replicas": 2}, reuseValues=True, timeout=LONG)
    assert upgraded["revision"] == "2"
    kube.ok("wait", {"for": "ready"}, resource="deploy/it", timeout=LONG)
    assert admin.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/it")["status"]["replicas"] == 2
    (release,) = json.loads(kube.ok("helm-list")["releases"])
    assert (release["name"], release["namespace"], release["chart"]) == ("it", namespace, "web-1.2.3")
    assert "it" in kube.ok("helm-list", allNamespaces=True)["names"].split()
    current = kube.ok("helm-status", name="it", expected={"revision": 2, "chart": "web-1.2.3"}, wait=True, timeout=LONG)
    assert (current["status"], current["done"]) == ("deployed", "true")
    told = kube.failed("helm-status", {"name": "it", "expected": {"status": "failed"}})
    assert 'status: expected "failed", found "deployed"' in told
    kube.ok("helm-values", name="it", expected={"$equals": values | {"replicas": 2}})
    assert kube.ok("helm-values", name="it", all=True, revision=1, outputs={"n": "$.replicas"})["n"] == "1"
    assert "has no revision 7" in kube.failed("helm-values", name="it", revision=7)
    rolled = kube.ok("helm-rollback", name="it", wait=True, timeout=LONG, onTimeout="ok")
    assert (rolled["toRevision"], rolled["revision"], rolled["done"]) == ("1", "3", "true")
    assert kube.ok("helm-rollback", name="it", wait=True, timeout=LONG)["revision"] == "3"
    assert "has no revision 9" in kube.failed("helm-rollback", name="it", revision=9)
    assert admin.get(f"/apis/apps/v1/namespaces/{namespace}/deployments/it")["spec"]["replicas"] == 1
    kube.ok("helm-uninstall", name="it", wait=True, timeout=LONG, onTimeout="ok")
    kube.ok("helm-uninstall", name="it", wait=True, timeout=LONG)
    assert kube.ok("helm-list")["count"] == "0"
    assert "not found" in kube.failed("helm-uninstall", name="it")
    kube.ok("helm-uninstall", name="it", ignoreNotFound=True)
    kube.ok("helm-status", name="it", absent=True, wait=True)
    for operation in ("helm-status", "helm-values", "helm-rollback"):
        assert "expected a Helm release 'it'" in kube.failed(operation, name="it")


@pytest.mark.usefixtures("chart")
def test_the_names_of_the_other_extension(kube: Kube) -> None:
    kube.ok("helmInstall", chart="web", name="it", values={"service": {"kind": "x"}})
    assert "it (namespace: " in kube.ok("helmList")["message"]
    assert "a name that is still in use" in kube.failed("helmInstall", chart="web", name="it")
    kube.ok("helmUninstall", name="it")
    kube.ok("helmUninstall", name="it")


@pytest.mark.usefixtures("chart")
def test_a_release_that_does_not_become_ready_is_told_in_time(kube: Kube) -> None:
    values = {"image": "registry.invalid/nothing:1"}
    args = {"chart": "web", "name": "it", "values": values, "wait": True}
    told = kube.failed("helm-install", args, timeout=LONG, onTimeout="ok")
    assert "Helm chart installed successfully, but deployment/it is not ready" in told
    assert "container main is waiting: ImagePullBackOff" in told
    assert "gave up early" in told


def test_a_chart_that_is_not_there_is_told(kube: Kube) -> None:
    assert "helm install failed" in kube.failed("helm-install", chart="nothing", name="it")
