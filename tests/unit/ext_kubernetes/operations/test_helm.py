"""helm's operations, with a helm that keeps what it is given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_helm import FIRST, SECOND, FakeHelm

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_kubernetes import Extension, Starter
    from tests.support.fake_kubernetes import FakeApi


SOON = {"timeout": "2s", "onTimeout": "ok"}
MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: web}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
"""
KEPT = """\
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kept, annotations: {helm.sh/resource-policy: keep}}
"""
DEPLOYMENT = {"metadata": {"name": "web"}, "spec": {"replicas": 1}}
COUNTS = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 1)
READY = {"status": COUNTS | {"observedGeneration": 9}}


@pytest.fixture
def helm(tmp_path: Path) -> FakeHelm:
    return FakeHelm(tmp_path / "programs")


@pytest.fixture
def kube(api: FakeApi, start: Starter, helm: FakeHelm, tmp_path: Path) -> Extension:
    return start(api.kubeconfig(tmp_path / "kubeconfig"), {"PATH": helm.path}, {"context": "fake"})


def argv(helm: FakeHelm) -> list[str]:
    return helm.heard("argv").splitlines()


def test_a_chart_is_installed_in_the_cluster_of_the_configuration(
    kube: Extension, helm: FakeHelm, tmp_path: Path
) -> None:
    args = {"chart": "shop/web", "name": "web", "namespace": "shop", "version": "1.2.3", "createNamespace": True}
    found = kube.ok("helm-install", args)
    assert found["message"].startswith("Helm chart installed successfully\nNAME: web")
    assert (found["name"], found["status"], found["revision"]) == ("web", "deployed", "2")
    flags = ["--version=1.2.3", "--create-namespace", "--namespace=shop", "--kube-context=fake"]
    given = argv(helm)
    assert given.pop(3).startswith("--timeout=")
    assert given == ["install", "web", "shop/web", *flags]
    assert helm.heard("kubeconfig") == str(tmp_path / "kubeconfig")


def test_the_two_outputs_are_kept_apart(kube: Extension) -> None:
    found = kube.ok("helm-install", {"chart": "shop/web", "name": "web"})
    assert found["stderr"] == "WARNING: this is not JSON\n"
    assert "WARNING" not in found["stdout"] + found["message"]


def test_values_stay_what_they_are_and_are_in_no_file(kube: Extension, helm: FakeHelm) -> None:
    values = {"service": {"type": "LB"}, "ports": [1, "2"], "on": "true", "off": False, "none": None, "ü": "ß" * 70_000}
    kube.ok("helmInstall", {"chart": "shop/web", "values": values})
    assert json.loads(helm.heard("values")) == values
    assert argv(helm)[:3] == ["install", "--generate-name", "shop/web"]
    assert "--values=-" in argv(helm)


def test_the_error_of_helm_is_told(kube: Extension, helm: FakeHelm) -> None:
    helm.say("error", "Error: no such chart\n")
    told = kube.failed("helm-install", {"chart": "shop/web", "values": {"a": 1}})
    assert "helm install failed: exit code 1" in told
    assert "Error: no such chart" in told


def test_charts_and_values_of_the_workdir_are_given_by_path(kube: Extension, helm: FakeHelm) -> None:
    (kube.workdir / "web").mkdir()
    (kube.workdir / "more.yaml").write_text("a: 1")
    kube.ok("helm-install", {"chart": "web", "name": "it", "valuesFiles": ["more.yaml"]})
    assert f"{kube.workdir}/web" in argv(helm)
    assert f"--values={kube.workdir}/more.yaml" in argv(helm)


@pytest.mark.parametrize("path", ["../programs", "/etc", "link"])
def test_no_path_leads_out_of_the_workdir(kube: Extension, path: str) -> None:
    (kube.workdir / "link").symlink_to("/etc")
    assert "not a path inside the working directory" in kube.failed("helm-install", {"chart": path, "name": "it"})
    told = kube.failed("helm-install", {"chart": "shop/web", "valuesFiles": [path]})
    assert "not a path inside the working directory" in told


@pytest.mark.parametrize("field", ["chart", "name", "version", "repo"])
def test_nothing_is_taken_for_an_option(kube: Extension, field: str) -> None:
    told = kube.refused("helm-install", {"chart": "shop/web"} | {field: "--post-renderer=/bin/sh"})
    assert f"{field}: must not begin with `-`" in told


def test_helm_is_given_a_little_less_time_and_does_not_wait_itself(kube: Extension, helm: FakeHelm) -> None:
    kube.ok("helm-upgrade", {"chart": "shop/web", "name": "web", "install": True, "wait": True, "timeout": "10s"})
    assert argv(helm)[:4] == ["upgrade", "web", "--install", "shop/web"]
    assert "--wait" not in argv(helm)
    (given,) = [flag for flag in argv(helm) if flag.startswith("--timeout=")]
    assert 1 <= int(given.removeprefix("--timeout=").removesuffix("s")) <= 9  # of 10, and the start took some, too


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        ("helm-install", {"chart": "shop/web"}),
        ("helm-upgrade", {"chart": "shop/web", "values": {"a": 1}}),
        ("helm-rollback", {"revision": 1}),
    ],
)
def test_the_objects_of_a_chart_are_awaited_in_several_steps(
    kube: Extension, api: FakeApi, helm: FakeHelm, operation: str, args: dict[str, object]
) -> None:
    helm.say("get-manifest", MANIFEST)
    api.put("configmaps", {"metadata": {"name": "web"}})
    api.put("deployments", DEPLOYMENT)
    args = args | {"name": "web", "wait": True}
    first = kube.ok(operation, args | SOON)
    assert (first["done"], first["revision"]) == ("false", "2")
    assert "but deployment/web is not ready" in first["message"]
    sent = argv(helm)
    api.put("deployments", DEPLOYMENT | READY)
    second = kube.ok(operation, args | {"timeout": "20s", "onTimeout": "ok"})
    assert (second["done"], second["revision"], second["stdout"]) == ("true", "2", first["stdout"])
    kube.ok(operation, args)  # the first steps ended the wait, and all have the same result
    assert argv(helm) == sent  # with the timeout of the first step
    kube.ok(operation, args)  # without `onTimeout: ok` before it
    assert argv(helm) != sent


def test_a_step_does_not_continue_another_one(kube: Extension, helm: FakeHelm) -> None:
    args = {"chart": "shop/web", "name": "web", "wait": True, "onTimeout": "ok"}
    kube.ok("helm-upgrade", args)
    kube.ok("helm-upgrade", args | {"values": {"a": 1}, "timeout": "11s"})
    assert [flag for flag in argv(helm) if flag.startswith("--values=")]  # other arguments
    helm.history(FIRST, SECOND, SECOND | {"revision": 3})
    helm.say("values", "")
    kube.ok("helm-upgrade", args | {"values": {"a": 1}})
    assert json.loads(helm.heard("values")) == {"a": 1}  # a revision of another client


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        ("helm-install", {"chart": "shop/web", "values": {"a": 1}}),
        ("helm-rollback", {"revision": 1}),
        ("helm-uninstall", {"wait": True}),
    ],
)
def test_hooks_are_awaited_in_several_steps(
    kube: Extension, helm: FakeHelm, operation: str, args: dict[str, object]
) -> None:
    helm.say("hooks", "")
    args = args | {"name": "web"}
    for _ in range(2):
        first = kube.ok(operation, args | SOON)
        assert first["done"] == "false"
        assert first["message"].startswith(f"Not done yet: helm {operation.removeprefix('helm-')} has not ended")
    sent = argv(helm)
    assert "--timeout=600s" in sent
    helm.forget("hooks")
    assert kube.ok(operation, args | {"timeout": "20s"}).get("done", "true") == "true"
    assert argv(helm) == sent


def test_a_release_that_cannot_be_read_before_the_deadline_is_not_changed_again(
    kube: Extension, helm: FakeHelm
) -> None:
    helm.say("hang", "get")
    args = {"chart": "shop/web", "name": "web", "wait": True}
    first = kube.ok("helm-upgrade", args | SOON)
    assert (first["done"], first["revision"]) == ("false", "2")
    sent = argv(helm)
    helm.forget("hang")
    assert kube.ok("helm-upgrade", args | {"timeout": "20s"})["done"] == "true"
    assert argv(helm) == sent


def test_an_uninstallation_stops_the_installation_that_still_runs(kube: Extension, helm: FakeHelm) -> None:
    helm.say("hang", "install")
    args = {"chart": "shop/web", "name": "web"}
    assert kube.ok("helm-install", args | SOON)["done"] == "false"
    kube.ok("helm-uninstall", {"name": "web"})
    helm.forget("hang")
    assert kube.ok("helm-install", args | {"timeout": "20s"})["status"] == "deployed"


def test_hooks_that_take_too_long_are_stopped_by_the_last_step(kube: Extension, helm: FakeHelm) -> None:
    helm.say("hooks", "")
    args = {"chart": "shop/web", "name": "web"}
    assert kube.ok("helm-upgrade", args | SOON)["done"] == "false"
    told = kube.failed("helm-upgrade", args | {"timeout": "1s"})
    assert "it did not end before the deadline and was stopped" in told
    assert "With `onTimeout: ok`, helm continues to run" in told


def test_a_chart_that_cannot_become_ready_fails_in_any_case(kube: Extension, api: FakeApi, helm: FakeHelm) -> None:
    helm.say("get-manifest", MANIFEST)
    api.put("configmaps", {"metadata": {"name": "web"}})
    stuck = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
    api.put("deployments", DEPLOYMENT | {"status": {"observedGeneration": 9, "conditions": [stuck]}})
    told = kube.failed("helm-install", {"chart": "shop/web", "name": "web", "wait": True, "onTimeout": "ok"})
    assert "Helm chart installed successfully, but deployment/web is not ready" in told
    assert "gave up early" in told


def test_the_objects_of_a_release_are_awaited_until_they_are_gone(
    kube: Extension, api: FakeApi, helm: FakeHelm
) -> None:
    helm.say("get-manifest", MANIFEST + KEPT)
    api.put("configmaps", {"metadata": {"name": "web", "finalizers": ["example.com/hold"]}})
    api.put("configmaps", {"metadata": {"name": "kept"}})
    args = {"name": "web", "wait": True}
    first = kube.ok("helm-uninstall", args | SOON)
    assert (first["done"], first["left"]) == ("false", "ConfigMap/web")
    assert "Helm release 'web' was uninstalled, but ConfigMap/web not gone" in first["message"]
    kube.ok("patch", {"resource": "cm/web", "patch": {"metadata": {"finalizers": None}}})
    kube.ok("delete", {"resource": "cm/web"})
    assert kube.ok("helm-uninstall", args | SOON)["done"] == "true"
    assert kube.ok("helm-uninstall", args)["done"] == "true"
    assert "release: not found" in kube.failed("helm-uninstall", args)


def test_the_state_of_a_release_is_output_and_checked(kube: Extension, helm: FakeHelm) -> None:
    expected = {"status": "deployed", "revision": {"$gte": 2}, "chart": {"$matches": "^web-"}, "appVersion": "9"}
    found = kube.ok("helm-status", {"name": "web", "expected": expected})
    assert found["message"] == ("Helm release 'web' is deployed: revision 2, web-1.2.3, Upgraded")
    assert (found["chart"], found["appVersion"], found["revision"]) == ("web-1.2.3", "9", "2")
    assert found["revisions"].splitlines()[0] == "1: superseded, web-1.2.2, Installed"
    told = kube.failed("helm-status", {"name": "web", "expected": {"chart": "web-2.0.0", "status": "failed"}})
    assert 'status: expected "failed", found "deployed"' in told
    assert 'chart: expected "web-2.0.0", found "web-1.2.3"' in told
    assert "expected no release 'web', found deployed: revision 2" in kube.failed(
        "helm-status", {"name": "web", "absent": True}
    )
    helm.say("missing", "")
    assert kube.ok("helm-status", {"name": "web", "absent": True})["found"] == "false"
    assert "expected a Helm release 'web' in namespace default, found web" in kube.failed(
        "helm-status", {"name": "web"}
    )
    assert "expected one of `absent` and `expected`" in kube.refused(
        "helm-status", {"name": "web", "absent": True, "expected": {"revision": 1}}
    )


def test_a_release_is_awaited(kube: Extension, api: FakeApi, helm: FakeHelm) -> None:
    helm.say("missing", "")
    args = {"name": "web", "wait": True}
    first = kube.ok("helm-status", args | SOON)
    assert first["message"] == "Not done yet: Helm release 'web' is missing; last seen: missing"
    helm.history(SECOND)
    helm.say("get-manifest", MANIFEST)
    api.put("configmaps", {"metadata": {"name": "web"}})
    api.put("deployments", DEPLOYMENT)
    unready = kube.ok("helm-status", args | SOON)
    assert "but deployment/web is not ready" in unready["message"]
    api.put("deployments", DEPLOYMENT | READY)
    assert kube.ok("helm-status", args)["done"] == "true"
    helm.history(SECOND | {"status": "pending-upgrade"})
    assert kube.ok("helm-status", args | SOON)["status"] == "pending-upgrade"
    helm.history(FIRST, SECOND | {"status": "failed"})
    told = kube.failed("helm-status", args | {"timeout": "20s", "onTimeout": "ok"})
    assert 'status: expected "deployed", found "failed"' in told
    assert kube.ok("helm-status", args | {"expected": {"status": "failed"}})["done"] == "true"


def test_a_rollback_needs_a_revision_to_return_to(kube: Extension, helm: FakeHelm) -> None:
    helm.history(FIRST, SECOND | {"revision": 3, "description": "Rollback to 1"})
    found = kube.ok("helm-rollback", {"name": "web"})
    assert argv(helm)[:2] == ["rollback", "web"]
    assert found["message"] == "Rolled the Helm release 'web' back to revision 1"
    assert (found["toRevision"], found["revision"]) == ("1", "3")
    kube.ok("helm-rollback", {"name": "web", "revision": 1})
    assert argv(helm)[:3] == ["rollback", "web", "1"]
    told = kube.failed("helm-rollback", {"name": "web", "revision": 7})
    assert "expected revision 7 of the Helm release 'web', found 1: superseded, web-1.2.2, Installed; 3: " in told
    helm.history(FIRST)
    assert "has no revision before 1" in kube.failed("helm-rollback", {"name": "web"})
    helm.say("missing", "")
    assert "expected a Helm release 'web'" in kube.failed("helm-rollback", {"name": "web"})


def test_values_are_output_and_checked_but_not_shown_if_secret(kube: Extension, helm: FakeHelm) -> None:
    values = {"replicas": 2, "image": {"tag": "1.2"}, "auth": {"user": "it", "adminPassword": "very-s3cret"}}
    helm.say("get-values", json.dumps(values))
    outputs = {"tag": "$.image.tag", "password": "{.auth.adminPassword}"}
    found = kube.ok("helm-values", {"name": "web", "outputs": outputs, "as": "chart"})
    assert found["tag"] == "1.2"
    assert "password" not in found
    assert "very-s3cret" not in str(found)
    expected: dict[str, object] = {"auth": {"adminPassword": "${chart.password}"}, "replicas": {"$gte": 2}}
    kube.ok("helm-values", {"name": "web", "expected": expected})
    told = kube.failed("helm-values", {"name": "web", "expected": {"auth": {"adminPassword": "x"}}})
    assert 'auth.adminPassword: expected "x", found "(hidden' in told
    assert "very-s3cret" not in told
    kube.ok("helm-values", {"name": "web", "all": True, "revision": 1})
    assert {"--all", "--revision=1"} <= set(helm.heard("get.argv").splitlines())
    told = kube.failed("helm-values", {"name": "web", "outputs": {"x": "$.nothing"}})
    assert "expected a value at $.nothing" in told
    assert "Set `all: true`" in told
    assert "unknown operator $gt2" in kube.refused("helm-values", {"name": "web", "expected": {"x": {"$gt2": 1}}})
    assert "unknown member state" in kube.refused("helm-status", {"name": "web", "expected": {"state": "x"}})
    assert "outputs.x: " in kube.refused("helm-values", {"name": "web", "outputs": {"x": "$["}})


def test_a_release_may_have_no_values_but_must_exist(kube: Extension, helm: FakeHelm) -> None:
    helm.say("get-values", "null\n")
    assert kube.ok("helm-values", {"name": "web"})["values"] == "{}"
    helm.say("missing", "")
    assert "expected a Helm release 'web'" in kube.failed("helm-values", {"name": "web"})


def test_a_helm_that_goes_on_and_on_is_stopped(kube: Extension, helm: FakeHelm) -> None:
    helm.say("hang", "*")
    told = kube.failed("helm-install", {"chart": "shop/web", "timeout": "300ms"})
    assert "helm install failed: it did not end before the deadline and was stopped" in told
    assert "may be left in a pending state" in told


def test_releases_are_listed(kube: Extension, helm: FakeHelm) -> None:
    found = kube.ok("helm-list", {"allNamespaces": True})
    line = "  - web (namespace: default, status: deployed, chart: web-1.2.3)"
    assert found["message"] == f"Found 1 Helm release(s):\n{line}"
    assert (found["count"], found["names"]) == ("1", "web")
    assert json.loads(found["releases"])[0]["revision"] == "2"
    assert argv(helm) == ["list", "--output=json", "--all-namespaces", "--kube-context=fake"]
    helm.say("list", "[]")
    assert kube.ok("helmList", {})["message"] == "No Helm releases found"
    helm.say("list", "nonsense")
    assert "failed to parse helm list output" in kube.failed("helm-list")


def test_a_release_is_removed(kube: Extension, helm: FakeHelm) -> None:
    found = kube.ok("helm-uninstall", {"name": "web", "namespace": "shop"})
    assert found["message"] == "Helm release 'web' uninstalled successfully\nrelease \"web\" uninstalled"
    given = argv(helm)
    assert given.pop(2).startswith("--timeout=")
    assert given == ["uninstall", "web", "--namespace=shop", "--kube-context=fake"]


def test_a_release_that_is_not_there_is_a_failure_unless_it_may_be(kube: Extension, helm: FakeHelm) -> None:
    helm.say("error", "Error: uninstall: Release not loaded: web: release: not found\n")
    assert "release: not found" in kube.failed("helm-uninstall", {"name": "web"})
    assert "(ignored)" in kube.ok("helm-uninstall", {"name": "web", "ignoreNotFound": True})["message"]
    assert "(ignored)" in kube.ok("helmUninstall", {"name": "web"})["message"]
    helm.say("error", "Error: Kubernetes cluster unreachable\n")
    assert "unreachable" in kube.failed("helmUninstall", {"name": "web"})


def test_without_helm_the_requirement_is_told(api: FakeApi, start: Starter, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    kube = start(api.kubeconfig(tmp_path / "kubeconfig"), {"PATH": str(tmp_path / "empty")})
    assert "required command not found in PATH: helm" in kube.refused("helm-list", {})
