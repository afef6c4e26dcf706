"""Wait loop for the API server: verdicts on what a poll read, transient errors, Retry-After and pauses."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from ext_kubernetes.api.errors import ApiError, KubernetesError
from ext_sdk.polling import attempts_until

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    import ext_sdk


T = TypeVar("T")
V = TypeVar("V")
SHORTEST_SECONDS = 0.001


class Pace(NamedTuple):
    """Length of pauses: a share of the time already waited, within limits in seconds."""

    share: float
    shortest: float
    longest: float

    def pause(self, waited: float) -> float:
        """Return the seconds until the next poll, after `waited` seconds."""
        return min(max(waited * self.share, self.shortest), self.longest)


POLLING = Pace(share=0.09, shortest=0.023, longest=0.45)  # with the jitter: within 10 %, 25 ms and 500 ms


class Verdict(NamedTuple):
    """Result of evaluating a poll.

    Attributes:
        done: the wait has succeeded.
        status: the state as a short text, done or not.
        failed_reason: the reason why the wait can't succeed any more; "" if it can.
        recheck_after: seconds after which time alone may change the verdict; None if only a change of objects can.
        data_age: seconds since the data was read; a concurrent wait may have read it.
    """

    done: bool
    status: str
    failed_reason: str = ""
    recheck_after: float | None = None
    data_age: float = 0.0


class WaitOutcome(NamedTuple):
    """End of a wait.

    Attributes:
        verdict: of the last poll that got a response; None if none did.
        last_error: the error of the last poll; None if it got a response.
    """

    verdict: Verdict | None
    seconds: float
    polls: int
    last_error: KubernetesError | None = None

    @property
    def done(self) -> bool:
        """Return True if the wait has succeeded."""
        return self.last_error is None and self.verdict is not None and self.verdict.done

    @property
    def timed_out(self) -> bool:
        """Return True if the state was read, and only more time can change it."""
        return self.verdict is not None and not (self.done or self.failed_reason)

    @property
    def failed_reason(self) -> str:
        """Return the reason why the wait was given up early; "" if it was not."""
        return self.verdict.failed_reason if self.verdict and self.last_error is None else ""


def wait_until(
    check: Callable[[float], Verdict],
    deadline: ext_sdk.Deadline,
    *,
    wake: Callable[[float], bool] | None = None,
    pace: Callable[[], Pace] = lambda: POLLING,
    clock: Callable[[], float] = time.monotonic,
    uniform: Callable[[float, float], float] | None = None,
) -> WaitOutcome:
    """Poll until the wait succeeds or fails permanently, or until the deadline, with a last poll there.

    A wait that fails is returned, not raised. Transient errors (429, 5xx, no connection) are retried, after the time
    that the server asks for.

    Args:
        check: polls, and evaluates the result. Its argument is the maximum age in seconds of data that a concurrent
            wait has read; 0 requires a request, which the first and the last poll make.
        wake: waits up to the given seconds for a notification of changes; returns True if there was one.
        pace: returns the pace of pauses; called before each pause.

    Raises:
        KubernetesError: a permanent error, such as forbidden or an unknown kind.
    """
    verdict: Verdict | None = None
    error: KubernetesError | None = None

    for attempt in attempts_until(
        deadline, lambda attempt: pace().pause(attempt.elapsed()), wait=wake, clock=clock, uniform=uniform
    ):
        try:
            verdict, error = check(0.0 if attempt.last else attempt.pause), None
        except KubernetesError as failure:
            if not failure.retryable:
                raise
            error = failure
            attempt.at_least = (failure.retry_after if isinstance(failure, ApiError) else None) or 0.0
        else:
            if verdict.done or verdict.failed_reason:
                break
            attempt.age, attempt.at_least = verdict.data_age, SHORTEST_SECONDS
            if verdict.recheck_after is not None:
                attempt.at_most = max(verdict.recheck_after, SHORTEST_SECONDS)
    return WaitOutcome(verdict, attempt.elapsed(), attempt.number, error)


def retry_until_deadline(call: Callable[[], T], deadline: ext_sdk.Deadline) -> T:
    """Call a function, again after transient errors until the deadline; return its result. Raises KubernetesError."""
    results: list[T] = []

    def check(_age: float) -> Verdict:
        results.append(call())
        return Verdict(done=True, status="")

    outcome = wait_until(check, deadline)
    if outcome.last_error is not None:
        raise outcome.last_error
    return results[-1]


def same_step(args: ext_sdk.Args) -> dict[str, object]:
    """Return the arguments that the next step must have, too, to continue this one."""
    return {name: getattr(args, name) for name in args.__struct_fields__ if name not in {"timeout", "on_timeout"}}


class Unfinished:
    """Work of this workdir and scope that a step began and, with `onTimeout: ok`, left to the next one; thread-safe."""

    def __init__(self) -> None:
        self._entries: dict[Hashable, object] = {}
        self._lock = threading.Lock()

    def keep(self, on_timeout: ext_sdk.OnTimeout, key: Hashable, value: object) -> None:
        """Keep what the next step needs, if it may continue this one."""
        if on_timeout == "ok":
            with self._lock:
                self._entries[key] = value

    def take(self, key: Hashable, kind: type[V]) -> V | None:
        """Return what a previous step kept, once; None if it kept nothing."""
        with self._lock:
            value = self._entries.pop(key, None)
        return value if isinstance(value, kind) else None
