"""Deadline of an operation, and attempts until it: the loop of every wait and every retry.

The loop decides when to try again; its body evaluates each result, and leaves the loop once it has what it needs:

    for attempt in attempts_until(context.deadline, exponential(first=0.05, longest=1.0)):
        checks = look()
        if passed(checks):
            break
"""

from __future__ import annotations

import math
import threading
import time
from typing import Annotated, Literal

from msgspec import Meta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .duration import Duration


OnTimeout = Annotated[
    Literal["fail", "ok"],
    Meta(
        description="Result if the time is over: a failure, or a success with the output `done: false`, so that the "
        "next step can continue the wait. Permanent failures still fail"
    ),
]

_NEVER = float("inf")


class Clock:
    """Clock that deadlines use: the system's monotonic time. `ext_sdk.testing.FakeClock` replaces it in tests."""

    __slots__ = ()

    def now(self) -> float:
        """Return the time in seconds, from any origin."""
        return time.monotonic()

    def wait(self, stopped: threading.Event, seconds: float) -> None:
        """Wait, at most until `stopped` is set."""
        stopped.wait(seconds)


SYSTEM_CLOCK = Clock()


class Deadline:
    """Time on the monotonic clock, and a signal to stop before it.

    Args:
        seconds: from now; None: unlimited.
        stopped: set when the call must end at once: the host has gone, or the extension shuts down.
        latest: seconds from now after which the result is lost, because the server responds without it; None: never.
        clock: default: the system's.

    Attributes:
        seconds: as given; infinite if unlimited.
        clock: the clock that it reads.
    """

    __slots__ = ("_at", "_began", "_latest", "clock", "seconds", "stopped")

    def __init__(
        self,
        seconds: float | None = None,
        stopped: threading.Event | None = None,
        *,
        latest: float | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.clock = clock
        now = self._began = clock.now()
        self.seconds = _NEVER if seconds is None else seconds
        self._at = now + self.seconds
        self._latest = _NEVER if latest is None else now + latest
        self.stopped = stopped or threading.Event()

    def remaining(self) -> float:
        """Return the seconds left, 0.0 when over or stopped; infinite if unlimited."""
        if self.stopped.is_set():
            return 0.0
        return max(0.0, self._at - self.clock.now())

    def elapsed(self) -> float:
        """Return the seconds since the call began."""
        return self.clock.now() - self._began

    def remaining_for_result(self) -> float:
        """Return the seconds left to clean up and return a result, 0.0 if over; infinite if unlimited.

        This is longer than `remaining()`: an operation may stop its work at the deadline and still report it.
        """
        return max(0.0, self._latest - self.clock.now())

    @property
    def expired(self) -> bool:
        """True if the time is over."""
        return self.remaining() <= 0

    def limit(self, duration: Duration | float | None) -> Deadline:
        """Return the earlier of this and `duration` (or seconds) from now; both have the same stop signal."""
        if duration is None:
            return self
        seconds = duration if isinstance(duration, (int, float)) else duration.seconds
        earlier = Deadline(seconds, self.stopped, clock=self.clock)
        earlier._at = min(earlier._at, self._at)
        earlier._latest = self._latest
        earlier._began = self._began
        return earlier

    def wait(self, seconds: float) -> bool:
        """Wait, but not beyond the deadline. Return True if time is left; False at once when stopped."""
        self.clock.wait(self.stopped, min(seconds, self.remaining(), threading.TIMEOUT_MAX))
        return not self.expired


JITTER = 0.1  # share of a pause, to either side: waits that began together must not poll together
SLICE_SECONDS = 0.5  # between two checks whether a wait for a notification was stopped


class Attempt:
    """One attempt. The body of the loop may set the last three attributes, which change the pause that follows.

    Attributes:
        number: 1 for the first attempt.
        last: True if no attempt follows this one, because it is made at the deadline.
        pause: seconds planned, with jitter, between the previous attempt and this one; 0.0 for the first attempt. A
            notification or the deadline may have cut that pause short.
        base: the same seconds without jitter, as the backoff returned them.
        at_least: minimum seconds of the next pause, such as those of a Retry-After header.
        at_most: maximum seconds of the next pause, if the result may change at a known time. It overrides `at_least`.
        age: seconds since the data behind the result was read, if that was before the end of the attempt. The next
            pause is shorter by that.
    """

    __slots__ = ("_began", "_clock", "age", "at_least", "at_most", "base", "last", "number", "pause")

    def __init__(
        self,
        number: int,
        *,
        last: bool,
        pause: float = 0.0,
        base: float = 0.0,
        clock: Callable[[], float] = time.monotonic,
        began: float | None = None,
    ) -> None:
        self.number = number
        self.last = last
        self.pause = pause
        self.base = base
        self.at_least = 0.0
        self.at_most = math.inf
        self.age = 0.0
        self._clock = clock
        self._began = clock() if began is None else began

    def elapsed(self) -> float:
        """Return the seconds since the first attempt began."""
        return self._clock() - self._began


def exponential(first: float, longest: float, growth: float = 1.5) -> Callable[[Attempt], float]:
    """Return an exponential backoff: each pause is `growth` times as long as the previous one.

    Args:
        first: seconds of the first pause, which is also the minimum.
        longest: maximum seconds of the later pauses, unless `first` is more.
        growth: factor from one pause to the next.
    """
    return lambda attempt: max(first, min(attempt.base * growth, longest))


def at_deadline(_seconds: float) -> float:
    """Begin the last attempt at the deadline: it takes next to no time."""
    return 0.0


def attempts_until(
    deadline: Deadline,
    backoff: Callable[[Attempt], float],
    *,
    reserve: Callable[[float], float] | None = at_deadline,
    wait: Callable[[float], bool] | None = None,
    jitter: float = JITTER,
    clock: Callable[[], float] | None = None,
    uniform: Callable[[float, float], float] | None = None,
) -> Iterator[Attempt]:
    """Yield attempts: the first one at once, the others after pauses, until the deadline.

    There is at least one attempt, and none after `deadline.stopped` is set. Exceptions of the body leave the loop: to
    retry after a transient error, catch it in the body. All times are in seconds.

    Args:
        deadline: time limit of all attempts together. `deadline.limit(0)` gives a single attempt.
        backoff: returns the pause after an attempt, without jitter; called after the body, so `elapsed()` and what the
            body learned count. See `exponential`.
        reserve: returns the time to keep before the deadline for the last attempt, given the duration of the latest
            one. The last pause is shortened to end then; no attempt begins in the reserved time. None: there is no
            such last attempt, the loop ends as soon as a whole pause does not fit before the deadline.
        wait: waits up to the given time; returns True if a notification ended it early. Default: `deadline.wait`. It
            must return soon after `deadline.stopped` is set, see `interruptible`.
        jitter: share of each pause by which chance may shorten or lengthen it; 0.0 suits local resources.
        clock: returns the current time. Default: that of the deadline.
        uniform: returns a random number between two. Default: `random.uniform`.
    """
    clock = clock or deadline.clock.now
    began = clock()
    attempt = Attempt(1, last=deadline.expired, clock=clock, began=began)
    while True:
        started = clock()
        yield attempt
        if attempt.last or deadline.stopped.is_set():
            return
        base = pause = backoff(attempt)
        if jitter:
            if uniform is None:
                import random  # takes 5 ms, and most waits end with the first attempt

                uniform = random.uniform
            pause *= uniform(1 - jitter, 1 + jitter)
        seconds = min(max(pause - attempt.age, attempt.at_least), attempt.at_most)
        room = deadline.remaining() - (reserve(clock() - started) if reserve else 0.0)
        if room < 0 or (reserve is None and seconds >= room):
            return
        notified = False
        if wait is None:
            deadline.wait(min(seconds, room))
        else:
            notified = wait(min(seconds, room))
        if deadline.stopped.is_set():
            return
        last = deadline.expired or (seconds >= room and not notified)
        attempt = Attempt(attempt.number + 1, last=last, pause=pause, base=base, clock=clock, began=began)


def interruptible(
    wait: Callable[[float], bool], deadline: Deadline, *, clock: Callable[[], float] = time.monotonic
) -> Callable[[float], bool]:
    """Return a `wait` for attempts_until that ends soon after `deadline.stopped` is set.

    Args:
        wait: waits up to the given seconds for a notification; returns True if there was one, as Event.wait does.
        deadline: the one that may be stopped; its time limit does not matter here.
        clock: returns the current time in seconds.
    """

    def sliced(seconds: float) -> bool:
        until = clock() + seconds
        while (left := until - clock()) > 0 and not deadline.stopped.is_set():
            if wait(min(left, SLICE_SECONDS)):
                return True
        return False

    return sliced
