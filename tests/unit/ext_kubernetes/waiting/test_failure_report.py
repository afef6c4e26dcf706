from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ext_kubernetes.waiting.failure_report import describe_age, describe_event, event_time

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


def test_the_report_file_has_its_previous_name_too(kube: Extension, api: FakeApi) -> None:
    api.put("configmaps", {"metadata": {"name": "it"}})
    result = kube.result("wait", {"resource": "cm/it", "condition": "Ready", "timeout": "0s"})
    outputs = result["outputs"]
    assert isinstance(outputs, dict)
    assert outputs["reportFile"] == outputs["storyFile"]
    assert "ConfigMap/it" in Path(str(outputs["reportFile"])).read_text()
