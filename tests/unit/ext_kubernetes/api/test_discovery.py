"""Kinds, and the names that people give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.fake_kubernetes import SWITCH

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi


@pytest.mark.parametrize("aggregated", [True, False])
@pytest.mark.parametrize(
    "name", ["deploy", "Deployment", "deployments", "deployment", "deployments.apps", "deployment.v1.apps"]
)
def test_a_kind_has_many_names(kube: Extension, api: FakeApi, aggregated: bool, name: str) -> None:
    api.aggregated = aggregated
    api.put("deployments", {"metadata": {"name": "web"}})
    assert kube.ok("get", {"resource": f"{name}/web"})["message"] == "Got deployment/web"


def test_a_kind_may_be_given_as_in_a_manifest(kube: Extension, api: FakeApi) -> None:
    api.put("deployments", {"metadata": {"name": "web", "namespace": "kube-system"}})
    args = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "kube-system"}}
    assert kube.ok("get", args)["namespace"] == "kube-system"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({"resource": "deplyo/web"}, "did you mean 'deploy'?"),
        ({"resource": "zzzzzzzz/web"}, "known are Namespace, Node, ConfigMap, "),
        ({"apiVersion": "v1", "kind": "Deployment", "metadata": {"name": "web"}}, "it has Deployment of apps/v1"),
        ({"apiVersion": "v2", "kind": "Deploymnt", "metadata": {"name": "x"}}, "did you mean Deployment of apps/v1?"),
    ],
)
def test_an_unknown_kind_is_told_with_the_nearest_name(kube: Extension, args: object, told: str) -> None:
    assert told in kube.failed("get", args)


def test_a_kind_that_was_defined_meanwhile_is_found(kube: Extension, api: FakeApi) -> None:
    kube.failed("get", {"resource": "switch/one"})
    api.put("customresourcedefinitions", SWITCH)
    api.put("switches", {"metadata": {"name": "one"}})
    for name in ("switch", "sw", "switches.example.com", "Switch"):
        assert kube.ok("get", {"resource": f"{name}/one"})["name"] == "one"


def test_a_kind_without_namespaces_has_none(kube: Extension, api: FakeApi) -> None:
    api.put("nodes", {"metadata": {"name": "one"}})
    assert kube.ok("get", {"resource": "no/one", "namespace": "kube-system"})["namespace"] == ""


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ({}, "resource: expected a kind and a name"),
        ({"resource": "pod/"}, "resource: expected KIND/NAME"),
        ({"resource": "pod/a/b"}, "resource: expected KIND/NAME"),
        ({"resource": "pod/a", "kind": "Pod"}, "found both"),
    ],
)
def test_a_name_that_is_none_is_refused(kube: Extension, args: dict[str, object], told: str) -> None:
    assert told in kube.refused("patch", {"patch": {}} | args)


@pytest.mark.parametrize("aggregated", [True, False])
def test_groups_are_listed_once_and_only_for_a_kind_of_a_group(kube: Extension, api: FakeApi, aggregated: bool) -> None:
    api.aggregated = aggregated
    api.put("nodes", {"metadata": {"name": "one"}})
    api.put("deployments", {"metadata": {"name": "web"}})
    kube.ok("get", {"resource": "no/one"})
    kube.ok("get", {"resource": "no/one", "apiVersion": "v1"})
    assert [asked.path for asked in api.asked if asked.path in {"/api", "/apis"}] == ["/api"]
    for _ in range(2):
        kube.ok("get", {"resource": "deploy/web"})
    assert [asked.path for asked in api.asked if asked.path in {"/api", "/apis"}] == ["/api", "/apis"]


@pytest.fixture
def web(api: FakeApi) -> FakeApi:
    """A Deployment, a Service and a pod `web`, a ConfigMap and a Secret."""
    for plural in ("deployments", "services", "pods", "configmaps", "secrets"):
        labels = {"app": "web"} if plural != "configmaps" else {}
        api.put(plural, {"metadata": {"name": "web", "labels": labels}, "data": {"key": "dmFsdWU="}})
    return api


@pytest.mark.parametrize("aggregated", [True, False])
@pytest.mark.parametrize(
    ("kinds", "names"),
    [
        ("deploy,svc", "deployment/web service/web"),
        ("services, cm, svc", "service/web configmap/web"),
        ("all", "pod/web service/web deployment/web"),
        ("All,secrets", "pod/web service/web deployment/web secret/web"),
        ("ns,cm", "namespace/default namespace/kube-system configmap/web"),
        ("cm,configmaps", "web"),
    ],
)
def test_several_kinds_and_categories_are_read_at_once(
    kube: Extension, web: FakeApi, aggregated: bool, kinds: str, names: str
) -> None:
    web.aggregated = aggregated
    assert kube.ok("get", {"resource": kinds})["names"].split("\n") == names.split()


def test_the_objects_of_several_kinds_have_their_kinds_and_keep_their_secrets(kube: Extension, web: FakeApi) -> None:
    outputs = {"kinds": "$.items[*].kind", "data": "$.items[1].data.key"}
    found = kube.ok("get", {"resource": "cm,secret", "outputs": outputs})
    assert found["kinds"] == "ConfigMap\nSecret"
    assert "dmFsdWU=" not in str(found)


@pytest.mark.parametrize(
    ("operation", "args", "told"),
    [
        ("get", {"resource": "deploy,svc/web"}, "expected one kind before a name, found several: deployments, service"),
        ("get", {"resource": "all/web"}, "expected one kind before a name, found several: pods, services, "),
        ("get", {"resource": "deploy,"}, "expected names of kinds, such as deploy,svc; found 'deploy,'"),
        ("patch", {"resource": "deploy,svc", "patch": {}}, "such as deploy/NAME; found no name"),
        (
            "logs",
            {"resource": "all", "selector": "app=web"},
            "expected pods by name or by labels, found objects of all",
        ),
    ],
)
def test_several_kinds_have_no_name(kube: Extension, operation: str, args: object, told: str) -> None:
    assert told in kube.refused(operation, args)


def test_a_kind_of_a_list_that_is_unknown_is_told(kube: Extension) -> None:
    assert "the server has no kind 'deplyo'; did you mean 'deploy'?" in kube.failed("get", {"resource": "svc,deplyo"})


def test_a_category_is_no_kind_of_a_manifest(kube: Extension) -> None:
    manifest = {"apiVersion": "v1", "kind": "all", "metadata": {"name": "x"}}
    assert "the server has no kind 'all' in v1" in kube.failed("apply", {"manifest": manifest})
