"""Poll until a deadline: first poll at once, then after growing pauses with jitter, last poll at the deadline."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ext_kubernetes.api.errors import ApiError, KubernetesError

if TYPE_CHECKING:
    from collections.abc import Callable

    import ext_sdk


T = TypeVar("T")
JITTER = 0.1  # of a pause, to either side: many that began together shall not ask together


class Pace(NamedTuple):
    """How long pauses are.

    Attributes:
        share: of the time already waited.
        shortest: seconds.
        longest: seconds.
    """

    share: float
    shortest: float
    longest: float

    def pause(self, waited: float) -> float:
        """Seconds until the next look, after `waited` seconds."""
        return min(max(waited * self.share, self.shortest), self.longest)


POLLING = Pace(share=0.09, shortest=0.023, longest=0.45)  # with the jitter: within 10 %, 25 ms and 500 ms


class Verdict(NamedTuple):
    """What one look came to.

    Attributes:
        done: what is waited for is so.
        status: what was seen, in a few words, whether done or not.
        hopeless: why it will never be so; "" while it may.
        again: seconds after which time alone may change the verdict; None: it can't.
        age: seconds since what was seen was so; somebody else may have looked.
    """

    done: bool
    status: str
    hopeless: str = ""
    again: float | None = None
    age: float = 0.0


class WaitOutcome(NamedTuple):
    """How a wait ended.

    Attributes:
        verdict: of the last look that got an answer; None where none did.
        seconds: how long it took.
        looks: how many there were.
        problem: why the last look got no answer; None where it got one.
    """

    verdict: Verdict | None
    seconds: float
    looks: int
    problem: KubernetesError | None = None

    @property
    def done(self) -> bool:
        """Whether what was waited for is so."""
        return self.problem is None and self.verdict is not None and self.verdict.done

    @property
    def hopeless(self) -> str:
        """Why the wait was given up before its time; "" where it was not."""
        return self.verdict.hopeless if self.verdict and self.problem is None else ""


def wait_until(
    check: Callable[[float], Verdict],
    deadline: ext_sdk.Deadline,
    wake: Callable[[float], object],
    *,
    pace: Callable[[], Pace] = lambda: POLLING,
    clock: Callable[[], float] = time.monotonic,
    jitter: Callable[[float, float], float] = random.uniform,
) -> WaitOutcome:
    """Look until it is so, until it never will be, or until the deadline.

    Args:
        check: looks. Its argument is how many seconds old an answer may be that somebody else got; 0: it must look
            itself. The first look and the last one do.
        deadline: when to look for the last time.
        wake: sleeps so many seconds at most; it may return as soon as there is something new to see.
        pace: of the pauses; asked before each.
        clock: gives seconds.
        jitter: gives a number between two.

    Returns:
        How it ended; a wait that was in vain is told, not raised.

    Raises:
        KubernetesError: one that will not pass: forbidden, unknown, refused. What passes (429, 5xx, no connection) is
            tried again, after the time that the server asks for.
    """
    start = clock()
    verdict: Verdict | None = None
    problem: KubernetesError | None = None
    age, looks = 0.0, 0
    while True:
        last = deadline.expired
        looks += 1
        try:
            verdict, problem = check(0.0 if last else age), None
        except KubernetesError as error:
            if not error.retryable:
                raise
            problem = error
        waited = clock() - start
        over = problem is None and verdict is not None and (verdict.done or verdict.hopeless)
        if over or last or deadline.stopped.is_set():
            return WaitOutcome(verdict, waited, looks, problem)
        age = pace().pause(waited) * jitter(1 - JITTER, 1 + JITTER)
        wake(min(_bounded(age, verdict, problem), deadline.remaining()))


def retry_until_deadline(ask: Callable[[], T], deadline: ext_sdk.Deadline) -> T:
    """What `ask` gives; while the server has troubles it is asked again, until the deadline. Raises KubernetesError."""
    found: list[T] = []

    def check(_age: float) -> Verdict:
        found.append(ask())
        return Verdict(done=True, status="")

    waited = wait_until(check, deadline, deadline.wait)
    if waited.problem is not None:
        raise waited.problem
    return found[-1]


def _bounded(pause: float, verdict: Verdict | None, problem: KubernetesError | None) -> float:
    """A pause, counted from what was seen last: as long as the server asks for, not past a moment that matters."""
    if problem is not None:
        asked = problem.retry_after if isinstance(problem, ApiError) else None
        return max(pause, asked or 0.0)
    if verdict is None:
        return pause
    pause = max(pause - verdict.age, 0.001)
    return pause if verdict.again is None else min(pause, max(verdict.again, 0.001))
