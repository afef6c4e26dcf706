"""ext-kubernetes in pods of a real cluster: logs, jobs, commands."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from tests.live.kubernetes import LONG
from tests.live.manifests import IMAGE, pod, runs

if TYPE_CHECKING:
    from tests.live.cluster import Cluster
    from tests.live.kubernetes import Kube

pytestmark = pytest.mark.usefixtures("streams")


def test_logs_are_followed_until_a_text_appears(kube: Kube) -> None:
    kube.ok("create", pod(runs("echo first; echo second line; sleep 1000")))
    args = {"resource": "pod/it", "follow": True, "expect": {"contains": "second"}, "timeout": LONG}
    assert kube.ok("logs", args)["log"] == "first\nsecond line\n"
    assert kube.ok("logs", {"selector": "app=it", "tail": 1})["log"] == "second line\n"
    told = kube.failed("logs", {"resource": "pod/it", "previous": True})
    assert 'previous terminated container "main" in pod "it" not found' in told


def test_logs_end_with_the_container(kube: Kube) -> None:
    kube.ok("create", pod(runs("echo done; exit 0"), restartPolicy="Never"))
    assert kube.ok("logs", {"resource": "pod/it", "follow": True, "timeout": LONG})["log"] == "done\n"
    told = kube.failed("logs", {"resource": "pod/it", "follow": True, "expect": {"contains": "more"}})
    assert "the containers have ended" in told


def test_a_job_runs_to_its_end_or_to_its_failure(kube: Kube) -> None:
    args = {"image": IMAGE, "command": ["sh", "-c", "echo it ran; exit 0"], "timeout": LONG, "cleanup": True}
    found = kube.ok("run-job", args)
    assert (found["log"], found["exitCode"]) == ("it ran\n", "0")
    assert kube.ok("get", {"resource": f"job/{found['name']}", "ignoreNotFound": True})["found"] == "false"
    failing = args | {"command": ["sh", "-c", "echo it ran; exit 3"], "expect": {"exitCode": 3, "log": "it ran"}}
    assert kube.ok("run-job", failing)["succeeded"] == "false"


def test_a_command_runs_in_a_container(kube: Kube) -> None:
    kube.ok("create", pod())
    kube.ok("wait", {"resource": "pod/it", "for": "ready", "timeout": LONG})
    script = "read line; echo $line; echo aside >&2; exit 3"
    wanted = {"exitCode": 3, "stdout": "told", "stderr": "aside"}
    kube.ok("exec", {"resource": "pod/it", "script": script, "stdin": "told\n", "expect": wanted})
    kube.ok("exec", {"resource": "pod/it", "command": ["cat"], "stdin": "x" * 200_000, "timeout": LONG})
    assert "no-such-program" in kube.failed("exec", {"resource": "pod/it", "command": ["no-such-program"]})


def test_files_go_into_a_container_and_come_back(kube: Kube) -> None:
    kube.ok("create", pod())
    kube.ok("wait", {"resource": "pod/it", "for": "ready", "timeout": LONG})
    where = kube.ok("exec", {"resource": "pod/it", "script": "pwd"})["stdout"].strip()
    (kube.workdir / "there").write_bytes(bytes(range(256)) * 1000)
    way = {"resource": "pod/it", "remote": f"{where.rstrip('/')}/copied"}
    kube.ok("copy", way | {"direction": "toContainer", "local": "there"})
    kube.ok("copy", way | {"direction": "fromContainer", "local": "back"})
    assert (kube.workdir / "back").read_bytes() == (kube.workdir / "there").read_bytes()


def test_a_port_leads_into_a_pod(kube: Kube, cluster: Cluster) -> None:
    if cluster.kubelets:
        pytest.skip("the ports of these pods are their own")
    with socket.create_server(("127.0.0.1", 0)) as server:
        kube.ok("create", pod())
        kube.ok("wait", {"resource": "pod/it", "for": "ready", "timeout": LONG})
        port = server.getsockname()[1]  # a pod's ports are this machine's on the control plane of tests/live
        local = int(kube.ok("port-forward", {"resource": "pod/it", "port": port})["localPort"])
        server.settimeout(20)
        with socket.create_connection(("127.0.0.1", local), timeout=20) as ours, server.accept()[0] as theirs:
            ours.sendall(b"there")
            assert theirs.recv(100) == b"there"
            theirs.sendall(b"back")
            assert ours.recv(100) == b"back"
