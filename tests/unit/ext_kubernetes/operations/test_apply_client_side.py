"""`apply` with `clientSide`: requests, conflicts and errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from ext_kubernetes.objects.fields import LAST_APPLIED
from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

MERGE_PATCH: dict[str, Any] = {"content": {"application/merge-patch+json": {}}}
GVK = "x-kubernetes-group-version-kind"


def config(**data: str) -> dict[str, Any]:
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": data}
    return {"manifest": manifest, "clientSide": True}


@pytest.fixture(autouse=True)
def _openapi(api: FakeApi) -> None:
    kind = {"group": "", "version": "v1", "kind": "ConfigMap"}
    api.openapi = {"paths": {"/": {"patch": {GVK: kind, "requestBody": MERGE_PATCH}}}}


def data_of(api: FakeApi) -> object:
    found = api.get("configmaps", "one")
    assert found is not None
    return found["data"]


def test_members_that_the_manifest_no_longer_has_are_removed(own_kube: Extension, api: FakeApi) -> None:
    assert own_kube.ok("apply", config(a="1", b="2"))["resources"] == "ConfigMap/one created"
    found = api.get("configmaps", "one")
    assert found is not None
    found["data"]["theirs"] = "3"
    assert own_kube.ok("apply", config(b="4"))["resources"] == "ConfigMap/one configured"
    assert data_of(api) == {"b": "4", "theirs": "3"}
    api.asked.clear()
    assert own_kube.ok("apply", config(b="4"))["resources"] == "ConfigMap/one unchanged"
    assert not api.requests("PATCH")
    assert not api.requests("GET", "/openapi"), "the schema was read before"


def test_the_schema_is_read_once_for_many_objects(own_kube: Extension, api: FakeApi) -> None:
    names = [f"number-{index}" for index in range(8)]
    for name in names:
        api.put("configmaps", {"metadata": {"name": name}})
    one = config(a="1")["manifest"]
    many = [one | {"metadata": {"name": name}} for name in names]
    assert own_kube.ok("apply", {"manifest": many, "clientSide": True})["configured"] == "8"
    assert len(api.requests("GET", "/openapi")) == 1


def test_the_manager_is_that_of_kubectl_unless_it_is_given(kube: Extension, api: FakeApi) -> None:
    kube.ok("apply", config(a="1"))
    kube.ok("apply", config(a="2") | {"fieldManager": "me"})
    managers = [asked.query["fieldManager"] for method in ("POST", "PATCH") for asked in api.requests(method)]
    assert managers == ["kubectl-client-side-apply", "me"]


def test_a_dry_run_changes_nothing(kube: Extension, api: FakeApi) -> None:
    kube.ok("apply", config(a="1"))
    told = kube.ok("apply", config(a="2") | {"dryRun": True})
    assert told["message"] == "Would apply ConfigMap/one (configured)"
    assert data_of(api) == {"a": "1"}


def test_objects_that_others_change_or_create_meanwhile_are_read_again(kube: Extension, api: FakeApi) -> None:
    kube.ok("apply", config(a="1"))
    api.faults.append(Fault("PATCH", times=4, status=409, reason="Conflict", message="it was changed"))
    assert kube.ok("apply", config(a="2"))["configured"] == "1"
    api.faults.append(Fault("GET", "/configmaps/one", status=404, reason="NotFound", message="none"))
    assert kube.ok("apply", config(a="3"))["configured"] == "1"
    api.faults.append(Fault("PATCH", times=5, status=409, reason="Conflict", message="it was changed"))
    assert "it was changed (409 Conflict)" in kube.failed("apply", config(a="4"))


def test_a_schema_that_cannot_be_read_is_reported(own_kube: Extension, api: FakeApi) -> None:
    own_kube.ok("apply", config(a="1"))
    api.faults.append(Fault("GET", "/openapi/v3/api/v1", status=404, reason="NotFound", message="no such page"))
    told = own_kube.failed("apply", config(a="2"))
    assert "client-side apply requires the schema of v1: no such page (404 NotFound)" in told


def test_an_annotation_that_is_not_json_is_reported(kube: Extension, api: FakeApi) -> None:
    api.put("configmaps", {"metadata": {"name": "one", "annotations": {LAST_APPLIED: "{"}}})
    told = kube.failed("apply", config(a="1"))
    assert f"ConfigMap/one (manifest): expected JSON in the annotation {LAST_APPLIED}" in told
    assert "remove the annotation" in told


def test_force_is_for_server_side_apply(kube: Extension) -> None:
    assert "`force` is for server-side apply" in kube.failed("apply", config() | {"force": True})


def test_the_annotation_has_the_namespace_of_the_object(kube: Extension, api: FakeApi) -> None:
    kube.ok("apply", config(a="1"))
    found = api.get("configmaps", "one")
    assert found is not None
    applied = json.loads(found["metadata"]["annotations"][LAST_APPLIED])
    assert applied["metadata"] == {"annotations": {}, "name": "one", "namespace": "default"}
