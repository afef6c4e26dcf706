from __future__ import annotations

from typing import Any

import pytest

from ext_kubernetes.objects.conditions import condition_of, conditions_of, has
from ext_kubernetes.waiting.waiter import condition_verdict


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
    (made(("Available", "True")), "ConditionNotFound"),
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
