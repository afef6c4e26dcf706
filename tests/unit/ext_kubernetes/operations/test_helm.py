"""helm's operations, with a helm that keeps what it is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_helm import FakeHelm

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension, Starter
    from tests.support.fake_kubernetes import FakeApi


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
    assert (found["name"], found["status"], found["revision"]) == ("web", "deployed", "1")
    flags = ["--namespace=shop", "--version=1.2.3", "--create-namespace", "--kube-context=fake"]
    assert argv(helm) == ["install", "web", "shop/web", *flags]
    assert helm.heard("kubeconfig") == str(tmp_path / "kubeconfig")


def test_the_two_outputs_are_kept_apart(kube: Extension) -> None:
    found = kube.ok("helm-install", {"chart": "shop/web", "name": "web"})
    assert found["stderr"] == "WARNING: this is not JSON\n"
    assert "WARNING" not in found["stdout"] + found["message"]


def test_values_stay_what_they_are_in_a_private_file_that_is_removed(kube: Extension, helm: FakeHelm) -> None:
    values = {"service": {"type": "LB"}, "ports": [1, "2"], "on": "true", "off": False, "none": None}
    kube.ok("helmInstall", {"chart": "shop/web", "values": values})
    assert json.loads(helm.heard("values")) == values
    assert helm.heard("mode") == "600\n"
    assert not Path(helm.heard("file").strip()).exists()
    assert argv(helm)[:3] == ["install", "--generate-name", "shop/web"]


def test_a_file_of_values_is_removed_where_helm_fails(kube: Extension, helm: FakeHelm) -> None:
    helm.say("error", "Error: no such chart\n")
    told = kube.failed("helm-install", {"chart": "shop/web", "values": {"a": 1}})
    assert "helm install failed: exit code 1" in told
    assert "Error: no such chart" in told
    assert not Path(helm.heard("file").strip()).exists()


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


def test_helm_is_given_a_little_less_time_to_wait(kube: Extension, helm: FakeHelm) -> None:
    kube.ok("helm-upgrade", {"chart": "shop/web", "name": "web", "install": True, "wait": True, "timeout": "10s"})
    assert argv(helm)[:4] == ["upgrade", "web", "--install", "shop/web"]
    assert "--wait" in argv(helm)
    (given,) = [flag for flag in argv(helm) if flag.startswith("--timeout=")]
    assert 1 <= int(given.removeprefix("--timeout=").removesuffix("s")) <= 9  # of 10, and the start took some, too


def test_a_helm_that_goes_on_and_on_is_stopped(kube: Extension, helm: FakeHelm) -> None:
    helm.say("hang", "")
    told = kube.failed("helm-install", {"chart": "shop/web", "timeout": "300ms"})
    assert "helm install failed: it did not end before the deadline and was stopped" in told


def test_releases_are_listed(kube: Extension, helm: FakeHelm) -> None:
    found = kube.ok("helm-list", {"allNamespaces": True})
    line = "  - web (namespace: default, status: deployed, chart: web-1.2.3)"
    assert found["message"] == f"Found 1 Helm release(s):\n{line}"
    assert (found["count"], found["names"]) == ("1", "web")
    assert json.loads(found["releases"])[0]["revision"] == "1"
    assert argv(helm) == ["list", "--output", "json", "--all-namespaces", "--kube-context=fake"]
    helm.say("list", "[]")
    assert kube.ok("helmList", {})["message"] == "No Helm releases found"
    helm.say("list", "nonsense")
    assert "failed to parse helm list output" in kube.failed("helm-list")


def test_a_release_is_removed(kube: Extension, helm: FakeHelm) -> None:
    found = kube.ok("helm-uninstall", {"name": "web", "namespace": "shop"})
    assert found["message"] == "Helm release 'web' uninstalled successfully\nrelease \"web\" uninstalled"
    assert argv(helm) == ["uninstall", "web", "--namespace=shop", "--kube-context=fake"]


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
