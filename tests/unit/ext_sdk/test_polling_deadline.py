"""Deadlines. Time passes here only where a test waits for it to be over."""

from __future__ import annotations

import threading

import pytest

from ext_sdk import Deadline, Duration

HOUR = 3600.0


def test_no_limit_is_infinite() -> None:
    deadline = Deadline()
    assert deadline.remaining() == float("inf")
    assert not deadline.expired


def test_what_remains_shrinks_to_nothing_and_no_further() -> None:
    deadline = Deadline(HOUR)
    first = deadline.remaining()
    assert HOUR - 100 < deadline.remaining() <= first <= HOUR
    assert Deadline(0).remaining() == Deadline(-5).remaining() == 0.0
    assert Deadline(0).expired


@pytest.mark.parametrize("limit", [60, 60.0, Duration.parse("1m")])
def test_a_sooner_limit_counts(limit: Duration | float) -> None:
    sooner = Deadline(HOUR).limit(limit)
    assert sooner.remaining() <= 60
    assert 50 < Deadline().limit(limit).remaining() <= 60


def test_a_later_limit_does_not() -> None:
    assert Deadline(60).limit(HOUR).remaining() <= 60
    assert Deadline(0).limit(HOUR).expired


def test_a_result_may_come_after_the_deadline() -> None:
    deadline = Deadline(0, latest=60)
    assert deadline.remaining() == 0
    assert 50 < deadline.remaining_for_result() <= 60
    assert 50 < deadline.limit(HOUR).remaining_for_result() <= 60
    assert Deadline(0, latest=0).remaining_for_result() == 0
    assert Deadline(0).remaining_for_result() == float("inf")


def test_no_limit_is_the_deadline_itself() -> None:
    deadline = Deadline(HOUR)
    assert deadline.limit(None) is deadline


def test_a_stop_is_the_end_of_all_that_came_from_one_deadline() -> None:
    deadline = Deadline(HOUR)
    inner = deadline.limit(60).limit(Duration.parse("30s"))
    deadline.stopped.set()
    assert inner.expired
    assert inner.remaining() == deadline.remaining() == 0.0
    assert inner.wait(HOUR) is False


def test_a_limit_does_not_change_where_it_came_from() -> None:
    deadline = Deadline(HOUR)
    assert deadline.limit(0).expired
    assert not deadline.expired


def test_waiting_ends_at_the_deadline() -> None:
    assert Deadline(0.01).wait(HOUR) is False
    assert Deadline(0).wait(HOUR) is False


def test_waiting_says_whether_time_is_left() -> None:
    assert Deadline(HOUR).wait(0.001) is True
    assert Deadline(HOUR).wait(-1) is True
    assert Deadline().wait(0) is True


@pytest.mark.parametrize("seconds", [HOUR, float("inf"), 1e300, Duration(2**63 - 1).seconds])
def test_a_wait_of_any_length_is_woken_by_the_stop(seconds: float) -> None:
    deadline = Deadline(None if seconds == float("inf") else Duration(2**63 - 1).seconds)
    waits = threading.Thread(target=lambda: found.append(deadline.wait(seconds)), daemon=True)
    found: list[bool] = []
    waits.start()
    deadline.stopped.set()
    waits.join(30)
    assert found == [False]


def test_the_time_since_the_call_began_is_that_of_where_a_limit_came_from() -> None:
    deadline = Deadline(60.0)
    deadline._began -= 10.0
    assert 10.0 <= deadline.limit(5.0).elapsed() < 60.0
