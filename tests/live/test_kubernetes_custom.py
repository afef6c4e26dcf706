"""ext-kubernetes and custom resources: irregular plurals, conditions, subresources, lists, generated names."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import pytest

from tests.live.kubernetes import LONG
from tests.live.manifests import KINDS, custom, definition

if TYPE_CHECKING:
    from tests.live.client import Client
    from tests.live.kubernetes import Kube


def test_a_definition_and_its_first_object_go_together(kube: Kube, admin: Client) -> None:
    group = f"live-{secrets.token_hex(4)}.gevals-extensions.dev"
    both = [custom("Switch", group), definition("Switch", group)]
    try:
        assert "Switch/it created" in kube.ok("apply", manifest=both)["resources"]
        assert kube.ok("get", resource=f"switches.{group}")["count"] == "1"
    finally:
        admin.delete(f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/switches.{group}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_is_found_whatever_its_plural_is(kube: Kube, kinds: str, namespace: str, kind: str) -> None:
    name = namespace  # one of no other test, for a kind without namespaces too
    made = kube.ok("create", custom(kind, kinds, name))
    assert made["namespace"] == ("" if kind == "Fleet" else namespace)
    spelled = {"apiVersion": f"{kinds}/v1", "kind": kind, "metadata": {"name": name}}
    for args in (spelled, {"resource": f"{KINDS[kind]}.{kinds}/{name}"}, {"resource": f"{kind}.v1.{kinds}/{name}"}):
        assert kube.ok("get", args)["uid"] == made["uid"]
    kube.ok("delete", resource=f"{kind}.{kinds}/{name}")
    assert kube.ok("get", resource=f"{kind}.{kinds}/{name}", ignoreNotFound=True)["found"] == "false"


def test_a_kind_of_two_groups_is_the_one_whose_group_is_named(kube: Kube, kinds: str) -> None:
    kube.ok("create", custom("PodMetrics", kinds))
    assert kube.ok("get", resource="pods")["count"] == "0"
    assert kube.ok("get", resource=f"pods.{kinds}")["count"] == "1"


def test_conditions_are_awaited_once_they_are_of_the_newest_generation(
    kube: Kube, admin: Client, kinds: str, namespace: str
) -> None:
    path = admin.apply(custom("Gateway", kinds), namespace)
    waiting = kube.start("wait", resource=f"gateway.{kinds}/it", condition="Programmed", timeout=LONG)
    kube.heard("gateway/it")
    outdated = {"type": "Programmed", "status": "True", "observedGeneration": 0}
    admin.patch(f"{path}/status", {"status": {"conditions": [outdated]}})
    kube.heard("outdated")
    admin.patch(f"{path}/status", {"status": {"conditions": [outdated | {"observedGeneration": 1}]}})
    kube.succeeded(waiting)


def test_a_resource_is_ready_when_its_conditions_say_so(kube: Kube, admin: Client, kinds: str, namespace: str) -> None:
    path = admin.apply(custom("Switch", kinds), namespace)
    unready = {"type": "Ready", "status": "False", "reason": "Dark", "message": "no current"}
    admin.patch(f"{path}/status", {"status": {"conditions": [unready]}})
    told = kube.failed("wait", {"resource": f"switch.{kinds}/it", "for": "ready", "timeout": "1s"})
    assert "no current" in told
    waiting = kube.start("wait", {"resource": f"switch.{kinds}/it", "for": "ready", "timeout": LONG})
    admin.patch(f"{path}/status", {"status": {"conditions": [unready | {"status": "True"}]}})
    kube.succeeded(waiting)
    stalled = {"type": "Stalled", "status": "True", "reason": "Broken", "message": "no bulb"}
    admin.patch(f"{path}/status", {"status": {"conditions": [stalled]}})
    told = kube.failed("wait", {"resource": f"switch.{kinds}/it", "for": "ready", "timeout": LONG})
    assert "gave up early" in told
    assert "no bulb" in told


def test_subresources_are_changed_and_read_apart(kube: Kube, kinds: str) -> None:
    it = {"resource": f"switch.{kinds}/it"}
    kube.ok("create", custom("Switch", kinds, replicas=1) | {"status": {"lit": True}})
    assert kube.ok("get", it, outputs={"status": {"path": "{.status}", "default": "none"}})["status"] == "none"
    kube.ok("patch", it, patch={"status": {"lit": True}, "spec": {"on": True}}, subresource="status")
    found = kube.ok("get", it, outputs={"lit": "$.status.lit", "spec": "$.spec"})
    assert (found["lit"], found["spec"]) == ("true", '{"replicas":1}')
    assert kube.ok("get", it, subresource="scale", outputs={"n": "$.spec.replicas"})["n"] == "1"
    assert kube.ok("scale", it, replicas=3)["previous"] == "1"
    assert kube.ok("get", it, outputs={"n": "$.spec.replicas"})["n"] == "3"
    dark = custom("Switch", kinds, on=False) | {"status": {"lit": False}}
    kube.ok("replace", manifest=dark, subresource="status")
    found = kube.ok("get", it, outputs={"lit": "$.status.lit", "n": "$.spec.replicas"})
    assert (found["lit"], found["n"]) == ("false", "3")


def test_the_server_chooses_names(kube: Kube, kinds: str) -> None:
    unnamed = custom("Gateway", kinds) | {"metadata": {"generateName": "gate-"}}
    names = {kube.ok("create", unnamed)["name"] for _ in range(2)}
    assert len(names) == 2
    assert all(name.startswith("gate-") for name in names)


def test_a_list_is_what_is_in_it(kube: Kube, kinds: str) -> None:
    items = [custom("Gateway", kinds, name) for name in ("a", "b")]
    kube.ok("apply", manifest={"apiVersion": f"{kinds}/v1", "kind": "GatewayList", "items": items})
    kube.ok("apply", manifest={"apiVersion": "v1", "kind": "List", "items": [custom("Switch", kinds)]})
    names = kube.ok("get", resource=f"gateways.{kinds}", outputs={"names": "{.items[*].metadata.name}"})["names"]
    assert names.split() == ["a", "b"]


def test_an_unknown_field_is_told_with_its_path(kube: Kube, kinds: str) -> None:
    assert ".spec.colour: field not declared in schema" in kube.failed(
        "apply", manifest=custom("Switch", kinds, colour="red")
    )
    assert 'unknown field "spec.colour"' in kube.failed("create", custom("Switch", kinds, colour="red"))
