"""`exec`, against an API server on loopback that speaks its websocket protocol."""

from __future__ import annotations

import itertools
import json
import socket
import threading
from typing import TYPE_CHECKING

import pytest
import trustme

from tests.support.fake_kubernetes import FakeApi, Fault

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.ext_kubernetes import Extension, Starter

STDOUT, STDERR, STATUS = 1, 2, 3
SUCCESS = (STATUS, b'{"metadata":{},"status":"Success"}')
Answer = list[tuple[int, bytes]]


def exit_code(code: int) -> tuple[int, bytes]:
    causes = [{"reason": "ExitCode", "message": str(code)}]
    status = {"status": "Failure", "reason": "NonZeroExitCode", "details": {"causes": causes}}
    return STATUS, json.dumps(status).encode()


def always(*answer: tuple[int, bytes]) -> Callable[[bytes], Answer]:
    return lambda _: list(answer)


@pytest.fixture
def pod(api: FakeApi) -> FakeApi:
    for name, phase in (("web-1", "Pending"), ("web-2", "Running")):
        metadata = {"name": name, "labels": {"app": "web"}}
        spec = {"containers": [{"name": "main"}, {"name": "side"}]}
        api.put("pods", {"metadata": metadata, "spec": spec, "status": {"phase": phase}})
    return api


def test_a_command_runs_in_a_container(kube: Extension, pod: FakeApi) -> None:
    pod.commands["echo"] = always((STDOUT, b""), (STDOUT, b"one "), (STDERR, b"aside"), (STDOUT, b"two"), SUCCESS)
    found = kube.ok("exec", {"resource": "pod/web-2", "command": ["echo", "x"]})
    assert (found["stdout"], found["stderr"], found["exitCode"]) == ("one two", "aside", "0")
    assert (found["pod"], found["container"]) == ("web-2", "main")
    (asked,) = pod.requests("GET", "/exec")
    assert asked.query.items() >= {"container": "main", "stdout": "true", "stderr": "true", "command": "x"}.items()
    assert "stdin" not in asked.query


def test_a_token_goes_with_a_command_too(start: Starter, pod: FakeApi, tmp_path: Path) -> None:
    pod.token = "sesame"
    pod.commands["true"] = always(SUCCESS)
    kube = start(pod.kubeconfig(tmp_path / "kubeconfig", token="sesame"))
    kube.ok("exec", {"resource": "pod/web-2", "command": ["true"]})


def test_another_exit_code_is_a_failure_unless_it_is_expected(kube: Extension, pod: FakeApi) -> None:
    pod.commands["false"] = always((STDERR, b"no\n"), exit_code(3))
    told = kube.failed("exec", {"resource": "pod/web-2", "command": ["false"]})
    assert "exitCode: expected" in told
    assert "stderr ends with: no" in told
    wanted = {"exitCode": 3, "stderr": "no", "stdout": {"empty": True}}
    assert (
        "3 checks passed"
        in kube.ok("exec", {"resource": "pod/web-2", "command": ["false"], "expect": wanted})["message"]
    )


def test_a_script_is_for_the_shell_and_reads_its_input_to_the_end(kube: Extension, pod: FakeApi) -> None:
    pod.commands["sh"] = lambda stdin: [(STDOUT, str(len(stdin)).encode()), SUCCESS]
    args = {"resource": "pod/web-2", "script": "wc -c", "stdin": "x" * 100_000, "expect": {"stdout": "100000"}}
    kube.ok("exec", args)


def test_one_of_the_running_pods_is_taken(kube: Extension, pod: FakeApi) -> None:
    pod.commands["true"] = always(SUCCESS)
    pod.put("services", {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}})
    for args in ({"resource": "svc/web"}, {"selector": "app=web"}):
        assert kube.ok("exec", {"command": ["true"]} | args)["pod"] == "web-2"
    told = kube.failed("exec", {"resource": "pod/web-1", "command": ["true"]})
    assert "expected a running pod of pod/web-1 in namespace default, found web-1 is Pending" in told


def test_a_command_that_cannot_be_started_is_told(kube: Extension, pod: FakeApi) -> None:
    text = 'exec: "nothing": executable file not found in $PATH'
    status = {"status": "Failure", "reason": "InternalError", "message": text}
    pod.commands["nothing"] = always((STATUS, json.dumps(status).encode()))
    assert text in kube.failed("exec", {"resource": "pod/web-2", "command": ["nothing"]})


def test_a_connection_that_ends_without_a_status_is_no_success(kube: Extension, pod: FakeApi) -> None:
    pod.commands["cut"] = always((STDOUT, b"half"))
    result = kube.result("exec", {"resource": "pod/web-2", "command": ["cut"]})
    assert result["success"] is False
    assert "closed without a status" in str(result["error"])
    assert result["outputs"] == {"pod": "web-2", "container": "main", "stdout": "half", "stderr": ""}


def test_at_the_deadline_the_connection_is_ended(kube: Extension, pod: FakeApi) -> None:
    over = threading.Event()

    def hang(stdin: bytes) -> Answer:
        over.wait(60)
        return []

    pod.commands["sleep"] = hang
    told = kube.failed("exec", {"resource": "pod/web-2", "command": ["sleep"], "timeout": "2s"})
    over.set()
    assert "it did not exit within 2s, and may still run" in told


def test_who_may_not_do_it_is_told(kube: Extension, pod: FakeApi) -> None:
    text = 'pods "web-2" is forbidden: User "ada" cannot create resource "pods/exec"'
    pod.faults.append(Fault("GET", "/exec$", status=403, reason="Forbidden", message=text))
    assert text in kube.failed("exec", {"resource": "pod/web-2", "command": ["true"]})


def test_it_is_a_command_or_a_script(kube: Extension) -> None:
    assert "expected one of command and script" in kube.refused("exec", {"resource": "pod/web-2"})


def put_pod(api: FakeApi, name: str, phase: str = "Running", **more: str | int) -> None:
    """Store a pod of app=shop; `ready` since when, `restarts`, `node`, `deleted`, `created`."""
    metadata: dict[str, object] = {"name": name, "labels": {"app": "shop"}}
    metadata["creationTimestamp"] = more.get("created", "2026-01-01T00:00:00Z")
    metadata |= {"deletionTimestamp": more["deleted"]} if "deleted" in more else {}
    ready = {"type": "Ready", "status": "True" if "ready" in more else "False"}
    ready |= {"lastTransitionTime": str(more["ready"])} if "ready" in more else {}
    spec = {"containers": [{"name": "main"}], "nodeName": more.get("node", "n1")}
    statuses = [{"name": "main", "restartCount": more.get("restarts", 0)}]
    status = {"phase": phase, "conditions": [ready], "containerStatuses": statuses}
    api.put("pods", {"metadata": metadata, "spec": spec, "status": status})


EARLY, LATE = "2026-01-01T00:00:10Z", "2026-01-01T00:00:20Z"
# Each begins with the pod that is to be chosen; its name sorts last.
CHOICES: dict[str, list[tuple[str, dict[str, str | int]]]] = {
    "running": [("Running", {}), ("Pending", {}), ("Failed", {"ready": EARLY})],
    "ready": [("Running", {"ready": LATE}), ("Running", {})],
    "ready for longer": [("Running", {"ready": EARLY, "restarts": 3}), ("Running", {"ready": LATE})],
    "fewer restarts": [
        ("Running", {"ready": EARLY, "restarts": 1, "created": LATE}),
        ("Running", {"ready": EARLY, "restarts": 2, "created": EARLY}),
    ],
    "older": [("Running", {"created": EARLY}), ("Running", {"created": LATE})],
    "assigned to a node": [("Running", {}), ("Running", {"node": "", "ready": EARLY})],
    "not being deleted": [("Running", {}), ("Running", {"ready": EARLY, "deleted": LATE})],
    "being deleted, for the only other one has ended": [
        ("Running", {"deleted": LATE}),
        ("Failed", {"ready": EARLY}),
    ],
}


@pytest.mark.parametrize("pods", CHOICES.values(), ids=CHOICES)
def test_pods_are_chosen_as_kubectl_chooses_them(
    kube: Extension, api: FakeApi, pods: list[tuple[str, dict[str, str | int]]]
) -> None:
    for index, (phase, more) in enumerate(pods):
        put_pod(api, f"shop-{9 - index}", phase, **more)
    api.put("deployments", {"metadata": {"name": "shop"}, "spec": {"selector": {"matchLabels": {"app": "shop"}}}})
    api.commands |= {"true": always(SUCCESS), "tar": always(SUCCESS)}
    assert kube.ok("exec", {"resource": "deploy/shop", "command": ["true"]})["pod"] == "shop-9"
    assert kube.ok("exec", {"selector": "app=shop", "command": ["true"]})["pod"] == "shop-9"
    assert kube.ok("port-forward", {"resource": "deploy/shop", "port": 80})["pod"] == "shop-9"
    (kube.workdir / "f").write_text("x")
    copy = {"resource": "deploy/shop", "direction": "toContainer", "local": "f", "remote": "/f"}
    assert kube.ok("copy", copy)["pod"] == "shop-9"


def test_a_pod_that_is_being_deleted_is_not_taken_before_the_new_one_runs(kube: Extension, api: FakeApi) -> None:
    put_pod(api, "shop-1", ready=EARLY, deleted=LATE)
    put_pod(api, "shop-2", "Pending")
    told = kube.failed("exec", {"selector": "app=shop", "command": ["true"]})
    assert "expected a running pod of pods in namespace default, found shop-2 is Pending" in told


@pytest.mark.parametrize(("stream", "channel"), [("stdout", STDOUT), ("stderr", STDERR)])
def test_output_that_was_not_kept_completely_is_not_checked(
    kube: Extension, pod: FakeApi, stream: str, channel: int
) -> None:
    pieces = [(channel, b"x" * 60_000)] * 75
    pod.commands["yes"] = always((channel, b"first"), *pieces, (channel, b"last"), SUCCESS)
    args = {"resource": "pod/web-2", "command": ["yes"]}
    kube.ok("exec", args)
    for expect in ({"contains": "first"}, {"notContains": "y"}, {"endsWith": "last"}):
        told = kube.failed("exec", args | {"expect": {stream: expect}})
        assert f"{stream}: expected to be checked completely\n  got 4,500,009 bytes, of which " in told


@pytest.fixture
def encrypted(start: Starter, tmp_path: Path) -> Iterator[tuple[Extension, FakeApi]]:
    """An extension, and its API server with TLS, whose command `yes` and tar have no end."""
    with FakeApi(authority=trustme.CA()) as api:
        spec = {"containers": [{"name": "main"}]}
        api.put("pods", {"metadata": {"name": "web"}, "spec": spec, "status": {"phase": "Running"}})
        api.commands |= dict.fromkeys(["yes", "tar"], lambda _: itertools.repeat((STDOUT, b"y\n" * 16_000)))
        yield start(api.kubeconfig(tmp_path / "kubeconfig")), api


def test_at_the_deadline_nothing_of_the_encryption_is_taken_for_output(encrypted: tuple[Extension, FakeApi]) -> None:
    kube, _ = encrypted
    result = kube.result("exec", {"resource": "pod/web", "command": ["yes"], "timeout": "2s", "as": "it"})
    assert "it did not exit within 2s, and may still run" in str(result["error"])
    outputs = result["outputs"]
    assert isinstance(outputs, dict)
    assert set(outputs["stdout"][:1000]) == {"y", "\n"}
    assert outputs["stderr"] == ""
    args = {"resource": "pod/web", "direction": "fromContainer", "local": "x", "remote": "/x", "timeout": "2s"}
    assert "tar did not exit before the deadline" in kube.failed("copy", args)


def test_an_encrypted_port_forward_is_stopped_without_a_trace(encrypted: tuple[Extension, FakeApi]) -> None:
    kube, _ = encrypted
    port = int(kube.ok("port-forward", {"resource": "pod/web", "port": 80})["localPort"])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(b"x" * 100_000)
        received = connection.recv(10)
        kube.ok("port-forward", {"action": "stop"})
        while data := connection.recv(100_000):
            received += data
    assert set(received) == {ord("x")}
