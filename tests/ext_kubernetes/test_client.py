"""Requests: timeouts, retries, and what is said when there is no answer."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.ext_kubernetes.fake_api import FakeApi, Fault

if TYPE_CHECKING:
    from pathlib import Path

    from tests.ext_kubernetes.conftest import Extension, Starter
    from tests.ports import NewPort

GET = {"resource": "ns/default"}
OBJECT = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}


def test_requests_say_who_asks(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    assert all(asked.headers["user-agent"].startswith("ext-kubernetes/") for asked in api.asked)


@pytest.mark.parametrize("fault", [Fault(status=503), Fault(status=500), Fault(status=0)])
def test_a_request_that_fails_for_a_moment_is_sent_again(kube: Extension, api: FakeApi, fault: Fault) -> None:
    kube.ok("get", GET)
    api.faults.append(fault._replace(method="GET", path="/namespaces/default", times=2))
    kube.ok("get", GET)
    assert not api.faults


def test_a_request_is_not_sent_for_ever(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    api.asked.clear()
    api.faults.append(Fault(path="/namespaces/default", times=1000))
    assert "a fault on demand" in kube.failed("get", GET)
    assert len(api.requests("GET", "/namespaces/default")) == 5


def test_an_undeclared_field_is_not_tried_again(kube: Extension, api: FakeApi) -> None:
    api.faults.append(Fault("PATCH", "/configmaps/", message=".spec.replica: field not declared in schema", times=9))
    told = kube.failed("apply", {"manifest": OBJECT})
    assert ".spec.replica: field not declared in schema" in told
    assert "check how it is spelled" in told
    assert len(api.requests("PATCH")) == 1


def test_the_server_may_ask_to_wait(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    api.faults.append(Fault("POST", status=429, reason="TooManyRequests", headers=(("Retry-After", "1"),)))
    kube.ok("create", OBJECT)
    assert len(api.requests("POST")) == 2


def test_to_wait_longer_than_there_is_time_is_a_failure_at_once(kube: Extension, api: FakeApi) -> None:
    api.faults.append(Fault("POST", status=429, reason="TooManyRequests", headers=(("Retry-After", "3600"),)))
    assert "TooManyRequests" in kube.failed("create", OBJECT)
    assert len(api.requests("POST")) == 1


def test_a_creation_that_may_have_arrived_is_not_sent_again(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    api.faults.append(Fault("POST", status=0, times=9))
    assert "the request may have been carried out" in kube.failed("create", OBJECT)
    assert len(api.requests("POST")) == 1


def test_a_server_that_is_not_there_is_told_with_its_address(start: Starter, tmp_path: Path, new_port: NewPort) -> None:
    with FakeApi(new_port()) as api:
        kube = start(api.kubeconfig(tmp_path / "kubeconfig"))
        kube.ok("get", GET)
    told = kube.failed("get", GET)
    assert f"no answer from the API server at {api.address}" in told
    assert "Connection refused" in told
    assert "it last answered" in told


def test_a_server_that_does_not_answer_is_waited_for_until_the_deadline(start: Starter, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, FakeApi() as api:
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
        kubeconfig.write_text(
            kubeconfig.read_text().replace(api.address, f"http://127.0.0.1:{silent.getsockname()[1]}")
        )
        told = start(kubeconfig).failed("get", GET | {"timeout": "300ms"})
    assert "connected, but no answer in time" in told


def test_an_answer_that_is_no_json_is_told(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    api.faults.append(Fault(status=200, body=b"<html>a proxy</html>"))
    assert "expected a JSON object in answer to GET http://" in kube.failed("get", GET)


def test_a_failure_is_not_read_to_its_end(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    length = 2**40
    api.faults.append(Fault(status=418, body=b"short and stout" * 100_000, headers=(("Content-Length", str(length)),)))
    assert "short and stout" in kube.failed("get", GET)


def test_kinds_are_asked_for_once(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    kube.ok("get", GET)
    assert [asked.path for asked in api.asked] == ["/api", "/apis", *["/api/v1/namespaces/default"] * 2]


def test_numbers_are_exact(kube: Extension, api: FakeApi) -> None:
    api.put("configmaps", {"metadata": {"name": "numbers"}, "spec": {"big": 12345678901234567890123, "one": 1.0}})
    outputs = {"big": "$.spec.big", "one": "{.spec.one}"}
    found = kube.ok("get", {"resource": "cm/numbers", "outputs": outputs})
    assert (found["big"], found["one"]) == ("12345678901234567890123", "1.0")
