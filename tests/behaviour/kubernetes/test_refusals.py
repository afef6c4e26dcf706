"""`expect.failure`: the API server must refuse an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

FORBIDDEN = {"expect": {"failure": "forbidden"}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "it"}, "spec": {"containers": [{"name": "main"}]}}
CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}


def refuse(api: FakeApi, message: str = 'User "ada" cannot do it', times: int = 1, path: str = "/namespaces/") -> None:
    api.faults.append(Fault(path=path, times=times, status=403, reason="Forbidden", message=message))


@pytest.mark.parametrize(
    ("operation", "args"),
    [
        ("get", {"resource": "pod/it"}),
        ("patch", {"resource": "pod/it", "patch": {"a": 1}, "dryRun": True}),
        ("delete", {"resource": "pods", "selector": "app=it"}),
        ("label", {"resource": "pod/it", "labels": {"a": "b"}}),
        ("scale", {"resource": "deploy/it", "replicas": 1}),
        ("rollout", {"resource": "deploy/it", "action": "restart"}),
        ("apply", {"manifest": CONFIG}),
        ("create", CONFIG),
        ("create-secret", {"name": "it", "literals": {"a": "b"}}),
        ("exec", {"resource": "pod/it", "command": ["true"]}),
        ("logs", {"resource": "pod/it"}),
        ("logs", {"resource": "pod/it", "follow": True}),
        ("copy", {"resource": "pod/it", "direction": "fromContainer", "local": "a", "remote": "/a"}),
        ("port-forward", {"resource": "pod/it", "port": 80}),
        ("run-job", {"image": "busybox", "name": "it"}),
        ("create-token", {"serviceAccount": "it"}),
        ("create-namespace", {"name": "new"}),
        ("cordon", {"node": "it"}),
    ],
)
def test_an_operation_that_is_refused_succeeds(
    kube: Extension, api: FakeApi, operation: str, args: dict[str, object]
) -> None:
    api.put("pods", POD | {"status": {"phase": "Running"}})
    refuse(api, path="/api.*/v1/", times=3)
    outputs = kube.ok(operation, args | FORBIDDEN)
    assert outputs["failure"] == "forbidden"
    assert outputs["message"].startswith("Refused as expected: ")
    assert outputs["message"].endswith('User "ada" cannot do it')
    api.faults.clear()


@pytest.mark.parametrize(
    ("operation", "args"),
    [("get", {"resource": "pod/it"}), ("logs", {"resource": "pod/it", "follow": True}), ("create", CONFIG)],
)
def test_an_operation_that_is_not_refused_fails(
    kube: Extension, api: FakeApi, operation: str, args: dict[str, object]
) -> None:
    api.put("pods", POD | {"status": {"phase": "Running"}})
    api.logs["it/main"] = "a line"
    told = kube.failed(operation, args | FORBIDDEN)
    assert "the API server did not refuse it as forbidden\nfailure: expected to be forbidden, got success: " in told


def test_another_failure_is_not_a_refusal(kube: Extension) -> None:
    told = kube.failed("get", {"resource": "pod/it", **FORBIDDEN})
    assert 'failure: expected to be forbidden, got another failure: pods "it" not found (404 NotFound)' in told
    told = kube.failed("get", {"resource": "pod/it", **FORBIDDEN}, env={"KUBECONFIG": "/nowhere"})
    assert "failure: expected to be forbidden\n  got another failure: no kubeconfig at /nowhere" in told


def test_refusals_are_distinguished(kube: Extension, api: FakeApi) -> None:
    kube.ok("create", CONFIG)
    assert kube.ok("create", CONFIG | {"expect": {"failure": "conflict"}})["failure"] == "conflict"
    told = kube.failed("create", CONFIG | {"expect": {"failure": "invalid"}})
    assert "failure: expected to be invalid\n  got conflict: " in told
    api.faults.append(Fault("PATCH", status=422, reason="Invalid", message="replicas must be few"))
    patch = {"resource": "cm/one", "patch": {"data": {"a": "b"}}, "expect": {"failure": "invalid"}}
    assert "replicas must be few" in kube.ok("patch", patch)["message"]


def test_all_objects_must_be_refused(kube: Extension, api: FakeApi) -> None:
    several = {"manifest": [CONFIG, CONFIG | {"metadata": {"name": "two"}}], **FORBIDDEN}
    refuse(api, path="/configmaps/two", times=2)
    assert "failure: expected to be forbidden, got success of other objects" in kube.failed("apply", several)
    refuse(api, times=4, path="/configmaps/")
    assert kube.ok("apply", several)["failure"] == "forbidden"
    api.faults.clear()
    api.put("configmaps", {"metadata": {"name": "two"}})
    refuse(api, path="/configmaps/two")
    labels = {"resource": "cm", "all": True, "labels": {"a": "b"}, **FORBIDDEN}
    assert "got success of other objects" in kube.failed("label", labels)


def test_a_refusal_because_of_the_test_itself_does_not_count(kube: Extension, api: FakeApi) -> None:
    pod = {"resource": "pod/it", **FORBIDDEN}
    refuse(api, 'users "eve" is forbidden: User "ada" cannot impersonate resource "users" in API group ""')
    assert "got another failure: users" in kube.failed("get", pod | {"asUser": "eve"})
    anonymous = 'pods "it" is forbidden: User "system:anonymous" cannot get resource "pods"'
    refuse(api, anonymous)
    assert "No credentials were sent" in kube.failed("get", pod)
    refuse(api, anonymous)
    kube.ok("get", pod | {"asUser": "system:anonymous"})


def test_a_refusal_of_what_does_not_exist_does_not_count(kube: Extension, api: FakeApi) -> None:
    pods = {"resource": "pods", "asUser": "system:serviceaccount:default:reader", **FORBIDDEN}
    review = {"verb": "get", "resource": "pods", "as": pods["asUser"], "expect": {"allowed": False}}
    api.denied.add(("get", "pods"))
    refuse(api)
    told = kube.failed("get", pods)
    assert "failure: expected to be forbidden" in told
    assert "that proves nothing: service account default/reader does not exist" in told
    assert "service account default/reader does not exist" in kube.failed("auth-can-i", review)
    api.put("serviceaccounts", {"metadata": {"name": "reader"}})
    refuse(api)
    kube.ok("get", pods)
    (read,) = api.requests("GET", "/serviceaccounts/reader")[-1:]
    assert "impersonate-user" not in read.headers
    kube.ok("auth-can-i", review)
    refuse(api)
    assert "namespace nope does not exist" in kube.failed("get", pods | {"namespace": "nope"})
    assert "namespace nope does not exist" in kube.failed("auth-can-i", review | {"namespace": "nope"})
    refuse(api)
    assert "expected system:serviceaccount:NAMESPACE:NAME" in kube.failed(
        "get", pods | {"asUser": "system:serviceaccount:reader"}
    )
    agent = {"kubeconfig": str(kube.workdir / "agent"), "resource": "pods", "namespace": "nope", **FORBIDDEN}
    api.kubeconfig(kube.workdir / "agent", token="of-the-agent")
    refuse(api)
    assert "namespace nope does not exist" in kube.failed("get", agent)
    assert "authorization" not in api.asked[-1].headers  # of your own user, not of the agent


def test_a_refusal_excludes_other_expectations(kube: Extension) -> None:
    expect = {"failure": "forbidden", "stdout": "x"}
    told = kube.failed("exec", {"resource": "pod/it", "command": ["true"], "expect": expect})
    assert "`failure` expects a refusal, so it excludes stdout" in told
    told = kube.failed("logs", {"resource": "pod/it", "expect": {"failure": "forbidden", "contains": "x"}})
    assert "`failure` expects a refusal, so it excludes contains" in told
