from __future__ import annotations

import pytest

from ext_kubernetes.pods import container_of, containers_of, preferred, selector_of
from ext_sdk import OperationFailed

Object = dict[str, object]


def pod(name: str, phase: str = "Running", *, ready: bool = True, deleted: bool = False) -> Object:
    metadata = {"name": name} | ({"deletionTimestamp": "2026-01-01T00:00:00Z"} if deleted else {})
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"metadata": metadata, "spec": {"nodeName": "n"}, "status": {"phase": phase, "conditions": conditions}}


def names(*pods: Object) -> str:
    return " ".join(str(item["metadata"]["name"]) for item in preferred(list(pods)))  # type: ignore[index]


def test_ready_pods_are_preferred() -> None:
    assert names(pod("a", ready=False), pod("b", "Pending"), pod("c")) == "c a b"


def test_deleted_pods_are_omitted_unless_all_others_have_ended() -> None:
    assert names(pod("a", deleted=True), pod("b")) == "b"
    assert names(pod("a", deleted=True), pod("b", "Succeeded")) == "a b"


@pytest.mark.parametrize(("selector", "text"), [
    ({"app": "web"}, "app=web"),
    ({"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "k", "operator": "In", "values": ["a", "b"]}]},
     "app=web,k in (a,b)"),
    ({"matchExpressions": [{"key": "k", "operator": "DoesNotExist"}]}, "!k"),
    ({}, ""),
])  # fmt: skip
def test_a_selector_is_written_as_for_queries(selector: Object, text: str) -> None:
    assert selector_of(selector) == text


def test_the_container_is_the_given_one_the_default_or_the_first() -> None:
    spec = {"containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}
    item: Object = {"metadata": {"name": "web"}, "spec": spec}
    assert containers_of(item) == ["a", "b", "i"]
    assert (container_of(item), container_of(item, "i")) == ("a", "i")
    default = {"kubectl.kubernetes.io/default-container": "b"}
    assert container_of(item | {"metadata": {"name": "web", "annotations": default}}) == "b"
    with pytest.raises(OperationFailed, match="has no container 'x'"):
        container_of(item, "x")
