"""`exec`, against an API server on loopback that speaks its websocket protocol."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from tests.ext_kubernetes.fake_api import Fault

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.ext_kubernetes.conftest import Extension, Starter
    from tests.ext_kubernetes.fake_api import FakeApi

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
    assert "stderr: no" in told
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
    assert "ended without a status" in str(result["error"])
    assert result["outputs"] == {"pod": "web-2", "container": "main", "stdout": "half", "stderr": ""}


def test_at_the_deadline_the_connection_is_ended(kube: Extension, pod: FakeApi) -> None:
    over = threading.Event()

    def hang(stdin: bytes) -> Answer:
        over.wait(60)
        return []

    pod.commands["sleep"] = hang
    told = kube.failed("exec", {"resource": "pod/web-2", "command": ["sleep"], "timeout": "2s"})
    over.set()
    assert "it did not end in time (2s), and may still run" in told


def test_who_may_not_do_it_is_told(kube: Extension, pod: FakeApi) -> None:
    text = 'pods "web-2" is forbidden: User "ada" cannot create resource "pods/exec"'
    pod.faults.append(Fault("GET", "/exec$", status=403, reason="Forbidden", message=text))
    assert text in kube.failed("exec", {"resource": "pod/web-2", "command": ["true"]})


def test_it_is_a_command_or_a_script(kube: Extension) -> None:
    assert "expected one of `command` and `script`" in kube.refused("exec", {"resource": "pod/web-2"})
