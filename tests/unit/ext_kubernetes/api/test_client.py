"""Requests: timeouts, retries, and what is said when there is no answer."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING

import pytest

from ext_kubernetes.api.client import Health, counts, pause_before
from ext_kubernetes.api.connection import TransportError
from ext_kubernetes.api.errors import api_error
from tests.support.fake_kubernetes import FakeApi, Fault

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.ext_kubernetes import Extension, Starter
    from tests.support.ports import NewPort

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
    assert "check its spelling" in told
    assert len(api.requests("PATCH")) == 1


def test_the_server_may_ask_to_wait(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    api.faults.append(Fault("POST", status=429, reason="TooManyRequests", headers=(("Retry-After", "1"),)))
    kube.ok("create", OBJECT)
    assert len(api.requests("POST")) == 2


def test_a_server_may_ask_to_wait_again_and_again(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    headers = (("Retry-After", "0"),)
    api.faults.append(Fault("POST", status=429, times=6, reason="TooManyRequests", headers=headers))
    kube.ok("create", OBJECT)
    assert len(api.requests("POST")) == 7


@pytest.mark.parametrize("seconds", [8, 24])
def test_what_a_server_asks_to_wait_is_waited_for(seconds: int) -> None:
    error = api_error(429, {}, retry_after=float(seconds))
    assert pause_before(error, "POST", 0.05) == seconds
    assert not counts(error)


def test_apply_of_many_goes_on_after_the_wait(kube: Extension, api: FakeApi) -> None:
    many = [OBJECT | {"metadata": {"name": f"many-{number}"}} for number in range(20)]
    headers = (("Retry-After", "1"),)
    api.faults.append(Fault("PATCH", status=429, times=12, reason="TooManyRequests", headers=headers))
    manifest = {"apiVersion": "v1", "kind": "List", "items": many}
    assert "20 objects" in kube.ok("apply", {"manifest": manifest})["message"]


@pytest.mark.parametrize(("status", "reason"), [(401, "Unauthorized"), (403, "Forbidden")])
def test_what_a_server_refuses_while_it_comes_back_is_asked_again(
    kube: Extension, api: FakeApi, status: int, reason: str
) -> None:
    kube.ok("get", GET)
    api.faults += [
        Fault("GET", "/namespaces/default", status=503),
        Fault("GET", "/namespaces/default", times=7, status=status, reason=reason),
    ]
    kube.ok("get", GET)
    assert not api.faults


def test_a_refusal_of_a_server_without_troubles_is_final(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    api.faults.append(Fault("GET", "/namespaces/default", times=9, status=403, reason="Forbidden"))
    kube.failed("get", GET)
    assert len(api.requests("GET", "/namespaces/default")) == 2


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
    assert f"API server {api.address}" in told
    assert "Connection refused" in told
    assert "it last responded" in told


def test_a_server_that_does_not_answer_is_waited_for_until_the_deadline(start: Starter, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, FakeApi() as api:
        kubeconfig = api.kubeconfig(tmp_path / "kubeconfig")
        kubeconfig.write_text(
            kubeconfig.read_text().replace(api.address, f"http://127.0.0.1:{silent.getsockname()[1]}")
        )
        told = start(kubeconfig).failed("get", GET | {"timeout": "300ms"})
    assert "connected, but no response in time" in told


def test_the_time_that_a_server_was_tried_for_is_that_of_the_call() -> None:
    health = Health()
    problem = TransportError("Connection refused", sent=False)
    health.unreachable(problem, "http://server", 0.0)
    health._failing_since = time.monotonic() - 105.3
    assert "tried for 0.1 s" in health.unreachable(problem, "http://server", 0.1).error
    assert "tried for 105.3 s" in health.unreachable(problem, "http://server", 200.0).error


def test_a_response_that_does_not_end_in_time_is_not_taken_for_a_server_that_is_away(
    kube: Extension, api: FakeApi
) -> None:
    api.faults.append(Fault("GET", "/namespaces/default", status=200, body=b"{", headers=(("Content-Length", "9"),)))
    told = kube.failed("get", GET | {"timeout": "300ms"})
    assert "incomplete response from the API server" in told
    assert "request less (`tail`, `since`, `selector`), or increase `timeout`" in told
    assert "Check that the cluster is running" not in told


def test_a_redirect_is_told_with_where_it_leads(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    to = (("Location", "https://ada:secret@login.example/start?token=sesame"),)
    api.faults.append(Fault("GET", "/namespaces/default", status=302, body=b"", headers=to))
    told = kube.failed("get", GET)
    assert "got a redirect to https://login.example/start, which is not followed" in told
    assert "sesame" not in told


def test_an_answer_without_a_body_is_told(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    api.faults.append(Fault("GET", "/namespaces/default", status=200, body=b""))
    assert "found nothing" in kube.failed("get", GET)


def test_an_answer_that_is_no_json_is_told(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    api.faults.append(Fault(status=200, body=b"<html>a proxy</html>"))
    assert "expected a JSON object in the response to GET http://" in kube.failed("get", GET)


def test_a_failure_is_not_read_to_its_end(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    length = 2**40
    api.faults.append(Fault(status=418, body=b"short and stout" * 100_000, headers=(("Content-Length", str(length)),)))
    assert "short and stout" in kube.failed("get", GET)


def test_kinds_are_asked_for_once(kube: Extension, api: FakeApi) -> None:
    kube.ok("get", GET)
    kube.ok("get", GET)
    assert [asked.path for asked in api.asked] == ["/api", *["/api/v1/namespaces/default"] * 2]


def test_numbers_are_exact(kube: Extension, api: FakeApi) -> None:
    api.put("configmaps", {"metadata": {"name": "numbers"}, "spec": {"big": 12345678901234567890123, "one": 1.0}})
    outputs = {"big": "$.spec.big", "one": "{.spec.one}"}
    found = kube.ok("get", {"resource": "cm/numbers", "outputs": outputs})
    assert (found["big"], found["one"]) == ("12345678901234567890123", "1.0")
