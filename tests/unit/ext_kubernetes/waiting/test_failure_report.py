from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_kubernetes.waiting.failure_report import describe_age, describe_event, event_time
from tests.support.fake_kubernetes import Fault

if TYPE_CHECKING:
    from tests.support.ext_kubernetes import Extension
    from tests.support.fake_kubernetes import FakeApi


def ago(**time: float) -> str:
    return (datetime.now(UTC) - timedelta(**time)).isoformat()


@pytest.mark.parametrize(
    ("time", "text"), [({"seconds": 90}, "90 s"), ({"minutes": 5}, "5 min"), ({"hours": 3}, "3 h")]
)
def test_the_unit_of_an_age_grows_with_it(time: dict[str, float], text: str) -> None:
    assert describe_age(ago(**time)) == text


def test_an_event_is_dated_by_its_last_occurrence() -> None:
    event: dict[str, object] = {"firstTimestamp": "1", "lastTimestamp": "2"}
    assert event_time(event) == "2"
    assert event_time(event | {"series": {"lastObservedTime": "3"}}) == "3"


def test_an_event_is_a_line_with_its_count() -> None:
    event = {"type": "Warning", "reason": "BackOff", "message": "again ", "count": 3, "lastTimestamp": ago(seconds=7)}
    assert describe_event(event) == "7 s ago Warning BackOff (3 times): again"
    event |= {"involvedObject": {"kind": "Pod", "name": "web"}}
    assert describe_event(event, named=True) == "7 s ago Pod/web: Warning BackOff (3 times): again"


def test_the_report_file_has_its_previous_name_too(kube: Extension, api: FakeApi) -> None:
    api.put("configmaps", {"metadata": {"name": "it"}})
    result = kube.result("wait", {"resource": "cm/it", "condition": "Ready", "timeout": "0s"})
    outputs = result["outputs"]
    assert isinstance(outputs, dict)
    assert outputs["reportFile"] == outputs["storyFile"]
    assert "ConfigMap/it" in Path(str(outputs["reportFile"])).read_text()


def crashing(name: str, **status: object) -> dict[str, object]:
    status = {"name": "app", "ready": False, "restartCount": 2, **status}
    metadata = {"name": name, "labels": {"app": "web"}}
    return {"metadata": metadata, "status": {"phase": "Running", "containerStatuses": [status]}}


EXITED = {"terminated": {"exitCode": 127, "reason": "Error"}}
WAITING = {"waiting": {"reason": "CrashLoopBackOff"}}


def test_the_last_log_lines_of_a_container_that_crashes_are_in_the_report(kube: Extension, api: FakeApi) -> None:
    api.put("deployments", {"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}})
    api.put("pods", crashing("web-1", state=WAITING, lastState=EXITED))
    api.put("pods", crashing("web-2", state=EXITED))
    api.put("pods", crashing("web-3", state=WAITING))
    api.logs["web-1/app"] = "".join(f"line {number}\n" for number in range(9))
    api.logs["web-2/app"] = "sh: nosuchcommand: not found\n"
    result = kube.result("wait", {"resource": "deploy/web", "for": "ready", "timeout": "0s"})
    error = str(result["error"])
    assert "    log of container app before it was restarted:\n      line 4\n      line 5\n" in error
    assert "line 3" not in error
    assert "    log of container app before it ended: sh: nosuchcommand: not found\n" in error
    previous = {asked.path.split("/")[-2]: asked.query.get("previous") for asked in api.requests("GET", "/log")}
    assert previous == {"web-1": "true", "web-2": None}
    outputs = result["outputs"]
    assert isinstance(outputs, dict)
    assert "nosuchcommand: not found" in Path(str(outputs["reportFile"])).read_text()


def test_a_log_that_cannot_be_read_leaves_the_report_as_it_is(kube: Extension, api: FakeApi) -> None:
    api.put("pods", crashing("web-1", state=EXITED))
    api.faults.append(Fault("GET", "/log", times=9, status=500))
    told = kube.failed("wait", {"resource": "pod/web-1", "condition": "Ready", "timeout": "0s"})
    assert "exit code 127, Error" in told
    assert len(api.requests("GET", "/log")) == 1
