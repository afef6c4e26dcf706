from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ext_kubernetes.objects.fields import age_of, at, items, members, named, number, seconds_between, text

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
