"""`port-forward`, against an API server on loopback whose pods say what they hear."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi
    from tests.support.ports import NewPort

START = {"resource": "pod/web", "port": 80}


@pytest.fixture
def pod(api: FakeApi) -> FakeApi:
    ports = [{"name": "http", "containerPort": 8080}, {"name": "metrics", "containerPort": 9090}]
    spec = {"containers": [{"name": "main", "ports": ports}]}
    metadata = {"name": "web", "labels": {"app": "web"}}
    api.put("pods", {"metadata": metadata, "spec": spec, "status": {"phase": "Running"}})
    return api


def put_service(api: FakeApi, *ports: dict[str, object], **spec: object) -> None:
    api.put(
        "services", {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": list(ports)} | spec}
    )


def connected(port: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", int(port)), timeout=10)


def test_a_port_leads_to_that_of_a_pod(kube: Extension, pod: FakeApi) -> None:
    found = kube.ok("port-forward", START)
    assert found["address"] == f"127.0.0.1:{found['localPort']}"
    for text in (b"hello", b"again"):
        with connected(found["localPort"]) as connection:
            connection.sendall(text)
            assert connection.recv(100) == text
    assert {asked.query["ports"] for asked in pod.requests("GET", "/portforward")} == {"80"}


def test_a_port_that_was_stopped_leads_nowhere(kube: Extension, pod: FakeApi, new_port: NewPort) -> None:
    port = kube.ok("port-forward", START | {"localPort": new_port()})["localPort"]
    with connected(port) as connection:
        connection.sendall(b"x")
        assert connection.recv(100) == b"x"
        assert kube.ok("port-forward", {"action": "stop", "localPort": int(port)})["count"] == "1"
        assert connection.recv(100) == b""
    with pytest.raises(ConnectionRefusedError):
        connected(port)
    assert kube.ok("port-forward", {"action": "stop"})["count"] == "0"


def test_what_the_pod_refuses_is_told(kube: Extension, pod: FakeApi) -> None:
    port = kube.ok("port-forward", START | {"port": 81})["localPort"]
    with connected(port) as connection:
        assert connection.recv(100) == b""
    assert "connection refused" in kube.ok("port-forward", {"action": "stop"})["problems"]


def test_who_may_not_forward_ports_learns_it_at_once(kube: Extension, pod: FakeApi) -> None:
    pod.denied.add(("get", "pods"))
    told = kube.failed("port-forward", START)
    assert "you may not get pods/portforward" in told
    assert "in namespace default, found that it is denied (denied by the fake)" in told
    (asked,) = pod.requests("POST")
    assert asked.body["spec"]["resourceAttributes"]["name"] == "web"


def test_who_may_not_ask_may_forward_ports_all_the_same(kube: Extension, pod: FakeApi) -> None:
    pod.faults.append(Fault("POST", "/selfsubjectaccessreviews", status=403, reason="Forbidden"))
    with connected(kube.ok("port-forward", START)["localPort"]) as end:
        end.sendall(b"hello")
        assert end.recv(5) == b"hello"


def test_a_port_that_is_taken_is_told(kube: Extension, pod: FakeApi) -> None:
    port = int(kube.ok("port-forward", START)["localPort"])
    assert "Address already in use" in kube.failed("port-forward", START | {"localPort": port})


def test_a_pod_that_does_not_run_has_no_ports(kube: Extension, pod: FakeApi) -> None:
    pod.put("pods", {"metadata": {"name": "web"}, "status": {"phase": "Pending"}})
    assert "expected a running pod" in kube.failed("port-forward", START)
    assert "port is required" in kube.refused("port-forward", {"resource": "pod/web"})


def test_a_port_of_a_service_leads_to_that_of_a_pod_behind_it(kube: Extension, pod: FakeApi) -> None:
    put_service(
        pod,
        {"name": "web", "port": 80, "targetPort": "http"},
        {"name": "other", "port": 81, "targetPort": 8081},
        {"port": 82},
    )
    for wanted, port in ((80, "8080"), ("web", "8080"), (81, "8081"), ("other", "8081"), (82, "82")):
        found = kube.ok("port-forward", {"resource": "service/web", "port": wanted})
        assert (found["pod"], found["port"]) == ("web", port)
        assert found["message"] == f"Forwarding {found['address']} to port {port} of pod web"


def test_a_headless_service_translates_no_ports(kube: Extension, pod: FakeApi) -> None:
    put_service(pod, {"port": 80, "targetPort": 8080}, clusterIP="None")
    assert kube.ok("port-forward", {"resource": "svc/web", "port": 80})["port"] == "80"


def test_a_port_of_a_workload_may_have_a_name(kube: Extension, pod: FakeApi) -> None:
    selector = {"matchLabels": {"app": "web"}}
    pod.put("deployments", {"metadata": {"name": "web"}, "spec": {"selector": selector}})
    for resource in ("deploy/web", "pod/web"):
        assert kube.ok("port-forward", {"resource": resource, "port": "metrics"})["port"] == "9090"


def test_a_port_that_nothing_has_is_told_with_those_that_are_there(kube: Extension, pod: FakeApi) -> None:
    put_service(pod, {"name": "web", "port": 80}, {"port": 81})
    told = kube.failed("port-forward", {"resource": "svc/web", "port": 8080})
    assert "expected a port of Service/web: 80 (web), 81; found 8080" in told
    told = kube.failed("port-forward", {"resource": "pod/web", "port": "htp"})
    assert "expected a port of Pod/web: 8080 (http), 9090 (metrics); found 'htp'" in told


def test_a_client_that_has_sent_all_still_receives_the_response(kube: Extension, pod: FakeApi) -> None:
    port = kube.ok("port-forward", START)["localPort"]
    sent = b"x" * 200_000
    received = b""
    with connected(port) as connection:
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        while len(received) < len(sent) and (data := connection.recv(100_000)):
            received += data
    assert received == sent
