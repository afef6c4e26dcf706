"""`diagnostics`, against an API server on loopback."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi

PASSWORD = "hunter2-of-the-database"
CRASHED = {"terminated": {"exitCode": 127, "reason": "Error"}}


@pytest.fixture(autouse=True)
def _active(api: FakeApi) -> None:
    api.put("namespaces", {"metadata": {"name": "default"}, "status": {"phase": "Active"}})


@pytest.fixture
def crashing(api: FakeApi) -> FakeApi:
    """A Deployment whose pod crashes, a ready pod, a Secret whose value is in a log, and two events."""
    api.put("deployments", {
        "metadata": {"name": "web"},
        "spec": {"replicas": 1},
        "status": {"observedGeneration": 1, "updatedReplicas": 1, "conditions": [
            {"type": "Available", "status": "False", "reason": "MinimumReplicasUnavailable"}
        ]},
    })  # fmt: skip
    app = {"name": "app", "restartCount": 3, "state": CRASHED, "lastState": CRASHED, "ready": False}
    side = {"name": "side", "state": {"waiting": {"reason": "ContainerCreating"}}}
    api.put("pods", {
        "metadata": {"name": "web-1"},
        "spec": {"nodeName": "worker", "containers": [{"name": "app"}, {"name": "side"}]},
        "status": {"phase": "Running", "containerStatuses": [app, side]},
    })  # fmt: skip
    api.put("pods", {"metadata": {"name": "fine"}, "status": {"phase": "Succeeded"}})
    values = {"a": PASSWORD, "namespace": "default"}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    api.put("secrets", {"metadata": {"name": "it"}, "data": data})
    for name, time, kind in (("b", "2026-11-23T10:00:02Z", "Warning"), ("a", "2026-11-23T10:00:01Z", "Normal")):
        about = {"kind": "Pod", "name": "web-1"}
        event = {"involvedObject": about, "type": kind, "reason": "Reason", "message": f"about {name}\nand more"}
        api.put("events", {"metadata": {"name": name}, "lastTimestamp": time, "count": 2, **event})
    lines = "".join(f"line {number}\n" for number in range(30))
    api.logs["web-1/app"] = f"{lines}\x1b[31msh: nosuchcommand: not found\nconnecting with {PASSWORD}\n"
    return api


def read(kube: Extension, **args: object) -> tuple[dict[str, str], str]:
    outputs = kube.ok("diagnostics", {"file": "out/report.txt", **args})
    assert outputs["file"] == str(kube.workdir / "out" / "report.txt")
    return outputs, Path(outputs["file"]).read_text()


def test_the_file_has_problems_objects_pods_events_and_logs(kube: Extension, crashing: FakeApi) -> None:
    outputs, report = read(kube)
    sections = [line for line in report.split("\n") if line.startswith("==")]
    assert sections == ["== Problems ==", "== Objects ==", "== Pods ==", "== Events, the oldest first ==", "== Logs =="]
    assert outputs["message"] == (
        "Wrote the state of 4 objects, 2 pods and 2 events in namespace default to out/report.txt; "
        "3 problems: Deployment/web: 0 of 1 replicas are available"
    )
    assert (outputs["objects"], outputs["pods"], outputs["events"]) == ("4", "2", "2")
    problems = outputs["problems"].split("\n")
    assert problems[1].startswith(
        "Pod/web-1: container app is terminated: Error (with exit code 127, Error), 3 restarts"
    )
    assert problems[2] == "2026-11-23T10:00:02Z Pod/web-1: Warning Reason (2 times): about b and more"
    assert "  Available=False (MinimumReplicasUnavailable)\n" in report
    assert "  phase Running, node worker\n" in report
    assert "  container side is waiting: ContainerCreating\n" in report
    assert report.index("Normal Reason (2 times): about a") < report.rindex("Warning Reason (2 times): about b")


def test_the_last_lines_of_logs_are_read_also_those_before_a_restart(kube: Extension, crashing: FakeApi) -> None:
    _, report = read(kube, tail=3)
    assert (
        "Pod/web-1, container app now:\n"
        "  | line 29\n"
        "  | \ufffd[31msh: nosuchcommand: not found\n"
        "  | connecting with (hidden value of a Secret)\n"
    ) in report
    assert "Pod/web-1, container app before its last restart:\n  | line 29\n" in report
    assert "container side" not in report.partition("== Logs ==")[2]
    assert PASSWORD not in report
    assert "== Logs ==" not in read(kube, tail=0)[1]


def test_the_file_is_an_artifact_if_it_has_no_name(kube: Extension, crashing: FakeApi) -> None:
    path = Path(kube.ok("diagnostics")["file"])
    assert kube.workdir not in path.parents
    assert path.read_text().startswith("Diagnostics of namespace default at 20")


def test_kinds_and_logs_that_can_not_be_read_are_named(kube: Extension, crashing: FakeApi) -> None:
    crashing.faults.append(Fault(path="/secrets$", status=403, reason="Forbidden", message="not allowed"))
    crashing.logs.clear()
    outputs, report = read(kube)
    assert "== Not read ==\nsecrets: " in report
    assert "container app now:\n  not read: " in report
    assert outputs["objects"] == "3"


def test_texts_that_are_not_unicode_are_written(kube: Extension, crashing: FakeApi) -> None:
    about = {"kind": "Pod", "name": "web-1"}
    event = {"involvedObject": about, "type": "Warning", "reason": "Odd", "message": "a \ud800 b"}
    crashing.put("events", {"metadata": {"name": "c"}, **event})
    _, report = read(kube)
    assert "Warning Odd: a ? b\n" in report


def test_nothing_is_wrong_in_an_empty_namespace(kube: Extension) -> None:
    outputs, report = read(kube)
    assert outputs["message"].endswith("; no problems found")
    assert "== Problems ==\nnone found\n" in report


def test_without_a_namespace_there_is_nothing_to_read(kube: Extension, api: FakeApi) -> None:
    assert "failed to read namespace gone" in kube.failed("diagnostics", {"namespace": "gone"})
    api.faults.append(Fault(path="/namespaces/default/", status=403, reason="Forbidden", times=100))
    assert "orbidden" in kube.failed("diagnostics", {"file": "out.txt"})
    result: Any = kube.result("diagnostics", {"file": "../out.txt"})
    assert not result["success"]
