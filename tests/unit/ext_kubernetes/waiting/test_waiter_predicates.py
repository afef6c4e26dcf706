"""What is thought of what a look found: several objects together, the same for a while, gone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

from ext_kubernetes.operations.wait import IsDeleted, StableFor
from ext_kubernetes.polling import Verdict
from ext_kubernetes.waiting.waiter import combine_verdicts, value_verdict

if TYPE_CHECKING:
    from msgspec import UnsetType

    from ext_kubernetes.objects.yaml_loader import Object


def item(name: str = "a", uid: str = "1", **more: Any) -> Object:
    return {"metadata": {"name": name, "uid": uid}, **more}


def by_state(one: Object) -> Verdict:
    state = str(one["state"])
    return Verdict(done=state == "done", status=state, failed_reason="broken" if state == "broken" else "")


@pytest.mark.parametrize(("states", "require", "done", "failed_reason"), [
    ("", "all", False, False),
    ("", 0, True, False),
    ("done done", "all", True, False),
    ("done new", "all", False, False),
    ("done new", "any", True, False),
    ("done new", 1, True, False),
    ("done new", 2, False, False),
    ("done done", 3, False, False),
    ("done broken", "all", False, True),
    ("new broken", "any", False, False),
    ("broken broken", "any", False, True),
    ("done broken new", 2, False, False),
])  # fmt: skip
def test_how_many_must_be_so(
    states: str, require: Literal["all", "any"] | int, done: bool, failed_reason: bool
) -> None:
    objects = [item(f"it-{number}", state=state) for number, state in enumerate(states.split())]
    verdict = combine_verdicts(objects, by_state, require)
    assert (verdict.done, bool(verdict.failed_reason) and not verdict.done) == (done, failed_reason)


def test_those_that_are_not_so_are_told() -> None:
    objects = [item("good", state="done"), item("late", state="new")]
    assert combine_verdicts(objects, by_state, "all").status == "1 of 2 (late: new)"


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def steady(clock: Clock) -> StableFor:
    return StableFor(5.0, lambda one: (by_state(one), one.get("kept")), clock)


def test_what_holds_long_enough_is_stable() -> None:
    clock = Clock()
    judge = steady(clock)
    assert judge([item(state="done")]) == Verdict(done=False, status="done", recheck_after=5.0)
    clock.now += 4.0
    assert judge([item(state="done")]).recheck_after == 1.0
    clock.now += 1.0
    assert judge([item(state="done")]).done
    assert judge.changes == 0


@pytest.mark.parametrize("between", [
    [item(state="new")],
    [item(state="done", kept=1)],
    [item(uid="2", state="done")],
    [],
], ids=["not so", "changed", "another object", "gone"])  # fmt: skip
def test_a_change_begins_the_time_anew(between: list[Object]) -> None:
    clock = Clock()
    judge = steady(clock)
    judge([item(state="done")])
    clock.now += 4.0
    judge(between)
    clock.now += 4.0
    verdict = judge([item(state="done")])
    assert not verdict.done
    assert "2 changes" in verdict.status


def test_an_object_of_the_same_name_is_not_the_one_that_was_deleted() -> None:
    judge = IsDeleted()
    assert judge([item(uid="1")]).status == "1 left, 0 of them being deleted"
    assert judge([item(uid="2")]).done


def test_what_was_never_there_is_gone() -> None:
    assert IsDeleted()([]).done


@pytest.mark.parametrize(("wanted", "done"), [(3, True), ("3", True), (3.0, True), (True, False), ("three", False)])
def test_a_text_stands_for_a_number_and_true_for_no_number(wanted: str | float | bool | UnsetType, done: bool) -> None:
    assert value_verdict(item(count=3), "$.count", wanted).done == done


def test_several_values_must_all_be_so() -> None:
    found = item(items=[{"a": 1}, {"a": 2}])
    assert not value_verdict(found, "{.items[*].a}", 1).done
    assert not value_verdict(found, "{.nothing}", 1).done


def test_absence_is_stable_until_an_object_appears() -> None:
    clock = Clock()
    judge = StableFor(5.0, lambda one: (by_state(one), None), clock, absent=True)
    assert judge([]) == Verdict(done=False, status="absent", recheck_after=5.0)
    clock.now += 5.0
    assert judge([]).done
    verdict = judge([item(state="done")])
    assert (verdict.done, verdict.status) == (False, "done (1 change: absent → done)")
    clock.now += 4.0
    assert judge([]).recheck_after == 5.0
