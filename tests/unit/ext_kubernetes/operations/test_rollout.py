"""`rollout` and `scale`, against an API server on loopback without controllers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.fake_kubernetes import Kind

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

REVISION = "deployment.kubernetes.io/revision"


def template(image: str) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}}


def put_deployment(api: FakeApi, revision: int) -> None:
    """Store a Deployment of three revisions that is complete."""
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template("web:3")}
    metadata = {"name": "web", "uid": "u1", "annotations": {REVISION: str(revision)}}
    api.put("deployments", {"metadata": metadata, "spec": spec, "status": {"observedGeneration": 9}})
    for number in (1, 2, 3):
        owner = {"kind": "Deployment", "name": "web", "uid": "u1"}
        owned = {"name": f"web-{number}", "ownerReferences": [owner], "annotations": {REVISION: str(number)}}
        api.put("replicasets", {"metadata": owned, "spec": {"template": template(f"web:{number}")}})


def test_undo_tells_to_which_revision_it_went_and_which_there_is(kube: Extension, api: FakeApi) -> None:
    put_deployment(api, 3)
    found = kube.ok("rollout", {"resource": "deploy/web", "action": "undo"})
    assert found["toRevision"] == "2"
    assert "revision" not in found  # the controller gives the next one
    changed = api.get("deployments", "web")
    assert changed is not None
    assert changed["spec"]["template"]["spec"]["containers"][0]["image"] == "web:2"
    put_deployment(api, 4)
    found = kube.ok("rollout", {"resource": "deploy/web", "action": "undo", "toRevision": 1, "wait": True})
    assert (found["toRevision"], found["revision"]) == ("1", "4")


def test_the_second_step_of_an_undo_does_not_undo_it(kube: Extension, api: FakeApi) -> None:
    put_deployment(api, 3)
    args = {"resource": "deploy/web", "action": "undo", "wait": True}
    assert kube.ok("rollout", args | {"onTimeout": "ok"})["toRevision"] == "2"
    assert kube.ok("rollout", args)["toRevision"] == "2"
    assert len(api.requests("PATCH")) == 1
    kube.ok("rollout", args | {"onTimeout": "ok"})
    kube.ok("rollout", args | {"onTimeout": "ok", "toRevision": 1})
    assert len(api.requests("PATCH")) == 3


def test_a_custom_resource_is_scaled_when_its_scale_says_so(kube: Extension, api: FakeApi) -> None:
    api.kinds.append(Kind("example.com", "v1", "Widget", "widgets", subresources=("status", "scale")))
    api.put("widgets", {"metadata": {"name": "it"}, "spec": {"replicas": 1}, "status": {"replicas": 1}})
    args = {"resource": "widget/it", "replicas": 3, "wait": True}
    told = kube.failed("scale", args | {"timeout": "100ms"})
    assert "1 of 3 replicas in its scale subresource" in told
    api.put("widgets", {"metadata": {"name": "it"}, "spec": {"replicas": 3}, "status": {"replicas": 3}})
    kube.ok("scale", args)
