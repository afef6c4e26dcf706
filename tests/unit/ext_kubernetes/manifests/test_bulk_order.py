"""The order in which the objects of a manifest are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ext_kubernetes.manifests.bulk import WAVES, apply_batches, apply_wave
from tests.support.fake_kubernetes import KINDS

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi


def sent(*names: str) -> list[list[str]]:
    return [[names[index] for index in batch] for batch in apply_batches(names)]


def test_what_pods_need_goes_before_them() -> None:
    assert sent("pods", "configmaps", "serviceaccounts", "namespaces") == [
        ["namespaces"],
        ["serviceaccounts"],
        ["configmaps"],
        ["pods"],
    ]


def test_roles_go_before_what_binds_them() -> None:
    group = "rbac.authorization.k8s.io"
    assert sent(f"rolebindings.{group}", f"roles.{group}") == [[f"roles.{group}"], [f"rolebindings.{group}"]]


def test_objects_of_one_wave_go_at_once_whatever_stands_between_them() -> None:
    assert sent("configmaps", "pods", "secrets", "configmaps") == [["configmaps", "secrets", "configmaps"], ["pods"]]


def test_what_has_no_wave_goes_as_it_was_written_and_neighbours_of_a_kind_at_once() -> None:
    assert sent("tasks.x.dev", "tasks.x.dev", "runs.x.dev", "tasks.x.dev") == [
        ["tasks.x.dev", "tasks.x.dev"],
        ["runs.x.dev"],
        ["tasks.x.dev"],
    ]


def test_a_kind_of_another_group_has_no_wave() -> None:
    assert apply_wave("services") < len(WAVES)
    assert apply_wave("services.serving.knative.dev") == len(WAVES)


def test_nothing_is_sent_for_nothing() -> None:
    assert sent() == []


def test_the_server_is_asked_for_a_pod_when_it_has_its_account(kube: Extension, api: FakeApi) -> None:
    names = {"Pod": "pods", "ConfigMap": "configmaps", "ServiceAccount": "serviceaccounts", "Namespace": "namespaces"}
    assert names.items() <= {kind.kind: kind.plural for kind in KINDS}.items()
    manifest = [{"apiVersion": "v1", "kind": kind, "metadata": {"name": "it"}, "spec": {}} for kind in names]
    for operation, method in (("apply", "PATCH"), ("replace", "PUT")):
        api.asked.clear()
        resources = kube.ok(operation, {"manifest": manifest})["resources"]
        assert [line.split("/")[0] for line in resources.splitlines()] == list(names)  # as they were written
        asked = [one.path.split("/")[-2] for one in api.requests(method)]
        assert asked == ["namespaces", "serviceaccounts", "configmaps", "pods"]
