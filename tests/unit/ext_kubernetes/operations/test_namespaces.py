"""Namespaces that a task makes, and what a user may do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_kubernetes import Extension, Starter
    from tests.support.fake_kubernetes import FakeApi

OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}


def test_a_namespace_is_made_and_used_from_then_on(kube: Extension) -> None:
    assert kube.ok("create-namespace", {"name": "web"})["message"] == "Created namespace web"
    assert kube.ok("apply", {"manifest": OBJECT})["namespace"] == "web"
    kube.ok("delete-namespace")
    told = kube.failed("apply", {"manifest": OBJECT})
    assert "no namespace for this operation: the namespace created by create-namespace was deleted" in told
    assert kube.ok("apply", {"manifest": OBJECT | {"metadata": {"name": "one", "namespace": "default"}}})
    kube.ok("create-namespace", {"name": "other"})
    assert kube.ok("apply", {"manifest": OBJECT})["namespace"] == "other"


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
    assert "expected one of name and prefix, found none" in kube.refused("create-namespace", {})


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
    told = kube.failed("delete-generated-namespaces", {"prefix": "x"})
    assert f"{names[0]}: you cannot delete it" in told
    assert kube.ok("delete-generated-namespaces")["namespaces"] == names[0]


def test_one_that_is_not_gone_in_time_stays_on_the_list(kube: Extension, api: FakeApi) -> None:
    names = [kube.ok("create-namespace", {"prefix": "x"})["namespace"] for _ in range(2)]
    held = api.get("namespaces", names[1])
    assert held is not None
    api.put("namespaces", {**held, "metadata": {**held["metadata"], "finalizers": ["example.com/hold"]}})
    result = kube.result("delete-generated-namespaces", {"prefix": "x", "wait": True, "timeout": "300ms"})
    assert result["message"] == "deleted 1 of 2 generated namespaces"
    assert f"Namespace/{names[1]}: deletion was requested at" in str(result["error"])
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


# --- Whose they are ---------------------------------------------------------------------------------------------------

IN_DEFAULT = OBJECT | {"metadata": {"name": "one", "namespace": "default"}}


def test_after_a_failure_no_namespace_is_implicit_until_one_is_created(kube: Extension, api: FakeApi) -> None:
    kube.ok("create-namespace", {"name": "mine"})
    told = kube.failed("create-namespace", {"name": "kube-system"})
    assert "choose another `name`, or use `prefix` to generate an unused name" in told
    assert "generateName" not in told
    told = kube.failed("apply", {"manifest": OBJECT})
    assert 'create-namespace failed: namespaces "kube-system" already exists' in told
    assert "namespace: ${NAME.name}" in told
    assert "`scope` or a folder of its own" in told
    assert "mine" in told
    for operation, args in (
        ("create-configmap", {"name": "x"}),
        ("run-job", {"image": "x"}),
        ("get", {"resource": "cm"}),
    ):
        assert "create-namespace failed" in kube.failed(operation, args)
    assert "create-namespace failed" in kube.failed("auth-can-i", {"list": True})
    assert kube.ok("create-configmap", {"name": "x", "namespace": "mine"})["namespace"] == "mine"
    assert kube.ok("apply", {"manifest": IN_DEFAULT})["namespace"] == "default"
    assert "found" in kube.ok("get", {"resource": "cm", "allNamespaces": True})
    kube.ok("delete-namespace", {"name": "mine"})
    kube.ok("create-namespace", {"name": "another"})
    assert kube.ok("apply", {"manifest": OBJECT})["namespace"] == "another"


@pytest.mark.parametrize(
    "args", [{"name": "${nothing.name}"}, {"prefix": "UPPER"}, {"name": "a", "labels": {"x": "${no.such}"}}]
)
def test_a_failure_before_anything_is_sent_counts_too(kube: Extension, api: FakeApi, args: dict[str, object]) -> None:
    if "prefix" in args:
        api.faults.append(Fault("POST", "/namespaces", status=422, reason="Invalid", message="it is invalid"))
    kube.failed("create-namespace", args)
    assert "create-namespace failed" in kube.failed("apply", {"manifest": OBJECT})
    assert not api.requests("PATCH")


def test_one_that_is_not_to_be_used_changes_nothing(kube: Extension) -> None:
    kube.ok("create-namespace", {"name": "other", "use": False})
    assert "already exists" in kube.failed("create-namespace", {"name": "other", "use": False})
    assert kube.ok("apply", {"manifest": OBJECT})["namespace"] == "default"


def test_several_are_refused_by_name(kube: Extension) -> None:
    names = [kube.ok("create-namespace", {"prefix": prefix})["namespace"] for prefix in ("a", "b")]
    told = kube.failed("apply", {"manifest": OBJECT})
    assert (
        f"several namespaces were created in this workdir and may belong to other tasks: {names[0]} (prefix a), "
        in told
    )
    assert names[1] in told
    kube.ok("delete-namespace", {"name": names[0]})
    assert kube.ok("apply", {"manifest": OBJECT})["namespace"] == names[1]


def test_one_that_somebody_else_deleted_is_not_in_the_way(kube: Extension, api: FakeApi) -> None:
    names = [kube.ok("create-namespace", {"prefix": "x"})["namespace"] for _ in range(4)]
    gone, held, renewed = (api.get("namespaces", name) for name in names[:3])
    assert gone
    assert held
    assert renewed
    del api.objects["namespaces.", "", names[0]]
    deleted = {"deletionTimestamp": "2026-11-21T21:00:00Z", "finalizers": ["example.com/hold"]}
    api.put("namespaces", held | {"metadata": held["metadata"] | deleted})
    api.put("namespaces", renewed | {"metadata": renewed["metadata"] | {"uid": "another"}})
    assert kube.ok("apply", {"manifest": OBJECT})["namespace"] == names[3]


def test_one_that_may_not_be_looked_at_counts(kube: Extension, api: FakeApi) -> None:
    names = [kube.ok("create-namespace", {"prefix": "x"})["namespace"] for _ in range(2)]
    api.faults.append(Fault("GET", names[0], status=403, reason="Forbidden", message="you cannot get it"))
    assert "several namespaces" in kube.failed("apply", {"manifest": OBJECT})


@pytest.mark.parametrize("way", ["delete", "delete-namespace", "delete-generated-namespaces"])
def test_a_deleted_one_is_not_followed_by_default(kube: Extension, api: FakeApi, way: str) -> None:
    name = kube.ok("create-namespace", {"prefix": "x"})["namespace"]
    assert kube.ok("delete", {"resource": f"ns/{name}", "dryRun": True})
    assert kube.ok("apply", {"manifest": OBJECT})["namespace"] == name
    kube.ok(way, {"resource": f"ns/{name}"} if way == "delete" else {})
    assert "was deleted" in kube.failed("apply", {"manifest": OBJECT})
    assert api.get("configmaps", "one") is None


@pytest.mark.parametrize("operation", ["delete-generated-namespaces", "deleteGeneratedNamespaces"])
def test_several_generated_ones_have_to_be_named(kube: Extension, api: FakeApi, operation: str) -> None:
    names = [kube.ok("create-namespace", {"prefix": prefix})["namespace"] for prefix in ("a", "a", "b", "c")]
    told = kube.failed(operation)
    assert all(name in told for name in names)
    assert "`scope` or a folder of its own" in told
    assert all(api.get("namespaces", name) for name in names)
    assert kube.ok(operation, {"names": names[:1]})["namespaces"] == names[0]
    assert kube.ok(operation, {"name": names[0]})["count"] == "0"
    assert kube.ok(operation, {"prefix": "a"})["namespaces"] == names[1]
    assert kube.ok(operation, {"name": names[2]})["namespaces"] == names[2]
    assert kube.ok(operation)["namespaces"] == names[3]
    assert "not generated in this workdir and scope: kube-system" in kube.failed(operation, {"name": "kube-system"})
    assert "expected names or a `prefix`, found both" in kube.failed(operation, {"name": "x", "prefix": "y"})
    assert api.get("namespaces", "kube-system")


@pytest.mark.parametrize("fails_first", [True, False])
def test_nothing_is_deleted_after_a_failure_without_being_named(
    kube: Extension, api: FakeApi, *, fails_first: bool
) -> None:
    if fails_first:
        kube.failed("create-namespace", {"name": "kube-system"})
    name = kube.ok("create-namespace", {"prefix": "x"})["namespace"]
    if not fails_first:
        kube.failed("create-namespace", {"name": "kube-system"})
    for operation in ("delete-generated-namespaces", "delete-namespace"):
        told = kube.failed(operation)
        assert f"another create-namespace failed): {name} (prefix x)" in told
        assert 'The failure: namespaces "kube-system" already exists' in told
    assert api.get("namespaces", name)
    assert kube.ok("delete-generated-namespaces", {"name": name})["namespaces"] == name


def test_a_failed_task_that_cleaned_up_does_not_concern_the_next_one(kube: Extension) -> None:
    kube.failed("create-namespace", {"name": "kube-system"})
    assert kube.ok("delete-generated-namespaces")["count"] == "0"
    name = kube.ok("create-namespace", {"prefix": "x"})["namespace"]
    assert kube.ok("delete-generated-namespaces")["namespaces"] == name


def test_which_one_to_delete_has_to_be_certain(kube: Extension, api: FakeApi) -> None:
    told = kube.failed("delete-namespace")
    assert "create-namespace left none in this workdir and scope" in told
    assert "(ignored)" in kube.ok("delete-namespace", {"ignoreNotFound": True})["message"]
    kube.ok("create-namespace", {"name": "n1"})
    kube.ok("delete-namespace")
    assert "no namespace to delete; already deleted: n1" in kube.failed("delete-namespace")
    names = [kube.ok("create-namespace", {"name": name})["namespace"] for name in ("a", "b")]
    assert "2 are left in this workdir): a, b" in kube.failed("delete-namespace")
    assert all(api.get("namespaces", name) for name in names)


class Task:
    """One of several tasks that run in parallel, with the scope and the folder that it has."""

    def __init__(self, kube: Extension, name: str, scope: str, workdir: Path) -> None:
        self.name = name
        self._kube = kube
        self._scope = {"scope": scope} if scope else {}
        self._workdir = str(workdir)

    def result(self, operation: str, **args: object) -> dict[str, object]:
        return self._kube.result(operation, args | self._scope, workdir=self._workdir)

    def ok(self, operation: str, **args: object) -> dict[str, str]:
        return self._kube.ok(operation, args | self._scope, workdir=self._workdir)


@pytest.mark.parametrize("apart", ["scopes", "folders"])
def test_parallel_tasks_that_are_apart(kube: Extension, api: FakeApi, tmp_path: Path, apart: str) -> None:
    """Step by step: each creates a namespace and an object in it, and deletes the namespace."""
    names = ("a", "b", "c")
    if apart == "scopes":
        tasks = [Task(kube, name, name, tmp_path) for name in names]
    else:
        tasks = [Task(kube, name, "", tmp_path / name) for name in names]
    created = [task.ok("createNamespace", prefix=task.name)["namespace"] for task in tasks]
    assert [task.ok("create-configmap", name="mine")["namespace"] for task in tasks] == created
    assert [task.ok("get", resource="cm/mine")["namespace"] for task in tasks] == created
    for number, task in enumerate(tasks, start=1):
        assert task.ok("deleteGeneratedNamespaces")["namespaces"] == created[number - 1]
        assert [one for one in created if api.get("namespaces", one)] == created[number:]


def test_parallel_tasks_that_are_not_apart_fail_and_harm_nobody(kube: Extension, api: FakeApi, tmp_path: Path) -> None:
    tasks = [Task(kube, name, "", tmp_path) for name in ("a", "b", "c")]
    created = [task.ok("createNamespace", prefix=task.name)["namespace"] for task in tasks]
    for task in tasks:
        assert task.result("create-configmap", name="mine")["success"] is False
        assert task.result("get", resource="cm/mine")["success"] is False
        assert task.result("deleteGeneratedNamespaces")["success"] is False
    assert not api.requests("DELETE")
    assert not [key for key in api.objects if key[0] == "configmaps."]
    for task, name in zip(tasks, created, strict=True):
        assert task.ok("create-configmap", name="mine", namespace=name)["namespace"] == name
        assert task.ok("deleteGeneratedNamespaces", name=name)["namespaces"] == name


# --- Pods that hold one -----------------------------------------------------------------------------------------------


def test_pods_that_hold_a_namespace_are_told(kube: Extension, api: FakeApi) -> None:
    name = kube.ok("create-namespace", {"prefix": "x"})["namespace"]
    held = api.get("namespaces", name)
    assert held
    api.put("namespaces", held | {"metadata": held["metadata"] | {"finalizers": ["kubernetes"]}})
    slow = {"name": "slow", "namespace": name, "deletionTimestamp": "x", "deletionGracePeriodSeconds": 30}
    api.put("pods", {"metadata": slow | {"finalizers": ["example.com/hold"]}})
    api.put("pods", {"metadata": {"name": "alive", "namespace": name}})
    expected = f"pods left in {name}: alive (not being deleted), slow (grace period 30 s; finalizers example.com/hold)"
    for operation, args in (("delete-generated-namespaces", {"wait": True}), ("delete-namespace", {"name": name})):
        told = kube.failed(operation, args | {"timeout": "200ms"})
        assert expected in told
        assert "`gracePeriod: 0` kills pods immediately" in told
        assert "Pods with finalizers remain" not in told


def test_a_finalizer_is_the_reason_why_a_killed_pod_holds_a_namespace(kube: Extension, api: FakeApi) -> None:
    api.put("namespaces", {"metadata": {"name": "c2", "finalizers": ["kubernetes"]}})
    killed = {"name": "held", "namespace": "c2", "deletionTimestamp": "x", "deletionGracePeriodSeconds": 0}
    api.put("pods", {"metadata": killed | {"finalizers": ["example.com/hold"]}})
    told = kube.failed("create-namespace", {"name": "c2", "ifExists": "replace", "timeout": "200ms"})
    assert "c2: held (finalizers example.com/hold). Pods with finalizers remain until these are removed" in told
    assert "gracePeriod" not in told


@pytest.mark.parametrize("operation", ["delete-namespace", "delete-generated-namespaces", "deleteGeneratedNamespaces"])
def test_pods_are_deleted_with_a_grace_period(kube: Extension, api: FakeApi, operation: str) -> None:
    name = kube.ok("create-namespace", {"prefix": "x"})["namespace"]
    held = api.get("namespaces", name)
    assert held
    api.put("namespaces", held | {"metadata": held["metadata"] | {"finalizers": ["kubernetes"]}})
    api.put("pods", {"metadata": {"name": "slow", "namespace": name}})
    kube.ok(operation, {"gracePeriod": 0, "wait": False})
    of_namespace, of_pods = api.requests("DELETE")
    assert of_namespace.path == f"/api/v1/namespaces/{name}"
    assert (of_pods.path, of_pods.body["gracePeriodSeconds"]) == (f"/api/v1/namespaces/{name}/pods", 0)
    assert api.get("pods", "slow", name) is None


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
    api.put("namespaces", {"metadata": {"name": "web"}})
    api.put("serviceaccounts", {"metadata": {"name": "builder", "namespace": "web"}})
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
