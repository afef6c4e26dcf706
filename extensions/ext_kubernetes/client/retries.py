"""When a request is sent again, and when it must not be."""

from __future__ import annotations

import random

from ext_kubernetes.errors import ApiError, KubernetesError, Unreachable

RETRIES = 4
FIRST_PAUSE = 0.05  # seconds before the first retry; doubles
LONGEST_PAUSE = 1.0  # seconds between two attempts, unless the server asks for more
SAFE_TO_REPEAT = frozenset({"GET", "PUT", "PATCH", "DELETE"})  # a POST that may have arrived is not sent again


def counts(error: KubernetesError) -> bool:
    """Return whether a failure uses up one of the RETRIES.

    One that asks to wait does not, nor a refusal by a server that is coming back: both end, at the latest, with the
    operation's deadline.
    """
    return not isinstance(error, ApiError) or (error.retry_after is None and not error.passing)


def pause_before(error: KubernetesError, method: str, pause: float) -> float | None:
    """Seconds to wait before the request is sent again; None: it must not be."""
    if not error.retryable:
        return None
    if isinstance(error, Unreachable) and error.sent and method not in SAFE_TO_REPEAT:
        return None
    if isinstance(error, ApiError):
        if error.status not in {429, 503} and method not in SAFE_TO_REPEAT:
            return None
        if error.retry_after is not None:
            return max(error.retry_after, pause)
    return pause * random.uniform(0.75, 1.25)  # noqa: S311  (so that many don't come back at the same time)
