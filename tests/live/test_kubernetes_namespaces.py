"""ext-kubernetes and namespaces: whose they are, what holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.live.client import condition
from tests.live.kubernetes import LONG
from tests.live.manifests import configmap, pod
from tests.live.permissions import granted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.live.client import Client
    from tests.live.conftest import Starter
    from tests.live.kubernetes import Kube

HOLD = "gevals-extensions.dev/hold"
NAMESPACES = "/api/v1/namespaces"


def test_a_namespace_is_made_used_and_deleted(kube: Kube, namespace: str) -> None:
    name = kube.ok("create-namespace", prefix="live-own")["namespace"]
    assert kube.ok("create", configmap())["namespace"] == name
    assert kube.ok("delete-generated-namespaces", wait=True, timeout=LONG)["namespaces"] == name
    assert "was deleted" in kube.failed("create", configmap())
    assert kube.ok("create", configmap(), namespace=namespace)["namespace"] == namespace


def test_a_namespace_has_the_name_that_is_given(kube: Kube, admin: Client, namespace: str) -> None:
    name = f"{namespace}-fixed"
    assert kube.ok("create-namespace", name=name, labels={"team": "x"}, use=False)["namespace"] == name
    assert admin.get(f"{NAMESPACES}/{name}")["metadata"]["labels"]["team"] == "x"
    assert kube.ok("create", configmap())["namespace"] == namespace
    assert "AlreadyExists" in kube.failed("create-namespace", name=name)
    kube.ok("delete-namespace", name=name, timeout=LONG)
    assert not admin.exists(f"{NAMESPACES}/{name}")
    assert "not found" in kube.failed("delete-namespace", name=name)
    kube.ok("delete-namespace", name=name, ignoreNotFound=True)


def test_each_workdir_deletes_its_own_namespaces(kube: Kube, admin: Client, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    names = {}
    for workdir in (one, other):
        workdir.mkdir()
        names[workdir] = kube.ok("create-namespace", prefix="live-task", at=workdir)["namespace"]
    assert kube.ok("create", configmap(), at=one)["namespace"] == names[one]
    assert kube.ok("delete-generated-namespaces", wait=True, timeout=LONG, at=one)["namespaces"] == names[one]
    assert admin.get(f"{NAMESPACES}/{names[other]}")["status"]["phase"] == "Active"
    assert kube.ok("create", configmap(), at=other)["namespace"] == names[other]
    assert kube.ok("delete-generated-namespaces", at=other)["namespaces"] == names[other]


def test_what_holds_a_namespace_is_told(kube: Kube, admin: Client) -> None:
    name = kube.ok("create-namespace", prefix="live-held")["namespace"]
    kube.ok("create", configmap(finalizers=[HOLD]))
    path = f"{NAMESPACES}/{name}"
    admin.delete(path)
    admin.wait_for(path, lambda it: condition(it, "NamespaceFinalizersRemaining") == "True")
    assert HOLD in kube.failed("delete-namespace", name=name, timeout="1s")
    admin.patch(f"{path}/configmaps/it", {"metadata": {"finalizers": None}})
    admin.wait_gone(path)


def test_a_namespace_that_may_not_be_deleted_stays_on_the_list(
    start: Starter, restricted: Path, admin: Client, namespace: str
) -> None:
    kube = start(restricted)
    with granted(admin, namespace, ["create", "get"], "namespaces"):
        name = kube.ok("create-namespace", prefix="live-kept")["namespace"]
        told = kube.failed("delete-generated-namespaces")
        assert 'cannot delete resource "namespaces"' in told
        assert f"{name}: " in told
        assert "stay on the list" in told
        with granted(admin, namespace, ["delete"], "namespaces"):
            assert kube.ok("delete-generated-namespaces")["namespaces"] == name


def test_a_namespace_that_is_going_is_not_in_the_way(kube: Kube, admin: Client) -> None:
    names = [kube.ok("create-namespace", prefix="live-several")["namespace"] for _ in range(3)]
    told = kube.failed("create", configmap())
    assert "several namespaces were created in this workdir" in told
    assert all(name in told for name in names)
    assert "no namespace was deleted" in kube.failed("delete-generated-namespaces")
    kube.ok("create", configmap(finalizers=[HOLD]), namespace=names[0])
    for name in names[:2]:
        admin.delete(f"{NAMESPACES}/{name}")
    admin.wait_gone(f"{NAMESPACES}/{names[1]}")
    assert kube.ok("create", configmap())["namespace"] == names[2]
    admin.patch(f"{NAMESPACES}/{names[0]}/configmaps/it", {"metadata": {"finalizers": None}})
    assert kube.ok("delete-generated-namespaces", wait=True, timeout=LONG)["namespaces"] == names[2]
    assert "was deleted" in kube.failed("create", configmap())


def test_pods_that_hold_a_namespace_are_told_and_end_sooner(kube: Kube, admin: Client) -> None:
    name = kube.ok("create-namespace", prefix="live-pods")["namespace"]
    admin.apply(pod(name="slow", terminationGracePeriodSeconds=1000, nodeName="nowhere"), name)  # no kubelet ends it
    told = kube.failed("delete-namespace", name=name, gracePeriod=700, timeout="2s")
    assert f"pods left in {name}: slow (grace period 700 s)" in told
    told = kube.failed("delete-generated-namespaces", gracePeriod=7, wait=True, timeout="2s")
    assert f"pods left in {name}: slow (grace period 7 s)" in told
    assert "`gracePeriod: 0` kills pods immediately" in told
    assert kube.ok("delete-generated-namespaces", gracePeriod=0, wait=True, timeout=LONG)["namespaces"] == name
    assert not admin.exists(f"{NAMESPACES}/{name}")
