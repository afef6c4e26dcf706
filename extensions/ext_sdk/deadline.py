"""Deadline of an operation, and the signal to stop it."""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .duration import Duration

_NEVER = float("inf")


class Deadline:
    """Time on the monotonic clock, and a signal to stop before it.

    Args:
        seconds: from now; None: no limit.
        stopped: set when the call must end at once: the host has gone, or the extension shuts down.
        latest: seconds from now after which the result is lost, because the server responds without it; None: no limit.

    Attributes:
        seconds: as given; infinite if there is no limit.
    """

    __slots__ = ("_at", "_began", "_latest", "seconds", "stopped")

    def __init__(
        self,
        seconds: float | None = None,
        stopped: threading.Event | None = None,
        *,
        latest: float | None = None,
    ) -> None:
        now = self._began = time.monotonic()
        self.seconds = _NEVER if seconds is None else seconds
        self._at = now + self.seconds
        self._latest = _NEVER if latest is None else now + latest
        self.stopped = stopped or threading.Event()

    def remaining(self) -> float:
        """Return the seconds left, 0.0 when over or stopped; infinite if there is no limit."""
        if self.stopped.is_set():
            return 0.0
        return max(0.0, self._at - time.monotonic())

    def elapsed(self) -> float:
        """Return the seconds since the call began."""
        return time.monotonic() - self._began

    def remaining_for_result(self) -> float:
        """Return the seconds left to clean up and return a result, 0.0 if over; infinite if there is no limit.

        This is longer than `remaining()`: an operation may stop its work at the deadline and still report it.
        """
        return max(0.0, self._latest - time.monotonic())

    @property
    def expired(self) -> bool:
        """True if there is no time left."""
        return self.remaining() <= 0

    def limit(self, duration: Duration | float | None) -> Deadline:
        """Return the earlier of this and `duration` (or seconds) from now; both have the same stop signal."""
        if duration is None:
            return self
        seconds = duration if isinstance(duration, (int, float)) else duration.seconds
        earlier = Deadline(seconds, self.stopped)
        earlier._at = min(earlier._at, self._at)
        earlier._latest = self._latest
        earlier._began = self._began
        return earlier

    def wait(self, seconds: float) -> bool:
        """Wait, but not beyond the deadline. Return True if time is left; False at once when stopped."""
        self.stopped.wait(min(seconds, self.remaining(), threading.TIMEOUT_MAX))
        return not self.expired
