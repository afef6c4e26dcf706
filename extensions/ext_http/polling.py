"""When to ask again: at once, then after growing pauses, and a last time shortly before the deadline."""

from __future__ import annotations

import random
from datetime import UTC
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import ext_sdk

GROWTH = 1.5  # of each pause over the one before
JITTER = 0.1  # of a pause, to either side: many that began together shall not ask together
LAST_SHARE = 0.2  # of all the time, at most, that is kept for the last attempt
LAST_LEAST = 0.25  # seconds: a busy machine may take that for an answer of a millisecond
LAST_MOST = 1.0  # seconds
LONGEST_NUMBER = 10  # digits of a Retry-After: more than a century


class Backoff:
    """The pauses of one wait.

    Args:
        deadline: of all attempts together.
        first: seconds of the first pause.
        longest: seconds of the longest one.
        jitter: gives a number between two.
    """

    def __init__(
        self,
        deadline: ext_sdk.Deadline,
        first: float,
        longest: float,
        jitter: Callable[[float, float], float] = random.uniform,
    ) -> None:
        self._deadline = deadline
        self._pause = first
        self._longest = max(first, longest)
        self._jitter = jitter
        self._total = deadline.remaining()
        self._last = False

    def again(self, attempt: float, asked: float = 0.0) -> bool:
        """Wait until the next attempt. Returns False at once when there is no time for another one.

        Args:
            attempt: seconds that the last one took; the last of all is begun so early that it can end.
            asked: seconds that the server asks to be left alone.
        """
        spare = min(max(LAST_LEAST, 2 * attempt), LAST_SHARE * self._total, LAST_MOST)
        room = self._deadline.remaining() - spare
        if self._last or room <= 0:
            return False
        pause = max(self._pause * self._jitter(1 - JITTER, 1 + JITTER), asked)
        self._last = pause >= room
        self._pause = min(self._pause * GROWTH, self._longest)
        return self._deadline.wait(min(pause, room))


def retry_after(value: str, now: float) -> float:
    """Seconds that a Retry-After header asks for, by a number or by a date (RFC 9110, 10.2.3); 0 for anything else.

    Args:
        value: of the header.
        now: seconds since 1970.
    """
    if value.isdecimal():
        return float(value) if len(value) < LONGEST_NUMBER else 0.0
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(value)
        return max(0.0, (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now)
    except (ValueError, OverflowError):
        return 0.0
