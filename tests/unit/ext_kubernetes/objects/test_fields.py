from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from ext_kubernetes.objects.fields import (
    age_of,
    at,
    condition_of,
    conditions_of,
    has,
    items,
    members,
    named,
    number,
    seconds_between,
    text,
)
from ext_kubernetes.waiting.waiter import condition_verdict

ITEM: dict[str, object] = {
    "kind": "Pod",
    "metadata": {"name": "web"},
    "spec": {"replicas": 2, "on": True, "list": [{"a": 1}, "b"]},
}


def test_a_value_of_another_type_counts_as_absent() -> None:
    assert (text(ITEM, "spec", "replicas"), number(ITEM, "spec", "on"), number(ITEM, "spec", "replicas")) == ("", 0, 2)
    assert (members(ITEM, "kind"), items(ITEM, "spec", "list"), items(ITEM, "kind")) == ({}, [{"a": 1}], [])
    assert at(ITEM, "kind", "more") is None


def test_an_object_without_a_name_is_named_by_its_prefix() -> None:
    assert named(ITEM) == "Pod/web"
    assert named({"metadata": {"generateName": "job-"}}) == "object/job-"


@pytest.mark.parametrize(("start", "end", "seconds"), [
    ("2026-01-01T00:00:00Z", "2026-01-01T00:01:30Z", 90.0),
    ("2026-01-01T00:01:30Z", "2026-01-01T00:00:00Z", 0.0),
    ("", "2026-01-01T00:00:00Z", 0.0),
    ("2026-01-01T00:00:00Z", "soon", 0.0),
])  # fmt: skip
def test_the_time_between_two_timestamps_is_never_negative(start: str, end: str, seconds: float) -> None:
    assert seconds_between(start, end) == seconds


def test_an_age_needs_a_time_zone() -> None:
    now = datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
    assert age_of("2026-01-01T00:00:00Z", now) == 60.0
    assert age_of("2026-01-01T00:00:00", now) == 0.0


def made(*conditions: tuple[str, str], generation: int = 1, **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"generation": generation},
        "status": {"conditions": [{"type": type, "status": value} for type, value in conditions], **status},
    }


@pytest.mark.parametrize("type", ["Ready", "ready", "READY"])
def test_the_case_of_a_type_does_not_matter(type: str) -> None:
    assert has(made(("Ready", "True")), type, "True")


def test_a_condition_in_just_this_spelling_comes_first() -> None:
    found = condition_of(made(("READY", "False"), ("Ready", "True")), "Ready")
    assert found is not None
    assert found.status == "True"


@pytest.mark.parametrize(("item", "status"), [
    ({}, "NoConditions"),
    (made(), "NoConditions"),
    (made(("Available", "True")), "ConditionNotFound; found: Available"),
    (made(("Ready", "Unknown")), "Unknown"),
    (made(("Ready", "True"), generation=2, observedGeneration=1), "True, outdated"),
])  # fmt: skip
def test_a_status_says_in_one_word_why_there_is_none(item: dict[str, Any], status: str) -> None:
    assert condition_verdict(item, "Ready", "True").status == status


def test_a_condition_of_an_older_generation_does_not_count() -> None:
    assert not has(made(("Ready", "True"), generation=2, observedGeneration=1), "Ready", "True")
    assert has(made(("Ready", "True"), generation=2, observedGeneration=2), "Ready", "True")


def test_a_condition_may_have_a_generation_of_its_own() -> None:
    item = made(generation=2, observedGeneration=2)
    item["status"]["conditions"] = [{"type": "Ready", "status": "True", "observedGeneration": 1}]
    assert not has(item, "Ready", "True")


def test_what_a_condition_says_is_told_whole() -> None:
    item = made()
    item["status"]["conditions"] = [{"type": "Ready", "status": "False", "reason": "Why", "message": "because\n"}]
    assert str(condition_of(item, "Ready")) == "Ready=False (Why: because)"


@pytest.mark.parametrize(("type", "status", "trouble"), [
    ("Ready", "False", True),
    ("Ready", "Unknown", True),
    ("Ready", "True", False),
    ("Available", "True", False),
    ("ReplicaFailure", "True", True),
    ("ReplicaFailure", "False", False),
    ("MemoryPressure", "Unknown", False),
    ("NetworkUnavailable", "False", False),
    ("Failed", "True", True),
])  # fmt: skip
def test_some_conditions_tell_of_trouble_by_true(type: str, status: str, trouble: bool) -> None:
    (found,) = conditions_of(made((type, status)))
    assert found.is_trouble is trouble
