"""How long an operation may still take, and whether it has been told to stop."""

from __future__ import annotations

import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .duration import Duration

_NEVER = float("inf")


class Deadline:
    """A moment on the monotonic clock, and the signal to stop before it.

    Args:
        seconds: from now; None: no limit.
        stopped: set when the call must end at once: the host has gone, or the extension shuts down.
        latest: seconds from now after which the result is lost, since the call was answered without it; None: no limit.

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
        """Seconds left, 0.0 when over or stopped; infinite where there is no limit."""
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
        """Return the sooner of this and `duration` (or seconds) from now; stopped together with this one."""
        if duration is None:
            return self
        seconds = duration if isinstance(duration, (int, float)) else duration.seconds
        sooner = Deadline(seconds, self.stopped)
        sooner._at = min(sooner._at, self._at)
        sooner._latest = self._latest
        sooner._began = self._began
        return sooner

    def wait(self, seconds: float) -> bool:
        """Wait, but not beyond the deadline. Returns whether time is left; False at once when stopped."""
        self.stopped.wait(min(seconds, self.remaining(), threading.TIMEOUT_MAX))
        return not self.expired
