"""Operations on all that a selector finds."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from ext_kubernetes.manifests.bulk import MOST_PARALLEL
from tests.support.fake_kubernetes import Asked, Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

PATIENCE_SECONDS = 20.0
NAMES = [f"c{number:02}" for number in range(2 * MOST_PARALLEL)]
CALLS: dict[str, dict[str, object]] = {
    "label": {"resource": "cm", "selector": "app=x", "labels": {"tier": "web"}},
    "annotate": {"resource": "cm", "selector": "app=x", "annotations": {"note": "seen"}},
    "delete": {"resource": "cm", "selector": "app=x"},
}


@pytest.fixture
def objects(api: FakeApi) -> FakeApi:
    for name in NAMES:
        api.put("configmaps", {"metadata": {"name": name, "labels": {"app": "x"}}})
    return api


@pytest.mark.parametrize("operation", CALLS)
def test_several_requests_are_under_way_at_a_time(kube: Extension, objects: FakeApi, operation: str) -> None:
    meeting = threading.Barrier(MOST_PARALLEL, timeout=PATIENCE_SECONDS)  # none is answered before AT_ONCE have come

    def meet(asked: Asked) -> None:
        if asked.method in {"PATCH", "DELETE"}:
            meeting.wait()

    objects.before = meet
    assert kube.ok(operation, CALLS[operation])["count"] == str(len(NAMES))
    assert not meeting.broken


@pytest.mark.parametrize("operation", CALLS)
def test_one_that_fails_does_not_keep_the_others(kube: Extension, objects: FakeApi, operation: str) -> None:
    method = "DELETE" if operation == "delete" else "PATCH"
    for name in ("c03", "c05"):
        objects.faults.append(Fault(method, f"/{name}$", status=403, reason="Forbidden", message=f"not {name}"))
    result = kube.result(operation, CALLS[operation] | {"timeout": "5s"})
    assert result["success"] is False
    assert result["message"] == f"failed to {operation} 2 of {len(NAMES)} objects"
    assert [line.partition(" (")[0] for line in str(result["error"]).splitlines()] == [
        "ConfigMap/c03: not c03",
        "ConfigMap/c05: not c05",
    ]
    count = "count" if operation == "delete" else "changed"
    assert result["outputs"][count] == str(len(NAMES) - 2)  # type: ignore[index]


def test_what_a_manifest_lists_is_deleted_in_reverse_order(kube: Extension, objects: FakeApi) -> None:
    listed = [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}} for name in NAMES]
    kube.ok("delete", {"manifest": listed})
    assert [asked.path.rpartition("/")[2] for asked in objects.requests("DELETE")] == NAMES[::-1]


# --- Advice -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        ("get", {}),
        ("exec", {"command": ["true"]}),
        ("logs", {}),
        ("copy", {"direction": "fromContainer", "local": "x", "remote": "/x"}),
        ("port-forward", {"port": 80}),
    ],
)
def test_a_namespace_that_does_not_exist_is_told(kube: Extension, operation: str, args: dict[str, object]) -> None:
    told = kube.failed(operation, args | {"resource": "pod/web", "namespace": "missing"})
    assert "Namespace missing does not exist; create it with create-namespace" in told


@pytest.mark.parametrize(
    ("operation", "args", "advice"),
    [
        ("create-secret", {"name": "one"}, "set `replace: true`"),
        ("create-configmap", {"name": "one"}, "set `replace: true`"),
        ("run-job", {"name": "one", "image": "x"}, "Choose another name, or omit it"),
        ("create-namespace", {"name": "default"}, "or use `prefix` to generate an unused name"),
    ],
)
def test_what_exists_already_is_told_with_the_arguments_that_there_are(
    kube: Extension, api: FakeApi, operation: str, args: dict[str, object], advice: str
) -> None:
    for plural in ("secrets", "configmaps", "jobs"):
        api.put(plural, {"metadata": {"name": "one"}})
    told = kube.failed(operation, args)
    assert advice in told
    assert "generateName" not in told
