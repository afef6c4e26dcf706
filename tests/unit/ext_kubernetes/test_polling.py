"""The wait loop on a clock of its own: nothing here sleeps."""

from __future__ import annotations

import threading

import pytest

from ext_kubernetes.api.errors import KubernetesError, Unreachable, api_error
from ext_kubernetes.polling import POLLING, Pace, Verdict, WaitOutcome, wait_until
from ext_sdk import Deadline


class Clock(Deadline):
    """A deadline on a clock that only sleeps move."""

    def __init__(self, seconds: float = 60.0) -> None:
        super().__init__(None, threading.Event())
        self.seconds = seconds
        self.now = 1000.0
        self.end = self.now + seconds
        self.sleeps: list[float] = []

    def remaining(self) -> float:
        return 0.0 if self.stopped.is_set() else max(0.0, self.end - self.now)

    def sleep(self, seconds: float) -> bool:
        self.sleeps.append(seconds)
        self.now += seconds
        return False

    def look(self, *verdicts: Verdict | KubernetesError, jitter: float = 1.0) -> tuple[WaitOutcome, list[float]]:
        """Wait with these verdicts, the last one for ever. Returns how it ended, and the ages that looks were given."""
        ages: list[float] = []

        def check(age: float) -> Verdict:
            ages.append(age)
            verdict = verdicts[min(len(ages), len(verdicts)) - 1]
            if isinstance(verdict, KubernetesError):
                raise verdict
            return verdict

        waited = wait_until(check, self, wake=self.sleep, clock=lambda: self.now, uniform=lambda low, high: jitter)
        return waited, ages


NOT_YET = Verdict(done=False, status="False")
DONE = Verdict(done=True, status="True")
TOO_MANY = api_error(429, {"message": "slow down"}, retry_after=7.0)
BROKEN = Unreachable("https://127.0.0.1:1", "refused", 1.0, answered=False)


def test_the_first_look_is_at_once() -> None:
    clock = Clock()
    waited, ages = clock.look(DONE)
    assert (waited.done, waited.polls, clock.sleeps, ages) == (True, 1, [], [0.0])


def test_the_last_look_is_at_the_deadline_and_a_look_of_its_own() -> None:
    clock = Clock(10.0)
    waited, ages = clock.look(NOT_YET)
    assert not waited.done
    assert waited.seconds == pytest.approx(10.0)
    assert ages[-1] == 0.0
    assert sum(clock.sleeps) == pytest.approx(10.0)


def test_what_becomes_so_at_the_deadline_is_seen() -> None:
    clock = Clock(1.0)
    looks = len(clock.look(NOT_YET)[1])
    assert Clock(1.0).look(*[NOT_YET] * (looks - 1), DONE)[0].done


def test_pauses_grow_with_the_time_waited_up_to_a_cap() -> None:
    clock = Clock(30.0)
    clock.look(NOT_YET)
    pauses = clock.sleeps[:-1]
    assert pauses == sorted(pauses)
    assert pauses[0] == POLLING.shortest
    assert pauses[-1] == POLLING.longest


@pytest.mark.parametrize("jitter", [0.9, 1.0, 1.1])
def test_a_change_is_seen_within_a_tenth_of_the_wait_and_half_a_second(jitter: float) -> None:
    clock = Clock(30.0)
    clock.look(NOT_YET, jitter=jitter)
    waited = 0.0
    for pause in clock.sleeps[:-1]:
        assert pause <= min(max(0.1 * waited, 0.0255), 0.5)
        waited += pause


def test_an_old_look_of_somebody_else_shortens_the_pause() -> None:
    clock = Clock(2.0)
    clock.look(NOT_YET._replace(data_age=0.02))
    assert clock.sleeps[0] == pytest.approx(POLLING.shortest - 0.02)


def test_a_moment_that_matters_ends_a_pause() -> None:
    clock = Clock(30.0)
    clock.look(NOT_YET._replace(recheck_after=0.01), DONE)
    assert clock.sleeps == [0.01]


def test_what_passes_is_tried_again_and_told() -> None:
    waited, _ = Clock(5.0).look(NOT_YET, BROKEN)
    assert waited.last_error is BROKEN
    assert waited.verdict == NOT_YET
    assert not waited.done


def test_an_answer_after_a_failure_makes_the_failure_forgotten() -> None:
    waited, _ = Clock().look(BROKEN, BROKEN, DONE)
    assert (waited.done, waited.last_error, waited.polls) == (True, None, 3)


def test_the_server_says_how_long_to_wait() -> None:
    clock = Clock()
    assert clock.look(TOO_MANY, DONE)[0].done
    assert clock.sleeps == [7.0]


@pytest.mark.parametrize(
    ("status", "said"),
    [(400, "no way"), (401, "the credentials .* were rejected"), (403, "no way"), (404, "no way"), (422, "no way")],
)
def test_what_does_not_pass_ends_the_wait_at_once(status: int, said: str) -> None:
    clock = Clock()
    with pytest.raises(KubernetesError, match=said):
        clock.look(api_error(status, {"message": "no way"}))
    assert clock.sleeps == []


def test_a_permanent_failure_ends_the_wait_early() -> None:
    clock = Clock()
    waited, _ = clock.look(NOT_YET, Verdict(done=False, status="waiting", failed_reason="CrashLoopBackOff"))
    assert (waited.done, waited.failed_reason, waited.polls) == (False, "CrashLoopBackOff", 2)


def test_a_wait_that_is_stopped_ends() -> None:
    clock = Clock()
    clock.stopped.set()
    assert clock.look(NOT_YET)[0].polls == 1


def test_no_time_at_all_is_one_look() -> None:
    clock = Clock(0.0)
    assert clock.look(NOT_YET)[0].polls == 1
    assert clock.look(DONE)[0].done


def test_a_pace_has_two_limits() -> None:
    pace = Pace(share=0.5, shortest=1.0, longest=3.0)
    assert [pace.pause(waited) for waited in (0.0, 4.0, 100.0)] == [1.0, 2.0, 3.0]
