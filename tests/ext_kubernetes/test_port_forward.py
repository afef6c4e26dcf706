"""`port-forward`, against an API server on loopback whose pods say what they hear."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.ext_kubernetes.conftest import Extension
    from tests.ext_kubernetes.fake_api import FakeApi

START = {"resource": "pod/web", "port": 80}


@pytest.fixture
def pod(api: FakeApi) -> FakeApi:
    spec = {"containers": [{"name": "main"}]}
    api.put("pods", {"metadata": {"name": "web"}, "spec": spec, "status": {"phase": "Running"}})
    return api


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


def test_a_port_that_was_stopped_leads_nowhere(kube: Extension, pod: FakeApi) -> None:
    port = kube.ok("port-forward", START)["localPort"]
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


def test_a_port_that_is_taken_is_told(kube: Extension, pod: FakeApi) -> None:
    port = int(kube.ok("port-forward", START)["localPort"])
    assert "Address already in use" in kube.failed("port-forward", START | {"localPort": port})


def test_a_pod_that_does_not_run_has_no_ports(kube: Extension, pod: FakeApi) -> None:
    pod.put("pods", {"metadata": {"name": "web"}, "status": {"phase": "Pending"}})
    assert "expected a running pod" in kube.failed("port-forward", START)
    assert "expected `port`" in kube.refused("port-forward", {"resource": "pod/web"})
