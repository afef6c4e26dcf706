"""ext-kubernetes and real kubelets: what runs in containers, and what comes out of them."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.live.client import held_back
from tests.live.kubernetes import LONG
from tests.live.manifests import configmap, deployment, pod, runs

if TYPE_CHECKING:
    from tests.live.client import Client
    from tests.live.kubernetes import Kube

pytestmark = pytest.mark.usefixtures("kubelets")
READY = {"for": "ready", "timeout": LONG}
PORT = 8080
SERVER = runs(f"mkdir -p /tmp/www; echo hello from $HOSTNAME >/tmp/www/index.html; exec httpd -f -p {PORT} -h /tmp/www")
SERVICE = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": "it"},
    "spec": {"selector": {"app": "it"}, "ports": [{"name": "web", "port": 80, "targetPort": PORT}]},
}


def read(port: str) -> str:
    """What the server behind a local port says."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=20) as answer:
        return str(answer.read().decode())


def test_a_port_leads_to_a_server_in_a_pod(kube: Kube) -> None:
    kube.ok("create", pod(SERVER))
    kube.ok("wait", READY, resource="pod/it")
    port = kube.ok("port-forward", resource="pod/it", port=PORT)["localPort"]
    assert [read(port) for _ in range(3)] == ["hello from it\n"] * 3
    assert kube.ok("port-forward", action="stop", localPort=int(port))["count"] == "1"
    with pytest.raises(urllib.error.URLError, match="Connection refused"):
        read(port)


def test_a_port_of_a_service_leads_to_one_of_its_pods(kube: Kube) -> None:
    kube.ok("apply", manifest=[deployment(SERVER), SERVICE], wait=True, timeout=LONG)
    port = kube.ok("port-forward", resource="service/it", port=80)["localPort"]
    assert read(port).startswith("hello from it-")


def test_a_port_where_nobody_listens_is_told(kube: Kube) -> None:
    kube.ok("create", pod(runs("sleep 1000")))
    kube.ok("wait", READY, resource="pod/it")
    port = kube.ok("port-forward", resource="pod/it", port=1)["localPort"]
    with pytest.raises(OSError):  # noqa: PT011  (closed, reset, or empty: whatever the kernel makes of it)
        read(port)
    assert "refused" in kube.ok("port-forward", action="stop")["problems"]


def test_a_command_sees_the_container_that_it_runs_in(kube: Kube) -> None:
    kube.ok("apply", manifest=configmap(data={"colour": "blue"}))
    env = [{"name": "COLOUR", "valueFrom": {"configMapKeyRef": {"name": "it", "key": "colour"}}}]
    kube.ok("apply", manifest=deployment(runs("sleep 1000") | {"env": env}), wait=True, timeout=LONG)
    found = kube.ok(
        "exec", resource="deploy/it", script="echo $COLOUR $HOSTNAME", expect={"stdout": {"contains": "blue"}}
    )
    assert found["stdout"].split() == ["blue", found["pod"]]


def test_directories_go_into_a_container_and_come_back(kube: Kube) -> None:
    kube.ok("create", pod(runs("sleep 1000")))
    kube.ok("wait", READY, resource="pod/it")
    there = kube.workdir / "there"
    (there / "inner").mkdir(parents=True)
    (there / "inner" / "bytes").write_bytes(bytes(range(256)) * 4000)
    (there / "script").write_text("#!/bin/sh\necho it runs\n")
    (there / "script").chmod(0o755)
    way = {"resource": "pod/it", "remote": "/tmp/copied"}
    assert kube.ok("copy", way, direction="toContainer", local="there")["files"] == "2"
    assert kube.ok("exec", resource="pod/it", command=["/tmp/copied/script"])["stdout"] == "it runs\n"
    kube.ok("copy", way, direction="fromContainer", local="back")
    assert (kube.workdir / "back" / "inner" / "bytes").read_bytes() == bytes(range(256)) * 4000


def test_a_crash_loop_tells_what_it_said_last(kube: Kube, admin: Client, namespace: str) -> None:
    path = admin.apply(pod(runs("echo no database; exit 3")), namespace)
    admin.wait_for(path, lambda it: held_back(it) == "CrashLoopBackOff", timeout=60)
    told = kube.failed("wait", READY, resource="pod/it")
    assert "CrashLoopBackOff" in told
    assert "exit code 3" in told
    assert kube.ok("logs", resource="pod/it", previous=True)["log"] == "no database\n"


def test_an_image_that_is_not_there_fails_early(kube: Kube) -> None:
    missing = runs("sleep 1000") | {"image": "busybox:no-such-tag", "imagePullPolicy": "Never"}
    kube.ok("create", pod(missing))
    told = kube.failed("wait", READY, resource="pod/it")
    assert "gave up early" in told
    assert "ErrImageNeverPull" in told


def test_a_deletion_waits_for_containers_to_end(kube: Kube, admin: Client, namespace: str) -> None:
    slow = pod(runs("trap 'sleep 2; exit 0' TERM; while true; do sleep 0.1; done"))
    slow["spec"]["terminationGracePeriodSeconds"] = 20
    path = admin.apply(slow, namespace)
    kube.ok("wait", READY, resource="pod/it")
    kube.ok("delete", resource="pod/it", timeout=LONG)
    assert not admin.exists(path)
