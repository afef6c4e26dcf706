"""`label` and `annotate`, against an API server on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi, Object


def pod(name: str, *, ready: bool = True, **labels: str) -> Object:
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    return {"metadata": {"name": name, "labels": labels}, "status": {"phase": "Running", "conditions": [condition]}}


@pytest.fixture
def pods(api: FakeApi) -> FakeApi:
    for name, tier in (("a", "web"), ("b", "web"), ("c", "data")):
        api.put("pods", pod(name, tier=tier))
    return api


def labels_of(api: FakeApi, name: str) -> dict[str, str]:
    found = api.get("pods", name)
    assert found is not None
    labels: dict[str, str] = found["metadata"]["labels"]
    return labels


def test_labels_are_set_changed_and_removed(kube: Extension, pods: FakeApi) -> None:
    outputs = kube.ok("label", {"resource": "pod/a", "labels": {"tier": None, "team": "blue"}})
    assert labels_of(pods, "a") == {"team": "blue"}
    assert (outputs["count"], outputs["changed"], outputs["message"]) == ("1", "1", "Labelled Pod/a")
    again = kube.ok("label", {"resource": "pod/a", "labels": {"team": "blue"}})
    assert again["message"] == "Labelled Pod/a (no change)"


def test_all_that_a_selector_finds_are_annotated(kube: Extension, pods: FakeApi) -> None:
    args = {"resource": "pods", "selector": "tier=web", "annotations": {"note": "seen"}}
    assert kube.ok("annotate", args)["message"] == "Annotated 2 pods"
    noted = [name for name in "abc" if "annotations" in (pods.get("pods", name) or {})["metadata"]]
    assert noted == ["a", "b"]


def test_a_kind_alone_is_not_all_of_it(kube: Extension, pods: FakeApi) -> None:
    assert "expected a name, a `selector` or `all: true`" in kube.refused(
        "label", {"resource": "pods", "labels": {"a": "b"}}
    )
    assert kube.ok("label", {"resource": "pods", "all": True, "labels": {"a": "b"}})["changed"] == "3"


def test_another_value_may_be_left_as_it_is(kube: Extension, pods: FakeApi) -> None:
    args = {"resource": "pods", "all": True, "labels": {"tier": "web"}, "overwrite": False}
    assert "expected tier to be absent from the labels of c, found 'data'; nothing was changed" in kube.failed(
        "label", args
    )


def test_what_was_labelled_is_waited_for_by_name(kube: Extension, pods: FakeApi) -> None:
    args: dict[str, object] = {"resource": "pods", "selector": "tier=web", "labels": {"tier": "shop"}, "wait": True}
    pods.put("pods", pod("c", ready=False, tier="data"))
    kube.ok("label", args)
    assert labels_of(pods, "b") == {"tier": "shop"}
    pods.put("pods", pod("b", ready=False, tier="web"))
    assert "pods: ready not met" in kube.failed("label", args | {"timeout": "100ms"})


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        ("patch", {"resource": "cm/x", "patch": {"data": {}}}),
        ("label", {"resource": "cm/x", "labels": {"a": "b"}}),
        ("annotate", {"resource": "cms", "selector": "app=x", "annotations": {"a": "b"}}),
        ("scale", {"resource": "deploy/x", "replicas": 1}),
        ("rollout", {"resource": "deploy/x", "action": "restart"}),
    ],
)
def test_a_missing_object_is_a_failure_unless_ignored(kube: Extension, operation: str, args: dict[str, object]) -> None:
    args = {name: "configmaps" if value == "cms" else value for name, value in args.items()}
    assert "found" in kube.failed(operation, args)
    assert "not found (ignored)" in kube.ok(operation, args | {"ignoreNotFound": True})["message"]


def test_objects_of_several_kinds_are_labelled_and_waited_for(kube: Extension, pods: FakeApi) -> None:
    pods.put("services", {"metadata": {"name": "a", "labels": {"tier": "web"}}})
    args = {"resource": "pods,svc", "selector": "tier=web", "labels": {"tier": None, "team": "blue"}, "wait": True}
    assert kube.ok("label", args)["message"] == "Labelled 3 objects"
    assert labels_of(pods, "a") == {"team": "blue"} == (pods.get("services", "a") or {})["metadata"]["labels"]
