"""Attempts until a deadline, on a clock that only pauses move."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

import pytest

from ext_sdk import Deadline
from ext_sdk.polling import SLICE_SECONDS, Attempt, attempts_until, exponential, interruptible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class FakeDeadline(Deadline):
    """A deadline whose time passes only when somebody waits for it, and the pauses that were waited."""

    def __init__(self, seconds: float) -> None:
        super().__init__(None, threading.Event())
        self.now = 1000.0
        self.end = self.now + seconds
        self.pauses: list[float] = []

    def remaining(self) -> float:
        return 0.0 if self.stopped.is_set() else max(0.0, self.end - self.now)

    def wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        self.now += seconds
        return not self.expired

    def time(self) -> float:
        return self.now

    def attempts(
        self,
        backoff: Callable[[Attempt], float],
        *,
        reserve: Callable[[float], float] | None = lambda seconds: 0.0,
        wait: Callable[[float], bool] | None = None,
        jitter: float = 0.0,
    ) -> Iterator[Attempt]:
        return attempts_until(
            self, backoff, reserve=reserve, wait=wait, jitter=jitter, clock=self.time, uniform=lambda low, high: high
        )


def test_pauses_grow_by_a_factor_up_to_a_limit() -> None:
    deadline = FakeDeadline(100.0)
    for attempt in deadline.attempts(exponential(1.0, 4.0, growth=2.0)):
        if attempt.number == 6:
            break
    assert deadline.pauses == [1.0, 2.0, 4.0, 4.0, 4.0]


def test_no_pause_is_shorter_than_the_first() -> None:
    deadline = FakeDeadline(9.0)
    assert len(list(deadline.attempts(exponential(4.0, 2.0)))) == 4
    assert deadline.pauses == [4.0, 4.0, 1.0]


def test_the_last_attempt_is_made_at_the_deadline() -> None:
    deadline = FakeDeadline(2.5)
    attempts = list(deadline.attempts(exponential(1.0, 1.0)))
    assert [attempt.last for attempt in attempts] == [False, False, False, True]
    assert deadline.now == deadline.end
    assert attempts[-1].elapsed() == 2.5


@pytest.mark.parametrize("reserve", [lambda seconds: 0.0, lambda seconds: 0.25, None])
def test_there_is_one_attempt_without_any_time(reserve: Callable[[float], float] | None) -> None:
    deadline = FakeDeadline(0.0)
    assert [attempt.last for attempt in deadline.attempts(exponential(1.0, 1.0), reserve=reserve)] == [True]


def test_an_attempt_that_passes_the_deadline_is_followed_by_a_last_one() -> None:
    deadline = FakeDeadline(1.0)
    ends = []
    for attempt in deadline.attempts(exponential(0.5, 0.5)):
        deadline.now += 3.0
        ends.append(attempt.last)
    assert ends == [False, True]


def test_time_can_be_reserved_for_the_last_attempt() -> None:
    deadline = FakeDeadline(10.0)
    for _ in deadline.attempts(exponential(3.0, 3.0), reserve=lambda seconds: 2 * seconds):
        deadline.now += 0.5
    assert deadline.pauses == [3.0, 3.0, 1.5]
    assert deadline.remaining() == 0.5


def test_no_attempt_begins_in_the_reserved_time() -> None:
    deadline = FakeDeadline(1.0)
    numbers = []
    for attempt in deadline.attempts(exponential(0.1, 0.1), reserve=lambda seconds: 0.25):
        deadline.now += 0.9
        numbers.append(attempt.number)
    assert numbers == [1]


def test_without_a_last_attempt_the_loop_ends_when_a_pause_does_not_fit() -> None:
    deadline = FakeDeadline(3.5)
    assert len(list(deadline.attempts(exponential(1.0, 1.0), reserve=None))) == 4
    assert deadline.pauses == [1.0, 1.0, 1.0]


def test_jitter_changes_a_pause_and_not_its_growth() -> None:
    deadline = FakeDeadline(100.0)
    planned = []
    for attempt in deadline.attempts(exponential(1.0, 8.0, growth=2.0), jitter=0.25):
        planned.append((attempt.base, attempt.pause))
        if attempt.number == 3:
            break
    assert planned == [(0.0, 0.0), (1.0, 1.25), (2.0, 2.5)]
    assert deadline.pauses == [1.25, 2.5]


def test_the_body_sets_limits_of_the_next_pause_alone() -> None:
    deadline = FakeDeadline(100.0)
    for attempt in deadline.attempts(exponential(1.0, 1.0)):
        if attempt.number == 1:
            attempt.at_least = 7.0
        elif attempt.number == 2:
            attempt.at_most = 0.25
        elif attempt.number == 3:
            attempt.age = 0.5
        elif attempt.number == 5:
            break
    assert deadline.pauses == [7.0, 0.25, 0.5, 1.0]


def test_the_backoff_sees_the_attempt_after_its_body() -> None:
    deadline = FakeDeadline(100.0)
    for attempt in deadline.attempts(lambda attempt: attempt.elapsed() / 2):
        deadline.now += 4.0
        if attempt.number == 3:
            break
    assert deadline.pauses == [2.0, 5.0]


def test_a_notification_ends_a_pause_and_is_not_the_deadline() -> None:
    deadline = FakeDeadline(10.0)

    def wait(seconds: float) -> bool:
        deadline.wait(min(seconds, 4.0))
        return seconds > 4.0

    attempts = list(deadline.attempts(exponential(math.inf, math.inf), wait=wait))
    assert deadline.pauses == [4.0, 4.0, 2.0]
    assert [attempt.last for attempt in attempts] == [False, False, False, True]


def test_no_attempt_follows_a_stop() -> None:
    deadline = FakeDeadline(10.0)

    def wait(seconds: float) -> bool:
        deadline.stopped.set()
        return False

    assert len(list(deadline.attempts(exponential(1.0, 1.0), wait=wait))) == 1
    assert len(list(deadline.attempts(exponential(1.0, 1.0)))) == 1


def test_an_error_of_the_body_leaves_the_loop() -> None:
    deadline = FakeDeadline(10.0)

    def fail() -> None:
        for _ in deadline.attempts(exponential(1.0, 1.0)):
            raise ValueError("permanent")

    with pytest.raises(ValueError, match="permanent"):
        fail()
    assert deadline.pauses == []


def test_the_default_pause_is_that_of_the_deadline() -> None:
    numbers = [attempt.number for attempt in attempts_until(Deadline(0.01), exponential(0.001, 0.001))]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) > 1


def test_a_wait_is_sliced_until_it_is_notified_or_over() -> None:
    deadline = FakeDeadline(math.inf)
    notified = iter([False, False, True])

    def notice(seconds: float) -> bool:
        deadline.wait(seconds)
        return next(notified)

    assert interruptible(notice, deadline, clock=deadline.time)(math.inf)
    assert deadline.pauses == [SLICE_SECONDS] * 3
    deadline.pauses.clear()
    assert not interruptible(lambda seconds: not deadline.wait(seconds), deadline, clock=deadline.time)(0.75)
    assert deadline.pauses == [SLICE_SECONDS, 0.75 - SLICE_SECONDS]


def test_a_wait_that_was_stopped_is_over() -> None:
    deadline = Deadline(None, threading.Event())
    deadline.stopped.set()
    assert not interruptible(threading.Event().wait, deadline)(math.inf)
