"""`get` and `delete`: reading objects, and waiting until they are gone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi, Object


def labelled(name: str, app: str) -> Object:
    return {"metadata": {"name": name, "labels": {"app": app}}, "status": {"phase": "Running"}}


@pytest.fixture
def pods(api: FakeApi) -> FakeApi:
    for name, app in (("a", "web"), ("b", "web"), ("c", "db")):
        api.put("pods", labelled(name, app))
    return api


@pytest.mark.parametrize("path", ["$.status.phase", "{.status.phase}", ".status.phase", "status.phase"])
def test_both_dialects_of_jsonpath_find_a_value(kube: Extension, pods: FakeApi, path: str) -> None:
    assert kube.ok("get", {"resource": "pod/a", "outputs": {"phase": path}})["phase"] == "Running"


def test_a_list_has_its_count_its_names_and_its_items(kube: Extension, pods: FakeApi) -> None:
    outputs = {"all": "$.items[*].metadata.name", "lines": "{range .items[*]}{.metadata.name}={.status.phase};{end}"}
    found = kube.ok("get", {"resource": "pods", "selector": "app=web", "outputs": outputs})
    assert (found["count"], found["names"], found["all"]) == ("2", "a\nb", "a\nb")
    assert found["lines"] == "a=Running;b=Running;"


def test_the_number_of_objects_is_checked(kube: Extension, pods: FakeApi) -> None:
    assert kube.ok("get", {"resource": "pods", "count": {"gte": 1}})["found"] == "true"
    assert kube.ok("get", {"resource": "pods", "selector": "app=none", "count": 0})["count"] == "0"
    told = kube.failed("get", {"resource": "pods", "count": 0, "outputs": {"x": "$.nothing"}})
    assert "pods in namespace default: expected to equal 0, got " in told
    assert "expected a kind without a name, found pod/one" in kube.refused("get", {"resource": "pod/one", "count": 1})


def test_a_value_that_is_not_there_is_a_failure_unless_there_is_a_default(kube: Extension, pods: FakeApi) -> None:
    told = kube.failed("get", {"resource": "pod/a", "outputs": {"x": "{.status.podIP}"}})
    assert "expected a value at {.status.podIP} of pod/a in namespace default" in told
    assert '"status.phase"' in told
    path = {"path": "{.status.podIP}", "default": "none"}
    assert kube.ok("get", {"resource": "pod/a", "outputs": {"x": path}})["x"] == "none"


@pytest.mark.parametrize("path", ["$.a[", "{.a", "{.items[x]}", "{range .a}", ".a[?(@.b)"])
def test_a_path_that_is_none_is_refused(kube: Extension, path: str) -> None:
    assert "outputs.x" in kube.refused("get", {"resource": "pod/a", "outputs": {"x": path}})


def test_an_object_that_is_not_there_is_a_failure_or_an_output(kube: Extension) -> None:
    assert 'pods "x" not found (404 NotFound)' in kube.failed("get", {"resource": "pod/x"})
    assert kube.ok("get", {"resource": "pod/x", "ignoreNotFound": True})["found"] == "false"


def test_a_secret_output_is_for_later_steps_alone(own_kube: Extension, api: FakeApi) -> None:
    api.put("secrets", {"metadata": {"name": "s"}, "data": {"token": "c2VzYW1lLW9wZW5z"}})
    path = {"path": "{.data.token}", "decode": "base64", "secret": True}
    found = own_kube.ok("get", {"resource": "secret/s", "outputs": {"token": path}, "as": "s"})
    assert "token" not in found
    own_kube.ok("create-configmap", {"name": "copy", "literals": {"it": "${s.token}"}})
    copied = api.get("configmaps", "copy")
    assert copied is not None
    assert copied["data"] == {"it": "sesame-opens"}


def test_filters_change_outputs_and_show_no_secret(own_kube: Extension, api: FakeApi) -> None:
    api.put("configmaps", {"metadata": {"name": "c"}, "data": {"image": "registry.example/web:1"}})
    api.put("secrets", {"metadata": {"name": "s"}, "data": {"user": "YWRhOmhvcnNlLTc="}})
    image: dict[str, object] = {"path": "$.data.image", "filters": [{"split": "/"}, {"regex": r"\.(.*)"}]}
    found = own_kube.ok("get", {"resource": "configmap/c", "outputs": {"end": image}})
    assert found["end"] == "example"
    wrong = image | {"filters": [{"date": "unix"}]}
    failed = own_kube.failed("get", {"resource": "configmap/c", "outputs": {"end": wrong}})
    assert "outputs.end: found a value that filters[0] does not apply to: date" in failed
    own_kube.failed("get", {"resource": "configmap/c", "outputs": {"end": wrong | {"default": "none"}}})
    other = image | {"filters": [{"regex": "zzz"}], "default": "none"}
    default = own_kube.ok("get", {"resource": "configmap/c", "outputs": {"end": other}})
    assert default["end"] == "none"
    user = {"path": "$.data.user", "decode": "base64", "filters": [{"date": "unix"}]}
    hidden = own_kube.failed("get", {"resource": "secret/s", "outputs": {"user": user}})
    assert "the value is secret, so the reason is not shown" in hidden
    assert "horse" not in hidden


# --- delete ----------------------------------------------------------------------------------------------------------


def test_delete_takes_a_name_a_selector_or_a_manifest(kube: Extension, pods: FakeApi) -> None:
    assert kube.ok("delete", {"resource": "pod/c"})["message"] == "Deleted Pod/c"
    assert kube.ok("delete", {"resource": "pods", "selector": "app=web"})["count"] == "2"
    pods.put("pods", labelled("d", "web"))
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "d"}}
    assert kube.ok("delete", {"manifest": manifest})["resources"] == "Pod/d"
    assert kube.ok("get", {"resource": "pods"})["count"] == "0"


def test_a_kind_alone_is_not_deleted_unless_all_are_meant(kube: Extension, pods: FakeApi) -> None:
    assert "`selector`, `fieldSelector` or `all: true`; found no name" in kube.refused("delete", {"resource": "pods"})
    assert kube.ok("delete", {"resource": "pods", "all": True})["count"] == "3"


def test_what_is_not_there_can_be_ignored(kube: Extension) -> None:
    assert "Pod/x not found" in kube.failed("delete", {"resource": "pod/x"})
    assert "(ignored)" in kube.ok("delete", {"resource": "pod/x", "ignoreNotFound": True})["message"]


def test_what_holds_an_object_is_told_at_the_deadline(kube: Extension, api: FakeApi) -> None:
    api.put("configmaps", {"metadata": {"name": "held", "finalizers": ["example.com/hold"]}})
    told = kube.failed("delete", {"resource": "cm/held", "timeout": "200ms"})
    assert "still present after " in told
    assert "finalizers example.com/hold" in told


def test_delete_may_go_on_without_waiting(kube: Extension, api: FakeApi) -> None:
    held = {"name": "held", "finalizers": ["example.com/hold"]}
    api.put("configmaps", {"metadata": held})
    assert kube.ok("delete", {"resource": "cm/held", "wait": False})["count"] == "1"
    api.put("configmaps", {"metadata": held})
    args = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "held"}}
    assert kube.ok("delete", args)["message"] == "Deleted ConfigMap/held"


def test_an_object_that_was_made_anew_is_not_waited_for(kube: Extension, api: FakeApi) -> None:
    api.put("configmaps", {"metadata": {"name": "x"}})
    found = api.get("configmaps", "x")
    assert found is not None

    original = api._remove

    def remove_and_make_anew(kind: object, item: Object) -> None:
        original(kind, item)  # type: ignore[arg-type]
        api.put("configmaps", {"metadata": {"name": "x"}})

    api._remove = remove_and_make_anew  # type: ignore[method-assign]
    kube.ok("delete", {"resource": "cm/x", "timeout": "5s"})
    again = api.get("configmaps", "x")
    assert again is not None
    assert again["metadata"]["uid"] != found["metadata"]["uid"]


def test_a_namespace_that_is_not_there_is_told(kube: Extension) -> None:
    told = kube.failed("get", {"resource": "pod/a", "namespace": "missing"})
    assert 'failed to get pod/a in namespace missing: pods "a" not found' in told
    assert "Namespace missing does not exist; create it with create-namespace" in told


def test_of_a_kind_without_objects_there_is_none(kube: Extension, pods: FakeApi) -> None:
    assert kube.ok("get", {"resource": "pods"})["found"] == "true"
    assert kube.ok("get", {"resource": "secrets"})["found"] == "false"


def test_a_namespace_that_is_told_twice_is_told_once(kube: Extension, pods: FakeApi) -> None:
    named = {"kind": "Pod", "metadata": {"name": "a", "namespace": "default"}}
    assert "expected one namespace, found default and other" in kube.refused("get", {**named, "namespace": "other"})
    assert kube.ok("get", {**named, "namespace": "default"})["name"] == "a"


def test_a_kind_that_is_no_longer_served_is_told(kube: Extension, api: FakeApi) -> None:
    api.faults.append(Fault("GET", "/pods/a", status=404, body=b"404 page not found"))
    assert "check that its CustomResourceDefinition exists" in kube.failed("get", {"resource": "pod/a"})


def test_what_can_not_be_deleted_does_not_keep_the_others(kube: Extension, pods: FakeApi) -> None:
    pods.faults.append(Fault("DELETE", "/pods/a", status=403, reason="Forbidden", message="it is protected"))
    result = kube.result("delete", {"resource": "pods", "all": True})
    assert result["success"] is False
    assert result["message"] == "failed to delete 1 of 3 objects"
    assert "Pod/a: it is protected (403 Forbidden)" in str(result["error"])
    assert result["outputs"] == {"count": "2", "resources": "Pod/b\nPod/c"}
    assert [name for name in "abc" if pods.get("pods", name)] == ["a"]


def test_objects_of_several_kinds_are_deleted_together(kube: Extension, api: FakeApi) -> None:
    for plural in ("deployments", "services", "configmaps"):
        api.put(plural, labelled("web", "web"))
        api.put(plural, labelled("db", "db"))
    outputs = kube.ok("delete", {"resource": "deploy,svc,cm", "selector": "app=web"})
    assert outputs["message"] == "Deleted 3 objects"
    assert outputs["resources"].split() == ["Deployment/web", "Service/web", "ConfigMap/web"]
    assert kube.ok("delete", {"resource": "all", "all": True})["resources"].split() == ["Service/db", "Deployment/db"]
    assert api.get("configmaps", "db") is not None


def test_a_selected_object_that_is_gone_meanwhile_is_not_missing(kube: Extension, pods: FakeApi) -> None:
    pods.before = lambda asked: asked.method == "DELETE" and pods.objects.pop(("pods.", "default", "b"), None)
    outputs = kube.ok("delete", {"resource": "pods", "selector": "app=web"})
    assert (outputs["resources"], pods.get("pods", "b")) == ("Pod/a", None)
