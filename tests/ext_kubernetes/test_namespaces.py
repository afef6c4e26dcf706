"""Namespaces that a task makes, and what a user may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.ext_kubernetes.fake_api import Fault

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ext_kubernetes.conftest import Extension, Starter
    from tests.ext_kubernetes.fake_api import FakeApi

OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}


def test_a_namespace_is_made_and_used_from_then_on(kube: Extension) -> None:
    assert kube.ok("create-namespace", {"name": "web"})["message"] == "Created namespace web"
    assert kube.ok("apply", {"manifest": OBJECT})["namespace"] == "web"
    kube.ok("delete-namespace")
    assert kube.ok("apply", {"manifest": OBJECT})["namespace"] == "default"


def test_another_workdir_uses_another_namespace(kube: Extension, tmp_path: Path) -> None:
    kube.ok("create-namespace", {"name": "web"})
    assert kube.ok("apply", {"manifest": OBJECT}, workdir=str(tmp_path / "other"))["namespace"] == "default"


def test_the_configured_namespace_is_the_next_choice(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kube = start(api.kubeconfig(tmp_path / "k", namespace="default"), config={"namespace": "kube-system"})
    assert kube.ok("apply", {"manifest": OBJECT})["namespace"] == "kube-system"


def test_the_namespace_of_the_context_is_the_last_choice(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kube = start(api.kubeconfig(tmp_path / "k", namespace="kube-system"))
    assert kube.ok("apply", {"manifest": OBJECT})["namespace"] == "kube-system"


def test_a_generated_name_has_a_prefix_and_eight_characters(kube: Extension) -> None:
    names = {kube.ok("create-namespace", {"prefix": "eval"})["namespace"] for _ in range(3)}
    assert len(names) == 3
    for name in names:
        prefix, _, suffix = name.partition("-")
        assert (prefix, len(suffix), suffix.isalnum(), suffix.islower() or suffix.isdigit()) == ("eval", 8, True, True)


def test_a_name_or_a_prefix_is_needed(kube: Extension) -> None:
    assert "expected `name` or `prefix`, found none" in kube.refused("create-namespace", {})


def test_generated_namespaces_are_deleted_by_the_workdir_that_made_them(
    kube: Extension, api: FakeApi, tmp_path: Path
) -> None:
    mine = kube.ok("create-namespace", {"prefix": "mine"})["namespace"]
    other = str(tmp_path / "other")
    theirs = kube.ok("create-namespace", {"prefix": "theirs"}, workdir=other)["namespace"]
    fixed = kube.ok("create-namespace", {"name": "fixed"})["namespace"]
    outputs = kube.ok("delete-generated-namespaces", {"wait": True})
    assert (outputs["message"], outputs["namespaces"]) == ("Deleted 1 generated namespace(s)", mine)
    assert api.get("namespaces", theirs)
    assert api.get("namespaces", fixed)
    assert kube.ok("delete-generated-namespaces")["message"] == "No generated namespaces to delete"


def test_one_that_can_not_be_deleted_stays_on_the_list(kube: Extension, api: FakeApi) -> None:
    names = [kube.ok("create-namespace", {"prefix": "x"})["namespace"] for _ in range(2)]
    api.faults.append(Fault("DELETE", names[0], status=403, reason="Forbidden", message="you cannot delete it"))
    told = kube.failed("delete-generated-namespaces")
    assert f"{names[0]}: you cannot delete it" in told
    assert kube.ok("delete-generated-namespaces")["namespaces"] == names[0]


def test_one_that_is_not_gone_in_time_stays_on_the_list(kube: Extension, api: FakeApi) -> None:
    names = [kube.ok("create-namespace", {"prefix": "x"})["namespace"] for _ in range(2)]
    held = api.get("namespaces", names[1])
    assert held is not None
    api.put("namespaces", {**held, "metadata": {**held["metadata"], "finalizers": ["example.com/hold"]}})
    result = kube.result("delete-generated-namespaces", {"wait": True, "timeout": "300ms"})
    assert result["message"] == "deleted 1 of 2 generated namespaces"
    assert f"Namespace/{names[1]}: deletion was asked for at" in str(result["error"])
    assert "finalizers example.com/hold" in str(result["error"])
    assert f"Namespace/{names[1]} not gone" in kube.failed("delete-namespace", {"name": names[1], "timeout": "50ms"})
    api.put("namespaces", {**held, "metadata": {**held["metadata"], "finalizers": []}})
    assert kube.ok("delete-generated-namespaces", {"wait": True})["namespaces"] == names[1]


def test_one_that_is_gone_already_is_no_failure(kube: Extension, api: FakeApi) -> None:
    name = kube.ok("create-namespace", {"prefix": "x"})["namespace"]
    kube.ok("delete", {"resource": f"ns/{name}"})
    assert kube.ok("delete-generated-namespaces")["count"] == "1"


def test_one_that_somebody_made_anew_is_left_alone(kube: Extension, api: FakeApi) -> None:
    name = kube.ok("create-namespace", {"prefix": "x"})["namespace"]
    kube.ok("delete", {"resource": f"ns/{name}"})
    api.put("namespaces", {"metadata": {"name": name}})
    kube.ok("delete-generated-namespaces")
    assert api.get("namespaces", name) is not None


# --- The names of the other extension ---------------------------------------------------------------------------------


def test_a_task_of_the_other_extension_runs(kube: Extension, api: FakeApi) -> None:
    name = kube.ok("createNamespace", {"prefix": "task"})["namespace"]
    assert kube.ok("create", OBJECT | {"metadata": {"name": "one", "namespace": name}})["namespace"] == name
    args = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": name}}
    assert kube.ok("delete", args)["message"] == "Deleted ConfigMap/one"
    assert "(ignored)" in kube.ok("delete", args | {"ignoreNotFound": True})["message"]
    assert kube.ok("deleteGeneratedNamespaces")["message"] == "Deleted 1 generated namespace(s)"
    assert kube.ok("listContexts")["message"] == "Found 1 context(s), current: fake"
    assert kube.ok("getCurrentContext")["context"] == "fake"
    assert "current-context: fake" in kube.ok("viewConfig", {"minify": True})["config"]


# --- Access and contexts ----------------------------------------------------------------------------------------------

SERVICE_ACCOUNT = "system:serviceaccount:web:builder"


@pytest.mark.parametrize("operation", ["authCanI", "auth-can-i"])
def test_denied_is_a_success_unless_it_is_expected_otherwise(kube: Extension, api: FakeApi, operation: str) -> None:
    api.denied.add(("delete", "pods"))
    args = {"verb": "delete", "resource": "pods", "as": SERVICE_ACCOUNT, "namespace": "web"}
    outputs = kube.ok(operation, args)
    assert outputs["message"] == f"{SERVICE_ACCOUNT} can delete pods in namespace web: denied"
    assert outputs["allowed"] == "false"
    kube.ok(operation, args | {"expect": {"allowed": False}})
    told = kube.failed(operation, args | {"expect": {"allowed": True}})
    assert "expected allowed=true but got allowed=false" in told
    assert "denied by the fake" in told


def test_the_review_is_about_what_was_asked(kube: Extension, api: FakeApi) -> None:
    args = {"verb": "get", "resource": "deploy/scale", "as": "ada", "groups": ["dev"], "resourceName": "web"}
    assert "cluster-wide: allowed" in kube.ok("auth-can-i", args)["message"]
    asked = api.requests("POST")[-1]
    assert asked.path.endswith("/subjectaccessreviews")
    assert asked.body["spec"] == {
        "user": "ada",
        "groups": ["dev", "system:authenticated"],
        "resourceAttributes": {
            "verb": "get",
            "resource": "deployments",
            "subresource": "scale",
            "group": "apps",
            "name": "web",
        },
    }


@pytest.mark.parametrize(
    ("user", "given", "groups"),
    [
        ("ada", [], ["system:authenticated"]),
        ("ada", ["dev", "system:authenticated"], ["dev", "system:authenticated"]),
        ("ada", ["system:unauthenticated"], ["system:unauthenticated"]),
        (SERVICE_ACCOUNT, [], ["system:serviceaccounts", "system:serviceaccounts:web", "system:authenticated"]),
        (SERVICE_ACCOUNT, ["dev"], ["dev", "system:authenticated"]),
        ("system:anonymous", [], ["system:unauthenticated"]),
    ],
)
def test_a_user_has_the_groups_that_every_such_user_has(
    kube: Extension, api: FakeApi, user: str, given: list[str], groups: list[str]
) -> None:
    kube.ok("authCanI", {"verb": "get", "resource": "pods", "as": user, "groups": given})
    assert api.requests("POST")[-1].body["spec"]["groups"] == groups


def test_the_rules_are_those_of_the_created_namespace(kube: Extension, api: FakeApi) -> None:
    kube.ok("create-namespace", {"name": "web"})
    assert "in namespace web" in kube.ok("auth-can-i", {"list": True})["message"]
    assert api.requests("POST")[-1].body["spec"] == {"namespace": "web"}


def test_without_a_user_it_is_about_yourself(kube: Extension, api: FakeApi) -> None:
    assert kube.ok("auth-can-i", {"verb": "get", "resource": "pods"})["message"].startswith("you can get pods")
    assert api.requests("POST")[-1].path.endswith("/selfsubjectaccessreviews")
    assert kube.ok("auth-can-i", {"list": True})["rules"] == "get, list pods"


@pytest.mark.parametrize("missing", ["verb", "resource"])
def test_verb_and_resource_are_needed(kube: Extension, missing: str) -> None:
    args = {"verb": "get", "resource": "pods", "as": "ada"}
    assert f"{missing} is required" in kube.refused("auth-can-i", {k: v for k, v in args.items() if k != missing})


def test_the_kubeconfig_is_shown_without_credentials(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    kube = start(api.kubeconfig(tmp_path / "k", token="sesame-opens-it"))
    for minify in (False, True):
        config = kube.ok("view-config", {"minify": minify})["config"]
        assert api.address in config
        assert "sesame" not in config
        assert "token: '[redacted]'" in config
