"""Recordings of kubectl and helm on a real API server, replayed without it and without network."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from tests.support.run_recordings import Recording

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live.cluster import Cluster

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="no kubectl in PATH")
OBJECTS = """
set -e
kubectl create namespace $1
kubectl -n $1 apply -f objects.yaml
kubectl -n $1 get cm,secret,deploy -o name
kubectl -n $1 get cm it -o yaml
kubectl -n $1 rollout status deploy/web --timeout=50s | tail -1
kubectl -n $1 wait deploy/web --for=condition=Available --timeout=50s
kubectl -n $1 patch cm it -p '{"data":{"b":"2"}}'
kubectl -n $1 get pods -o name | wc -l
kubectl -n $1 get cm missing || echo "missing: $?"
kubectl -n $1 delete cm it
kubectl delete namespace $1 --wait
kubectl auth can-i create pods
kubectl api-resources | wc -l
"""
STREAMS = """
kubectl create namespace $1
kubectl -n $1 run web --image=busybox --restart=Never -- sleep 100
kubectl -n $1 wait pod/web --for=condition=Ready --timeout=50s
kubectl -n $1 exec web -- echo hello
echo a line of input | kubectl -n $1 exec -i web -- cat
kubectl -n $1 exec web -- sh -c 'echo aside >&2; exit 7' 2>&1; echo "exit code $?"
kubectl -n $1 logs web | wc -l
kubectl delete namespace $1 --wait=false
"""
MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: it}
data: {a: "1"}
---
apiVersion: v1
kind: Secret
metadata: {name: it}
stringData: {password: hunter2hunter2}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: nginx}]}
"""
HELM = """
set -e
helm install it chart -n $1 --create-namespace --wait --timeout 50s | grep STATUS
helm list -n $1 -q
helm upgrade it chart -n $1 --set value=other | grep REVISION
helm get values it -n $1
helm uninstall it -n $1
kubectl delete namespace $1 --wait=false
"""
CHART = {
    "Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
    "values.yaml": "value: one\n",
    "templates/it.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: it}\ndata: {value: '{{ .Values.value }}'}\n"
    ),
}


def check(script: str, cluster: Cluster, namespace: str, folder: Path, *options: str) -> Recording:
    """Record a script; replay it without a kubeconfig and without network."""
    (folder / "script.sh").write_text(script)
    (folder / "objects.yaml").write_text(MANIFEST)
    recording = Recording(folder, ["sh", "script.sh", f"{namespace}-run"], KUBECONFIG=str(cluster.kubeconfig))
    recording.record(*options)
    recording.check_replay(*options, environ={"HOME": str(folder)})
    return recording


def test_kubectl_on_objects(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    recording = check(OBJECTS, cluster, namespace, tmp_path)
    assert "configmap/it patched" in recording.recorded.out
    files = "".join(path.read_text() for path in (tmp_path / "rec").iterdir())
    assert "hunter2" not in files
    assert "aHVudGVyMmh1bnRlcjI" not in files


@pytest.mark.usefixtures("streams")
def test_kubectl_exec_and_logs(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    out = check(STREAMS, cluster, namespace, tmp_path).recorded.out
    assert "hello\na line of input\n" in out
    assert "aside\n" in out
    assert "exit code 7\n" in out


@pytest.mark.skipif(shutil.which("helm") is None, reason="no helm in PATH")
def test_helm(cluster: Cluster, namespace: str, tmp_path: Path) -> None:
    for name, text in CHART.items():
        (tmp_path / "chart" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "chart" / name).write_text(text)
    options = ("--redact-except", "pattern:SDRzSUFB[A-Za-z0-9+/=]+")  # helm reads its release from a Secret
    assert "STATUS: deployed" in check(HELM, cluster, namespace, tmp_path, *options).recorded.out
