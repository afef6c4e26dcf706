"""`apply`, `create`, `replace`, `patch`: from manifests to objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_kubernetes import SWITCH, Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {a: b}\n"
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}}


def test_a_file_with_several_documents_and_a_list_is_applied(kube: Extension, api: FakeApi) -> None:
    listed = f"apiVersion: v1\nkind: List\nitems: [{json.dumps(OBJECT)}]\n"
    (kube.workdir / "all.yaml").write_text("---\n# nothing\n---\n" + CONFIG % "two" + "---\n" + listed)
    outputs = kube.ok("apply", {"file": "all.yaml"})
    assert outputs["resources"] == "ConfigMap/two created\nConfigMap/one created"
    assert api.get("configmaps", "one") is not None


def test_all_manifests_of_a_directory_are_applied(kube: Extension, api: FakeApi) -> None:
    inner = kube.workdir / "manifests" / "inner"
    inner.mkdir(parents=True)
    (inner.parent / "a.yaml").write_text(CONFIG % "a")
    (inner.parent / "b.json").write_text(json.dumps(OBJECT))
    (inner.parent / "notes.txt").write_text("no manifest")
    (inner / "c.yml").write_text(CONFIG % "c")
    assert kube.ok("apply", {"file": "manifests"})["count"] == "2"
    assert kube.ok("apply", {"file": "manifests", "recursive": True})["count"] == "3"


def test_a_file_outside_of_the_workdir_is_refused(kube: Extension) -> None:
    (kube.workdir.parent / "outside.yaml").write_text(CONFIG % "a")
    assert "not a path inside the working directory" in kube.failed("apply", {"file": "../outside.yaml"})


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("a: [", "broken.yaml, line 2"),
        (
            "kind: ConfigMap",
            "broken.yaml, line 1: expected an object with apiVersion and kind; missing apiVersion",
        ),
        ("just text", "expected an object with apiVersion and kind, found 'just text'"),
        ("# nothing", "expected an object, found none"),
        ("apiVersion: v1\nkind: ConfigMap\n", "expected metadata.name or metadata.generateName"),
        ("!!python/object/apply:os.system ['touch hacked']", "could not determine a constructor"),
    ],
)
def test_a_broken_manifest_is_told_with_its_line(kube: Extension, content: str, told: str) -> None:
    (kube.workdir / "broken.yaml").write_text(content + "\n")
    assert told in kube.failed("apply", {"file": "broken.yaml"})
    assert not (kube.workdir / "hacked").exists()


def test_exactly_one_source_is_taken(kube: Extension) -> None:
    assert "found none" in kube.refused("apply", {})
    assert "found file and manifest" in kube.refused("apply", {"file": "a.yaml", "manifest": OBJECT})


def test_what_was_there_is_changed(kube: Extension, api: FakeApi) -> None:
    kube.ok("apply", {"manifest": OBJECT})
    outputs = kube.ok("apply", {"manifest": {**OBJECT, "data": {"a": "c"}}})
    assert outputs["message"] == "Applied ConfigMap/one (configured)"
    found = api.get("configmaps", "one")
    assert found is not None
    assert found["data"] == {"a": "c"}


def test_what_became_of_each_object_is_told(kube: Extension, api: FakeApi) -> None:
    kube.ok("apply", {"manifest": [OBJECT, {**OBJECT, "metadata": {"name": "two"}}]})
    changed = {**OBJECT, "metadata": {"name": "two"}, "data": {"a": "c"}}
    outputs = kube.ok("apply", {"manifest": [OBJECT, changed, {**OBJECT, "metadata": {"name": "three"}}]})
    assert outputs["resources"] == "ConfigMap/one unchanged\nConfigMap/two configured\nConfigMap/three created"
    assert outputs["message"] == "Applied 3 objects (1 unchanged, 1 configured, 1 created)"
    assert (outputs["created"], outputs["configured"], outputs["unchanged"]) == ("1", "1", "1")


def test_many_objects_of_a_kind_are_compared_by_one_list(kube: Extension, api: FakeApi) -> None:
    many = [{**OBJECT, "metadata": {"name": f"number-{index}"}} for index in range(20)]
    kube.ok("apply", {"manifest": many})
    api.asked.clear()
    assert kube.ok("apply", {"manifest": many})["unchanged"] == "20"
    (listed,) = api.requests("GET", "/configmaps")
    assert "PartialObjectMetadataList" in listed.headers["accept"]


def test_a_dry_run_tells_what_would_change(kube: Extension) -> None:
    kube.ok("apply", {"manifest": OBJECT})
    again = {"manifest": OBJECT, "dryRun": True}
    assert kube.ok("apply", again)["message"] == "Would apply ConfigMap/one (unchanged)"
    changed = {"manifest": {**OBJECT, "data": {"a": "c"}}, "dryRun": True}
    assert kube.ok("apply", changed)["message"] == "Would apply ConfigMap/one (configured)"


def test_who_may_not_read_may_apply(kube: Extension, api: FakeApi) -> None:
    kube.ok("apply", {"manifest": OBJECT})
    api.faults.append(Fault("GET", "/configmaps/one", status=403, reason="Forbidden", message="u cannot get one"))
    outputs = kube.ok("apply", {"manifest": OBJECT})
    assert outputs["message"] == "Applied ConfigMap/one"
    assert outputs["resources"] == "ConfigMap/one applied"


def test_a_conflict_names_the_manager_and_the_field_and_force_takes_it_over(kube: Extension, api: FakeApi) -> None:
    kube.ok("apply", {"manifest": OBJECT, "fieldManager": "somebody"})
    changed = {"manifest": {**OBJECT, "data": {"a": "mine"}}}
    told = kube.failed("apply", changed)
    assert '.data.a is managed by "somebody"' in told
    assert "force: true" in told
    kube.ok("apply", {**changed, "force": True})


def test_a_dry_run_changes_nothing(kube: Extension, api: FakeApi) -> None:
    for operation in ("apply", "create"):
        assert "Would" in kube.ok(operation, {"manifest": OBJECT, "dryRun": True})["message"]
    assert api.get("configmaps", "one") is None


def test_an_unknown_field_is_an_error(kube: Extension) -> None:
    assert 'unknown field "datas"' in kube.failed("apply", {"manifest": {**OBJECT, "datas": {}}})


def test_namespaces_and_definitions_go_first(kube: Extension, api: FakeApi) -> None:
    switch = {"apiVersion": "example.com/v1", "kind": "Switch", "metadata": {"name": "x", "namespace": "new"}}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "new"}}
    assert kube.ok("apply", {"manifest": [switch, SWITCH, namespace]})["count"] == "3"
    assert api.get("switches", "x", "new") is not None


def test_nothing_is_sent_where_a_kind_is_unknown(kube: Extension, api: FakeApi) -> None:
    unknown = {"apiVersion": "v1", "kind": "Nothing", "metadata": {"name": "x"}}
    assert "no kind 'Nothing' in v1" in kube.failed("apply", {"manifest": [OBJECT, unknown]})
    assert not api.requests("PATCH")


def test_what_failed_is_told_one_by_one_and_the_rest_is_done(kube: Extension, api: FakeApi) -> None:
    api.faults.append(Fault("PATCH", "/configmaps/two", status=403, reason="Forbidden", message="u cannot patch two"))
    (kube.workdir / "all.yaml").write_text("---\n".join(CONFIG % name for name in ("one", "two", "three")))
    result = kube.result("apply", {"file": "all.yaml"})
    assert result["message"] == "Applied 2 of 3 objects"
    assert "ConfigMap/two (all.yaml, line 6): u cannot patch two (403 Forbidden)" in str(result["error"])


@pytest.mark.parametrize(
    ("own", "given", "expected"),
    [("", "kube-system", "kube-system"), ("kube-system", "", "kube-system"), ("", "", "default")],
)
def test_an_object_goes_to_its_namespace(kube: Extension, own: str, given: str, expected: str) -> None:
    metadata = {"name": "one"} | ({"namespace": own} if own else {})
    assert kube.ok("apply", {"manifest": OBJECT | {"metadata": metadata}, "namespace": given})["namespace"] == expected


def test_two_namespaces_for_an_object_are_an_error(kube: Extension) -> None:
    manifest = OBJECT | {"metadata": {"name": "one", "namespace": "default"}}
    told = kube.failed("apply", {"manifest": manifest, "namespace": "kube-system"})
    assert "metadata.namespace 'default', but `namespace` is 'kube-system'" in told


def test_a_namespace_that_is_not_there_is_told_with_what_to_do(kube: Extension) -> None:
    told = kube.failed("apply", {"manifest": OBJECT, "namespace": "missing"})
    assert 'namespaces "missing" not found' in told
    assert "create-namespace" in told


def test_create_takes_the_members_of_an_object(kube: Extension, api: FakeApi) -> None:
    outputs = kube.ok("create", OBJECT)
    found = api.get("configmaps", "one")
    assert found is not None
    assert found["data"] == {"a": "b"}
    assert outputs["message"] == "Created ConfigMap/one"
    assert (outputs["uid"], outputs["resourceVersion"]) == (
        found["metadata"]["uid"],
        found["metadata"]["resourceVersion"],
    )


def test_create_lets_the_server_choose_a_name(kube: Extension) -> None:
    outputs = kube.ok("create", OBJECT | {"metadata": {"generateName": "one-"}})
    assert outputs["resources"] == f"ConfigMap/{outputs['name']} created"
    assert outputs["name"].startswith("one-")
    assert outputs["name"] in outputs["message"]


def test_create_fails_where_there_is_one(kube: Extension) -> None:
    kube.ok("create", OBJECT)
    assert "already exists (409 AlreadyExists)" in kube.failed("create", OBJECT)


@pytest.mark.parametrize("missing", ["apiVersion", "kind", "metadata"])
def test_an_object_needs_three_members(kube: Extension, missing: str) -> None:
    assert f"create: {missing}: missing; an object requires" in kube.refused(
        "create", {k: v for k, v in OBJECT.items() if k != missing}
    )


def test_replace_leaves_nothing_of_what_was_there(kube: Extension, api: FakeApi) -> None:
    kube.ok("create", OBJECT)
    kube.ok("replace", {**OBJECT, "data": {"c": "d"}})
    found = api.get("configmaps", "one")
    assert found is not None
    assert found["data"] == {"c": "d"}


def test_replace_takes_a_subresource(kube: Extension, api: FakeApi) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": {}}
    kube.ok("create", pod)
    kube.ok("replace", pod | {"status": {"phase": "Running"}, "subresource": "status"})
    (asked,) = api.requests("PUT")
    assert asked.path == "/api/v1/namespaces/default/pods/one/status"
    assert "subresource" not in asked.body


def test_replace_fails_where_the_version_is_another(kube: Extension) -> None:
    kube.ok("create", OBJECT)
    metadata = {"name": "one", "resourceVersion": "1"}
    assert "has changed since it was read" in kube.failed("replace", OBJECT | {"metadata": metadata})


@pytest.mark.parametrize(
    "change",
    [
        {"patch": {"data": {"a": None, "c": "d"}}},
        {"patch": [{"op": "remove", "path": "/data/a"}, {"op": "add", "path": "/data/c", "value": "d"}]},
        {"patch": {"data": {"a": None, "c": "d"}}, "type": "merge"},
    ],
)
def test_patch_changes_a_part(kube: Extension, api: FakeApi, change: dict[str, object]) -> None:
    kube.ok("create", OBJECT)
    kube.ok("patch", {"resource": "cm/one", **change})
    found = api.get("configmaps", "one")
    assert found is not None
    assert found["data"] == {"c": "d"}


def test_patch_falls_back_to_a_merge_for_custom_resources(kube: Extension, api: FakeApi) -> None:
    api.put("customresourcedefinitions", SWITCH)
    api.put("switches", {"metadata": {"name": "one"}, "spec": {"on": False}})
    kube.ok("patch", {"resource": "switch/one", "patch": {"spec": {"on": True}}})
    found = api.get("switches", "one")
    assert found is not None
    assert found["spec"] == {"on": True}


def test_a_secret_and_a_configmap_are_made_of_literals_and_files(own_kube: Extension, api: FakeApi) -> None:
    (own_kube.workdir / "binary").write_bytes(b"\xff\x00")
    (own_kube.workdir / "notes.txt").write_text("hello")
    own_kube.ok("create-configmap", {"name": "texts", "literals": {"a": "b"}, "files": ["notes.txt", "binary"]})
    own_kube.ok("create-secret", {"name": "login", "literals": {"password": "sesame-opens"}, "type": "Opaque"})
    texts, login = api.get("configmaps", "texts"), api.get("secrets", "login")
    assert texts is not None
    assert login is not None
    assert (texts["data"], texts["binaryData"]) == ({"a": "b", "notes.txt": "hello"}, {"binary": "/wA="})
    assert login["data"] == {"password": "c2VzYW1lLW9wZW5z"}
    assert "already exists" in own_kube.failed("create-secret", {"name": "login"})
    assert "Replaced" in own_kube.ok("create-secret", {"name": "login", "replace": True})["message"]


def test_the_value_of_a_secret_is_hidden_from_then_on(own_kube: Extension) -> None:
    own_kube.ok("create-secret", {"name": "login", "literals": {"password": "sesame-opens"}})
    own_kube.ok("create-configmap", {"name": "copy", "literals": {"password": "sesame-opens"}})
    found = own_kube.ok("get", {"resource": "cm/copy", "outputs": {"it": "{.data.password}"}})
    assert found["it"] == "[redacted:secret.password#1]"
