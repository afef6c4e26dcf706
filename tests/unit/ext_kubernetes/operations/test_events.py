"""`events` by object, kind and labels, against an API server on loopback."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi


@pytest.fixture(autouse=True)
def events(api: FakeApi) -> None:
    for name, app in (("web-1", "web"), ("web-2", "web"), ("data-1", "data")):
        pod = api.put("pods", {"metadata": {"name": name, "labels": {"app": app}}})
        about = {"kind": "Pod", "name": name, "uid": pod["metadata"]["uid"]}
        event = {"involvedObject": about, "type": "Warning", "reason": "BackOff", "message": f"about {name}"}
        api.put("events", {"metadata": {"name": f"{name}.1"}, **event})
    scaled = {"involvedObject": {"kind": "Deployment", "name": "web"}, "type": "Normal", "reason": "Scaled"}
    api.put("events", {"metadata": {"name": "web.1"}, **scaled})


@pytest.mark.parametrize(
    ("args", "count"),
    [
        ({}, 4),
        ({"resource": "pods"}, 3),
        ({"resource": "pod/web-1"}, 1),
        ({"resource": "pods", "selector": "app=web"}, 2),
        ({"resource": "pods", "selector": "app=web", "contains": "web-2"}, 1),
        ({"resource": "deployments"}, 1),
        ({"resource": "pods,deploy"}, 4),
        ({"resource": "svc,deploy"}, 1),
        ({"kind": "Pod"}, 3),
    ],
)
def test_events_are_those_of_the_objects_that_are_named(kube: Extension, args: dict[str, object], count: int) -> None:
    found = kube.ok("events", args)
    assert found["count"] == str(count)
    named = all("/" in line.partition(": ")[0] for line in found["events"].splitlines())
    assert named is (args != {"resource": "pod/web-1"})


def test_events_of_objects_that_are_deleted_during_the_wait_still_count(kube: Extension, api: FakeApi) -> None:
    report = kube.failed("events", {"resource": "pods", "selector": "app=none", "count": {"gte": 1}, "timeout": "0s"})
    start = "another number of events of pods with labels app=none than expected\nnumber of events of pods with labels"
    assert report.startswith(
        f"{start} app=none in namespace default: expected to be at least 1, got 0\nlast found 0 ev"
    )
    api.before = lambda asked: asked.path.endswith("/events") and api.objects.pop(("pods.", "default", "web-1"), None)
    outputs = kube.ok("events", {"resource": "pods", "selector": "app=web", "count": 1, "timeout": "0s"})
    assert "about web-2" in outputs["events"]


def test_labels_without_a_kind_are_refused(kube: Extension) -> None:
    assert "expected a kind in `resource`, such as pods, found none" in kube.refused("events", {"selector": "app=web"})
