"""Looking again: at once, then after growing pauses, and a last time at the deadline."""

from __future__ import annotations

import random
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import ext_sdk

SHARE = 0.1  # of the time already waited
SHORTEST, LONGEST = 0.025, 0.5  # seconds of a pause


def intervals(deadline: ext_sdk.Deadline) -> Iterator[float]:
    """Yields seconds since the beginning, once at once and once at the deadline at the latest; in between, sleeps."""
    start = time.monotonic()
    yield 0.0
    while not deadline.expired:
        waited = time.monotonic() - start
        pause = min(max(waited * SHARE, SHORTEST), LONGEST) * random.uniform(0.9, 1.1)  # noqa: S311
        deadline.wait(pause)
        if not deadline.stopped.is_set():
            yield time.monotonic() - start
